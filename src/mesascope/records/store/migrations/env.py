"""Alembic runs this file; the connection and its transaction are given by `_migrate.py`."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], transactional_ddl=False)
context.run_migrations()
