"""Specifications of what to compute, from TOML and JSON files or mappings, checked before anything runs.

A specification is light: jax and the rooms that need it are imported when one is built or run.
"""

from ._engines import EngineSpec as EngineSpec
from ._engines import EnumerationSpec as EnumerationSpec
from ._engines import ExactMomentsSpec as ExactMomentsSpec
from ._engines import MonteCarloSpec as MonteCarloSpec
from ._errors import SpecError as SpecError
from ._flow import FlowProgress as FlowProgress
from ._flow import FlowResult as FlowResult
from ._flow import FlowSpec as FlowSpec
from ._inits import DiagonalInit as DiagonalInit
from ._inits import ExplicitInit as ExplicitInit
from ._inits import GaussianInit as GaussianInit
from ._inits import InitSpec as InitSpec
from ._laws import ConstantSpec as ConstantSpec
from ._laws import EmpiricalSpec as EmpiricalSpec
from ._laws import GaussianSpec as GaussianSpec
from ._laws import LawSpec as LawSpec
from ._laws import MixturePart as MixturePart
from ._laws import MixtureSpec as MixtureSpec
from ._laws import MomentsSpec as MomentsSpec
from ._laws import RademacherSpec as RademacherSpec
from ._laws import SparseSpec as SparseSpec
from ._laws import StudentTSpec as StudentTSpec
from ._laws import UniformSpec as UniformSpec
from ._loss import LossResult as LossResult
from ._loss import LossSpec as LossSpec
from ._problem import DiagonalUnitarySpec as DiagonalUnitarySpec
from ._problem import Problem as Problem
from ._problem import ProblemSpec as ProblemSpec
from ._problem import ProcessSpec as ProcessSpec
from ._read import parse_spec as parse_spec
from ._read import read_spec as read_spec
