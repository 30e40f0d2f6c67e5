"""What was computed, in sentences."""

import re
from html import escape
from typing import Any

_KAPPA = re.compile(r"\bκ(\d)")
_SUBSCRIPT = re.compile(
    r"((?<![A-Za-z0-9_])(?:[A-Za-zΑ-Ωα-ωℓ∇ŷ]|1(?=_\{))|[‖)\]])_(?:\{([^{}]*)\}|(\d+|[A-Za-zα-ω∞](?![A-Za-z0-9_])|(?<=[λσ]_)(?:max|min)\b))"
)
_SUPERSCRIPT = re.compile(
    r"(?<=\S)\^(?:\{([^{}]*)\}|\(([^()]*)\)|([-−]?(?:\d+|[A-Za-zα-ω])(?![A-Za-z0-9])|[A-Z]{2}\b))"
)


def typeset(text: str) -> str:
    """Return a sentence as HTML: κ1, x_j^2, Σ_{r≠j}, W^KQ and (1/κ)^(2^k) with subscripts and superscripts."""
    return _scripts(escape(text, quote=False))


def _scripts(text: str) -> str:
    text = _KAPPA.sub(r"κ<sub>\1</sub>", text)
    text = _SUBSCRIPT.sub(lambda found: f"{found[1]}<sub>{_inside(found.groups()[1:])}</sub>", text)
    return _SUPERSCRIPT.sub(lambda found: f"<sup>{_inside(found.groups())}</sup>", text)


def _inside(groups: tuple[str | None, ...]) -> str:
    return _scripts(next(one for one in groups if one is not None))


def conclusions(facts: dict[str, Any]) -> list[str]:
    """Return what follows for the trained layer, in sentences."""
    limit, gap, ratio = facts["limit"], facts["gap"], facts["ratio"]
    if limit[0] is None:
        return [f"{facts['theorem']} says nothing about where training ends: {limit[1]}."]
    becomes = (
        f"Trained from diagonal weights, the layer becomes one step of gradient descent on the tokens it has seen, with "
        f"step size ab → {limit[1]}"
    )
    if gap[0] is None:
        return [f"{becomes}.", f"What remains with long contexts theory does not say: {gap[1]}."]
    if facts["normalizer"] == "t":
        lines = [f"{becomes}, times (t − 1)/t with this normalizer (as {facts['theorem']}, which has t − 1)."]
    else:
        lines = [f"{becomes}: κ₁ divided by κ₂ and what κ₃ adds at this horizon ({facts['theorem']})."]
    if gap[0] == 0:
        return [*lines, "With long contexts that step recovers the next token: the capability gap is 0."]
    m2, kappa1, kappa2 = (facts["moments"][name] for name in ("m2", "kappa1", "kappa2"))
    whole = kappa1[1].isdecimal() and kappa2[1].isdecimal()
    quotient = f"{kappa1[1]}/{kappa2[1]} = " if whole else ""
    lines += [
        f"Why: with long contexts the term of κ₃ vanishes, and ab → κ₁/κ₂ = {quotient}{kappa1[0] / kappa2[0]:.6g}. The "
        "step then predicts, in every coordinate, ŷ = ab x₁² times the next token, x₁ being the first entry of the sequence. "
        f"That is right only where x₁² = κ₂/κ₁ = {kappa2[0] / kappa1[0]:.6g}; elsewhere the step is too short or too long.",
        f"So it predicts {ratio[1]} of the next token on average (the mean of ŷ/x), and the error that remains is "
        f"E x² − κ₁²/κ₂ = {gap[1]} per coordinate, where predicting 0 leaves E x² = {m2[1]}.",
    ]
    return lines


def measurements(behaviour: dict[str, Any]) -> list[str]:
    """Return what was measured of the layer, in sentences."""
    (slope, error), (ratio, ratio_error) = behaviour["correlation"], behaviour["ratio"]
    cosine, low, high = behaviour["sensitivity"]["cosine"]
    lines = [
        f"The regression of predictions on the truth, E[ŷ x*]/E|x|², is {slope:.4g} ± {1.96 * error:.2g} (95 %)"
        + _expected(behaviour["expected_correlation"])
        + f"; the mean of the ratios ŷ/x is {ratio:.4g} ± {1.96 * ratio_error:.2g}"
        + _expected(behaviour["expected_ratio"])
        + ".",
        f"Its derivatives and those of one gradient step of size ab = {behaviour['product']:.4g} have the cosine "
        f"{cosine:.4g} [{low:.4g}, {high:.4g}].",
    ]
    gap, reason = behaviour["gap"]
    if gap is None:
        return [*lines, f"Capability gap: {reason}."]
    return [
        *lines,
        f"Capability gap, the error per coordinate that no context removes: {behaviour['gap'][1]}.",
    ]


def _expected(expected: tuple[float | None, str]) -> str:
    return "" if expected[0] is None else f", by theory {expected[0]:.4g}"
