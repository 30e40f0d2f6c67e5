"""The store of runs: folders that are the truth, and an index that finds runs in them."""

from ._folders import ATTEMPTS as ATTEMPTS
from ._folders import RunFolders as RunFolders
from ._folders import Status as Status
from ._models import STUDY_NAME as STUDY_NAME
from ._models import PlannedRun as PlannedRun
from ._models import RunRecord as RunRecord
from ._models import StudyAxis as StudyAxis
from ._models import StudyPoint as StudyPoint
from ._models import StudyRecord as StudyRecord
from ._open import open_store as open_store
from ._rows import RunRow as RunRow
from ._rows import differing_settings as differing_settings
from ._store import Store as Store
