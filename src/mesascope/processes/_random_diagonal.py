"""Covariances of the inputs that differ from task to task."""

import equinox as eqx

from ._law import Law, Static
from ._process import checked_law


class RandomDiagonal(Static):
    r"""A covariance $\Lambda = \mathrm{diag}(s_1^2, \dots, s_d^2)$ drawn for every task, $s \sim$ `law` (zhang2024).

    $E\,\Lambda_{jj}^k$ is the moment of order $2k$ of the law, so that all moments that zhang2024's limit for
    random covariances needs are exact.

    Args:
        law: the law of the standard deviations $s$; their signs play no part.

    Raises:
        TypeError: `law` is not a law.
    """

    law: Law = eqx.field(static=True)

    def __init__(self, law: Law):
        self.law = checked_law("RandomDiagonal", law)

    def describe(self) -> str:
        """Return e.g. `diag(s²), s ~ Gaussian(scale=1)`."""
        return f"diag(s²), s ~ {self.law.describe()}"
