"""Certify where training ends: from floating point to a statement with a proof."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from mesascope.core import Progress, integer_at_least, shows_progress
from mesascope.models import LinearAttention, PromptModel
from mesascope.objectives import PromptLayer
from mesascope.processes import DiagonalUnitary, FewShot, LinearRegression, NextToken
from mesascope.records import Printed

from .._flow import gradient_flow
from .._outcome import Outcome
from .._parameters import real_vector
from .._rodas4 import Rodas4
from ._balls import precision, rounded
from ._exact_law import require_exact
from ._exact_point import prove_exactly
from ._isolated_point import bits_for, prove_isolated
from ._krawczyk import NotProvedError, polished
from ._prompt_question import PromptQuestion
from ._question import Proved, Question
from ._sequence_question import SequenceQuestion
from ._statement import statement

_MAX_DIGITS = 1000
_EXPLICIT_STEPS = 20_000  # enough for landscapes that are not flat
_COARSE = 1e-6  # for flat landscapes: the proof does not depend on the path
_GUARD_DIGITS = 3  # of the centre, beyond those of the radius


@dataclass(frozen=True, repr=False)
class Certificate(Printed):
    """A critical point of the population loss, and what is proved about it.

    Attributes:
        question: which loss.
        centre: θ⁰, rational weights: of sequences the entries of W^KQ row by row, then those of W^PV; of prompts those of all
            arrays of the layer, row by row, in the order of its fields.
        proved: what is proved.
    """

    question: Question
    centre: tuple[Fraction, ...]
    proved: Proved

    def _printed(self) -> tuple[str, dict[str, str]]:
        values = {
            "radius": f"{float(self.proved.radius):.0e}",
            "loss": f"≈ {float(self.proved.loss[0]):.10g}",
            "curvatures": ", ".join(
                f"{count} {sign}" for sign, count in self.proved.inertia._asdict().items()
            ),
        }
        return "Certificate of a critical point", values

    def __str__(self) -> str:
        return "\n".join(statement(self.question, self.proved))

    @property
    def isolated(self) -> bool:
        """Whether there is proved to be no other critical point nearby, but for scalings; else the centre itself is one."""
        return self.proved.unique_within is not None


@shows_progress
def certify(
    model: LinearAttention | PromptModel,
    process: DiagonalUnitary | LinearRegression,
    task: NextToken | FewShot,
    *,
    mask: Literal["off-diagonal"] | None = None,
    digits: int = 40,
    progress: Callable[[Progress], None] | None = None,
) -> Certificate:
    r"""Prove which critical point gradient flow from the weights of a model ends at, and of which kind it is.

    The flow is followed in floating point, its end is polished with many digits, and then the test of Krawczyk is made on
    the loss with rational coefficients: there is exactly one critical point with the conserved quantities of the centre within
    $10^{-digits}$, entry by entry; the signs of the eigenvalues of its Hessian; bounds of the loss and of $a_j b_j$; and
    whether these are exactly what Theorem 4.1 says. Where the critical point is not isolated (one-hot tokens), the rational
    point of the theorem on the orbit of the flow's end is proved to be critical exactly. That the flow ends there is not
    proved: it was seen in floating point.

    On regression prompts heads may be merged or factored, of any number and rank. The statement says what the least loss of
    any layer is. One merged head has an isolated minimum; where heads share what is learned, or none learns some directions,
    critical points are not isolated, and rational weights that predict the same are proved to be one.

    Args:
        model: the start, real weights; with a mask, 0 off the diagonals. A head of sequences, or one layer of
            `prompt_linear_transformer`.
        process: numbers are rational: integers, fractions, or strings such as "1/10".
        task: horizon and weights, or number of examples.
        mask: as in `gradient_flow`; of sequences only.
        digits: of the radius, in 10 … 1000.
        progress: as in `gradient_flow`.

    Raises:
        TypeError: another model or process, complex weights.
        ValueError: parameters that are floats, a normalizer that is a function.
        NotProvedError: a test does not pass; nothing is proved then.

    Source: zheng2024, Theorems 4.1 and 4.3, Proposition 4.2; Rump 2010 (verification methods).
    """
    digits = integer_at_least("digits", digits, 10)
    if digits > _MAX_DIGITS:
        raise ValueError(f"digits: at most {_MAX_DIGITS}, got {digits}")
    question = question_of(model, process, task, mask)
    _check_masked(question, model)
    flow = gradient_flow(model, process, task, mask=mask, progress=progress, max_steps=_EXPLICIT_STEPS)
    if flow.result is Outcome.STEP_LIMIT:  # a flat landscape
        flow = gradient_flow(
            flow.model, process, task, mask=mask, progress=progress, solver=Rodas4(), rtol=_COARSE
        )
    if flow.result is Outcome.INTERRUPTED:
        raise KeyboardInterrupt
    if not flow.converged:
        raise NotProvedError(
            f"the flow did not reach a steady state ({flow.result.value}); take another start"
        )
    return certify_near(question, np.asarray(real_vector(flow.model)[0]), digits)


def question_of(model: Any, process: Any, task: Any, mask: Literal["off-diagonal"] | None = None) -> Question:
    """Which loss `certify` proves something about, for the structure of a model.

    Raises:
        TypeError, ValueError: as `certify`.
    """
    if isinstance(model, PromptModel):
        require_exact(process, task, prompts=True)
        if mask is not None:
            raise ValueError("mask: is of sequences, and these are prompts; leave it out")
        return PromptQuestion(process, task, PromptLayer.of(model, process.dim))
    if not isinstance(model, LinearAttention):
        raise TypeError(
            f"model: must be a LinearAttention, or one layer of prompt_linear_transformer, got {type(model).__name__}"
        )
    if any(np.iscomplexobj(weights) for weights in (model.w_kq, model.w_pv)):
        raise TypeError("model: certificates are about real weights, and these are complex")
    require_exact(process, task)
    return SequenceQuestion(process, task, model.normalizer, mask)


def certify_near(question: Question, guess: Sequence[float] | np.ndarray, digits: int) -> Certificate:
    """The certificate of the critical point near a guess in floating point.

    Raises:
        NotProvedError: as `certify`.
    """
    radius = Fraction(1, 10**digits)
    start = [Fraction(float(entry)) for entry in guess]
    try:
        with precision(bits_for(question, radius)):
            found = polished(question.where(), start, digits + _GUARD_DIGITS)
        centre = tuple(rounded(entry, digits + _GUARD_DIGITS) for entry in found)
        return Certificate(question, centre, prove_isolated(question, centre, radius))
    except NotProvedError:
        exact = _degenerate_point(question, start)
        if exact is None:
            raise
        return exact


def _degenerate_point(question: Question, near: Sequence[Fraction]) -> Certificate | None:
    """The certificate of a rational point that predicts what a guess does.

    None unless one is known and the point is not isolated: else the test of Krawczyk is what should have proved it.
    """
    where = question.where()
    exact = question.exact_point(near, where)
    if exact is None:
        return None
    proved = prove_exactly(question, exact)
    return Certificate(question, exact, proved) if proved.inertia.zero > len(where.scalings) else None


def _check_masked(question: Question, model: LinearAttention | PromptModel) -> None:
    vector: Any = np.asarray(real_vector(model)[0])
    if any(vector[n] != 0 for n in question.fixed):
        raise ValueError("mask: the weights that it fixes must be 0 at the start; take a diagonal start")
