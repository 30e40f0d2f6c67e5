"""An external package: a law, a process, a layer and a learner, one file each."""

from . import decaying_sum as decaying_sum
from . import last_times as last_times
from . import sinusoids as sinusoids
from . import triangular as triangular
