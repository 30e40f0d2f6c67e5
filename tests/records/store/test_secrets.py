"""No password of an address is ever shown or stored."""

import traceback
from urllib.parse import quote

import pytest

from mesascope.records import RecordError, open_store, without_passwords

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
    ("text", "message"),
    [
        ("at postgresql://me:a/b@c@host/x: no", "at postgresql://me:***@host/x: no"),
        ("https://:secret@host", "https://:***@host"),
        ("postgresql://me@host:5432/x", "postgresql://me@host:5432/x"),
        ("postgresql://host/x?sslpassword=a&user=b", "postgresql://host/x?sslpassword=***&user=b"),
        ("spec.a: 3 @ home, see http://host/x", "spec.a: 3 @ home, see http://host/x"),
    ],
)
def test_passwords_are_hidden_and_nothing_else(text, message):
    assert without_passwords(text) == message
