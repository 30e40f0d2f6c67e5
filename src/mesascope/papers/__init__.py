"""Claims of the literature as computations: one module per paper."""

from ._claim import PRESETS as PRESETS
from ._claim import Claim as Claim
from ._claim import Difference as Difference
from ._claim import Finding as Finding
from ._claim import Preset as Preset
from ._claim import Settings as Settings
from ._earlier import Change as Change
from ._earlier import changes as changes
from ._earlier import earlier_outcomes as earlier_outcomes
from ._earlier import restated as restated
from ._earlier import shipped_record as shipped_record
from ._earlier import shipped_run as shipped_run
from ._findings import INSIGHTS as INSIGHTS
from ._findings import Insight as Insight
from ._registry import PAPERS as PAPERS
from ._registry import claims as claims
from ._registry import differences as differences
from ._reproduce import Event as Event
from ._reproduce import Reproduction as Reproduction
from ._reproduce import reproduce as reproduce
