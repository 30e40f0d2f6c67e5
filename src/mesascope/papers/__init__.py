"""Claims of the literature as computations: one module per paper."""

from ._against import Change as Change
from ._against import changes as changes
from ._against import earlier_verdicts as earlier_verdicts
from ._claim import PRESETS as PRESETS
from ._claim import Claim as Claim
from ._claim import Finding as Finding
from ._claim import Preset as Preset
from ._registry import PAPERS as PAPERS
from ._registry import claims as claims
from ._reproduce import Event as Event
from ._reproduce import Reproduction as Reproduction
from ._reproduce import reproduce as reproduce
