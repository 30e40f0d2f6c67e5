"""The form of the two matrices of a preconditioned step: a plain step, one up to signs, αI + β11ᵀ, or another."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np

_EQUAL = 1e-2  # relative error up to which a matrix has a form

ShapeName = Literal["plain", "signed", "exchangeable", "diagonal", "full"]


class PreconditionerShape(NamedTuple):
    r"""The shape of $\hat y = L \bar C R q$, up to 1 % of the size of the matrices.

    Attributes:
        name: "plain" if L and R are multiples of I; "signed" if they are after flipping the signs of coordinates in both;
            "exchangeable" if they are $\alpha I + \beta 1 1^\top$; "diagonal"; or "full".
        step_size: the product of the two multiples for "plain" and "signed"; None for other shapes.
        signs: the sign of every coordinate for "signed", the first +1; None for other shapes.
    """

    name: ShapeName
    step_size: float | None
    signs: np.ndarray | None


def preconditioner_shape(right: Any, left: Any = None) -> PreconditionerShape:
    """Return the shape of R and L, each (d, d) or the diagonal (d,); by default L is the identity."""
    right = _matrix(right)
    left = np.eye(len(right)) if left is None else _matrix(left)
    if left.shape != right.shape:
        both_diagonal = _is_diagonal(right) and _is_diagonal(left)
        return PreconditionerShape("diagonal" if both_diagonal else "full", None, None)
    if _is_multiple(right) and _is_multiple(left):
        return PreconditionerShape("plain", _step_size(right, left), None)
    signs = np.where(np.real(np.diag(left)) < 0, -1, 1)
    signs = signs * signs[0]
    if _is_multiple(signs[:, None] * right) and _is_multiple(signs[:, None] * left):
        return PreconditionerShape("signed", _step_size(right, left), signs)
    for name, is_so in (("diagonal", _is_diagonal), ("exchangeable", _is_exchangeable)):
        if is_so(right) and is_so(left):
            return PreconditionerShape(name, None, None)  # type: ignore[arg-type]
    return PreconditionerShape("full", None, None)


def shape_in_words(right: Any, left: Any = None) -> str:
    """Return a description of R and L, or "" for matrices without a simple form."""
    shape = preconditioner_shape(right, left)
    if shape.name == "plain":
        return f"its matrices are multiples of the identity: gradient descent with step size {shape.step_size:.6g}"
    if shape.signs is not None:
        signs = " ".join("+" if sign > 0 else "−" for sign in shape.signs)
        return (
            f"up to signs {signs} of the coordinates it is gradient descent with step size {shape.step_size:.6g}: the "
            "same step on every coordinate, with the same loss on laws that are symmetric in the sign of each"
        )
    if shape.name != "exchangeable":
        return ""
    shown = [_in_letters("R", *_exchangeable(_matrix(right)))]
    if left is not None:
        shown.append(_in_letters("L", *_exchangeable(_matrix(left))))
    return "its matrices are symmetric in all coordinates: " + ", ".join(shown)


def _in_letters(letter: str, alpha: float, beta: float) -> str:
    return f"{letter} = {alpha:.5g} I {'+' if beta >= 0 else '−'} {abs(beta):.5g} 11ᵀ"


def _matrix(matrix: Any) -> np.ndarray:
    array = np.asarray(matrix)
    return np.diag(array) if array.ndim == 1 else array


def _step_size(right: np.ndarray, left: np.ndarray) -> float:
    return float(np.real(np.diag(right) * np.diag(left)).mean())


def _exchangeable(matrix: np.ndarray) -> tuple[float, float]:
    """Return α and β of the nearest αI + β11ᵀ."""
    d = len(matrix)
    off = (matrix.sum() - np.trace(matrix)).real / (d * (d - 1)) if d > 1 else 0.0
    return float(np.trace(matrix).real / d - off), float(off)


def _is_exchangeable(matrix: np.ndarray) -> bool:
    alpha, beta = _exchangeable(matrix)
    return _is_small(matrix - alpha * np.eye(len(matrix)) - beta, matrix)


def _is_multiple(matrix: np.ndarray) -> bool:
    return _is_small(matrix - np.trace(matrix) / len(matrix) * np.eye(len(matrix)), matrix)


def _is_diagonal(matrix: np.ndarray) -> bool:
    return _is_small(matrix - np.diag(np.diag(matrix)), matrix)


def _is_small(rest: np.ndarray, matrix: np.ndarray) -> bool:
    return bool(np.linalg.norm(rest) <= _EQUAL * np.linalg.norm(matrix))
