"""What the symbols of the story mean, a sentence each; the page shows it on hover, focus and tap."""

import re
from html import escape

from mesascope.lab._words import typeset

GLOSSARY = {
    "x_t": ("x<sub>t</sub>", "The token at place t: d complex numbers, each turning on its own circle."),
    "x_1": ("x<sub>1</sub>", "The first token. You choose its law in step 1."),
    "Λ": (
        "Λ",
        "The rotation of one sequence: d angles, drawn anew for every sequence. The layer never sees it directly.",
    ),
    "T": ("T", "The number of tokens in a training sequence."),
    "d": ("d", "The dimension: how many numbers a token has."),
    "a": (
        '<b class="story-a">a</b>',
        "The strength of the comparison of the last token with earlier ones: the diagonal of the weights W^KQ.",
    ),
    "b": (
        '<b class="story-b">b</b>',
        "The strength with which what followed is added up: the diagonal of the weights W^PV.",
    ),
    "ab": (
        '<b class="story-a">a</b><b class="story-b">b</b>',
        "The product of both strengths. The answer depends on it alone: it is the size of the gradient step.",
    ),
    "a_j b_j": (
        '<b class="story-a">a</b><sub>j</sub> <b class="story-b">b</b><sub>j</sub>',
        "The product of both strengths in coordinate j; where all are the same it is ab.",
    ),
    "ŷ": ("ŷ", "The layer's answer: its prediction of the next token."),
    "ŷ/x": ("ŷ/x", "The answer divided by the truth, in one coordinate: 1 is right."),
    "x̄": ("x̄", "The complex conjugate: the number turned back by its own angle."),
    "Σ": ("Σ", "The sum over what is written below it."),
    "E x²": ("E x²", "The mean square of one coordinate of the first token."),
    "κ₁": ("κ₁", "The mean fourth power of one coordinate of the first token, E x^4."),
    "κ₂": ("κ₂", "The mean sixth power of one coordinate of the first token, E x^6."),
    "κ₃": ("κ₃", "Σ_{r≠j} E x_j^2 x_r^4: how much other coordinates disturb one; contexts average it away."),
    "law": ("law", "The probability distribution of the first token."),
    "loss": (
        "loss",
        "Half the squared error, added up over the predictions of a sequence: the exact mean over all sequences.",
    ),
    "context": ("context", "The tokens that the layer has seen so far in this sequence."),
    "attention": (
        "linear attention",
        "Attention without softmax: the answer is a weighted sum of what followed similar tokens.",
    ),
    "gradient descent": (
        "gradient descent",
        "From the guess Λ = 0 move once against the gradient of the squared error on the context, and predict with the new "
        "Λ. This is the formula of step 2, and ab is the size of the step.",
    ),
    "mesa": (
        "mesa-optimization",
        "A trained model itself runs an optimizer, here gradient descent, on the context that it is given.",
    ),
}
"""By name: how it is written, as HTML, and what it is."""

_MARK = re.compile(r"\[\[([^\]]+)\]\]|(κ[₁₂₃]|E x²|a_j b_j|\bab\b|ŷ/x|ŷ|x̄|Σ(?=_))")
"""A marked name of the glossary, or a symbol that means nothing else in any text."""


def glossed(text: str) -> str:
    """Return a sentence as HTML: `[[name]]` is a symbol of the glossary, as are symbols like κ₁ and ab without a mark.

    Raises:
        KeyError: the glossary does not have it.
    """
    pieces, end = [], 0
    for found in _MARK.finditer(text):
        pieces += [_after(text[end : found.start()], bool(end)), _symbol(found[1] or found[2])]
        end = found.end()
    return "".join([*pieces, _after(text[end:], bool(end))])


def _after(text: str, symbol: bool) -> str:
    """A piece of a sentence; a subscript at its beginning belongs to the symbol before it."""
    index = re.match(r"_\{([^{}]*)\}", text) if symbol else None
    return typeset(text) if index is None else f"<sub>{typeset(index[1])}</sub>{typeset(text[index.end() :])}"


def _symbol(name: str) -> str:
    written, meaning = GLOSSARY[name]
    return (
        f'<button type="button" class="story-gloss" aria-label="{escape(f"{name}: {meaning}")}">{written}'
        f'<span class="story-tip" aria-hidden="true">{typeset(meaning)}</span></button>'
    )
