"""When the nearest of several strategies changes along training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from mesascope.records import Change

from ._candidates import Judgement

_MIN_DISTANCE, _MAX_DISTANCE = 1e-10, 1e10  # of a distance, for its logarithm: what is less is rounding


def changes(
    names: Sequence[str], steps: Sequence[int], judged: Sequence[Judgement], level: float
) -> Iterator[Change]:
    r"""Yield the changes of the nearest strategy, in the order of training.

    A strategy stays the nearest until another one is, and it is distinguished from that one: with confidence it is more than
    twice as far from the model (`Judgement.further`). The time of the change from a to b is where $\log d_a - \log d_b$ becomes
    positive for the last time before, after the change before it, interpolated between two checkpoints over
    $\log(1 + \text{step})$. What happens between checkpoints is not known: the interval reaches from the last checkpoint before
    the change to the first after it, for resampled tasks, the same at every checkpoint, and the same rule. A resample in which
    b is not yet nearer at the checkpoint that shows the change counts with the next time when it is, or with the end; one in
    which b is nearer all the time from the change before counts with that checkpoint.

    Args:
        names: of the strategies.
        steps: of the checkpoints, increasing.
        judged: the distances of the strategies at every checkpoint, with the same resamples.
        level: confidence level, at every checkpoint.
    """
    times = np.log1p(np.asarray(steps, float))
    measured = np.log(np.clip([one.distance for one in judged], _MIN_DISTANCE, _MAX_DISTANCE))
    drawn = np.log(np.clip([one.resampled for one in judged], _MIN_DISTANCE, _MAX_DISTANCE))
    before, begin = int(np.argmin(measured[0])), 0
    for place in range(1, len(steps)):
        after = int(np.argmin(measured[place]))
        if after == before or not judged[place].further(after, level)[before]:
            continue
        leads = [one[..., before] - one[..., after] for one in (measured[:, None], drawn)]
        (at,), moved = (_crossing(lead, times, begin, place) for lead in leads)
        low = min(np.quantile(moved, (1 - level) / 2, method="lower"), at)
        high = max(np.quantile(moved, (1 + level) / 2, method="higher"), at)
        yield Change(
            before=names[before],
            after=names[after],
            step=float(np.expm1(at)),
            interval=(
                steps[int(np.searchsorted(times, low, side="right")) - 1],
                steps[int(np.searchsorted(times, high, side="left"))],
            ),
        )
        before, begin = after, place


def _crossings(lead: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Return when each column goes from ≤ 0 to > 0, by linear interpolation: (n, r) → (n − 1, r), NaN where it does not."""
    low, high = lead[:-1], lead[1:]
    crosses = (low <= 0) & (high > 0)
    share = -low / np.where(crosses, high - low, 1.0)
    return np.where(crosses, times[:-1, None] + share * np.diff(times)[:, None], np.nan)


def _crossing(lead: np.ndarray, times: np.ndarray, begin: int, place: int) -> np.ndarray:
    """Return when each column of a lead became positive before a place, for the last time after `begin`: (n, r) → (r,).

    That is `begin` where it was positive all the time, the first time after the place where it is not positive there, and the
    last time where it never becomes so.
    """
    crossings = _crossings(lead, times)
    before = np.fmax.reduce(crossings[begin:place], axis=0, initial=times[begin])
    after = np.fmin.reduce(crossings[place:], axis=0, initial=times[-1])
    return np.asarray(np.where(lead[place] > 0, before, after))
