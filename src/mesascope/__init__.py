"""mesascope: a laboratory for mesa-optimization.

It trains sequence models on tasks that must be learned in context, solves their training dynamics exactly
where mathematics allows, and says which optimizer the trained forward pass runs.

Every public name below is imported on first use (PEP 562), so that ``import mesascope`` costs milliseconds
and loads no jax; a command that needs no arrays never pays for them.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

if _TYPE_CHECKING:
    from mesascope import core as core
    from mesascope import dynamics as dynamics
    from mesascope import models as models
    from mesascope import objectives as objectives
    from mesascope import papers as papers
    from mesascope import processes as processes
    from mesascope import records as records
    from mesascope import report as report
    from mesascope import theory as theory
    from mesascope.core import Estimate as Estimate
    from mesascope.core import cite as cite
    from mesascope.dynamics import descend as descend
    from mesascope.dynamics import gradient_flow as gradient_flow
    from mesascope.dynamics import train as train
    from mesascope.models import FactoredLinearAttention as FactoredLinearAttention
    from mesascope.models import LinearAttention as LinearAttention
    from mesascope.models import MultiHeadLinearAttention as MultiHeadLinearAttention
    from mesascope.objectives import Enumeration as Enumeration
    from mesascope.objectives import ExactMoments as ExactMoments
    from mesascope.objectives import MonteCarlo as MonteCarlo
    from mesascope.objectives import population_loss as population_loss
    from mesascope.papers import reproduce as reproduce
    from mesascope.processes import Constant as Constant
    from mesascope.processes import DiagonalUnitary as DiagonalUnitary
    from mesascope.processes import Empirical as Empirical
    from mesascope.processes import Gaussian as Gaussian
    from mesascope.processes import Law as Law
    from mesascope.processes import Mixture as Mixture
    from mesascope.processes import Moments as Moments
    from mesascope.processes import NextToken as NextToken
    from mesascope.processes import Rademacher as Rademacher
    from mesascope.processes import Sparse as Sparse
    from mesascope.processes import StudentT as StudentT
    from mesascope.processes import Uniform as Uniform

    __version__: str

# Public name → the room it lives in.  A test holds this table, the block above and the rooms together.
_HOME = {
    "Constant": "processes",
    "DiagonalUnitary": "processes",
    "Empirical": "processes",
    "Enumeration": "objectives",
    "Estimate": "core",
    "ExactMoments": "objectives",
    "FactoredLinearAttention": "models",
    "Gaussian": "processes",
    "Law": "processes",
    "LinearAttention": "models",
    "Mixture": "processes",
    "Moments": "processes",
    "MonteCarlo": "objectives",
    "MultiHeadLinearAttention": "models",
    "NextToken": "processes",
    "Rademacher": "processes",
    "Sparse": "processes",
    "StudentT": "processes",
    "Uniform": "processes",
    "cite": "core",
    "descend": "dynamics",
    "gradient_flow": "dynamics",
    "population_loss": "objectives",
    "reproduce": "papers",
    "train": "dynamics",
}
_ROOMS = ("core", "dynamics", "models", "objectives", "papers", "processes", "records", "report", "theory")


def __getattr__(name: str) -> _Any:
    """Import a public name, or a room, the first time it is asked for."""
    value: _Any
    if name in _HOME:
        value = getattr(_import_module(f"{__name__}.{_HOME[name]}"), name)
    elif name in _ROOMS:
        return _import_module(f"{__name__}.{name}")  # the import system binds it here itself
    elif name == "__version__":
        from importlib.metadata import version

        value = version(__name__)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value  # later look-ups no longer come through here
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME, *_ROOMS, "__version__"})
