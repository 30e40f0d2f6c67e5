"""Learners: algorithms that learn in context, against which models are held."""

from ._gradient_descent import GradientDescent as GradientDescent
from ._learner import Features as Features
from ._learner import Learner as Learner
from ._learner import Memory as Memory
from ._least_squares import LeastSquares as LeastSquares
from ._moments import Moments as Moments
from ._moments import NormalEquations as NormalEquations
from ._predictions import InContext as InContext
from ._predictions import features_of as features_of
from ._predictions import predictions as predictions
from ._predictions import prompt_examples as prompt_examples
from ._predictions import sequence_examples as sequence_examples
from ._ridge import Ridge as Ridge
from ._spectrum import SpectralLearner as SpectralLearner
from ._spectrum import Spectrum as Spectrum
