"""Newton's iteration for inverses and least squares in layers of linear attention: exact identities and rates."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mesascope.core import named_key
from mesascope.processes import LinearRegression
from mesascope.records import Figure, Line, Panel, Points, Trace
from mesascope.theory import Construction
from mesascope.theory import giannou2024 as theory

from .._claim import Claim, Finding, Settings, UnsettledError, presets, verdict_if, within
from .._identity import identity, relative_error
from .._prompts import construction_stack
from .._rotations import rotated

PAPER = "giannou2024"


def _repeated(layers: Construction, times: int) -> Construction:
    """The same layers again and again; weights of a single layer have no axis for layers yet."""
    stacked = (weights if weights.ndim == 4 else weights[None] for weights in layers)
    return Construction(*(np.concatenate([weights] * times) for weights in stacked))


def _matrices(dim: int, count: int, seed: int) -> np.ndarray:
    """Matrices without symmetry, well away from singular ones."""
    rng = np.random.default_rng([seed, dim])
    return np.eye(dim) + rng.normal(size=(count, dim, dim)) / (2 * dim)


def _newton(a: np.ndarray, x: np.ndarray, steps: int) -> Iterator[np.ndarray]:
    """X after 1 … `steps` Newton steps."""
    for _ in range(steps):
        x = x @ (2 * np.eye(a.shape[-1]) - a @ x)
        yield x


def _step(settings: _Newton) -> Finding:
    """Layers against the iteration, one or two of them for a step."""
    errors: dict[str, float] = {}
    each = settings.layers_a_step
    for dim, steps in settings.cases:
        a = _matrices(dim, settings.matrices, settings.seed)
        tokens = theory.newton_tokens(a, theory.newton_start(a))
        if each == 1:
            layers = theory.newton_step(dim)
        else:
            layers = theory.newton_step_in_two_layers(dim)
            tokens = np.concatenate([tokens, np.zeros_like(a)], -1)
        streams = construction_stack(_repeated(layers, steps), "1", "all").outputs(tokens)[each - 1 :: each]
        expected = _newton(a, theory.newton_start(a), steps)
        found = [theory.newton_inverse(stream[..., : 3 * dim]) for stream in streams]
        gaps = [relative_error(x, y) for x, y in zip(found, expected, strict=True)]
        errors[f"d = {dim}, {steps} steps"] = max(gaps)
    return identity(errors, settings.tolerance)


def _least_squares(settings: _LeastSquares) -> Finding:
    """Layers on prompts, k + 2 of them: Newton's iterate on the Gram matrix, and least squares at the end."""
    errors: dict[str, float] = {}
    for dim, examples in settings.cases:
        key = named_key(settings.seed, "prompts", str(dim), str(examples))
        prompts = LinearRegression(dim, noise=0.5).sample(key, examples, settings.prompts)
        x, y = (np.asarray(part) for part in prompts)
        start = 1 / float(np.max(np.sum(x[:, :-1] ** 2, (1, 2))))
        tokens = theory.least_squares_tokens(x, y[:, :-1], start)
        gram = np.einsum("bni,bnj->bij", x[:, :-1], x[:, :-1])
        begin = np.broadcast_to(start * np.eye(dim), gram.shape)
        cross = np.einsum("bni,bn->bi", x[:, :-1], y[:, :-1])
        for steps in settings.steps:
            layers = construction_stack(theory.least_squares_by_newton(dim, steps), "1")
            answer = np.asarray(layers(tokens))[:, -1, -1]
            (*_, inverse) = (begin, *_newton(gram, begin, steps))
            expected = np.einsum("bi,bij,bj->b", x[:, -1], inverse, cross)
            errors[f"Newton, d = {dim}, N = {examples}, k = {steps}"] = relative_error(answer, expected)
        solved = np.einsum("bi,bi->b", x[:, -1], np.linalg.solve(gram, cross[..., None])[..., 0])
        errors[f"least squares, d = {dim}, N = {examples}, k = {steps}"] = relative_error(answer, solved)
    return identity(errors, settings.tolerance)


def _with_condition(dim: int, condition: float, seed: int) -> np.ndarray:
    """Symmetric positive definite, largest eigenvalue 1, the others spread evenly in their logarithms."""
    return rotated(np.geomspace(1 / condition, 1, dim), np.random.default_rng([seed, dim]))


def _descended(matrix: np.ndarray, goal: float, most: int) -> int:
    """Steps X ← X + (I − AX)/λ_max from I/λ_max until ‖I − AX‖ is at most `goal`.

    X stays a function of A: the entries of X in the eigenvectors of A are moved one by one.
    """
    values = np.linalg.eigvalsh(matrix)
    rate = 1 / values[-1]
    found = np.full_like(values, rate)
    for step in range(most):
        left = 1 - values * found
        if np.abs(left).max() <= goal:
            return step
        found += rate * left
    raise UnsettledError(f"gradient descent has not come to an error of {goal:g} after {most} steps")


def _left(settings: _Conditions, condition: float) -> np.ndarray:
    """‖I − AX‖ after 1, 2, … layers, for a matrix of this condition number and from I/λ_max, λ_max = 1."""
    dim = settings.dim
    stack = construction_stack(_repeated(theory.newton_step(dim), settings.layers), "1", "all")
    a = _with_condition(dim, condition, settings.seed)
    streams = stack.outputs(theory.newton_tokens(a, np.eye(dim)))
    return np.array([np.linalg.norm(np.eye(dim) - a @ theory.newton_inverse(z), 2) for z in streams])


def _needed(left: np.ndarray, goal: float) -> int:
    """Layers until the error is at most `goal`; one more than there are where it never is."""
    return 1 + int(np.argmax(left <= goal)) if left.min() <= goal else len(left) + 1


def _convergence(settings: _Convergence) -> Finding:
    """How many layers, and how many steps of descent, reach a given error, by the condition number."""
    conditions, goal = np.asarray(settings.conditions, float), settings.error
    errors = [_left(settings, condition) for condition in conditions]
    counted = np.array([_needed(left, goal) for left in errors])
    matrices = (_with_condition(settings.dim, condition, settings.seed) for condition in conditions)
    descent = np.array([_descended(matrix, goal, settings.most_steps) for matrix in matrices])
    logarithms = np.log2(conditions) + np.log2(np.log(1 / goal))
    from_logarithms = float(np.abs(counted - logarithms).max())
    # ln(1 − 1/κ) ≈ −1/κ: the steps are ln(1/ε) κ, except for κ of about ten or less
    large = conditions >= settings.proportional_from
    proportional = float(np.abs(descent[large] / conditions[large] / np.log(1 / goal) - 1).max())
    parts = {
        "layers like log₂ κ": within(from_logarithms, settings.whole_number),
        "descent like κ": within(proportional, settings.descent_tolerance),
    }
    return Finding.of_parts(
        {
            "layers_from_the_logarithms": from_logarithms,
            "steps_of_descent_from_proportionality": proportional,
            "layers": counted.tolist(),
        },
        {
            "layers_from_the_logarithms": f"at most {settings.whole_number:g}",
            "steps_of_descent_from_proportionality": f"at most {settings.descent_tolerance}",
        },
        None,
        parts,
        {
            "conditions": settings.conditions,
            "gradient_descent_steps": descent.tolist(),
            "meaning": "layers: log₂ κ + log₂ ln(1/ε); gradient descent: X ← X + (I − AX)/λ_max, κ ln(1/ε) steps",
        },
        {"newton-layers": _figure(settings, errors, counted.tolist(), descent.tolist())},
    )


def _law(condition: float, layers: np.ndarray) -> np.ndarray:
    """(1 − 1/κ)^(2^k)."""
    return (1 - 1 / condition) ** (2.0**layers)


def _exact_law(settings: _Law) -> Finding:
    """The error after every layer, and the number of layers until it is small, against their closed forms."""
    layers, goal = np.arange(1, settings.layers + 1), settings.error
    errors = [_left(settings, condition) for condition in settings.conditions]
    pairs = zip(settings.conditions, errors, strict=True)
    gaps = [float(np.abs(left - _law(condition, layers)).max()) for condition, left in pairs]
    counted = [_needed(left, goal) for left in errors]
    needed = [theory.newton_steps_needed(condition, goal) for condition in settings.conditions]
    parts = {
        "error after every layer": within(max(gaps), settings.tolerance),
        "layers needed": verdict_if(counted == needed),
    }
    return Finding.of_parts(
        {"largest_error_from_the_law": max(gaps), "layers_needed": counted},
        {"largest_error_from_the_law": 0.0, "layers_needed": needed},
        settings.tolerance,
        parts,
        {"conditions": settings.conditions, "errors_from_the_law": gaps},
    )


def _figure(
    settings: _Convergence, errors: list[np.ndarray], counted: list[int], descent: list[int]
) -> Figure:
    curves: list[Trace] = []
    layers, goal = np.arange(1, settings.layers + 1), settings.error
    for series, (condition, left) in enumerate(zip(settings.conditions, errors, strict=True)):
        law = _law(condition, layers)
        shown = law >= settings.floor
        curves += [
            Points(x=layers[shown], y=left[shown], label=f"κ = {condition:g}", series=series),
            Line(x=layers[shown], y=law[shown], label="$(1 − 1/κ)^{2^k}$", series="theory", style="solid"),
        ]
    needed = [theory.newton_steps_needed(condition, goal) for condition in settings.conditions]
    return Figure(
        title="Newton's iteration in layers of linear attention",
        panels=(
            Panel(
                title=f"Inverse of a matrix, d = {settings.dim}",
                xlabel="layers $k$",
                ylabel="error $\\|I − A X_k\\|$",
                yscale="log",
                traces=tuple(curves),
            ),
            Panel(
                title=f"Until the error is {goal:g}",
                xlabel="condition number κ",
                ylabel="layers or steps",
                xscale="log",
                yscale="log",
                traces=(
                    Points(x=settings.conditions, y=counted, label="layers"),
                    Line(x=settings.conditions, y=needed, label="Newton, closed form", series="theory"),
                    Line(x=settings.conditions, y=descent, label="gradient descent", style="dashed"),
                ),
            ),
        ),
    )


class _LeastSquares(Settings):
    cases: tuple[tuple[int, int], ...] = ((3, 10), (10, 40))
    steps: tuple[int, ...] = (0, 5, 30)
    prompts: int = 32
    seed: int = 0
    tolerance: float = 1e-12


class _Newton(Settings):
    cases: tuple[tuple[int, int], ...] = ((1, 6), (5, 8), (20, 12))
    matrices: int = 16
    seed: int = 0
    tolerance: float = 1e-12
    layers_a_step: int


class _Conditions(Settings):
    dim: int = 8
    layers: int = 18
    conditions: tuple[int, ...] = (2, 8, 32, 128, 512, 2048)
    error: float = 1e-6
    seed: int = 0


class _Convergence(_Conditions):
    floor: float = 1e-12
    most_steps: int = 100_000
    proportional_from: int = 32
    whole_number: float = 1.0
    descent_tolerance: float = 0.02


class _Law(_Conditions):
    tolerance: float = 2e-11


_ROUNDING = """Layers and iteration give the same matrices, relative to the largest entry. The tolerance is rounding in double
    precision: a step at most doubles what the one before left."""

CLAIMS = (
    Claim(
        id=f"{PAPER}/newton-step",
        title="Two layers of linear attention carry out one Newton step",
        evidence="exact",
        origin="paper",
        statement="""For every d two layers of linear attention of width 4d carry out the Newton step X ← X(2I − AX) for every d
            × d matrix A.""",
        source="giannou2024, Lemma 4.1 (arXiv v1; two heads a layer); the weights used here, with one head, are our own",
        settings=presets(_Newton(layers_a_step=2)),
        check=_step,
        criterion=_ROUNDING,
    ),
    Claim(
        id=f"{PAPER}/newton-step-in-one-layer",
        title="One layer of linear attention carries out one Newton step",
        evidence="exact",
        origin="ours",
        statement="""One layer of linear attention of width 3d carries out the Newton step X ← X(2I − AX) for every d × d matrix
            A, also without symmetry.""",
        source="""giannou2024, proof of Theorem 4.2 (arXiv v1: one layer for symmetric A); one layer for every A, and its
            weights, are derived here""",
        settings=presets(_Newton(layers_a_step=1)),
        check=_step,
        criterion=_ROUNDING,
    ),
    Claim(
        id=f"{PAPER}/least-squares",
        title="k + 2 layers solve least squares by k Newton steps",
        evidence="exact",
        origin="ours",
        statement="""With d tokens of workspace k + 2 layers of linear attention answer x_qᵀ X_k Σ y_i x_i with Newton's iterate
            X_k, and for large k as least squares does.""",
        source="""giannou2024, Theorem 4.2 (arXiv v1: 3 + T layers, two heads, width 4d + 3, X_0 = ε AᵀA); k + 2 layers from αI,
            and their weights, are derived here""",
        settings=presets(_LeastSquares()),
        check=_least_squares,
        criterion="""Layers, iteration and, after 30 steps, least squares give the same answers, relative to the largest one.
            The tolerance is rounding in double precision; so many steps leave nothing of the error of Newton's iteration
            either.""",
    ),
    Claim(
        id=f"{PAPER}/quadratic-convergence",
        title="Newton's layers grow like log κ, gradient steps like κ",
        evidence="exact",
        origin="paper",
        statement="""To an error ε Newton's iteration takes a number of layers of the order log₂ κ + log₂ log(1/ε), where
            gradient descent takes a number of steps of the order κ log(1/ε).""",
        source="giannou2024, section 3.2.1 (arXiv v1); checked on positive definite matrices, with our layers",
        settings=presets(_Convergence()),
        check=_convergence,
        criterion="""The layers counted differ from log₂ κ + log₂ ln(1/ε) by at most 1, since they are whole. The steps of
            descent counted are κ ln(1/ε) to 2 % from κ = 32 on: −ln(1 − 1/κ) is 1/κ to 1/(2κ), which is 1.6 % there.""",
    ),
    Claim(
        id=f"{PAPER}/exact-law",
        title="The error after k Newton layers is (1 − 1/κ)^(2^k)",
        evidence="exact",
        origin="ours",
        statement="""For positive definite matrices of condition number κ and the start I/λ_max the error after k layers is
            exactly (1 − 1/κ)^(2^k), which also gives the number of layers needed.""",
        source="giannou2024, section 3.2.1 (arXiv v1: orders only, from αAᵀ); the law from I/λ_max is derived here",
        settings=presets(_Law()),
        check=_exact_law,
        criterion="""Every step doubles the rounding of those before until the error is squared away, some 15 times for the
            largest κ: 2¹⁵ · 2·10⁻¹⁶ = 7·10⁻¹², of which three times are allowed. The numbers of layers must be equal.""",
    ),
)
