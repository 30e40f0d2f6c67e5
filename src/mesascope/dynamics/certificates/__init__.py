"""Statements about critical points of the population loss, with proofs by computation."""

from ._certify import Certificate as Certificate
from ._certify import certify as certify
from ._certify import certify_near as certify_near
from ._certify import question_of as question_of
from ._decimals import decimal_places as decimal_places
from ._exact_law import require_exact as require_exact
from ._exact_point import exact_gradient as exact_gradient
from ._exact_point import prove_exactly as prove_exactly
from ._inertia import Inertia as Inertia
from ._isolated_point import prove_isolated as prove_isolated
from ._krawczyk import NotProvedError as NotProvedError
from ._krawczyk import Smooth as Smooth
from ._minimum import prove_minimum as prove_minimum
from ._prompt_question import PromptQuestion as PromptQuestion
from ._question import Proved as Proved
from ._question import Question as Question
from ._sequence_question import SequenceQuestion as SequenceQuestion
from ._sequence_question import diagonal_places as diagonal_places
from ._sequence_question import diagonal_point as diagonal_point
from ._statement import statement as statement
