"""How an index of an older version becomes one of this version: Alembic's revisions."""
