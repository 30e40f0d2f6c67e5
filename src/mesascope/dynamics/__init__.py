"""Training dynamics: gradient flow, descent, sampled training."""

from ._flow import Flow as Flow
from ._flow import FlowProgress as FlowProgress
from ._flow import gradient_flow as gradient_flow
from ._outcome import Outcome as Outcome
from ._parameters import Mask as Mask
from ._parameters import mask_vector as mask_vector
from ._parameters import real_vector as real_vector
