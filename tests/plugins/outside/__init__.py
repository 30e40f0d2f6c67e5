"""An external package: a law, a process, a task, a layer, a model and a learner, one file each."""

from . import decaying_sum as decaying_sum
from . import discounted as discounted
from . import last_times as last_times
from . import sinusoids as sinusoids
from . import triangular as triangular
from . import two_terms as two_terms
