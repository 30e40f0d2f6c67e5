"""When the nearest of several strategies changes along training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from mesascope.records import Transition

from ._candidates import Judgement

_LEAST = 1e-300  # of a distance, for its logarithm


def transitions(
    names: Sequence[str], steps: Sequence[int], judged: Sequence[Judgement], level: float
) -> Iterator[Transition]:
    r"""Yield the changes of the nearest strategy, in the order of training.

    A strategy stays the nearest until another one is nearer with confidence, on the same tasks. The time of the change from a
    to b is where $\log d_a - \log d_b$ becomes positive for the last time before, interpolated between two checkpoints over
    $\log(1 + \text{step})$. What happens between checkpoints is not known: the interval reaches from the last checkpoint before
    the change to the first after it, for resampled tasks, the same at every checkpoint. Of several changes from a to b in a
    resample the closest to the measured one counts. Where b is nearer from the start, the first checkpoint is one of them;
    where it never is, the last one counts.

    Args:
        names: of the strategies.
        steps: of the checkpoints, increasing.
        judged: the distances of the strategies at every checkpoint, with the same resamples.
        level: confidence level.
    """
    times = np.log1p(np.asarray(steps, float))
    measured = np.log(np.maximum([one.distance for one in judged], _LEAST))
    drawn = np.log(np.maximum([one.resampled for one in judged], _LEAST))
    before = int(np.argmin(measured[0]))
    for place in range(1, len(steps)):
        surely = np.quantile(drawn[place, :, [before]] - drawn[place].T, (1 - level) / 2, axis=1)
        if surely.max() <= 0:
            continue
        after = int(np.argmax(np.where(surely > 0, -measured[place], -np.inf)))
        lead = measured[: place + 1, before] - measured[: place + 1, after]
        crossed = _crossings(lead[:, None], times[: place + 1])[:, 0]
        at = float(crossed[~np.isnan(crossed)][-1])
        changes = _closest(drawn[:, :, before] - drawn[:, :, after], times, at)
        low = np.quantile(changes, (1 - level) / 2, method="lower")
        high = np.quantile(changes, (1 + level) / 2, method="higher")
        last = int(np.searchsorted(times, min(low, at), side="right")) - 1
        first = int(np.searchsorted(times, max(high, at), side="left"))
        yield Transition(
            before=names[before],
            after=names[after],
            step=float(np.expm1(at)),
            interval=(float(steps[last]), float(steps[first])),
        )
        before = after


def _crossings(lead: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Return when each column goes from ≤ 0 to > 0, by linear interpolation: (n, r) → (n − 1, r), NaN where it does not."""
    low, high = lead[:-1], lead[1:]
    crosses = (low <= 0) & (high > 0)
    share = -low / np.where(crosses, high - low, 1.0)
    return np.where(crosses, times[:-1, None] + share * np.diff(times)[:, None], np.nan)


def _closest(lead: np.ndarray, times: np.ndarray, at: float) -> np.ndarray:
    """Return when each column of a lead becomes positive, closest to a time: shape (n, r) → (r,); the last time if never."""
    start = np.where(lead[:1] > 0, times[0], np.nan)
    crossings = np.concatenate([start, _crossings(lead, times)])
    far = np.where(np.isnan(crossings), np.inf, np.abs(crossings - at))
    found = np.take_along_axis(crossings, far.argmin(0)[None], 0)[0]
    return np.where(np.isnan(found), times[-1], found)
