"""What the page shows: from a setting to plain numbers and arrays, in the worker's process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import mesascope.theory.zheng2024 as theory
from mesascope.core import exact, named_key
from mesascope.dynamics import Flow, descend
from mesascope.learners import GradientDescent
from mesascope.learners import predictions as learner_predictions
from mesascope.models import DiagonalInit, ExplicitInit, LinearAttention, normalizer_values
from mesascope.objectives import MonteCarlo, losses
from mesascope.probes import draw_problems, identify, sensitivities, sensitivity_cosine
from mesascope.processes import DiagonalUnitary, Law, NextToken
from mesascope.specs import known_kinds
from mesascope.studies import FlowSpec, SpecError

from ._compute_models import told
from ._jobs import Report
from ._sizes import FRAMES, IDENTIFY_TOKENS, POINTS, SEQUENCES, SHOWN_SEQUENCES, SHOWN_TOKENS

_SEED = 0
_BARS = 25  # of the histogram of a law to choose
_ZERO = 1e-6  # smaller weights count as 0: a flow ends before they vanish

Result = dict[str, Any]


def facts(spec: FlowSpec, progress: Report) -> Result:
    """What theory says about the law, and what its sequences look like."""
    process, task = spec.data()
    law, dim = process.law, process.dim
    moments = theory.token_moments(law, dim)
    answers = {
        "4.1": theory.satisfies_assumption_41(law, dim),
        "4.2": theory.satisfies_assumption_42(law, dim),
        "diagonal": theory.diagonal_stays_diagonal(law, dim, mask=spec.mask),
    }
    first = np.asarray(law.sample(named_key(_SEED, "lab", "law"), dim, (4000,)))
    shown = min(spec.horizon, SHOWN_TOKENS)
    sequences = process.sample(named_key(_SEED, "lab", "sequence"), shown, SHOWN_SEQUENCES)
    return {
        "law": law.describe(),
        "moments": {name: _number(getattr(moments, name)) for name in ("m2", "kappa1", "kappa2", "kappa3")},
        "answers": {name: (bool(answer), answer.reason) for name, answer in answers.items()},
        "theorem": "Theorem 4.1" if spec.mask is None else "Theorem 4.3",
        "normalizer": spec.rho,
        "limit": _or_reason(lambda: theory.limit_product(process, task, mask=spec.mask, normalizer=spec.rho)),
        "limit_of_every": _or_reason(
            lambda: theory.limit_product(
                process, NextToken(spec.horizon), mask=spec.mask, normalizer=spec.rho
            )
        ),
        "gap": _long_contexts(spec, lambda: theory.capability_gap(process, mask=spec.mask)),
        "ratio": _long_contexts(spec, lambda: theory.expected_ratio(process, mask=spec.mask)),
        "trained_ratio": _or_reason(lambda: _trained_ratio(spec)),
        "tokens": first,
        "sequences": np.asarray(sequences),
    }


def laws(progress: Report) -> dict[str, list[int]]:
    """Of every kind of law, with the fields that the form begins with: a histogram of its entries."""
    found = {}
    for kind, cls in known_kinds("law").items():
        found[kind] = _thumbnail(cls.example())
        progress("drawing from every law", (kind, found[kind]))
    return found


def _trained_ratio(spec: FlowSpec) -> Any:
    """The mean of prediction divided by truth at the limit of training with this horizon; the normalizer must be t − 1."""
    if spec.rho != "t-1":
        raise ValueError("the ratio depends on the context length with this normalizer")
    process, task = spec.data()
    return theory.expected_ratio(process, theory.limit_product(process, task, mask=spec.mask))


def _thumbnail(law: Law) -> list[int]:
    try:
        entries = np.asarray(law.sample(named_key(_SEED, "lab", "laws"), law.fixed_dim or 5, (2000,)))
    except Exception:  # a law of a user's file may have no sampler; it can be chosen nevertheless
        return [0] * _BARS
    reach = 1.15 * float(np.quantile(np.abs(entries), 0.995)) or 1.0
    return [int(count) for count in np.histogram(entries, _BARS, (-reach, reach))[0]]


def flow(spec: FlowSpec, progress: Report) -> Result:
    """Where training goes from the start of the setting, and the way there."""
    progress("compiling, or loading what was compiled before")
    result, end = spec.follow(
        lambda now: progress(now.describe()),
        saves=2 * POINTS,
    )
    assert isinstance(end, Flow)  # a setting names no other method
    _require_complete(result.result)
    process, task = spec.data()
    chosen = _spread(len(end.times), POINTS)
    path = jax.tree.map(lambda weight: np.asarray(weight)[chosen], end.trajectory)
    loss, surface = np.split(losses(end.objective, _with_surface(path)), [POINTS])
    if not np.isfinite([result.gradient_norm, *loss]).all():
        raise _too_large(spec, end, progress)
    dim, times = spec.dim, end.times[chosen]
    each = np.arange(dim)
    a, b = path.w_kq[:, dim + each, each], path.w_pv[:, each, each]
    frames = _spread(POINTS, FRAMES)
    return {
        "times": times,
        "a": a,
        "b": b,
        "products": a * b,
        "loss": loss,
        "surface": _quadratic(surface),
        "normalizer": spec.rho,
        "theory": _closed_form(spec, process, task, times),
        "frame_times": times[frames],
        "w_kq": path.w_kq[frames],
        "w_pv": path.w_pv[frames],
        "end": result.model_dump(),
        "succeeded": result.succeeded,
    }


def _with_surface(path: LinearAttention) -> LinearAttention:
    """Append to weights along a path those whose losses give that of all a I, b I: one program computes both."""
    diagonals = (LinearAttention.diagonal(len(path.w_pv[0]), 1.0, product) for product in (0.0, 1.0, 2.0))
    forms = [LinearAttention(form.w_kq, form.w_pv, path.normalizer) for form in diagonals]
    added: LinearAttention = jax.tree.map(
        lambda along, *rest: np.concatenate([along, np.stack(rest)]), path, *forms
    )
    return added


def _quadratic(values: np.ndarray) -> np.ndarray:
    """Coefficients c_0, c_1, c_2 of the polynomial with these values at 0, 1, 2: predictions of a I, b I are linear in ab."""
    zero, one, two = values
    curvature = (two - 2 * one + zero) / 2
    return np.array([zero, one - zero - curvature, curvature])


def _too_large(spec: FlowSpec, found: Flow[LinearAttention], progress: Report) -> SpecError:
    """Return what left double precision: the start, if the flow from its direction with weights of at most 1 does not."""
    start = {name: np.asarray(getattr(found.trajectory, name))[0] for name in ("w_kq", "w_pv")}
    largest = max(float(np.abs(weight).max()) for weight in start.values())
    if largest > 1:
        small = {name: (weight / largest).tolist() for name, weight in start.items()}
        try:
            flow(spec.model_copy(update={"init": ExplicitInit(**small)}), progress)
        except SpecError as error:
            return error
        return SpecError("the flow of these weights leaves double precision; take smaller ones", "init")
    return SpecError("the flow of these tokens leaves double precision; choose other units", "law")


def _require_complete(result: str) -> None:
    """Discard the part that an interrupted flow or descent has computed: nothing may cache it as the whole."""
    if result == "interrupted":
        raise KeyboardInterrupt


def _spread(length: int, points: int) -> np.ndarray:
    """Return `points` indices below `length`, first and last included; some twice where there are fewer."""
    return np.linspace(0, length - 1, points).round().astype(int)


def _closed_form(
    spec: FlowSpec, process: DiagonalUnitary, task: NextToken, times: np.ndarray
) -> Result | None:
    """The product along the flow by its closed form, where there is one: from diagonal starts that stay diagonal."""
    if not isinstance(spec.init, DiagonalInit):
        return None
    try:
        solution = theory.diagonal_flow(
            process, task, float(spec.init.a), float(spec.init.b), mask=spec.mask, normalizer=spec.rho
        )
    except (ValueError, OverflowError):
        return None
    state = solution(times)
    return {"product": state.product, "a": state.a, "b": state.b, "conserved": solution.conserved}


def behaviour(spec: FlowSpec, w_kq: np.ndarray, w_pv: np.ndarray, progress: Report) -> Result:
    """What a layer with these weights does in context, measured on fresh sequences."""
    process, _ = spec.data()
    model = LinearAttention(jnp.asarray(w_kq), jnp.asarray(w_pv), spec.rho)
    longest = max(3, min(spec.horizon - 1, SHOWN_TOKENS))
    progress("predicting")
    tokens = process.sample(named_key(_SEED, "lab", "mind"), longest + 1, SEQUENCES)
    predicted = np.asarray(model.predictions(tokens))[:, :-1]
    truth = np.asarray(tokens)[:, 2:]
    errors = (np.abs(predicted - truth) ** 2).mean(-1)
    power = (np.abs(truth) ** 2).mean(-1)
    if not power.any():
        raise ValueError("every token is 0, there is nothing to predict")
    lengths = np.arange(2, longest + 1)
    product = float(np.mean(model.products()))
    step = float(_steps(model, lengths)[-1])
    last, aim = predicted[:, -1], truth[:, -1]
    nonzero = np.abs(aim) > 0
    return {
        "lengths": lengths,
        "error": errors.mean(0),
        "error_se": _standard_error(errors),
        "power": float(power.mean()),
        "risk": _risk(process, lengths, model),
        "ratios": np.real(last[nonzero] / aim[nonzero]),
        "ratio": _mean_ratio(last, aim),
        "expected_ratio": _for_diagonal(model, lambda: theory.expected_ratio(process, step)),
        "correlation": _slope(last, aim),
        "expected_correlation": _for_diagonal(model, lambda: theory.correlation_ratio(process, step)),
        "truth": np.real(aim[:300, 0]),
        "predicted": np.real(last[:300, 0]),
        "gap": _long_contexts(spec, lambda: theory.capability_gap(process, mask=spec.mask)),
        "sensitivity": _sensitivity(model, process, min(longest, 8), product),
        "product": product,
        "sequences": SEQUENCES,
    }


def _steps(model: LinearAttention, lengths: np.ndarray) -> np.ndarray:
    """The step ab (t − 1)/ρ_t at every context length: ab itself for the paper's normalizer."""
    product = float(np.mean(model.products()))
    return product * (lengths - 1) / normalizer_values(model.normalizer, lengths)


def _distance(model: LinearAttention, form: LinearAttention) -> float:
    """The largest difference of two weights."""
    pairs = ((model.w_kq, form.w_kq), (model.w_pv, form.w_pv))
    return max(float(jnp.max(jnp.abs(weight - other))) for weight, other in pairs)


def _risk(process: DiagonalUnitary, lengths: np.ndarray, model: LinearAttention) -> np.ndarray | None:
    """The exact error by context length, where it is a formula: for weights a I and b I."""
    dim = process.dim
    form = LinearAttention.diagonal(dim, float(model.w_kq[dim, 0]), float(model.w_pv[0, 0]))
    if _distance(model, form) > _ZERO:
        return None
    steps = zip(lengths, _steps(model, lengths), strict=True)
    return np.array([float(theory.finite_context_risk(process, int(t), float(step))) for t, step in steps])


def _for_diagonal(model: LinearAttention, compute: Callable[[], Any]) -> tuple[float | None, str]:
    """What theory says about weights that are 0 off the two diagonals; None for others."""
    dim = len(model.w_pv)
    diagonals = LinearAttention.diagonal(dim, 1.0, 1.0)
    form = LinearAttention(model.w_kq * diagonals.w_kq, model.w_pv * diagonals.w_pv)
    if _distance(model, form) > _ZERO:
        return None, "theory speaks about diagonal weights"
    return _or_reason(compute)


def _long_contexts(spec: FlowSpec, compute: Callable[[], Any]) -> tuple[float | None, str]:
    """What theory says about the limit of long contexts; nothing with ρ_t = 1, where the layer's step grows with them."""
    if spec.rho == "1":
        return None, "with ρ_t = 1 the step grows with the context, and no ab suits all of them"
    return _or_reason(compute)


def _slope(predicted: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    """E[ŷ x*]/E|x|² over sequences and coordinates, and its standard error."""
    both = np.real(predicted * truth.conj()).mean(-1)
    return _quotient(both, (np.abs(truth) ** 2).mean(-1))


def _mean_ratio(predicted: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    """The mean of Re ŷ/x over all entries with x ≠ 0, and its standard error: entries of one sequence depend on each other."""
    nonzero = np.abs(truth) > 0
    ratios = np.real(np.divide(predicted, truth, out=np.zeros_like(predicted), where=nonzero))
    return _quotient(ratios.sum(-1), nonzero.sum(-1))


def _quotient(numerator: np.ndarray, denominator: np.ndarray) -> tuple[float, float]:
    """The quotient of two means over sequences, and its standard error."""
    value = numerator.mean() / denominator.mean()
    return float(value), float(_standard_error(numerator - value * denominator) / denominator.mean())


def _standard_error(values: np.ndarray) -> Any:
    return values.std(0, ddof=1) / np.sqrt(len(values))


def _sensitivity(
    model: LinearAttention, process: DiagonalUnitary, length: int, step_size: float
) -> dict[str, Any]:
    """Mean sizes of ∂ŷ_1/∂x_{i,k}, and how well all derivatives agree with those of one gradient step."""
    problems = draw_problems(process, NextToken(length + 1), 80, named_key(_SEED, "lab", "sensitivity"))
    step = GradientDescent(step_size)

    def learner(contexts: Any) -> Any:
        x, y, queries = contexts[:, :-1], contexts[:, 1:], contexts
        return learner_predictions(step, x, y, queries)[:, -1]

    found = sensitivities(model, problems, length - 1)
    dim = process.dim
    # outputs and entries are (Re; Im): the size of a complex derivative is that over both
    parts = found.reshape(len(found), 2, dim, length, 2, dim)[:, :, 0]
    sizes = np.sqrt((parts**2).sum((1, 3)).mean(0))
    cosine = sensitivity_cosine(found, sensitivities(learner, problems, length - 1))
    return {"sizes": sizes, "cosine": tuple(map(float, cosine))}


def identification(
    spec: FlowSpec,
    w_kq: np.ndarray,
    w_pv: np.ndarray,
    learners: list[str] | None,
    tasks: int,
    progress: Report,
) -> Result:
    """Which algorithm a layer with these weights runs."""
    process, _ = spec.data()
    model = LinearAttention(jnp.asarray(w_kq), jnp.asarray(w_pv), spec.rho)
    answer = identify(
        model,
        process,
        NextToken(max(4, min(spec.horizon, IDENTIFY_TOKENS))),
        tasks=tasks,
        learners=learners,
        progress=lambda now: progress(now.describe()),
    )
    return {**told(answer), "arguments": {"learners": learners, "tasks": tasks}}


def descent(spec: FlowSpec, samples: int, rate: float, steps: int, seed: int, progress: Report) -> Result:
    """Gradient descent on one batch of sampled sequences, as in the paper's experiments."""
    model, process, task, exactly = spec.build()
    progress("drawing sequences and compiling")
    done = descend(
        model,
        process,
        task,
        learning_rate=rate,
        steps=steps,
        engine=MonteCarlo(samples=samples, seed=seed),
        mask=spec.mask,
        saves=POINTS,
        progress=lambda now: progress(now.describe()),
    )
    _require_complete(done.result.value)
    chosen = _spread(len(done.steps), POINTS)
    path = jax.tree.map(lambda weight: np.asarray(weight)[chosen], done.trajectory)
    population = losses(exactly.objective(process, task, model.normalizer), path)
    places, first = np.unique(chosen, return_index=True)  # of few steps some occur twice
    each = np.arange(spec.dim)
    products = path.w_kq[:, spec.dim + each, each] * path.w_pv[:, each, each]
    return {
        "times": np.asarray(done.steps)[places] * rate,
        "products": products[first],
        "loss": np.asarray(done.loss)[places],
        "loss_se": np.asarray(done.standard_error)[places],
        "population": population[first],
        "message": done.result.message,
        "result": done.result.value,
        "arguments": {"samples": samples, "rate": rate, "steps": steps, "seed": seed},
    }


def _number(value: Any) -> tuple[float, str]:
    """A number and how it is written: as a fraction where that is short."""
    text = str(exact(value)) if not isinstance(value, float) else f"{value:.10g}"
    return float(value), text if len(text) <= 14 else f"{float(value):.10g}"


def _or_reason(compute: Callable[[], Any]) -> tuple[float | None, str]:
    """A number and how it is written, or None and why there is none."""
    try:
        return _number(compute())
    except (ValueError, ZeroDivisionError) as error:
        return None, " ".join(str(error).split())
