"""URLs of databases: read, and printed without their passwords."""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote, quote_plus

from sqlalchemy import URL, make_url
from sqlalchemy.exc import SQLAlchemyError

from mesascope.records._files import RecordError


class DamagedIndexError(RecordError):
    """An index is damaged, or belongs to another store. The store's own file is then built again from the folders.

    Attributes:
        what: what is wrong, without the remedy.
    """

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(f"{what}; {remedy}")
        self.what = what


_SECRETS = ("password", "sslpassword", "passfile", "oauth_client_secret")
_UNREADABLE = (
    "the URL of the index cannot be read; write postgresql://USER@HOST:PORT/DATABASE, and characters such as @ and / in "
    "a password as %40 and %2F"
)
_DRIVERS = {
    "sqlite": "sqlite",
    "sqlite+pysqlite": "sqlite",
    "postgresql": "postgresql+psycopg",
    "postgres": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
}


def is_url(where: object) -> bool:
    """Whether this is the URL of a database, not a folder."""
    return isinstance(where, str) and re.match(r"[A-Za-z][\w+.-]*://", where) is not None


def read_url(text: str) -> URL:
    """The URL of an index.

    Raises:
        RecordError: it is no URL, or that of an unsupported database; the message repeats no password.
    """
    try:
        url = make_url(text)
    except (SQLAlchemyError, ValueError):
        raise RecordError(_UNREADABLE) from None
    driver = _DRIVERS.get(url.drivername)
    if driver is None:
        raise RecordError(
            f"an index on {url.drivername!r} is not supported; use postgresql://… or sqlite:///…"
        )
    if driver != "sqlite" and not _one_at(text):
        raise RecordError(_UNREADABLE)
    bare = not (url.host or url.username or url.password or url.query)
    if driver == "sqlite" and not (bare and (url.database or ":memory:") != ":memory:"):
        raise RecordError(
            "an index on SQLite needs a file and nothing else: sqlite:////folder/index.sqlite (four slashes)"
        )
    if driver != "sqlite" and not set(url.query) <= _options():
        raise RecordError(
            "the URL of the index has an option that PostgreSQL does not have (it is not repeated here: it may be a "
            "password); use options such as connect_timeout and sslmode, and PGPASSWORD for the password"
        )
    return url.set(drivername=driver)


def _one_at(text: str) -> bool:
    """Whether the address has at most one @, in its authority: a second one is of a password, whose end would be a host."""
    authority = re.split("[/?#]", text.partition("://")[2], maxsplit=1)[0]
    return text.count("@") == authority.count("@") <= 1


@lru_cache(maxsize=1)
def _options() -> frozenset[str]:
    """The options of a connection that the installed library of PostgreSQL knows."""
    from psycopg.pq import Conninfo

    return frozenset(option.keyword.decode() for option in Conninfo.get_defaults())


def sqlite_url(file: Path) -> URL:
    """The URL of an index in a file."""
    return URL.create("sqlite", database=str(file))


def shown(url: URL) -> str:
    """A URL without passwords, to be printed and recorded."""
    query = {name: value for name, value in url.query.items() if name not in _SECRETS}
    bare = URL.create(
        url.drivername.partition("+")[0], url.username, None, url.host, url.port, url.database, query
    )
    return bare.render_as_string(hide_password=False)  # it has none


@contextmanager
def plain_errors(url: URL) -> Iterator[None]:
    """Give the errors of a database in one line, without the passwords of its URL.

    Raises:
        RecordError: in place of what SQLAlchemy or a driver raises.
    """
    try:
        yield
    except (SQLAlchemyError, UnicodeDecodeError, json.JSONDecodeError) as error:
        cause = getattr(error, "orig", None) or error
        said = " ".join(str(cause).split())
        for secret in _secrets(url):
            said = said.replace(secret, "***")
        # `from None`: the exception behind it may hold the password, and a traceback would show it.
        if url.get_backend_name() == "sqlite" and not any(sign in said for sign in _NO_DAMAGE):
            raise damaged(url, said) from None
        raise RecordError(f"index {shown(url)}: {said}; {_remedy(url, said)}") from _disk_error(said)


_DISK = {
    "disk is full": errno.ENOSPC,
    "No space left": errno.ENOSPC,
    "disk I/O error": errno.EIO,
}


def _disk_error(said: str) -> OSError | None:
    """The error of the system behind that of a database, by which callers know a full or failing disk."""
    code = next((code for sign, code in _DISK.items() if sign in said), None)
    return None if code is None else OSError(code, os.strerror(code))


# Errors of SQLite that say nothing against the file itself.
_NO_DAMAGE = ("locked", "disk is full", "disk I/O error", "unable to open", "readonly", "interrupted")


def damaged(url: URL, said: str) -> DamagedIndexError:
    """What to say of an index that is damaged, or of something else in its place."""
    return DamagedIndexError(
        f"index {shown(url)} is damaged, or no index ({said})",
        "remove it, and the next command builds it again from the folders of the runs",
    )


def _secrets(url: URL) -> list[str]:
    plain = [str(url.password)] if url.password else []
    for name in _SECRETS:
        value = url.query.get(name, ())
        plain += [value] if isinstance(value, str) else value
    forms = {
        form for secret in plain for form in (secret, quote(secret, safe=""), quote_plus(secret)) if form
    }
    return sorted(forms, key=len, reverse=True)


def _remedy(url: URL, said: str) -> str:
    if _disk_error(said) is not None:
        return "make room; runs that have ended are whole, and the next command enters them"
    if "locked" in said or "lock timeout" in said:
        return "another process has been writing for a minute; try again"
    if "statement timeout" in said or "not answered" in said:
        return "see whether the server is well and try again; the runs themselves are in their folders"
    if "permission denied" in said or "read-only transaction" in said:
        return "let this user read and write its tables, and create them in its schema at the first use"
    if said.startswith(('relation "', "column ")):
        return "its tables are not those of an index: give it an empty database or schema"
    if url.drivername == "sqlite":
        return (
            "check that its folder is there and writable, or keep an index of your own: "
            "--index sqlite:////FOLDER/FILE.sqlite"
        )
    return "check address, user and password (PGPASSWORD or ~/.pgpass keep it off the command line)"
