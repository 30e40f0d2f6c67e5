"""Settings that try to break the story, each with a question; the answer is read from what was computed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mesascope.lab._form import Form

from ._words import step_of

Results = dict[str, Any]
Answer = tuple[int, str]
"""The number of the right option, and why."""


@dataclass(frozen=True)
class Question:
    """What to guess before the answer is shown.

    Attributes:
        id, title: its name for programs and for people.
        question, options: what is asked, and what can be guessed.
    """

    id: str
    title: str
    question: str
    options: tuple[str, ...]

    def judge(self, guess: int, answer: Answer) -> str:
        """Say whether the guess was right, and why."""
        right, why = answer
        word = "Right" if guess == right else f"The answer is: {self.options[right]}"
        return f"{word}. {why}"


@dataclass(frozen=True)
class Preset(Question):
    """One attempt with another setting.

    Attributes:
        form: texts of the form that differ from those of the default setting.
        answer: from the results of that setting, by name.
    """

    form: Form
    answer: Callable[[Results], Answer]


def _compare(value: float, reference: float) -> int:
    """0, 1, 2 for smaller, equal, larger; to one part in a thousand."""
    return 1 if abs(value - reference) <= 1e-3 * abs(reference) else 2 * int(value > reference)


def _ratio(results: Results) -> Answer:
    (share, text), m2 = results["facts"]["ratio"], results["facts"]["moments"]["m2"][1]
    why = f"Trained on long sequences it answers {text} of the next token on average: ab = κ₁/κ₂ times E x² = {m2}."
    return _compare(share, 0.2), why


def _recovers(results: Results) -> Answer:
    gap, text = results["facts"]["gap"]
    if gap == 0:
        return 0, "All entries that are not 0 have one size, so one step size is right for all of them."
    return 1, f"An error of {text} per coordinate remains."


def _plain_step(results: Results) -> Answer:
    answer, product = results["identification"], np.mean(results["flow"]["end"]["product"])
    if step_of(answer) is not None:
        return 0, f"One plain gradient step, with ab = {product:.4g}."
    names = ", ".join(answer["candidates"]) or "none of the learners asked for"
    return 1, f"The mean ab is {product:.4g}, and the identification says: {names}."


def _same_product(results: Results) -> Answer:
    products, limit = np.asarray(results["flow"]["end"]["product"]), results["flow"]["end"]["limit_product"]
    same = bool(np.allclose(products, limit, rtol=1e-3))
    between = f"between {products.min():.4g} and {products.max():.4g}"
    return int(
        not same
    ), f"The products a_j b_j end {between}; from small diagonal weights all end at {limit:.4g}."


def _step_size(results: Results) -> Answer:
    limit, before = (results["facts"][name][0] for name in ("limit", "limit_of_every"))
    why = f"ab → {limit:.4g} instead of {before:.4g}: the noise of short contexts, κ₃/(t − 1), counts less."
    return _compare(limit, before), why


PRESETS = (
    Preset(
        "heavy-tails",
        "Heavy tails",
        "First tokens with heavier tails (Student t, 8 degrees of freedom). How much of the truth does the layer answer?",
        ("less than one fifth", "one fifth", "more than one fifth"),
        {"law.kind": "studentt", "law.df": "8"},
        _ratio,
    ),
    Preset(
        "one-hot",
        "One-hot tokens",
        "Only one coordinate of the first token is not 0, and it is ±1. Does the layer now answer right?",
        ("yes", "no"),
        {"law.kind": "sparse"},
        _recovers,
    ),
    Preset(
        "full-one-mask",
        "All ones, two diagonals",
        "All entries of the first token are 1, and only the two diagonals are trained. Does a plain gradient step emerge?",
        ("yes", "no"),
        {"law.kind": "constant", "law.value": "1", "mask": "off-diagonal"},
        _plain_step,
    ),
    Preset(
        "full-one",
        "All ones, all weights",
        "The same tokens, and every weight is trained. Does a plain gradient step still emerge?",
        ("yes", "no"),
        {"law.kind": "constant", "law.value": "1", "mask": ""},
        _plain_step,
    ),
    Preset(
        "random-start",
        "Random start",
        "Training starts from random weights instead of two small diagonals. Do all products a_j b_j end at the same value?",
        ("yes", "no"),
        {"init.kind": "gaussian", "init.scale": "0.1", "init.seed": "0"},
        _same_product,
    ),
    Preset(
        "last-token",
        "Last token only",
        "The loss counts the last prediction of every sequence alone. What happens to the step size?",
        ("smaller", "the same", "larger"),
        {"objective": "last"},
        _step_size,
    ),
)
