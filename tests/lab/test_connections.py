"""Connections that ask for nothing are closed, requests are answered."""

import asyncio

import pytest
from uvicorn.config import Config
from uvicorn.server import ServerState

from mesascope.lab import _connections


async def page(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]})
    await send({"type": "http.response.body", "body": b"page"})


async def answers(*sent):
    """What comes back until the server ends the connection, when these bytes are sent, one after the other was answered."""
    config = Config(page, log_config=None)
    config.load()
    state = ServerState()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: _connections.Requests(config=config, server_state=state, app_state={}), "127.0.0.1", 0
    )
    async with server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        found = []
        for part in sent:
            writer.write(part)
            found.append(await asyncio.wait_for(reader.read(1000), 5))
        writer.close()
    return found


@pytest.mark.parametrize("begun", [b"", b"GET / HTTP/1.1\r\nX: "])
def test_a_connection_without_a_whole_request_is_closed(monkeypatch, begun):
    monkeypatch.setattr(_connections, "PATIENCE", 0.2)
    assert asyncio.run(answers(begun)) == [b""]


def test_a_connection_is_closed_in_its_second_request_too(monkeypatch):
    monkeypatch.setattr(_connections, "PATIENCE", 0.2)
    whole = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
    first, second = asyncio.run(answers(whole, b"GET / HTTP/1.1\r\nX: "))
    assert first.endswith(b"page") and second == b""
