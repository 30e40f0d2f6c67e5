"""A real browser for the tests of pages: Debian's chromium, driven by playwright; without one those tests say so and skip."""

import re
import shutil
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import pytest

_LOCAL = {"127.0.0.1", "localhost", "::1"}


@dataclass
class Seen:
    """What a page said and asked for while it was open."""

    errors: list[str] = field(default_factory=list)  # exceptions, errors and warnings on the console
    requests: list[str] = field(default_factory=list)  # addresses

    def outside(self):
        """Requests that left this machine: neither to a file, nor to what the page itself holds, nor to loopback."""
        return [url for url in self.requests if not _inside(url)]


def _inside(url):
    parts = urlsplit(url)
    return parts.scheme in ("file", "data", "blob", "about") or parts.hostname in _LOCAL


@dataclass
class Browser:
    """A running chromium; `page` opens a window of its own in it."""

    chromium: object

    @contextmanager
    def page(self, *, quiet=(), **options):
        """A page in a context of its own and what was seen of it.

        Args:
            quiet: regular expressions of messages on the console that are expected.
            **options: of playwright's `new_context`, such as `viewport` or `color_scheme`.
        """
        context = self.chromium.new_context(**options)
        try:
            page, seen = context.new_page(), Seen()
            page.set_default_timeout(30_000)
            watch(page, seen, quiet)
            yield page, seen
        finally:
            context.close()


def watch(page, seen, quiet=()):
    """Write down what a page says and asks for."""

    def note(text):
        if not any(re.search(pattern, text) for pattern in quiet):
            seen.errors.append(text)

    page.on("pageerror", lambda error: note(str(error)))
    page.on("console", lambda message: note(message.text) if message.type in ("error", "warning") else None)
    page.on("request", lambda request: seen.requests.append(request.url))
    page.on("websocket", lambda socket: seen.requests.append(socket.url))


# Not for the whole session: while playwright runs, no other test of the process could run an event loop.
@pytest.fixture(scope="module")
def browser():
    """One chromium for the tests of a file; skips where there is none."""
    driver = pytest.importorskip("playwright.sync_api", reason="no playwright to drive a browser with")
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("no chromium on the path; .ci/run installs Debian's")
    with driver.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
        )
        yield Browser(chromium)
        chromium.close()
