"""The server answers its own pages, and nobody else's."""

import asyncio

import pytest

from mesascope.lab._guard import Guard

HOST = "127.0.0.1:8450"
OWN = {"origin": f"http://{HOST}", "sec-fetch-site": "same-origin", "sec-fetch-mode": "cors"}
CROSS = {"sec-fetch-site": "cross-site"}


async def inner(scope, receive, send):
    if scope["type"] == "websocket":
        await send({"type": "websocket.accept"})
        return
    await send({"type": "http.response.start", "status": 200, "headers": [(b"x-own", b"1")]})
    await send({"type": "http.response.body", "body": b"page"})


def answers(kind, headers):
    """What the guarded application sends."""
    sent = []
    lines = [(name.encode(), value.encode()) for name, value in ({"host": HOST} | headers).items()]

    async def receive():
        return {"type": f"{kind}.connect" if kind == "websocket" else "http.request"}

    async def send(message):
        sent.append(message)

    asyncio.run(Guard(inner)({"type": kind, "headers": lines}, receive, send))
    return sent


@pytest.mark.parametrize("kind", ["http", "websocket"])
@pytest.mark.parametrize(
    ("headers", "own"),
    [
        ({}, True),  # no browser, or the address typed into one of old
        ({"sec-fetch-site": "none", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}, True),
        (OWN, True),
        (CROSS | {"sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}, True),  # a link in a mail
        (CROSS | {"sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"}, False),
        (CROSS | {"sec-fetch-mode": "no-cors", "sec-fetch-dest": "script"}, False),
        ({"sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"}, False),
        ({"origin": "http://elsewhere.example"}, False),
        ({"origin": "http://127.0.0.1:9999"}, False),
        ({"origin": f"https://{HOST}"}, False),
        ({"origin": "null"}, False),  # a sandboxed frame
    ],
)
def test_only_its_own_pages_and_opened_addresses_are_answered(kind, headers, own):
    sent = answers(kind, headers)
    if kind == "websocket":
        assert sent[0]["type"] == ("websocket.accept" if own else "websocket.close")
    else:
        assert sent[0]["status"] == (200 if own else 403)
        given = dict(sent[0]["headers"])
        assert given[b"x-frame-options"] == b"DENY"
        assert given[b"content-security-policy"] == b"frame-ancestors 'none'"
        assert (b"x-own" in given) == own
