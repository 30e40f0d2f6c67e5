"""Symbols of formulas in plain text, and how LaTeX writes them."""

import re
import unicodedata
from dataclasses import dataclass

GREEK = "α-ωΑ-Ωϕϵ"
MARKS = "\u0302\u0303\u0304"  # combined with the letter before: hat, tilde, bar
ACCENTS = {"\u0302": r"\hat", "\u0303": r"\tilde", "\u0304": r"\bar"}
RAISED = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺⁽⁾ᵀᵏⁿ", ["0", *"123456789-+()", r"\top ", "k", "n"], strict=True))
LOWERED = dict(zip("₀₁₂₃₄₅₆₇₈₉₋₊", "0123456789-+", strict=True))
FUNCTIONS = {"log", "ln", "exp", "cos", "sin", "max", "min", "det"}
OPERATORS = {"tr", "diag", "blockdiag", "softmax", "rank", "Var", "Cov"}
PRODUCTS = {"ab", "AS", "AX", "QZ", "dN", "cS", "cI", "sJ", "sW", "PW", "aI", "bI", "Bz"}
SIGNS = {
    "−": "-",
    "·": r"\cdot ",
    "×": r"\times ",
    "≤": r"\le ",
    "≥": r"\ge ",
    "≠": r"\ne ",
    "≈": r"\approx ",
    "~": r"\sim ",
    "→": r"\to ",
    "←": r"\leftarrow ",
    "∈": r"\in ",
    "⊗": r"\otimes ",
    "⊙": r"\odot ",
    "±": r"\pm ",
    "∘": r"\circ ",
    "∝": r"\propto ",
    "=": "=",
    "<": "<",
    ">": ">",
    "+": "+",
    "/": "/",
}
PLAIN = {
    "∞": r"\infty ",
    "∇": r"\nabla ",
    "∂": r"\partial ",
    "½": r"\tfrac12 ",
    "¼": r"\tfrac14 ",
    "…": r"\dots ",
    "‖": r"\Vert ",
    "|": r"\vert ",
    "∣": r"\vert ",
}
OPEN, CLOSE = (
    {"(": "(", "[": "[", "{": r"\{", "⟨": r"\langle "},
    {")": ")", "]": "]", "}": r"\}", "⟩": r"\rangle "},
)
PAIRS = {"(": ")", "[": "]", "{": "}", "⟨": "⟩"}
LETTER = rf"[A-Za-z{GREEK}ℓ]|[ŷŵŜŴẑ]"
SCRIPT = (
    r"_\{(?:[^{}\n]|\{[^{}]*\})*\}|\^\{(?:[^{}\n]|\{[^{}]*\})*\}|\^\([^()\s]*\)|\^[A-Z]{2}(?![A-Za-z])"
    rf"|[_^][−-]?(?:[A-Za-z0-9∞ℓ]+|[{GREEK}])"
    r"|[⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺⁽⁾ᵀᵏⁿ]+|[₀-₉₊₋]+|′|'(?![A-Za-z])|\*(?![\w*])"
)
ITEM = re.compile(
    rf"(?P<number>\d+(?:\.\d+)?(?:e[+-]?\d+)?)"
    rf"|(?P<name>[A-Za-z]{{3,}}(?:_[a-z]{{3,}})*(?=[²³]))"
    rf"|(?P<word>[A-Za-z]{{2,}})"
    rf"|(?P<letter>(?:{LETTER})[{MARKS}]?)"
    rf"|(?P<sum>√)"
    rf"|(?P<script>{SCRIPT})"
    rf"|(?P<open>[(\[{{⟨])|(?P<close>[)\]}}⟩])"
    rf"|(?P<plain>[∞∇∂½¼…‖|∣])"
    rf"|(?P<sign>[{re.escape(''.join(SIGNS))}])"
    rf"|(?P<comma>[,;:])"
)
SPACE = re.compile(r"[ ]*\n?[ ]*")


@dataclass
class Item:
    """A symbol of the text: what it is, how it is written, where it stands, and whether a space is before it."""

    kind: str
    text: str
    start: int
    end: int
    spaced: bool


def latex(part: list[Item]) -> str:
    """The LaTeX of symbols that follow each other."""
    parts, number = [], 0
    while number < len(part):
        item = part[number]
        number += 1
        scripts = []
        while number < len(part) and part[number].kind == "script":
            scripts.append(part[number].text)
            number += 1
        if item.text == "√":
            body, number = _under_root(part, number)
            base = rf"\sqrt{{{body}}}"
        else:
            base = _symbol(item, part[number] if number < len(part) else None, scripts)
        parts.append((" " if item.spaced and parts else "") + base + _scripts(scripts))
    return re.sub(r" +", " ", "".join(parts)).strip().replace(" }", "}")


def _under_root(part, number):
    """What stands under a root: a bracket without itself, or one symbol with its scripts."""
    end = number + 1
    if number < len(part) and part[number].kind == "open":
        depth = 1
        while depth:
            depth += (part[end].kind == "open") - (part[end].kind == "close")
            end += 1
        return latex(part[number + 1 : end - 1]), end
    return latex(part[number:end]), end


def _symbol(item, after, scripts):
    said = item.text
    if item.kind == "word":
        if said in FUNCTIONS:
            return rf"\{said} "
        is_product = said in PRODUCTS or (len(said) == 2 and said not in OPERATORS)
        return said if is_product else rf"\operatorname{{{said}}}"
    if item.kind == "name":
        return rf"\mathrm{{{said}}}".replace("_", r"\_")
    if said in ("Σ", "Π"):
        lowered = any(one[0] == "_" for one in scripts)
        is_sum = lowered or (
            not scripts and after is not None and after.spaced and after.kind in ("letter", "open")
        )
        return (
            ({"Σ": r"\sum ", "Π": r"\prod "}[said].rstrip()) + (" " if not scripts else "")
            if is_sum
            else said
        )
    if item.kind == "letter":
        letter, *marks = unicodedata.normalize("NFD", said)
        letter = r"\ell " if letter == "ℓ" else letter
        return rf"{ACCENTS[marks[0]]}{{{letter}}}" if marks else letter
    return (SIGNS | PLAIN | OPEN | CLOSE).get(said, said)


def _scripts(scripts):
    lower, upper = [], []
    for one in scripts:
        if one[0] in "_^":
            (lower if one[0] == "_" else upper).append(_inside(one[1:]))
        elif one[0] in LOWERED:
            lower.append("".join(LOWERED[sign] for sign in one))
        else:
            upper.append(
                {"*": "*", "'": r"\prime ", "′": r"\prime "}.get(one) or "".join(map(RAISED.get, one))
            )
    return "".join(
        f"{sign}{{{''.join(parts).strip()}}}" for sign, parts in (("_", lower), ("^", upper)) if parts
    )


def _inside(said):
    """An index or exponent, without the brackets that plain text needs."""
    if said.startswith("{") or (said.startswith("(") and not said[1:-1].isdecimal()):
        said = said[1:-1]
    if re.fullmatch(r"[A-Za-z]{3,}", said):
        return rf"\{said} " if said in FUNCTIONS else rf"\mathrm{{{said}}}"
    items, at = [], 0
    while at < len(said):
        gap = SPACE.match(said, at).end()
        found = re.compile(
            rf"(?P<letter>{LETTER})|{ITEM.pattern}".replace("(?P<letter>", "(?P<one>", 1)
        ).match(said, gap)
        if not found:
            return said
        kind = "letter" if found.lastgroup == "one" else found.lastgroup
        items.append(Item(kind, found[0], gap, found.end(), gap > at))
        at = found.end()
    return latex(items)
