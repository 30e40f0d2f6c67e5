"""What keeps requests that are no requests from harming the server."""

from __future__ import annotations

import resource

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_MAX_CONNECTIONS = 2**16


class Requests(HttpToolsProtocol):
    """Requests of uvicorn, of which those for websockets have headers of text: others are an error in its websockets."""

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
