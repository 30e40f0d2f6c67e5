"""Covariances of the inputs that are drawn for every task."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from ..specs import Component, Number, kind, number, one_of_or, rows
from ._law import LawField


def _rows(value: Any) -> Any:
    return None if value is None else rows(value, number)


@kind("random-diagonal", law="uniform")
class RandomDiagonal(Component, family="covariance"):
    r"""A covariance $\Lambda = \mathrm{diag}(s_1^2, \dots, s_d^2)$ drawn for every task, $s \sim$ `law` (zhang2024).

    $E\,\Lambda_{jj}^k$ is the moment of order $2k$ of the law, so that the moments in zhang2024's limit for
    random covariances are exact.

    Args:
        law: the law of the standard deviations $s$; their signs do not matter.
    """

    law: LawField

    def describe(self) -> str:
        """Return e.g. `diag(s²), s ~ Gaussian(scale=1)`."""
        return f"diag(s²), s ~ {self.law.describe()}"


CovarianceField: TypeAlias = Annotated[
    tuple[tuple[Number, ...], ...] | RandomDiagonal | None,
    *one_of_or("covariance", _rows, default="random-diagonal"),
]
"""A matrix, a distribution of matrices, or None for the identity."""
