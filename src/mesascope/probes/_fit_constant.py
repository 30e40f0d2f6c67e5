"""Constants fitted to predictions of a model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mesascope.learners import Constant

from ._evidence import Evidence
from ._fit import Fitted
from ._metrics import squared


class ConstantFitter:
    """The weighted mean of the predictions, which is the best constant."""

    kind = Constant

    def fit(self, evidence: Sequence[Evidence]) -> Fitted:
        """Return the minimum of the sum over the evidence of the weighted |f − g|², relative to the size of f in each."""
        weights = [e.weights / e.size for e in evidence]
        total = sum(w.sum() for w in weights)
        value = (
            sum(np.einsum("bn,bnm->m", w, e.answers) for w, e in zip(weights, evidence, strict=True)) / total
        )
        rest = sum(np.sum(w * squared(e.answers - value)) for w, e in zip(weights, evidence, strict=True))
        return Fitted(Constant(value), float(rest))
