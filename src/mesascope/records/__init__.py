"""What a run leaves behind: claims, figures as data, trajectories, and where they came from.

Nothing in here knows jax: records can be written, read and drawn where no accelerator library is installed.
"""

from ._cell_map import CellMap as CellMap
from ._certificate import CertificateFile as CertificateFile
from ._certificate import CertificateRecord as CertificateRecord
from ._certificate import write_certificate as write_certificate
from ._cite import cite as cite
from ._cite import known_keys as known_keys
from ._claim import NO_FINGERPRINT as NO_FINGERPRINT
from ._claim import ClaimRecord as ClaimRecord
from ._claim import Origin as Origin
from ._claim import Verdict as Verdict
from ._claim import fingerprint as fingerprint
from ._dataset import read_dataset as read_dataset
from ._dataset import write_dataset as write_dataset
from ._figure import Band as Band
from ._figure import Figure as Figure
from ._figure import Heatmap as Heatmap
from ._figure import Histogram as Histogram
from ._figure import Line as Line
from ._figure import Panel as Panel
from ._figure import Points as Points
from ._figure import Rule as Rule
from ._figure import Trace as Trace
from ._files import RecordError as RecordError
from ._files import atomic_path as atomic_path
from ._files import prepare_output as prepare_output
from ._files import remove_leftovers as remove_leftovers
from ._held import InUseError as InUseError
from ._held import held as held
from ._identification import CurveRecord as CurveRecord
from ._identification import CurvesRecord as CurvesRecord
from ._identification import IdentificationRecord as IdentificationRecord
from ._identification import RankedRecord as RankedRecord
from ._identification import ReadingRecord as ReadingRecord
from ._identification import SeparationRecord as SeparationRecord
from ._identification import read_identification as read_identification
from ._identification import write_identification as write_identification
from ._plain import canonical_json as canonical_json
from ._plain import plain as plain
from ._provenance import Provenance as Provenance
from ._provenance import code_version as code_version
from ._provenance import provenance as provenance
from ._run import RunDirectory as RunDirectory
from .store import PlannedRun as PlannedRun
from .store import RunFolders as RunFolders
from .store import RunRecord as RunRecord
from .store import RunRow as RunRow
from .store import State as State
from .store import Store as Store
from .store import StudyAxis as StudyAxis
from .store import StudyPoint as StudyPoint
from .store import StudyRecord as StudyRecord
from .store import open_store as open_store
from .store import reindex as reindex
