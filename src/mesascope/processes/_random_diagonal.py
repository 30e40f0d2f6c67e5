"""Covariances of the inputs that differ from task to task."""

from __future__ import annotations

from ..specs import Component, kind
from ._law import LawField


class Covariance(Component, family="covariance"):
    """A distribution of covariances of the inputs."""


@kind("random-diagonal")
class RandomDiagonal(Covariance):
    r"""A covariance $\Lambda = \mathrm{diag}(s_1^2, \dots, s_d^2)$ drawn for every task, $s \sim$ `law` (zhang2024).

    $E\,\Lambda_{jj}^k$ is the moment of order $2k$ of the law, so that all moments that zhang2024's limit for
    random covariances needs are exact.

    Args:
        law: the law of the standard deviations $s$; their signs play no part.
    """

    law: LawField

    def describe(self) -> str:
        """Return e.g. `diag(s²), s ~ Gaussian(scale=1)`."""
        return f"diag(s²), s ~ {self.law.describe()}"
