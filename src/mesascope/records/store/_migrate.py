"""Bringing an index to the tables of this version."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, inspect, text

from mesascope.records._files import RecordError

HEAD = "0001"
SCRIPTS = Path(__file__).with_name("migrations")


def revision(connection: Connection) -> str | None:
    """The revision of the tables that are there; None where there are none."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def upgrade(connection: Connection, name: str, scripts: Path = SCRIPTS) -> None:
    """Make the tables, or change those of an older version, in the transaction of the caller.

    Args:
        connection: of somebody who alone may write now.
        name: what to call the index in an error.
        scripts: folder of the revisions.

    Raises:
        RecordError: the index was made by a newer version.
    """
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(scripts).replace("%", "%%"))
    config.attributes["connection"] = connection
    found = revision(connection)
    known = {one.revision for one in ScriptDirectory.from_config(config).walk_revisions()}
    if found is not None and found not in known:
        raise RecordError(
            f"index {name} was written by a newer version of mesascope (revision {found}, here {HEAD}); upgrade "
            "mesascope, or let this version make an index of its own with --index sqlite:////FOLDER/NEW.sqlite"
        )
    command.upgrade(config, "head")
