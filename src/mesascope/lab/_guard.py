"""Which requests the server answers: those of its own pages, and of whoever opens its address; none of other sites."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

_REFUSAL = b"mesascope lab answers its own pages only; open its address in the browser\n"
_HEADERS = [
    (b"content-security-policy", b"frame-ancestors 'none'"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
]


class Guard:
    """An ASGI application that refuses requests and sockets of other sites, and frames in them.

    Starlette's `TrustedHostMiddleware` checks the `Host`, for names of other sites that resolve to this machine; here the
    `Origin` must be that host.
    """

    def __init__(self, app: Callable[[Message, Receive, Send], Awaitable[None]]) -> None:
        self._app = app

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
        elif not _is_own({name: value.decode("latin-1") for name, value in scope["headers"]}):
            await _refuse(scope, receive, send)
        else:
            await self._app(scope, receive, _with_headers(send))


def _is_own(headers: dict[bytes, str]) -> bool:
    """Whether a request comes from a page of this server, from no page at all, or opens one by a link."""
    origin = headers.get(b"origin")
    if origin is not None:
        return origin == f"http://{headers.get(b'host', '')}"
    if headers.get(b"sec-fetch-site", "none") in ("none", "same-origin"):
        return True
    return (headers.get(b"sec-fetch-mode"), headers.get(b"sec-fetch-dest")) == ("navigate", "document")


async def _refuse(scope: Message, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await receive()  # the request to connect
        await send({"type": "websocket.close", "code": 1008})
        return
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"%d" % len(_REFUSAL))]
    await send({"type": "http.response.start", "status": 403, "headers": [*headers, *_HEADERS]})
    await send({"type": "http.response.body", "body": _REFUSAL})


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), *_HEADERS]
        await send(message)

    return sending
