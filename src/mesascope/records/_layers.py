"""What each rule of a memory computes in context: the record behind a page of the docs and a panel of the lab."""

from pathlib import Path

from pydantic import BaseModel

from ._identification import IdentificationVerdict
from ._provenance import Provenance

LAYERS = Path(__file__).parent / "shipped/layers.json"
"""The file of the record that comes with the package."""


class JudgedLayer(BaseModel, frozen=True, extra="forbid"):
    """A layer with some weights on some data.

    Attributes:
        error: mean squared error of its predictions.
        interval: 95 % interval of the error.
        verdict: of its identification.
        headline: of its identification.
        distances: of all learners, the nearest first.
        same: sentences that say which learners are one function on these data, as fitted.
    """

    error: float
    interval: tuple[float, float]
    verdict: IdentificationVerdict
    headline: str
    distances: dict[str, float]
    same: tuple[str, ...] = ()


class LayerRecord(BaseModel, frozen=True, extra="forbid"):
    """A rule on some data.

    Attributes:
        gates: the constant gates with the smallest error, by name.
        gain: the factor of the prediction with the smallest error.
        starts: the errors at which searches from several starts ended, the smallest first.
        exact: the error of the layer with these gates, where it is known exactly.
        given: the layer with these gates, whose keys are inputs and whose values are outputs.
        trained: a layer that was trained from random weights.
    """

    gates: dict[str, float]
    gain: float
    starts: tuple[float, ...]
    exact: float | None
    given: JudgedLayer
    trained: JudgedLayer


class BestRecord(BaseModel, frozen=True, extra="forbid"):
    """The predictor that no other beats on some data.

    Attributes:
        learner: the learner with its hyperparameters, as Markdown.
        error: mean squared error of its predictions.
        interval: 95 % interval of the error.
    """

    learner: str
    error: float
    interval: tuple[float, float]


class LayersRecord(BaseModel, frozen=True, extra="forbid"):
    """All rules on several kinds of data.

    Attributes:
        data: a kind of data in words → the name of a rule → what was found.
        best: a kind of data → the best predictor, where it is known.
        provenance: versions, commit and time.
    """

    data: dict[str, dict[str, LayerRecord]]
    best: dict[str, BestRecord] = {}
    provenance: Provenance


def layers_record() -> LayersRecord:
    """Return the record that comes with the package."""
    return LayersRecord.model_validate_json(LAYERS.read_bytes())
