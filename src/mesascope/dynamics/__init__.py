"""Training dynamics: gradient flow, full-batch descent, training on sampled sequences."""

from ._descend import Descent as Descent
from ._descend import descend as descend
from ._ensemble import FlowEnds as FlowEnds
from ._ensemble import flow_ends as flow_ends
from ._flow import Flow as Flow
from ._flow import FlowProgress as FlowProgress
from ._flow import gradient_flow as gradient_flow
from ._outcome import Outcome as Outcome
from ._parameters import Mask as Mask
from ._parameters import mask_vector as mask_vector
from ._parameters import real_vector as real_vector
from ._train import Training as Training
from ._train import train as train
