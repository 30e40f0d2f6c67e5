"""Runs, studies, their points, and what the index knows of the folders."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables."""
    searched = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
    op.create_table(
        "store",
        sa.Column("identity", sa.String(32), primary_key=True),
        sa.Column("folder", sa.Text, nullable=False),
    )
    op.create_table(
        "runs",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("kind", sa.String(40), nullable=False),
        sa.Column("state", sa.String(10), nullable=False),
        sa.Column("code", sa.Text, nullable=False),
        sa.Column("spec", searched, nullable=False),
        sa.Column("brief", searched, nullable=False),
        sa.Column("error", sa.Text),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("started", sa.String(40), nullable=False),
        sa.Column("ended", sa.String(40), nullable=False),
        sa.Column("seconds", sa.Float),
        sa.Column("written", sa.BigInteger, nullable=False),
    )
    op.create_index("runs_by_end", "runs", ["ended", "id"])
    op.create_index("runs_by_state", "runs", ["state", "ended", "id"])
    op.create_table(
        "outcomes",
        sa.Column("run", sa.String(32), sa.ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("outcome", sa.JSON, nullable=False),
    )
    op.create_table(
        "studies",
        sa.Column("name", sa.String(100), primary_key=True),
        sa.Column("kind", sa.String(40), nullable=False),
        sa.Column("spec", sa.JSON, nullable=False),
        sa.Column("axes", sa.JSON, nullable=False),
        sa.Column("written", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "study_points",
        sa.Column(
            "study", sa.String(100), sa.ForeignKey("studies.name", ondelete="CASCADE"), primary_key=True
        ),
        sa.Column("place", sa.BigInteger, primary_key=True),
        sa.Column("run", sa.String(32), nullable=False),
    )
    op.create_index("study_points_by_run", "study_points", ["run"])
    op.create_table(
        "parts",
        sa.Column("part", sa.String(2), primary_key=True),
        sa.Column("written", sa.BigInteger, nullable=False),
    )
