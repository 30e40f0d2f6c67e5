"""A task whose last predictions count most."""

from dataclasses import field
from typing import Any

import mesascope as ms
from mesascope.specs import Scale


@ms.kind("discounted", horizon=5)
class Discounted(ms.NextToken):
    """Next-token prediction with the weights w_t = γ^(T − 1 − t).

    Args:
        discount: γ > 0.
    """

    discount: Scale = 0.5
    weights: Any = field(init=False, default=None)  # follows from discount

    def __post_init__(self):
        ages = {t: self.horizon - 1 - t for t in self.context_lengths}
        object.__setattr__(self, "weights", {t: self.discount**age for t, age in ages.items()})
        super().__post_init__()
