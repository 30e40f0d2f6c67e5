"""Probes: what a model does in context, and which learner does the same."""

from ._adapter import Predictor as Predictor
from ._adapter import as_callable as as_callable
from ._adapter import import_callable as import_callable
from ._algebra import Reading as Reading
from ._answers import answers as answers
from ._identification import Identification as Identification
from ._identification import Ranked as Ranked
from ._identification import Separation as Separation
from ._identification_curves import Curves as Curves
from ._identification_curves import identification_curves as identification_curves
from ._identify import IdentifyProgress as IdentifyProgress
from ._identify import identify as identify
from ._intervals import Measured as Measured
from ._metrics import ByLength as ByLength
from ._metrics import cosine as cosine
from ._metrics import error_similarity as error_similarity
from ._metrics import prediction_distance as prediction_distance
from ._metrics import r_squared as r_squared
from ._problems import Problems as Problems
from ._problems import draw_problems as draw_problems
from ._sensitivity import implicit_weights as implicit_weights
from ._sensitivity import sensitivities as sensitivities
from ._sensitivity import sensitivity_cosine as sensitivity_cosine
from ._sensitivity import sensitivity_distance as sensitivity_distance
