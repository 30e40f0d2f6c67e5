"""When the nearest of several strategies changes along training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from mesascope.records import Change

from ._candidates import Judgement

_LEAST, _MOST = 1e-10, 1e10  # of a distance, for its logarithm: what is less is rounding


def changes(
    names: Sequence[str], steps: Sequence[int], judged: Sequence[Judgement], level: float
) -> Iterator[Change]:
    r"""Yield the changes of the nearest strategy, in the order of training.

    A strategy stays the nearest until another one is, and it is distinguished from that one: with confidence it is more than
    twice as far from the model (`Judgement.further`). The time of the change from a to b is where $\log d_a - \log d_b$ becomes
    positive for the last time before, after the change before it, interpolated between two checkpoints over
    $\log(1 + \text{step})$. What happens between checkpoints is not known: the interval reaches from the last checkpoint before
    the change to the first after it, for resampled tasks, the same at every checkpoint. Of several changes from a to b in a
    resample the closest to the measured one counts. Where b is nearer from the start, the first checkpoint is one of them;
    where it never is, the last one counts.

    Args:
        names: of the strategies.
        steps: of the checkpoints, increasing.
        judged: the distances of the strategies at every checkpoint, with the same resamples.
        level: confidence level, at every checkpoint.
    """
    times = np.log1p(np.asarray(steps, float))
    measured = np.log(np.clip([one.distance for one in judged], _LEAST, _MOST))
    drawn = np.log(np.clip([one.resampled for one in judged], _LEAST, _MOST))
    before, begin = int(np.argmin(measured[0])), 0
    for place in range(1, len(steps)):
        after = int(np.argmin(measured[place]))
        if after == before or not judged[place].further(after, level)[before]:
            continue
        lead = measured[:, before] - measured[:, after]
        at = _last_crossing(lead[begin : place + 1], times[begin : place + 1])
        moved = _closest(drawn[:, :, before] - drawn[:, :, after], times, at)
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


def _last_crossing(lead: np.ndarray, times: np.ndarray) -> float:
    """Return when a lead becomes positive for the last time; the first time where it is positive from the start."""
    found = _crossings(lead[:, None], times)[:, 0]
    return float(([times[0]] + [one for one in found if not np.isnan(one)])[-1])


def _closest(lead: np.ndarray, times: np.ndarray, at: float) -> np.ndarray:
    """Return when each column of a lead becomes positive, closest to a time: shape (n, r) → (r,); the last time if never."""
    start = np.where(lead[:1] > 0, times[0], np.nan)
    crossings = np.concatenate([start, _crossings(lead, times)])
    far = np.where(np.isnan(crossings), np.inf, np.abs(crossings - at))
    found = np.take_along_axis(crossings, far.argmin(0)[None], 0)[0]
    return np.where(np.isnan(found), times[-1], found)
