"""The entry point: parse, run, and turn every end into an exit status."""

import os
import sys
from collections.abc import Sequence

from ._output import BAD_INPUT, FAILED, INTERRUPTED, say
from ._parse import COMMANDS, parse


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command of `mesascope`.

    Args:
        arguments: the command line without the program's name; by default that of the process.

    Returns:
        The exit status: 0 done and nothing refuted, 1 a claim refuted or a run failed, 2 bad input (one line
        on standard error says what, where, and the mend), 130 stopped by Ctrl-C.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    name = " ".join(["mesascope", *given[:1]]) if given and given[0] in COMMANDS else "mesascope"
    if given in (["--version"], ["-V"]):
        from importlib.metadata import version

        print(f"mesascope {version('mesascope')}")
        return 0
    try:
        return parse(given).run()
    except ValueError as error:
        if sys.flags.dev_mode:
            raise  # python -X dev -m mesascope …: the traceback, for whoever mends mesascope itself
        say(f"{name}: {error}")
        return BAD_INPUT
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "RESOURCE_EXHAUSTED" not in str(error):
            raise
        say(f"{name}: out of memory; take a smaller dim, batch or number of samples")
        return FAILED
    except KeyboardInterrupt:
        kept = (
            "; finished claims are kept, and the same command resumes" if name.endswith("reproduce") else ""
        )
        say(f"{name}: interrupted{kept}")
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has seen enough (`mesascope claims | head`).
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
