"""Limits for connections that send no proper request."""

from __future__ import annotations

import asyncio
import resource

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

PATIENCE = 30.0  # seconds for a whole header
_MAX_CONNECTIONS = 2**16


class Requests(HttpToolsProtocol):
    """uvicorn's protocol, which closes a connection without a whole header after half a minute.

    uvicorn itself waits without end. Its websockets fail on headers that are not ASCII: these are answered with 400.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for a request."""
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._end.cancel()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """Wait for the headers of one more request."""
        self._end.cancel()
        self._wait()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Answer."""
        self._end.cancel()
        super().on_headers_complete()

    def _wait(self) -> None:
        self._end = self.loop.call_later(PATIENCE, self.transport.close)

    def handle_websocket_upgrade(self) -> None:
        """Hand the connection over to a websocket."""
        if all(value.isascii() for _, value in self.headers):
            super().handle_websocket_upgrade()
        else:
            self.send_400_response("headers must be text")


def allow_many_connections() -> None:
    """Raise the number of files that may be open to what the system allows: each connection is one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MAX_CONNECTIONS if hard == resource.RLIM_INFINITY else min(hard, _MAX_CONNECTIONS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
