"""The sentences of the story, from what was computed."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

Results = dict[str, Any]

QUESTION = "A layer is trained to predict the next token. What does it become?"
INTRODUCTION = (
    "A trained model can run an optimizer of its own on its input: [[mesa]]. Here is the smallest example."
)
STEPS = {
    "data": (
        "1 Data",
        "Each token is the one before, turned: x_{t+1} = [[Λ]] [[x_t]]. The turn is new in every sequence: only the "
        "[[context]] shows it.",
    ),
    "model": (
        "2 Model",
        "One layer of [[attention]] compares the last token with every earlier one, [[a]], and adds up what followed "
        "them, [[b]].",
    ),
    "train": (
        "3 Train",
        "Training rolls down the [[loss]] of [[a]] and [[b]]. Only [[ab]] counts, so a whole valley is best. Press Train, or "
        "drag the dot.",
    ),
    "result": ("4 Result", ""),
    "why": ("5 Why not the whole truth?", ""),
    "break": (
        "6 Try to break it",
        "Guess first; then it is computed, and the whole page shows that setting. The last question is on other data.",
    ),
}
"""Title and text of every step; a text has at most three lines on a phone."""
CANDIDATES = "Each algorithm was fitted to the layer. What it misses is a share of the layer's answers, in mean square."
MORE = "Intervals and other data are in Expert, under In-context behaviour."
_NOTHING = 1e-12  # a smaller share is rounding
LAWS = "Choose the [[law]] of the first token, [[x_1]]."
WHICH_LAWS = "With long contexts it is right only if all entries of x₁ but zeros have one size: Rademacher (±1) or Sparse."
"""Equality in (E x⁴)² ≤ E x² E x⁶, for which the capability gap is 0 (zheng2024, Theorem 4.2)."""
_NORMALIZERS = {"t-1": " · 1/(t − 1)", "t": " · 1/t", "1": ""}


def formula(normalizer: str) -> str:
    """The answer of a layer with weights a I and b I."""
    return f"[[ŷ]]_{{t+1}} = [[ab]]{_NORMALIZERS[normalizer]} · Σ_{{i<t}} x_{{i+1}} x̄_{{i}} · [[x_t]]"


def step_of(answer: Results | None) -> float | None:
    """Return the step size where the identification found one plain step of gradient descent, else None."""
    if answer is None or answer["verdict"] != "identified" or answer["candidates"] != ["gradient-descent"]:
        return None
    values = next(
        entry["hyperparameters"] for entry in answer["ranking"] if entry["learner"] == "gradient-descent"
    )
    return float(values["step_size"]) if values["steps"] == 1 else None


def result_sentence(flow: Results, answer: Results | None) -> str:
    """What the layer became, and what theory says."""
    end, step = flow["end"], step_of(answer)
    product = float(np.mean(end["product"]))
    if answer is None:
        what = f"Its weights end at ab = {product:.4g}"
    elif step is not None:
        what = f"It became one step of [[gradient descent]] with step {step:.4g}"
    elif answer["verdict"] == "identified":
        what = f"It became {answer['candidates'][0]}, with a mean ab of {product:.4g}"
    elif answer["candidates"]:
        what = f"It cannot be told apart from {', '.join(answer['candidates'])}; its mean ab is {product:.4g}"
    else:
        what = f"It became none of the learners asked for; its mean ab is {product:.4g}"
    if not flow["succeeded"]:
        return f"{what}. Training is not at its end: {end['message']}"
    limit = end["limit_product"]
    if limit is None:
        return f"{what}. Theory names no limit here."
    value = product if step is None else step
    mark = "✓" if abs(value - limit) <= 5e-3 * max(abs(limit), 1e-9) else "✗"
    observed = " (observed, not proved, from such a start)" if "observed" in end["limit_reason"] else ""
    return f"{what}; theory says {limit:.4g} {mark}{observed}"


def compared(answer: Results) -> list[tuple[str, str, str]]:
    """A row for each algorithm: its name, what it misses of the layer's answers, and what was fitted."""
    return [
        (_in_words(entry["learner"]), _missed(entry["distance"]), _fitted(entry["hyperparameters"]))
        for entry in answer["ranking"]
    ]


def _in_words(names: str) -> str:
    """Names of learners with spaces; the signs of numbers stay."""
    return re.sub(r"(?<=[a-z])-(?=[a-z])", " ", names)


def _missed(distance: float) -> str:
    return "nothing" if distance < _NOTHING else f"{100 * distance:.{2 if distance < 0.995 else 3}g} %"


def _fitted(values: Results) -> str:
    words = ((name.replace("_", " "), value) for name, value in values.items())
    return ", ".join(
        f"{name} of {np.size(value)} numbers" if isinstance(value, list) else f"{name} {value:.4g}"
        for name, value in words
    )


def notes(answer: Results) -> list[str]:
    """Which algorithms are the same as fitted, and what the weights themselves say."""
    same = [
        f"{one[0].upper()}{_in_words(one[1:])}." for one in answer["reasons"] if one.startswith("as fitted")
    ]
    reading = _in_words((answer["reading"] or "").partition(";")[0])
    return [*same, f"The weights themselves say: {reading}."] if reading else same


def share_of_truth(facts: Results) -> str | None:
    """The mean of answer divided by truth at the limit of training, None where theory does not name it."""
    value, text = facts["trained_ratio"]
    if value is None:
        return None
    return text if len(text) <= 4 else f"{value:.3g}"


def why_title(facts: Results) -> str:
    """What the fifth step asks."""
    share, (longer, text) = share_of_truth(facts), facts["ratio"]
    if share is None:
        return STEPS["why"][0]
    if text == share == "1":
        return "5 Why the whole truth?"
    near = longer is not None and abs(facts["trained_ratio"][0] - longer) <= 0.05 * abs(longer)
    return f"5 Why about {text} of the truth?" if near else f"5 Why {share} of the truth?"


def why_sentence(facts: Results) -> str:
    """Why one step size cannot be right for every sequence."""
    gap, share = facts["gap"], share_of_truth(facts)
    if gap[0] is None or share is None:
        return "Theory says nothing about the answers here; below is what was measured."
    answers = f"It answers [[ab]]·x₁² times the truth: {share} times on average."
    if gap[0] == 0:
        return f"{answers} All sizes are the same here: in long contexts one step size is right for all."
    return f"{answers} One step size serves all [[x_1]]; it suits the large ones."


def why_longer(facts: Results) -> str:
    """What training on longer sequences would change."""
    gap, (share, text) = facts["gap"], facts["ratio"]
    if gap[0] is None or share is None:
        return "Theory says nothing about longer sequences here."
    if gap[0] == 0:
        return "Its answers then come as near to the truth as you like."
    return f"It then answers {text} of the truth: the step is right for one size of [[x_1]] only, however long the context."
