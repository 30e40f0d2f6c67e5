"""The server of the page: bound to this machine, everything it needs served by itself."""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from mesascope.specs import extra
from mesascope.studies import IdentifySpec

from ._jobs import Job
from ._log import log_printable_lines
from ._session import Lab
from ._setting import DEFAULT, read_setting
from ._sizes import WARMED

if TYPE_CHECKING:
    from nicegui import Client

HOST = "127.0.0.1"
_MAX_UNOPENED = 16  # pages that no browser has opened yet


def free_port(wanted: int) -> int:
    """Return the port if it is free; of 0, one that is.

    Raises:
        ValueError: something else listens there.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, wanted))
        except OSError as error:
            raise ValueError(
                f"--port {wanted}: cannot be used ({error.strerror}); take another, or 0 for any that is free"
            ) from None
        return int(probe.getsockname()[1])


def serve(
    port: int,
    records: list[Path],
    models: Mapping[str, IdentifySpec] | None = None,
    *,
    token: str = "",
    warm: bool,
    ready: Callable[[str], None],
) -> None:
    """Serve the page until interrupted.

    Args:
        port: on the loopback interface.
        records: folders of claim records; checks that are repeated go to the last.
        models: the user's own models, by the name that they are shown with.
        token: who opens the address with it may use the page; empty for every user of the machine.
        warm: compile common shapes while no job waits.
        ready: called with the address once it can be opened.
    """
    with extra("lab"):
        from nicegui import app, ui
        from starlette.middleware.trustedhost import TrustedHostMiddleware

        from ._claims_page import ClaimsPage
        from ._compare_page import ComparePage
        from ._connections import Requests, allow_many_connections
        from ._frame import Frame
        from ._guard import Guard
        from ._page import ExpertPage
        from .models._models_page import ModelsPage
        from .story._story_page import StoryPage

    log_printable_lines()
    allow_many_connections()
    lab = Lab(records, models)
    lab.submit(
        Job("facts", {"spec": read_setting(DEFAULT)}), "quick"
    )  # its process starts while the browser does

    unopened: deque[Client] = deque()

    def add_page(path: str, make: Callable[[Lab, str], Frame]) -> None:
        async def page() -> None:
            client = ui.context.client
            _make_room(unopened)
            unopened.append(client)
            window = make(lab, client.request.url.query)
            await client.connected()
            if client.is_deleted:  # before a browser came: `connected` returns then, too
                return
            unopened.remove(client)
            client.on_delete(window.session.close)
            await window.start()

        ui.page(path, title="mesascope lab", language="en-US")(page)

    pages = {make.path: make for make in (StoryPage, ExpertPage, ModelsPage, ClaimsPage, ComparePage)}
    for path, make in pages.items():
        add_page(path, make)
    app.add_middleware(Guard, token=token, port=port, pages=pages)
    # Refuses pages of other origins whose name was made to resolve to this machine.
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=[HOST, "localhost"])
    address = f"http://{HOST}:{port}/" + (f"?token={quote(token, safe='')}" if token else "")
    app.on_startup(lambda: _announce(port, lambda: ready(address)))
    if warm:
        app.on_startup(lambda: _warm(lab))
    app.on_shutdown(lambda: asyncio.to_thread(lab.close))  # in a thread: the event loop must go on
    ui.run(
        host=HOST,
        port=port,
        title="mesascope lab",
        reload=False,
        show=False,
        show_welcome_message=False,
        http=Requests,
        log_config=None,  # of uvicorn: all messages go the same way
        reconnect_timeout=10.0,
        tailwind=False,  # in the browser it scans the whole page after every change
    )


def _make_room(unopened: deque[Client]) -> None:
    """Close the oldest pages that no browser has opened; a browser that comes later opens its page again."""
    while len(unopened) >= _MAX_UNOPENED:
        if not (oldest := unopened.popleft()).is_deleted:
            oldest.delete()


async def _announce(port: int, ready: Callable[[], None]) -> None:
    """Call `ready` once the server answers, which it does only after its start-up."""
    while True:
        try:
            _, writer = await asyncio.open_connection(HOST, port)
        except OSError:
            await asyncio.sleep(0.02)
            continue
        writer.close()
        ready()
        return


async def _warm(lab: Lab) -> None:
    """Compile the most common shapes, one after the other, in a process of its own while the others are idle."""
    for law, dim in WARMED:
        while not lab.idle("quick", "slow", "warm"):
            await asyncio.sleep(0.5)
        lab.submit(Job("flow", {"spec": read_setting({**DEFAULT, "law": law, "dim": dim})}), "warm")
    while not lab.idle("warm"):
        await asyncio.sleep(0.5)
    await asyncio.to_thread(lab.close, "warm")  # frees its memory
