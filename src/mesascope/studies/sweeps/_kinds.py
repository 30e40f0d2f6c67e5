"""What a run can be: the specification that its point is checked with."""

from typing import Literal, TypeAlias

from mesascope.specs import Spec

from .._certify import CertifySpec
from .._flow import FlowSpec
from .._identify import IdentifySpec
from .._loss import LossSpec
from .._train import TrainSpec

Kind: TypeAlias = Literal["flow", "train", "identify", "certify", "loss"]

SPECS: dict[str, type[Spec]] = {
    "flow": FlowSpec,
    "train": TrainSpec,
    "identify": IdentifySpec,
    "certify": CertifySpec,
    "loss": LossSpec,
}
"""The specification of every kind."""
