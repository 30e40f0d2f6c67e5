"""The tables of the index, and their version: a change of a table raises the version, and every index is then built again.

The table `store` keeps its name and its columns: they say which store an index of any version belongs to.
"""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
)
from sqlalchemy.dialects.postgresql import JSONB

VERSION = 5
TABLES = MetaData()

STORE = Table(
    "store",
    TABLES,
    Column("identity", String(32), primary_key=True),
    Column("folder", Text, nullable=False),
    Column("version", Integer, nullable=False),  # of all tables
)

_SEARCHED = JSON().with_variant(JSONB(), "postgresql")

RUNS = Table(
    "runs",
    TABLES,
    Column("id", String(32), primary_key=True),
    Column("kind", String(40), nullable=False),
    Column("status", String(10), nullable=False),
    Column("code", Text, nullable=False),
    Column("spec", _SEARCHED, nullable=False),
    Column("brief", _SEARCHED, nullable=False),  # the outcome without its long lists
    Column("error", Text),
    Column("attempts", Integer, nullable=False),
    Column("started", String(40), nullable=False),
    Column("ended", String(40), nullable=False),
    Column("seconds", Float),
    Column(
        "written", BigInteger, nullable=False
    ),  # `record_mark` of the file run.json: shows whether it has changed
    Column("outcome_checksum", BigInteger, nullable=False),  # of its text in the table of outcomes
    Index("runs_by_end", "ended", "id"),
    Index("runs_by_status", "status", "ended", "id"),
)

# In a table of their own, since they are large; as text, since JSONB would turn 1e22 into an integer and -0.0 into 0.
OUTCOMES = Table(
    "outcomes",
    TABLES,
    Column("run", String(32), ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("outcome", JSON, nullable=False),
)

STUDIES = Table(
    "studies",
    TABLES,
    Column("name", String(100), primary_key=True),
    Column("kind", String(40), nullable=False),
    Column("spec", JSON, nullable=False),
    Column("axes", JSON, nullable=False),
    Column("written", BigInteger, nullable=False),
)

# place: the row-major number of the place along the axes.
POINTS = Table(
    "study_points",
    TABLES,
    Column("study", String(100), ForeignKey("studies.name", ondelete="CASCADE"), primary_key=True),
    Column("place", BigInteger, primary_key=True),
    Column("run", String(32), nullable=False),
    Index("study_points_by_run", "run"),
)

# The 256 folders of runs as they were when the index last agreed with them.
PARTS = Table(
    "parts",
    TABLES,
    Column("part", String(2), primary_key=True),
    Column("written", BigInteger, nullable=False),
)

# How many rows these tables have, and the sum of their checksums, kept by every transaction that writes them (on SQLite).
TALLY = Table(
    "tally",
    TABLES,
    Column("name", String(20), primary_key=True),
    Column("rows", BigInteger, nullable=False),
    Column("total", BigInteger, nullable=False),
)
