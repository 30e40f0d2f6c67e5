"""Studies: a specification of many runs, which are computed by workers and kept in a store."""

from ._execute import Request as Request
from ._execute import execute as execute
from ._prepare import open_or_make as open_or_make
from ._runners import SchedulerError as SchedulerError
from ._runners import SweepError as SweepError
from ._status import Driver as Driver
from ._status import Failure as Failure
from ._status import StudyStatus as StudyStatus
from ._status import study_status as study_status
from ._study import Point as Point
from ._study import StudySpec as StudySpec
from ._sweep import SweepResult as SweepResult
from ._sweep import sweep as sweep
from ._worker import compute_alone as compute_alone
