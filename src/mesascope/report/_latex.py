"""Figures for LaTeX: PDFs at the widths of a paper, a file that includes them, and what they cite."""

import os
import re
from collections.abc import Callable
from functools import partial

from mesascope.core import Progress
from mesascope.records import Figure, cite, known_keys, prepare_file, prepare_output, write_text

from ._material import Material
from ._render import FigureError, render
from ._style import WIDTH
from ._tex import is_mathematics

_HEAD = r"""%% Figures of a report of mesascope. \input this file after \usepackage{graphicx}; texts are UTF-8.
%% Figures of a column are %(column)s in wide, those of a page %(page)s in: as they are in a two-column paper.
%% In another folder, \graphicspath{{FOLDER/}} tells where they lie.
"""
_BIB_HEAD = "% References of a report of mesascope.\n"
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "#": r"\#",
    "$": r"\$",
    "%": r"\%",
    "&": r"\&",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
}


def write_latex(
    folder: str | os.PathLike[str], material: Material, progress: Callable[[Progress], None]
) -> tuple[str, ...]:
    """Draw all figures into a folder, and write `figures.tex` and `references.bib` beside them.

    Args:
        folder: created if needed; files of the same names that mesascope wrote are replaced, each as a whole.
        material: whose figures.
        progress: called before each is drawn.

    Returns:
        One line for every figure that cannot be drawn and is left out.

    Raises:
        RecordError: something cannot be written, or would replace a file that mesascope did not write.
    """
    target = prepare_output(folder)
    for file, head in (("figures.tex", _HEAD), ("references.bib", _BIB_HEAD)):
        prepare_file(target / file, "one that mesascope wrote", partial(_begins_as, head))
    figures = list(material.figures)
    drawn, problems = [], []
    for done, (name, figure) in enumerate(figures):
        progress(Progress(done, len(figures), "figures", stage=f"drawing {name}"))
        try:
            render(figure, target / "figures" / name, ("pdf",))
        except FigureError as error:
            problems.append(f"{name}.pdf: {error}")
        else:
            drawn.append(_included(name, figure))
    keys = dict.fromkeys(entry.record.id.partition("/")[0] for entry in material.of("claim"))
    cited = [key for key in keys if key in known_keys()]
    write_text(target / "references.bib", _BIB_HEAD + (cite(*cited) + "\n" if cited else ""))
    head = _HEAD % {name: f"{inches:g}" for name, inches in WIDTH.items()}
    write_text(target / "figures.tex", "\n".join([head, *drawn]))
    return tuple(problems)


def _begins_as(head: str, first: bytes) -> bool:
    """Whether a file begins with the first sentence of a head, in which % is written twice."""
    return first.startswith(head.partition(".")[0].replace("%%", "%").encode())


def _included(name: str, figure: Figure) -> str:
    wide = (figure.width or ("column" if len(figure.panels) == 1 else "page")) == "page"
    environment = "figure*" if wide else "figure"
    paper = name.split("/")[1]
    source = rf" \cite{{{paper}}}" if paper in known_keys() else ""
    caption = " ".join(filter(None, (_sentence(figure.title), figure.caption)))
    return (
        f"\\begin{{{environment}}}\n  \\centering\n"
        f"  \\includegraphics{{figures/{name}.pdf}}\n"
        f"  \\caption{{{tex(caption)}{source}}}\n"
        f"  \\label{{fig:{name}}}\n"
        f"\\end{{{environment}}}\n"
    )


def _sentence(text: str) -> str:
    return text if text.endswith((".", "?", "!")) else f"{text}."


def tex(text: str) -> str:
    """A text for LaTeX: formulas between `$` signs that `is_mathematics`, all other characters escaped.

    Texts come from records, perhaps of others: a formula with any other command is shown as it is written.
    """
    parts = "".join(sign if sign.isprintable() else " " for sign in text).split("$")
    if len(parts) % 2 == 0:
        return _escaped("$".join(parts))
    return "".join(_formula(part) if n % 2 else _escaped(part) for n, part in enumerate(parts))


def _escaped(text: str) -> str:
    return "".join(_SPECIAL.get(sign) or _as_formula(sign) or sign for sign in _signs(text))


def _signs(text: str) -> list[str]:
    """The letters of a text, each with its accent."""
    return re.findall(f".[{''.join(_ACCENTS)}]|.", text, re.S)


# Letters and signs of figures' texts that LaTeX with UTF-8 input does not know outside of formulas.
_GREEK = (
    "alpha beta gamma delta varepsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau upsilon varphi "
    "chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega"
)
_LETTERS = "−×·≤≥≠≈→∞∂∈±√ℓ∝←≃∼⟨⟩…‖⊤ŷµ∇∫½ŵᵀ¼¾⅓"
_COMMANDS = (
    r"- \times \cdot \le \ge \ne \approx \to \infty \partial \in \pm \surd \ell \propto \leftarrow \simeq \sim "
    r"\langle \rangle \ldots \| \top \hat{y} \mu \nabla \int \frac12 \hat{w} ^{\top} \frac14 \frac34 \frac13"
)
_SIGNS = {
    **{
        sign: f"\\{name}"
        for sign, name in zip("αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΦΨΩ", _GREEK.split(), strict=True)
    },
    **dict(zip(_LETTERS, _COMMANDS.split(), strict=True)),
    **{sign: f"^{{{digit}}}" for sign, digit in zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-", strict=True)},
    **{sign: f"_{{{digit}}}" for sign, digit in zip("₀₁₂₃₄₅₆₇₈₉", "0123456789", strict=True)},
}


_ACCENTS = {"\u0302": "hat", "\u0303": "tilde", "\u0304": "bar", "\u0307": "dot", "\u20d7": "vec"}


def _as_formula(sign: str) -> str | None:
    command = _command(sign)
    return None if command is None else f"${command}$"


def _command(sign: str) -> str | None:
    """The command for a character that LaTeX formulas have no letter for."""
    if len(sign) == 2:
        return f"\\{_ACCENTS[sign[1]]}{{{_SIGNS.get(sign[0], sign[0])}}}"
    return _SIGNS.get(sign)


def _formula(tex: str) -> str:
    """A formula with its characters replaced by commands, and without comments, parameters and columns."""
    parts = re.split(r"(\\[A-Za-z]+|\\.)", tex)
    replaced = "".join(part if n % 2 else _in_formula(part) for n, part in enumerate(parts))
    return f"${replaced}$" if is_mathematics(replaced) else _escaped(f"${tex}$")


def _in_formula(text: str) -> str:
    commands = ((sign, _command(sign)) for sign in _signs(re.sub("[%#&]", r"\\\g<0>", text)))
    return "".join(sign if command is None else f"{command} " for sign, command in commands)
