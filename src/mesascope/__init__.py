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
    from mesascope import learners as learners
    from mesascope import models as models
    from mesascope import objectives as objectives
    from mesascope import papers as papers
    from mesascope import probes as probes
    from mesascope import processes as processes
    from mesascope import records as records
    from mesascope import report as report
    from mesascope import studies as studies
    from mesascope import theory as theory
    from mesascope.core import Estimate as Estimate
    from mesascope.dynamics import CheckpointError as CheckpointError
    from mesascope.dynamics import InvariantManifold as InvariantManifold
    from mesascope.dynamics import Optimizer as Optimizer
    from mesascope.dynamics import PhasePoint as PhasePoint
    from mesascope.dynamics import ProgressBar as ProgressBar
    from mesascope.dynamics import conserved_quantities as conserved_quantities
    from mesascope.dynamics import critical_point as critical_point
    from mesascope.dynamics import critical_points as critical_points
    from mesascope.dynamics import descend as descend
    from mesascope.dynamics import export_safetensors as export_safetensors
    from mesascope.dynamics import gradient_flow as gradient_flow
    from mesascope.dynamics import load_model as load_model
    from mesascope.dynamics import phase_diagram as phase_diagram
    from mesascope.dynamics import save_model as save_model
    from mesascope.dynamics import stability as stability
    from mesascope.dynamics import train as train
    from mesascope.dynamics import train_many as train_many
    from mesascope.dynamics.certificates import Certificate as Certificate
    from mesascope.dynamics.certificates import NotProvedError as NotProvedError
    from mesascope.dynamics.certificates import certify as certify
    from mesascope.models import MLP as MLP
    from mesascope.models import BareTokens as BareTokens
    from mesascope.models import ComplexPairs as ComplexPairs
    from mesascope.models import Dense as Dense
    from mesascope.models import DiagonalSelfAttention as DiagonalSelfAttention
    from mesascope.models import Embedding as Embedding
    from mesascope.models import FactoredLinearAttention as FactoredLinearAttention
    from mesascope.models import FactoredLinearSelfAttention as FactoredLinearSelfAttention
    from mesascope.models import FirstBlock as FirstBlock
    from mesascope.models import InterleavedPrompt as InterleavedPrompt
    from mesascope.models import LastEntry as LastEntry
    from mesascope.models import Layer as Layer
    from mesascope.models import LayerNorm as LayerNorm
    from mesascope.models import LearnedPositions as LearnedPositions
    from mesascope.models import LinearAttention as LinearAttention
    from mesascope.models import LinearAttentionStack as LinearAttentionStack
    from mesascope.models import LinearSelfAttention as LinearSelfAttention
    from mesascope.models import Looped as Looped
    from mesascope.models import MesaLayer as MesaLayer
    from mesascope.models import MultiHeadLinearAttention as MultiHeadLinearAttention
    from mesascope.models import NormedDense as NormedDense
    from mesascope.models import OneHot as OneHot
    from mesascope.models import PairedTokens as PairedTokens
    from mesascope.models import PreNorm as PreNorm
    from mesascope.models import Projected as Projected
    from mesascope.models import PromptModel as PromptModel
    from mesascope.models import Readout as Readout
    from mesascope.models import RealForm as RealForm
    from mesascope.models import Residual as Residual
    from mesascope.models import SequenceModel as SequenceModel
    from mesascope.models import SinusoidalPositions as SinusoidalPositions
    from mesascope.models import SoftmaxSelfAttention as SoftmaxSelfAttention
    from mesascope.models import Stack as Stack
    from mesascope.models import StackedPrompt as StackedPrompt
    from mesascope.models import TokenTable as TokenTable
    from mesascope.models import WithPositions as WithPositions
    from mesascope.models import factored_linear_transformer as factored_linear_transformer
    from mesascope.models import linear_transformer as linear_transformer
    from mesascope.models import looped_linear_transformer as looped_linear_transformer
    from mesascope.models import mesa_transformer as mesa_transformer
    from mesascope.models import prompt_linear_transformer as prompt_linear_transformer
    from mesascope.models import prompt_transformer as prompt_transformer
    from mesascope.models import token_transformer as token_transformer
    from mesascope.models import transformer as transformer
    from mesascope.objectives import Enumeration as Enumeration
    from mesascope.objectives import ExactMoments as ExactMoments
    from mesascope.objectives import MonteCarlo as MonteCarlo
    from mesascope.objectives import population_loss as population_loss
    from mesascope.papers import reproduce as reproduce
    from mesascope.probes import identify as identify
    from mesascope.probes import intervene as intervene
    from mesascope.probes import layer_progress as layer_progress
    from mesascope.probes import layer_streams as layer_streams
    from mesascope.probes import linear_probe as linear_probe
    from mesascope.probes import logit_lens as logit_lens
    from mesascope.probes import step_family as step_family
    from mesascope.processes import Constant as Constant
    from mesascope.processes import DiagonalUnitary as DiagonalUnitary
    from mesascope.processes import Empirical as Empirical
    from mesascope.processes import FewShot as FewShot
    from mesascope.processes import Gaussian as Gaussian
    from mesascope.processes import Law as Law
    from mesascope.processes import LinearAR as LinearAR
    from mesascope.processes import LinearRegression as LinearRegression
    from mesascope.processes import MarkovTree as MarkovTree
    from mesascope.processes import Mixture as Mixture
    from mesascope.processes import Moments as Moments
    from mesascope.processes import NextToken as NextToken
    from mesascope.processes import NoiseRange as NoiseRange
    from mesascope.processes import NonlinearAR as NonlinearAR
    from mesascope.processes import NonlinearRegression as NonlinearRegression
    from mesascope.processes import OrthogonalAR as OrthogonalAR
    from mesascope.processes import OrthonormalFeatures as OrthonormalFeatures
    from mesascope.processes import PromptProcess as PromptProcess
    from mesascope.processes import Prompts as Prompts
    from mesascope.processes import Rademacher as Rademacher
    from mesascope.processes import RandomDiagonal as RandomDiagonal
    from mesascope.processes import RandomFeatures as RandomFeatures
    from mesascope.processes import RotationAR as RotationAR
    from mesascope.processes import SequenceProcess as SequenceProcess
    from mesascope.processes import Sparse as Sparse
    from mesascope.processes import StudentT as StudentT
    from mesascope.processes import TwoLayerReLU as TwoLayerReLU
    from mesascope.processes import Uniform as Uniform
    from mesascope.records import Store as Store
    from mesascope.records import cite as cite
    from mesascope.records import open_store as open_store
    from mesascope.studies import StudySpec as StudySpec
    from mesascope.studies import load_trained as load_trained
    from mesascope.studies import sweep as sweep

    __version__: str

# Public name → the room it lives in.  A test holds this table, the block above and the rooms together.
_HOME = {
    "BareTokens": "models",
    "Certificate": "dynamics.certificates",
    "CheckpointError": "dynamics",
    "ComplexPairs": "models",
    "Constant": "processes",
    "Dense": "models",
    "DiagonalSelfAttention": "models",
    "DiagonalUnitary": "processes",
    "Embedding": "models",
    "Empirical": "processes",
    "Enumeration": "objectives",
    "Estimate": "core",
    "ExactMoments": "objectives",
    "FactoredLinearAttention": "models",
    "FactoredLinearSelfAttention": "models",
    "FewShot": "processes",
    "FirstBlock": "models",
    "Gaussian": "processes",
    "InterleavedPrompt": "models",
    "InvariantManifold": "dynamics",
    "LastEntry": "models",
    "Law": "processes",
    "Layer": "models",
    "LayerNorm": "models",
    "LearnedPositions": "models",
    "LinearAR": "processes",
    "LinearAttention": "models",
    "LinearAttentionStack": "models",
    "LinearRegression": "processes",
    "LinearSelfAttention": "models",
    "Looped": "models",
    "MLP": "models",
    "MarkovTree": "processes",
    "MesaLayer": "models",
    "Mixture": "processes",
    "Moments": "processes",
    "MonteCarlo": "objectives",
    "MultiHeadLinearAttention": "models",
    "NextToken": "processes",
    "NoiseRange": "processes",
    "NonlinearAR": "processes",
    "NonlinearRegression": "processes",
    "NormedDense": "models",
    "NotProvedError": "dynamics.certificates",
    "OneHot": "models",
    "Optimizer": "dynamics",
    "OrthogonalAR": "processes",
    "OrthonormalFeatures": "processes",
    "PairedTokens": "models",
    "PhasePoint": "dynamics",
    "PreNorm": "models",
    "ProgressBar": "dynamics",
    "Projected": "models",
    "PromptModel": "models",
    "PromptProcess": "processes",
    "Prompts": "processes",
    "Rademacher": "processes",
    "RandomDiagonal": "processes",
    "RandomFeatures": "processes",
    "Readout": "models",
    "RealForm": "models",
    "Residual": "models",
    "RotationAR": "processes",
    "SequenceModel": "models",
    "SequenceProcess": "processes",
    "SinusoidalPositions": "models",
    "SoftmaxSelfAttention": "models",
    "Sparse": "processes",
    "Stack": "models",
    "StackedPrompt": "models",
    "Store": "records",
    "StudentT": "processes",
    "StudySpec": "studies",
    "TokenTable": "models",
    "TwoLayerReLU": "processes",
    "Uniform": "processes",
    "WithPositions": "models",
    "certify": "dynamics.certificates",
    "cite": "records",
    "conserved_quantities": "dynamics",
    "critical_point": "dynamics",
    "critical_points": "dynamics",
    "descend": "dynamics",
    "export_safetensors": "dynamics",
    "factored_linear_transformer": "models",
    "gradient_flow": "dynamics",
    "identify": "probes",
    "intervene": "probes",
    "layer_progress": "probes",
    "layer_streams": "probes",
    "linear_probe": "probes",
    "linear_transformer": "models",
    "load_model": "dynamics",
    "load_trained": "studies",
    "logit_lens": "probes",
    "looped_linear_transformer": "models",
    "mesa_transformer": "models",
    "open_store": "records",
    "phase_diagram": "dynamics",
    "population_loss": "objectives",
    "prompt_linear_transformer": "models",
    "prompt_transformer": "models",
    "reproduce": "papers",
    "save_model": "dynamics",
    "stability": "dynamics",
    "step_family": "probes",
    "sweep": "studies",
    "token_transformer": "models",
    "train": "dynamics",
    "train_many": "dynamics",
    "transformer": "models",
}
_ROOMS = (
    "core",
    "dynamics",
    "learners",
    "models",
    "objectives",
    "papers",
    "probes",
    "processes",
    "records",
    "report",
    "studies",
    "theory",
)


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
