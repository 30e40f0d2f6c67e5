"""Preconditioners fitted to predictions of a model by alternating least squares in R and L."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mesascope.learners import PreconditionedGradientDescent

from ._evidence import Evidence
from ._fit import Fitted

_ROUNDS = 300
_GAIN = 1e-7  # relative gain of a round below which the fit stops
_COST_RATIO = 1.5  # a shape with fewer entries is preferred up to this ratio of costs
_ROUNDING = 1e-20
_DETERMINED = 1e-9  # relative size of a direction below which the data do not determine it


class _Data(NamedTuple):
    """C̄ (samples, m, p), q (samples, p) and predictions f (samples, m), times the square roots of the weights."""

    cross: np.ndarray
    query: np.ndarray
    answers: np.ndarray


class PreconditionedFitter:
    r"""One step $\hat y = L \bar C R q$ with real $R$ and $L$: diagonal or full, and $L = I$ if that suffices.

    Of the four shapes, from the simplest to the most flexible, the first is taken whose cost is close to the smallest. The
    common factor of $L$ and $R$ is fixed by $\|L\|_F^2 = m$ and $\mathrm{tr} L \ge 0$. In directions that the data do not
    determine, $R$ and $L$ are as in a multiple of the identity.
    """

    kind = PreconditionedGradientDescent

    def fit(self, evidence: Sequence[Evidence]) -> Fitted:
        """Return the minimum of the sum over the evidence of the weighted |f − g|², relative to the size of f in each."""
        data = _Data(*(np.concatenate(parts) for parts in zip(*map(_data, evidence), strict=True)))
        inputs, outputs = data.query.shape[1], data.answers.shape[1]
        with_map = outputs > 1  # a map of one number is a factor of R
        start = np.full(inputs, _step_size(data)), np.ones(outputs)
        ends = [_alternate(data, *start, fit_map=False)]
        if with_map:
            ends.append(_alternate(data, *start, fit_map=True))
            if inputs == outputs:
                ends[-1] = min(
                    ends[-1], _alternate(data, *_rank_one(data), fit_map=True), key=lambda e: e.cost
                )
        ends.append(_alternate(data, np.diag(start[0]), start[1], fit_map=False))
        if with_map:
            starts = [(np.diag(end.r), np.diag(end.l)) for end in (ends[0], ends[1])]
            ends.append(min((_alternate(data, *s, fit_map=True) for s in starts), key=lambda e: e.cost))
        smallest = min(end.cost for end in ends)
        best = next(end for end in ends if end.cost <= _COST_RATIO * smallest + _ROUNDING)
        return Fitted(_learner(best), best.cost, _determined(data))


class _End(NamedTuple):
    r: np.ndarray
    l: np.ndarray  # noqa: E741  # L of the formula
    fit_map: bool
    cost: float


def _data(evidence: Evidence) -> _Data:
    part = evidence.part(0, min(PreconditionedGradientDescent.fitting.tasks, evidence.problems.tasks))
    problems, lengths = part.problems, part.problems.lengths
    seen = problems.features(PreconditionedGradientDescent)
    root = np.sqrt(part.weights / part.size)[:, lengths, None]

    def rows(array: Any, scale: Any) -> np.ndarray:
        chosen = np.asarray(array)[:, lengths] * scale
        return chosen.reshape(-1, *chosen.shape[2:])

    return _Data(rows(seen.cross, root[..., None]), rows(seen.query, 1.0), rows(part.answers, root))


def _step_size(data: _Data) -> float:
    """Return the best multiple of the identity."""
    step = np.einsum("smp,sp->sm", data.cross, data.query)
    size = np.sum(np.abs(step) ** 2)
    return float(np.sum(np.real(step.conj() * data.answers)) / size) if size else 0.0


def _alternate(data: _Data, r: np.ndarray, l: np.ndarray, *, fit_map: bool) -> _End:  # noqa: E741
    """Return the result of alternating fits of R and L."""
    cost = np.inf
    for _ in range(_ROUNDS):
        before, r = cost, _better_r(data, r, l)
        output = np.einsum("smp,sp->sm", data.cross, _times(r, data.query))
        if fit_map:
            l = _better_l(data, output, l)  # noqa: E741
        cost = float(np.sum(np.abs(data.answers - _times(l, output)) ** 2))
        if not fit_map or before - cost <= _GAIN * cost + _ROUNDING:
            break
    return _End(r, l, fit_map, cost)


def _determined(data: _Data) -> bool:
    """Return whether the data determine every entry of a full R."""
    values = np.linalg.eigvalsh(_matrix(data.cross, data.query))
    return bool(values[0] > _DETERMINED * values[-1])


def _matrix(lead: np.ndarray, query: np.ndarray) -> np.ndarray:
    """Return the normal matrix of a full R, rows (k, l), where R_kl multiplies lead_k q_l."""
    p = query.shape[1]
    gram = np.einsum("smk,sml->skl", lead.conj(), lead).reshape(len(lead), -1)
    outer = (query.conj()[:, :, None] * query[:, None, :]).reshape(len(lead), -1)
    return (gram.T @ outer).real.reshape(p, p, p, p).transpose(0, 2, 1, 3).reshape(p * p, p * p)


def _better_r(data: _Data, r: np.ndarray, l: np.ndarray) -> np.ndarray:  # noqa: E741
    """Return the best R given L; of several, the closest to the current R."""
    lead = l[:, None] * data.cross if l.ndim == 1 else np.einsum("ij,sjp->sip", l, data.cross)
    residual = data.answers - np.einsum("smp,sp->sm", lead, _times(r, data.query))
    if r.ndim == 1:
        design = lead * data.query[:, None, :]
        matrix = np.einsum("smk,sml->kl", design.conj(), design).real
        return r + _solve(matrix, np.einsum("smk,sm->k", design.conj(), residual).real)
    p = r.shape[0]
    matrix = _matrix(lead, data.query)
    slope = np.einsum("smk,sl,sm->kl", lead.conj(), data.query.conj(), residual, optimize=True).real
    return r + _solve(matrix, slope.reshape(-1)).reshape(p, p)


def _better_l(data: _Data, output: np.ndarray, l: np.ndarray) -> np.ndarray:  # noqa: E741
    """Return the best L given R; of several, the closest to the current L."""
    residual = data.answers - _times(l, output)
    if l.ndim == 1:
        size = np.sum(np.abs(output) ** 2, 0)
        gain = np.sum(np.real(output.conj() * residual), 0)
        return l + np.divide(gain, size, out=np.zeros_like(gain), where=size > _DETERMINED * size.max())
    matrix = (output.conj().T @ output).real
    return l + _solve(matrix, (output.conj().T @ residual).real).T


def _rank_one(data: _Data) -> tuple[np.ndarray, np.ndarray]:
    """Return diagonal R and L from the leading singular pair of the best matrix M in f_j = Σ_k M_jk C̄_jk q_k."""
    design = data.cross * data.query[:, None, :]
    matrix = np.einsum("sjk,sjl->jkl", design.conj(), design).real
    slope = np.einsum("sjk,sj->jk", design.conj(), data.answers).real
    free = np.stack([_solve(m, s) for m, s in zip(matrix, slope, strict=True)])
    left, values, right = np.linalg.svd(free)
    size = np.sqrt(len(left))
    return right[0] * values[0] / size, left[:, 0] * size


def _solve(matrix: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """Return the solution of minimum norm, 0 in directions that the matrix does not determine."""
    return np.linalg.lstsq(matrix, slope, rcond=_DETERMINED)[0]


def _times(matrix: np.ndarray, rows: np.ndarray) -> np.ndarray:
    return rows * matrix if matrix.ndim == 1 else rows @ matrix.T


def _learner(end: _End) -> PreconditionedGradientDescent:
    if not end.fit_map:
        return PreconditionedGradientDescent(end.r)
    trace = np.sum(end.l if end.l.ndim == 1 else np.diag(end.l))
    factor = np.linalg.norm(end.l) / np.sqrt(len(end.l)) * (-1 if trace < 0 else 1)
    return PreconditionedGradientDescent(end.r * factor, end.l / factor)
