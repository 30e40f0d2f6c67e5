"""`mesascope lab`."""

import os
import secrets
import signal
import sys
import webbrowser
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import FlagCreatePairsOff, arg

from ._identify import importable
from ._output import DONE, InputError, in_file
from ._plugin import PluginOption

if TYPE_CHECKING:
    from mesascope.studies import IdentifySpec

_MIN_TOKEN = 8  # characters that cannot be guessed by trying


@dataclass(frozen=True)
class Lab(PluginOption):
    """Open the lab: pages that show what a trained layer becomes, and test a conjecture about a law in seconds.

    The address is printed; only this machine can open it. A token in the address keeps other users out. It is new at every
    start, unless MESASCOPE_LAB_TOKEN gives one. Ctrl-C or SIGTERM ends the lab, with exit status 0.
    """

    port: int = 8450
    """Port on this machine; 0 takes a free one."""
    records: Annotated[tuple[str, ...], arg(metavar="DIR ...", help_behavior_hint="")] = ()
    """More records for the page of claims: folders of `reproduce`, folders that contain such folders, stores of runs.
    Checks that the page runs are written to results/lab."""
    models: Annotated[tuple[str, ...], arg(metavar="SPEC ...", help_behavior_hint="")] = ()
    """Your own models for the page of models: specifications for `mesascope identify` of a checkpoint or a function."""
    no_warm: FlagCreatePairsOff[bool] = False
    """Compile programs only when they are needed, not at the start."""
    no_browser: FlagCreatePairsOff[bool] = False
    """Only print the address, and do not open a browser."""
    no_token: FlagCreatePairsOff[bool] = False
    """Allow every user of this machine to open the lab."""

    def run(self) -> int:
        """Serve until interrupted; return the exit status."""
        from mesascope.lab import free_port, serve
        from mesascope.records import SHIPPED

        if not 0 <= self.port < 65536:
            raise InputError(f"--port {self.port}: must lie between 0 and 65535")
        for folder in self.records:
            if not Path(folder).is_dir():
                raise InputError(
                    f"--records {folder}: no such folder; name one that reproduce or sweep filled"
                )
        models = self._models()
        folders = [*map(Path, self.records), SHIPPED, Path("results") / "lab"]
        # The server raises a signal again once it has ended: that is not a second one.
        signal.set_wakeup_fd(-1)
        with ExitStack() as entered, suppress(KeyboardInterrupt):  # the usual end
            for file in self.models:
                entered.enter_context(importable(file))
            serve(
                free_port(self.port),
                folders,
                models,
                token=self._token(),
                warm=not self.no_warm,
                ready=self._say,
            )
        return DONE

    def _models(self) -> "dict[str, IdentifySpec]":
        """The models of the user, by the file of their specification."""
        from mesascope.studies import IdentifySpec, read_spec

        found = {}
        for file in self.models:
            with in_file(file):
                found[file] = read_spec(file, IdentifySpec)
        return found

    def _say(self, address: str) -> None:
        print(f"mesascope lab: {address}   (Ctrl-C ends it)", flush=True)
        if not self.no_browser and _has_browser():
            webbrowser.open(address)

    def _token(self) -> str:
        """The token of the address; of the environment, since every user can read the arguments of a process."""
        if self.no_token:
            return ""
        token = os.environ.get("MESASCOPE_LAB_TOKEN") or secrets.token_urlsafe(24)
        if len(token) < _MIN_TOKEN:
            raise InputError(
                f"MESASCOPE_LAB_TOKEN: must have at least {_MIN_TOKEN} characters, has {len(token)}; "
                "leave it out for a random token"
            )
        return token


def _has_browser() -> bool:
    """Whether somebody at a terminal would see a window; without a desktop, a browser would take the terminal."""
    desktop = sys.platform in ("darwin", "win32") or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))
    return sys.stdout.isatty() and desktop
