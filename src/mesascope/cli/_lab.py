"""`mesascope lab`."""

import os
import secrets
import signal
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import FlagCreatePairsOff, arg

from ._output import DONE, InputError
from ._plugin import PluginOption

_MIN_TOKEN = 8  # characters that cannot be guessed by trying


@dataclass(frozen=True)
class Lab(PluginOption):
    """Open the lab: pages that show what a trained layer becomes, and test a conjecture about a law in seconds.

    The address is printed; only this machine can open it. Its token keeps other users out; it is a new one at every start,
    unless MESASCOPE_LAB_TOKEN has one. Ctrl-C or SIGTERM ends the lab, with exit status 0.
    """

    port: int = 8450
    """Port on this machine; 0 takes a free one."""
    records: Annotated[tuple[str, ...], arg(metavar="DIR ...", help_behavior_hint="")] = ()
    """More records for the page of claims: folders of `reproduce`, folders of these, stores of runs. Checks run from the page
    are written to results/lab."""
    no_warm: FlagCreatePairsOff[bool] = False
    """Compile nothing before it is needed."""
    no_token: FlagCreatePairsOff[bool] = False
    """Let every user of this machine in."""

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
        folders = [*map(Path, self.records), SHIPPED, Path("results") / "lab"]
        # The server raises a signal again once it has ended: that is not a second one.
        signal.set_wakeup_fd(-1)
        with suppress(KeyboardInterrupt):  # the usual end
            serve(free_port(self.port), folders, token=self._token(), warm=not self.no_warm, ready=_say)
        return DONE

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


def _say(address: str) -> None:
    print(f"mesascope lab: {address}   (Ctrl-C ends it)", flush=True)
