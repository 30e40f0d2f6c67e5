"""What the symbols of the story mean, a sentence each; the page shows it on hover, focus and tap."""

import re
from html import escape

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
    "ŷ": ("ŷ", "The layer's answer: its prediction of the next token."),
    "law": ("law", "The probability distribution of the first token."),
    "loss": (
        "loss",
        "The mean squared error of the predictions, weighted over context lengths. It is exact, not sampled.",
    ),
    "context": ("context", "The tokens that the layer has seen so far in this sequence."),
    "attention": (
        "linear attention",
        "Attention without softmax: the answer is a weighted sum of what followed similar tokens.",
    ),
    "gradient descent": (
        "gradient descent",
        "One step: start from the guess Λ = 0 and move once against the gradient of the squared error on the context.",
    ),
    "mesa": (
        "mesa-optimization",
        "A trained model itself runs an optimizer, here gradient descent, on the context that it is given.",
    ),
}
"""By name: how it is written, as HTML, and what it is."""

_MARK = re.compile(r"\[\[([^\]]+)\]\]")
_SUBSCRIPT = re.compile(r"_\{([^}]*)\}")


def glossed(text: str) -> str:
    """Return a text as HTML in which `[[name]]` is a symbol of the glossary and `_{i}` a subscript.

    Raises:
        KeyError: the glossary does not have it.
    """
    subscripted = _SUBSCRIPT.sub(r"<sub>\1</sub>", escape(text, quote=False))
    return _MARK.sub(lambda found: _symbol(found[1]), subscripted)


def _symbol(name: str) -> str:
    written, meaning = GLOSSARY[name]
    return (
        f'<button type="button" class="story-gloss" aria-label="{escape(f"{name}: {meaning}")}">{written}'
        f'<span class="story-tip" aria-hidden="true">{escape(meaning)}</span></button>'
    )
