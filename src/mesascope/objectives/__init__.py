"""Engines: how the expectation in a population objective is computed."""

from ._engine import Engine as Engine
from ._engine import Objective as Objective
from ._enumeration import Enumeration as Enumeration
from ._exact import ExactMoments as ExactMoments
from ._exact import ExactObjective as ExactObjective
from ._loss_polynomial import LossPolynomial as LossPolynomial
from ._loss_polynomial import loss_polynomial as loss_polynomial
from ._many import losses as losses
from ._many import losses_and_gradients as losses_and_gradients
from ._monte_carlo import MonteCarlo as MonteCarlo
from ._population import objective_of as objective_of
from ._population import population_loss as population_loss
from ._sample_losses import PRECISIONS as PRECISIONS
from ._sample_losses import Task as Task
from ._sample_losses import cast as cast
from ._sample_losses import check_model_reads as check_model_reads
from ._sample_losses import check_task as check_task
from ._sample_losses import refuse_large_batches as refuse_large_batches
from ._sample_losses import sample_losses as sample_losses
from ._sample_losses import sequence_losses as sequence_losses
from ._sample_losses import task_length as task_length
