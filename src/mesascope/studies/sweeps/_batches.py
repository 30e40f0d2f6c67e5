"""Which runs are given out together: flows that one compiled program can solve."""

from collections.abc import Mapping, Sequence

from mesascope.records import RunFolders

from ._attempts import attempts


def batches(
    left: Sequence[str], programs: Mapping[str, str], folders: RunFolders, size: int
) -> list[tuple[str, ...]]:
    """The runs that are left, in their order, those of one program up to `size` together.

    A run that somebody has begun before is alone: who kills whom is told only of runs that are alone, and together they might
    be killed again and again.

    Args:
        left: ids.
        programs: of every run what shapes its program (see `program_of`); nothing of one that goes alone.
        folders: of the store.
        size: how many go together, at most.
    """
    found: list[list[str]] = []
    open_ones: dict[str, list[str]] = {}
    for run in left:
        program = programs.get(run)
        if program is None or attempts(folders.folder(run)):
            found.append([run])
            continue
        if program not in open_ones:
            open_ones[program] = []
            found.append(open_ones[program])
        open_ones[program].append(run)
        if len(open_ones[program]) == size:
            del open_ones[program]
    return [tuple(runs) for runs in found]
