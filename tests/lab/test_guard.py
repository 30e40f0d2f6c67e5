"""The server answers its own pages and whoever has its token, and nobody else."""

import asyncio
from hashlib import sha256

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


def answers(kind, headers, token="", path="/", query=b"", method="GET"):
    """What the guarded application sends."""
    sent = []
    lines = [(name.encode(), value.encode()) for name, value in ({"host": HOST} | headers).items()]

    async def receive():
        return {"type": f"{kind}.connect" if kind == "websocket" else "http.request"}

    async def send(message):
        sent.append(message)

    scope = {"type": kind, "path": path, "query_string": query, "headers": lines, "method": method}
    asyncio.run(Guard(inner, token, 8450, ["/", "/expert"])(scope, receive, send))
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
        assert given[b"x-frame-options"] == b"SAMEORIGIN"
        assert given[b"content-security-policy"] == b"frame-ancestors 'self'"
        assert (b"x-own" in given) == own


TOKEN = "a token + ä"
KEY = sha256(TOKEN.encode()).hexdigest()
COOKIE = f"mesascope-lab-8450={KEY}"
ASKED = b"token=a%20token+%2B+%C3%A4"


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("http", "/"),
        ("http", "/_nicegui/client/1/download"),
        ("http", "/_nicegui_ws/socket.io/"),
        ("websocket", "/_nicegui_ws/socket.io/"),
    ],
)
@pytest.mark.parametrize(
    ("cookie", "open_to"),
    [
        (f"other=1; {COOKIE}", True),
        ("", False),
        (f"mesascope-lab-8451={KEY}", False),  # of a lab on another port
        ("mesascope-lab-8450=x", False),
        (f"mesascope-lab-8450={TOKEN}", False),
        ("mesascope-lab-8450", False),
    ],
)
def test_nothing_is_answered_without_the_cookie(kind, path, cookie, open_to):
    sent = answers(kind, {"cookie": cookie}, TOKEN, path)
    if kind == "websocket":
        assert sent[0]["type"] == ("websocket.accept" if open_to else "websocket.close")
    else:
        assert sent[0]["status"] == (200 if open_to else 403)
        assert open_to or b"open the address with the token" in sent[1]["body"]


@pytest.mark.parametrize(
    ("token", "query", "status", "place"),
    [
        (TOKEN, ASKED, 303, b"/"),
        (TOKEN, b"dim=5&%s&law.kind=gaussian" % ASKED, 303, b"/?dim=5&law.kind=gaussian"),
        (TOKEN, b"token=", 403, None),
        (TOKEN, b"token=x", 403, None),
        (TOKEN, b"token=x&" + ASKED, 403, None),
        ("", b"dim=5&token=x", 303, b"/?dim=5"),  # of a start before, with a token
    ],
)
def test_the_token_is_exchanged_for_a_cookie(token, query, status, place):
    (start, _) = answers("http", {}, token, "/", query)
    given = dict(start["headers"])
    assert (start["status"], given.get(b"location")) == (status, place)
    cookie = f"{COOKIE}; Path=/; HttpOnly; SameSite=Lax".encode() if token and status == 303 else None
    assert given.get(b"set-cookie") == cookie


def test_the_token_opens_no_other_path_and_no_socket():
    assert answers("http", {}, TOKEN, "/nowhere", ASKED)[0]["status"] == 403
    assert answers("websocket", {}, TOKEN, "/", ASKED)[0]["type"] == "websocket.close"


@pytest.mark.parametrize(
    ("length", "status"),
    [
        ({"content-length": "1048576"}, 200),
        ({"content-length": str(2**22)}, 413),
        ({}, 413),
        ({"content-length": "-1"}, 413),
    ],
)
def test_large_bodies_and_those_of_unknown_length_are_not_read(length, status):
    assert answers("http", OWN | length, method="POST")[0]["status"] == status
    assert answers("http", OWN | length)[0]["status"] == 200  # what is asked for by GET has none
