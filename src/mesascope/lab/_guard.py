"""Which requests the server answers: those of whoever has its token, from its own pages; none of other sites and users."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from hashlib import sha256
from typing import Any
from urllib.parse import unquote_plus

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

_FOREIGN = b"mesascope lab answers its own pages only; open its address in the browser\n"
_LOCKED = b"mesascope lab is locked; open the address with the token that it printed when it started\n"
_LARGE = b"mesascope lab takes specifications of at most 1 MB\n"
_MAX_BODY = 2**21  # bytes; the page itself takes files of half of it
_PLAIN = [(b"content-type", b"text/plain; charset=utf-8")]
_HEADERS = [
    (b"content-security-policy", b"frame-ancestors 'self'"),
    (b"x-frame-options", b"SAMEORIGIN"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
]


class Guard:
    """An ASGI application that refuses requests and sockets of other sites and of other users, and frames in other sites.

    Starlette's `TrustedHostMiddleware` checks the `Host`, for names of other sites that resolve to this machine; here the
    `Origin` must be that host. The address of a page with `?token=…` gives the browser a cookie and leads on to the address
    without the token; nothing else is answered without the cookie. Browsers send it to every port of a host: its name has
    the port, and its value does not tell the token.

    Args:
        app: what is guarded.
        token: who has it may come in; empty for everybody.
        port: of the server.
        pages: addresses at which the token is taken.
    """

    def __init__(
        self,
        app: Callable[[Message, Receive, Send], Awaitable[None]],
        token: str,
        port: int,
        pages: Collection[str] = ("/",),
    ) -> None:
        self._app, self._token, self._pages = app, token, pages
        self._cookie = f"mesascope-lab-{port}={sha256(token.encode()).hexdigest()}"

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        token, query = self._without_token(scope)
        if not _is_own(headers):
            await _refuse(scope, receive, send, _FOREIGN)
        elif token is not None and (not self._token or _same(token, self._token)):
            await self._let_in(scope["path"], query, send)
        elif self._token and (token is not None or not self._has_cookie(headers)):
            await _refuse(scope, receive, send, _LOCKED)
        elif _is_large(scope, headers):
            await _answer(send, 413, _LARGE, _PLAIN)
        else:
            await self._app(scope, receive, _with_headers(send))

    def _has_cookie(self, headers: dict[bytes, str]) -> bool:
        return any(_same(one.strip(), self._cookie) for one in headers.get(b"cookie", "").split(";"))

    def _without_token(self, scope: Message) -> tuple[str | None, str]:
        """The token in the address of a page (None without one), and the query without it."""
        parts = scope.get("query_string", b"").decode("latin-1").split("&")
        given = [part for part in parts if part.startswith("token=")]
        if not given or scope["type"] != "http" or scope["path"] not in self._pages:
            return None, ""
        rest = (part for part in parts if part not in given)
        return unquote_plus(given[0].removeprefix("token=")), "&".join(rest)

    async def _let_in(self, page: str, query: str, send: Send) -> None:
        """Lead on to the page without the token."""
        headers = [(b"location", f"{page}{query and '?'}{query}".encode("latin-1"))]
        if self._token:
            headers.append((b"set-cookie", f"{self._cookie}; Path=/; HttpOnly; SameSite=Lax".encode()))
        await _answer(send, 303, b"", headers)


def _same(given: str, known: str) -> bool:
    """Whether two texts are equal, in a time that does not tell how much of them is."""
    return hmac.compare_digest(given.encode(), known.encode())


def _is_own(headers: dict[bytes, str]) -> bool:
    """Whether a request comes from a page of this server, from no page at all, or opens one by a link."""
    origin = headers.get(b"origin")
    if origin is not None:
        return origin == f"http://{headers.get(b'host', '')}"
    if headers.get(b"sec-fetch-site", "none") in ("none", "same-origin"):
        return True
    return (headers.get(b"sec-fetch-mode"), headers.get(b"sec-fetch-dest")) == ("navigate", "document")


def _is_large(scope: Message, headers: dict[bytes, str]) -> bool:
    """Whether a request brings more than a specification, or does not say how much; the server keeps it in memory."""
    if scope["type"] != "http" or scope["method"] in ("GET", "HEAD"):
        return False
    length = headers.get(b"content-length", "")
    return not length.isdecimal() or int(length) > _MAX_BODY


async def _refuse(scope: Message, receive: Receive, send: Send, why: bytes) -> None:
    if scope["type"] == "websocket":
        await receive()  # the request to connect
        await send({"type": "websocket.close", "code": 1008})
    else:
        await _answer(send, 403, why, _PLAIN)


async def _answer(send: Send, status: int, body: bytes, headers: list[tuple[bytes, bytes]]) -> None:
    more = [(b"content-length", b"%d" % len(body)), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": status, "headers": [*headers, *more, *_HEADERS]})
    await send({"type": "http.response.body", "body": body})


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), *_HEADERS]
        await send(message)

    return sending
