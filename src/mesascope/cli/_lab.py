"""`mesascope lab`."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import FlagCreatePairsOff, arg

from ._output import DONE, InputError
from ._plugin import PluginOption


@dataclass(frozen=True)
class Lab(PluginOption):
    """Open the lab: a page that tests a conjecture about a law in seconds.

    The address is printed; only this machine can open it. Ctrl-C ends the lab.
    """

    port: int = 8450
    """Port on this machine; 0 takes a free one."""
    records: Annotated[tuple[str, ...], arg(metavar="DIR ...", help_behavior_hint="")] = ()
    """More records for the Claims panel: folders of `reproduce`, folders of these, stores of runs. Checks run from the page
    are written to results/lab."""
    no_warm: FlagCreatePairsOff[bool] = False
    """Compile nothing before it is needed."""

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
        with suppress(KeyboardInterrupt):  # the usual end
            serve(free_port(self.port), folders, warm=not self.no_warm, ready=_say)
        return DONE


def _say(address: str) -> None:
    print(f"mesascope lab: {address}   (Ctrl-C ends it)", flush=True)
