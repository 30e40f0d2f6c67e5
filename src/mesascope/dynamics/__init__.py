"""Training dynamics: gradient flow, full-batch descent, training on sampled sequences."""

from ._checkpoint import CheckpointError as CheckpointError
from ._checkpoint import export_safetensors as export_safetensors
from ._checkpoint import load_average as load_average
from ._checkpoint import load_model as load_model
from ._checkpoint import save_model as save_model
from ._descend import Descent as Descent
from ._descend import descend as descend
from ._ensemble import FlowEnds as FlowEnds
from ._ensemble import flow_ends as flow_ends
from ._flow import Flow as Flow
from ._flow import FlowProgress as FlowProgress
from ._flow import gradient_flow as gradient_flow
from ._optimizer import Optimizer as Optimizer
from ._outcome import Outcome as Outcome
from ._parameters import Mask as Mask
from ._parameters import mask_vector as mask_vector
from ._parameters import real_vector as real_vector
from ._progress import ProgressBar as ProgressBar
from ._progress import TrainingProgress as TrainingProgress
from ._train import Training as Training
from ._train import run_training as run_training
from ._train import train as train
from ._train_many import train_many as train_many
from ._training_settings import TrainingSettings as TrainingSettings
