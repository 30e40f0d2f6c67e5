"""Specifications of what to compute, from TOML and JSON files or mappings, checked before anything runs.

A specification is light: jax and the rooms that need it are imported when one is built or run.
"""

from mesascope.specs import SpecError as SpecError

from ._certify import CertifiedLossSpec as CertifiedLossSpec
from ._certify import CertifySpec as CertifySpec
from ._certify import check_certificate as check_certificate
from ._data import DataSpec as DataSpec
from ._flow import FlowResult as FlowResult
from ._flow import FlowSpec as FlowSpec
from ._identify import IdentifySpec as IdentifySpec
from ._identify_models import CheckpointSpec as CheckpointSpec
from ._identify_models import FailedFlowError as FailedFlowError
from ._identify_models import FlowEndSpec as FlowEndSpec
from ._identify_models import FunctionSpec as FunctionSpec
from ._identify_run import IdentifyRun as IdentifyRun
from ._loss import LossResult as LossResult
from ._loss import LossSpec as LossSpec
from ._problem import Problem as Problem
from ._problem import ProblemSpec as ProblemSpec
from ._read import parse_file as parse_file
from ._read import parse_spec as parse_spec
from ._read import read_spec as read_spec
from ._task import Horizon as Horizon
from ._train import TrainSpec as TrainSpec
from ._train_result import EvaluationRecord as EvaluationRecord
from ._train_result import LossRecord as LossRecord
from ._train_result import TrainManyResult as TrainManyResult
from ._train_result import TrainResult as TrainResult
from ._trained import load_trained as load_trained
from ._training_run import TrainingRun as TrainingRun
from ._training_runs import TrainingRuns as TrainingRuns
from .sweeps import Driver as Driver
from .sweeps import Failure as Failure
from .sweeps import SchedulerError as SchedulerError
from .sweeps import StudySpec as StudySpec
from .sweeps import StudyStatus as StudyStatus
from .sweeps import SweepError as SweepError
from .sweeps import SweepResult as SweepResult
from .sweeps import compute_alone as compute_alone
from .sweeps import execute as execute
from .sweeps import open_or_make as open_or_make
from .sweeps import study_status as study_status
from .sweeps import sweep as sweep
