"""No password of an address is ever shown or stored."""

import errno
import os
import traceback
from pathlib import Path
from urllib.parse import quote

import pytest
from sqlalchemy.exc import OperationalError

from mesascope.records import RecordError, RunFolders, open_store, without_passwords
from mesascope.records.store._urls import plain_errors, sqlite_url

SECRET = "s3cr€t/p@ss word"


@pytest.mark.parametrize("form", ["authority", "query"])
def test_no_error_shows_a_password(folders, form, capfd):
    written = quote(SECRET, safe="")
    url = {
        "authority": f"postgresql://me:{written}@127.0.0.1:1/runs",
        "query": f"postgresql://me@127.0.0.1:1/runs?password={written}",
    }[form]
    for call in (lambda: open_store(folders.root, url), lambda: open_store(url)):
        with pytest.raises(RecordError) as caught:
            call()
        message = "".join(traceback.format_exception(caught.value))
        assert "postgresql://me@127.0.0.1:1/runs" in str(caught.value) and "PGPASSWORD" in str(caught.value)
        for secret in (SECRET, written, "s3cr"):
            assert secret not in message
        assert "\n" not in str(caught.value)
    with pytest.raises(RecordError) as caught:
        open_store(folders.root, f"postgresql://me:{SECRET}@host:port/runs")
    assert "s3cr" not in str(caught.value) and "%40" in str(caught.value)
    assert "s3cr" not in "".join(capfd.readouterr())


def test_no_password_is_written_or_shown(folders, postgresql, made, server, monkeypatch):
    """The server trusts everybody: what is asked is where the password goes."""
    url = postgresql.replace("postgres:@", f"postgres:{SECRET[:5]}hidden@")
    with open_store(folders.root, url) as store:
        store.enter([made.compute(folders, 1)])
        assert "hidden" not in repr(store) + store.index
    dump = server.psql(
        f"\\c {store.index.rpartition('/')[2].partition('?')[0]}\nSELECT * FROM store; SELECT * FROM runs;"
    )
    assert made.planned(1).id in dump and "hidden" not in dump
    titles = [file.read_bytes() for file in Path("/proc").glob("[0-9]*/cmdline") if os.access(file, os.R_OK)]
    assert not any(b"hidden" in title for title in titles) and "hidden" not in server.log.read_text()
    for path in folders.root.rglob("*"):
        assert not path.is_file() or b"hidden" not in path.read_bytes()
    monkeypatch.setenv("PGPASSWORD", "fromtheenvironment")
    with open_store(folders.root, postgresql.replace(":@", "@")) as store:
        assert store.count() == 1


@pytest.mark.parametrize(
    "meant",
    [
        "postgresql:/me:{}@host/runs",
        "postgres//me:{}@host/runs",
        " postgresql://me:{}@host/runs",
        "postgresql://me:{}@host:port/runs",
        "sqlite://me:{}@host/runs",
        "mysql://me:{}@host/runs?password={}",
        "postgresql://me:{}@127.0.0.1:1/runs?connect_timeout=soon",
        "postgresql://me:{}@127.0.0.1:1/runs?colour={}",
    ],
)
def test_invalid_addresses_are_reported_without_passwords(folders, meant):
    url = meant.replace("colour={}", "colour=red").replace("{}", "hidden")
    for call in (lambda: open_store(url), lambda: open_store(folders.root, url)):
        with pytest.raises(RecordError) as caught:
            call()
        assert "hidden" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "meant",
    [
        "postgresql://me:{}@x@127.0.0.1:1/runs",
        "postgresql://me:x@{}@127.0.0.1:1/runs",
        "postgresql://me@127.0.0.1:1/runs?password=x@{}",
        "postgresql://127.0.0.1:1/runs?password=x@{}",
        "postgresql://me@127.0.0.1:1/runs?passwd={}",
        "postgresql://me@127.0.0.1:1/runs?{}=1",
        "host=127.0.0.1 port=1 password={}",
        "user=me password='{}'",
        "postgres:/me:{}@127.0.0.1/runs",
        "postgresql:me:{}@127.0.0.1/runs",
        "postgresql//me:{}@127.0.0.1/runs",
        "//me:{}@127.0.0.1/runs",
        "me:{}@127.0.0.1:1/runs",
    ],
)
def test_what_looks_like_an_address_is_refused_and_makes_no_folder(meant, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    url = meant.replace("{}", "hidden")
    for call in (RunFolders, RunFolders.create, open_store):
        with pytest.raises(RecordError) as caught:
            call(url)
        assert "hidden" not in "".join(traceback.format_exception(caught.value))
        assert "postgresql://" in str(caught.value) or "PGPASSWORD" in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_folders_with_odd_names_are_stores(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a=0.1", "results 10:30", "./user=me", "a@b", "lr:1/a@b"):
        assert RunFolders.create(name).root == tmp_path / name
    with pytest.raises(RecordError, match="has 5000 letters") as caught:
        RunFolders.create("x" * 5000)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("at postgresql://me:a/b@c@host/x: no", "at postgresql://me:***@host/x: no"),
        ("https://:secret@host", "https://:***@host"),
        ("postgresql://me@host:5432/x", "postgresql://me@host:5432/x"),
        ("postgresql://host/x?sslpassword=a&user=b", "postgresql://host/x?sslpassword=***&user=b"),
        (
            "https://token@host/?access_token=a&api_key=b&c=d",
            "https://***@host/?access_token=***&api_key=***&c=d",
        ),
        ("spec.sigma=0.3 tokens=5 at http://host/x", "spec.sigma=0.3 tokens=5 at http://host/x"),
        ("http://host/?sig=a&pwd=b#access_token=c", "http://host/?sig=***&pwd=***#access_token=***"),
        ("databricks://token@host", "databricks://***@host"),
        ("?" + 4000 * "key", "?" + 4000 * "key"),
        ("spec.a: 3 @ home, see http://host/x", "spec.a: 3 @ home, see http://host/x"),
    ],
)
def test_passwords_are_hidden_and_nothing_else(text, message):
    assert without_passwords(text) == message


@pytest.mark.parametrize(
    ("said", "code"), [("database or disk is full", errno.ENOSPC), ("disk I/O error", errno.EIO)]
)
def test_a_full_disk_under_an_index_is_known_as_one(said, code):
    """The command line ends with 1 for it, and with 2 for bad input."""
    with pytest.raises(RecordError, match="make room") as caught, plain_errors(sqlite_url("/a/b")):
        raise OperationalError("INSERT", None, OSError(said))
    assert caught.value.__cause__.errno == code
