"""TeX formulas between `$` signs as text with <i>, <sub> and <sup>, for browsers and plotly."""

import re
import unicodedata
from collections import deque
from html import escape

_GREEK = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho varsigma sigma tau upsilon "
    "phi chi psi omega"
)
_NAMES = "infty nabla top sum prod int dagger ast"
_SYMBOLS = {
    **{name: chr(ord("α") + at) for at, name in enumerate(_GREEK.split())},
    **{"Gamma": "Γ", "Delta": "Δ", "Theta": "Θ", "Lambda": "Λ", "Xi": "Ξ", "Pi": "Π", "Sigma": "Σ"},
    **{
        "Phi": "Φ",
        "Psi": "Ψ",
        "Omega": "Ω",
        "varepsilon": "ε",
        "varphi": "φ",
        "varpi": "ϖ",
        "ell": "ℓ",
        "partial": "∂",
    },
    **dict(zip(_NAMES.split(), "∞∇⊤ΣΠ∫†∗", strict=True)),
    **{"to": " → ", "rightarrow": " → ", "le": " ≤ ", "leq": " ≤ ", "ge": " ≥ ", "geq": " ≥ ", "neq": " ≠ "},
    **{"approx": " ≈ ", "sim": " ∼ ", "in": " ∈ ", "propto": " ∝ ", "pm": " ± ", "times": " × ", "cdot": "·"},
    **{"otimes": " ⊗ ", "odot": " ⊙ "},
    **{"dots": "…", "ldots": "…", "cdots": "⋯", "langle": "⟨", "rangle": "⟩", "|": "‖", "{": "{", "}": "}"},
    **{",": " ", ";": " ", ":": " ", " ": " ", "!": "", "quad": "  ", "left": "", "right": "", "%": "%"},
}
_ACCENTS = {"hat": "\u0302", "bar": "\u0304", "tilde": "\u0303", "dot": "\u0307", "vec": "\u20d7"}
_UPRIGHT = {"mathrm", "text", "operatorname", "mathbf", "mathbb", "mathcal"}
_FUNCTIONS = "arccos arcsin arctan arg cos cosh deg det dim exp gcd inf ker lim ln log max min Pr sin sinh sup tan tanh Re Im"
_OTHERS = (
    "ne equiv simeq cong ll gg lesssim gtrsim subset subseteq cup cap setminus emptyset forall exists neg land lor wedge vee "
    "oplus circ star bullet prime perp parallel angle mp div mid surd hbar imath jmath vdots ddots qquad coprod "
    "oint bigcup bigcap binom overline underline widehat widetilde ddot mathring mathsf mathtt mathit mathfrak boldsymbol "
    "leftarrow leftrightarrow longrightarrow mapsto uparrow downarrow Rightarrow Leftarrow Leftrightarrow iff implies "
    "lfloor rfloor lceil rceil vert Vert lvert rvert lVert rVert big Big bigg Bigg bigl bigr Bigl Bigr biggl biggr "
    "displaystyle textstyle # & _"
)
_MATHEMATICS = {
    *_SYMBOLS, *_ACCENTS, *_UPRIGHT, *_FUNCTIONS.split(), *_OTHERS.split(), "frac", "tfrac", "dfrac", "sqrt"
}  # fmt: skip
"""The commands that formulas may hold; none of them defines, reads, writes or runs anything."""
_CLOSING = {"{": "}", r"\left": r"\right"}
_TOKENS = re.compile(r"\\[A-Za-z]+|\\.|[A-Za-z]+|\d+(?:\.\d+)?|.", re.DOTALL)
_SCRIPT = re.compile(r"<(sub|sup)>((?:(?!</?su[bp]>).)*)</\1>")
_SPACED = re.compile(r" ([+−=<>]|&[lg]t;) ")
_FUNCTION_TOKENS = frozenset(f"\\{name}" for name in _FUNCTIONS.split())
_HALVES = {("1", "2"): "½", ("1", "4"): "¼", ("3", "4"): "¾", ("1", "3"): "⅓"}


def is_mathematics(formula: str) -> bool:
    """Whether LaTeX may read a formula: only commands of mathematics, braces in pairs, and no character by its code.

    A command such as `input`, a brace too many, and `^^5c` for a backslash would reach beyond the formula.
    """
    awaited: list[str] = []
    for token in re.findall(r"\\[A-Za-z]+|\\.|[\\{}]", formula):
        if token in _CLOSING:
            awaited.append(_CLOSING[token])
        elif token in _CLOSING.values():
            if not awaited or awaited.pop() != token:
                return False
        elif token[1:] not in _MATHEMATICS:
            return False
    return bool(formula.strip()) and not awaited and "^^" not in formula


def tex_to_html(text: str) -> str:
    """A text with formulas as HTML of <i>, <sub> and <sup> only; everything else is escaped.

    A `$` without a partner, a command that is not known, and formulas nested beyond the limit of Python are shown as they are
    written.
    """
    parts = text.split("$")
    if len(parts) % 2 == 0:
        return escape(text, quote=False)
    try:
        return "".join(_formula(part) if n % 2 else escape(part, quote=False) for n, part in enumerate(parts))
    except RecursionError:
        return escape(text, quote=False)


def tex_to_text(text: str) -> str:
    """A text with formulas between `$` signs as letters without markup, for labels and for reading aloud: x_{t+1}, W^KQ.

    Scripts of more than a word are in braces, as the glossary of ARCHITECTURE.md and docstrings write them.
    """
    plain = re.sub(r"</?i>", "", tex_to_html(text))
    while plain != (plain := _SCRIPT.sub(_plain_script, plain)):  # the innermost first
        pass
    plain = re.sub(r"(?<=\S)  +(?=\S)", " ", plain)  # a sign brings spaces, which may stand there already
    return plain.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def _plain_script(found: re.Match[str]) -> str:
    sign, script = "_" if found[1] == "sub" else "^", found[2].strip()
    if re.fullmatch(r"\w+|.", script):
        return sign + script
    return f"{sign}{{{_SPACED.sub(lambda operator: operator[1], script)}}}"


def _formula(tex: str) -> str:
    return _Formula(tex).all()


class _Formula:
    """One formula, read from left to right."""

    def __init__(self, tex: str) -> None:
        self._tokens = deque(_split_scripts(_TOKENS.findall(tex)))
        self._in_script = 0

    def all(self, upright: bool = False) -> str:
        """The rest, up to the closing brace."""
        shown: list[str] = []
        while self._tokens:
            if self._tokens[0] == "}":
                self._tokens.popleft()
                break
            before = next(filter(None, reversed(shown)), "")
            minus = self._tokens[0] in "-−" and before and not self._in_script
            spaced = minus and not before.endswith((" ", "(", "[", ",", "/"))
            function = self._tokens[0] in _FUNCTION_TOKENS and before.endswith((">", ")"))
            one = self._next(upright)
            shown.append(f" {one} " if spaced else f" {one}" if function else one)
        return "".join(shown).replace("</i><i>", "")

    def _next(self, upright: bool = False) -> str:
        token = self._tokens.popleft()
        if token == "{":
            return self.all(upright)
        if token in ("^", "_"):
            name = "sup" if token == "^" else "sub"
            self._in_script += 1
            script = self._argument(upright)
            self._in_script -= 1
            return f"<{name}>{script}</{name}>"
        if token.startswith("\\"):
            return self._command(token[1:])
        if token.isspace():
            return " " if upright else ""
        if token.isalpha() and token.isascii() and not upright:
            return f"<i>{token}</i>"
        if token in "=<>+":
            return f" {escape(token)} "
        return escape(token.replace("-", "−"), quote=False)

    def _argument(self, upright: bool = False) -> str:
        while self._tokens and self._tokens[0].isspace():
            self._tokens.popleft()
        return self._next(upright) if self._tokens else ""

    def _command(self, name: str) -> str:
        if name in _SYMBOLS:
            return _SYMBOLS[name]
        if name in _ACCENTS:
            return _accented(self._argument(), _ACCENTS[name])
        if name in ("frac", "tfrac", "dfrac"):
            above, below = self._argument(), self._argument()
            return _HALVES.get((above, below), f"{_closed(above)}/{_closed(below)}")
        if name == "sqrt":
            return f"√{_closed(self._argument())}"
        if name in _UPRIGHT:
            return self._argument(upright=True)
        return f"{name} "  # min, log, arg, and unknown commands


def _split_scripts(tokens: list[str]) -> list[str]:
    """In TeX an argument without braces is a single sign: of x^12 it is 1, of a fraction both digits of 12."""
    split: list[str] = []
    waiting = 0
    for token in tokens:
        if waiting and not token.startswith("\\") and token != "{" and len(token) > 1:
            split += token
            waiting = max(0, waiting - len(token))
        else:
            split.append(token)
            waiting = max(0, waiting - (not token.isspace()))
        if token in ("^", "_") or token[1:] in ("sqrt", *_ACCENTS):
            waiting = 1
        elif token in ("\\frac", "\\tfrac", "\\dfrac"):
            waiting = 2
    return split


def _accented(shown: str, accent: str) -> str:
    found = re.search(r"[^\W\d_]", re.sub(r"</?\w+>", lambda m: " " * len(m[0]), shown))
    at = found.end() if found else len(shown)
    return unicodedata.normalize("NFC", shown[:at] + accent) + shown[at:]


def _closed(shown: str) -> str:
    """In parentheses, unless it is a single sign, with scripts or without, or a number."""
    bare = re.sub(r"<(sub|sup)>.*?</\1>|</?i>", "", shown)
    return shown if len(unicodedata.normalize("NFC", bare)) <= 1 or bare.isdigit() else f"({shown})"
