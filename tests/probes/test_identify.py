"""`identify` on known cases: planted learners, limits of zheng2024, layers that solve ridge regression."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from planted_models import PROCESS, TASK, as_model

import mesascope as ms
from mesascope import learners
from mesascope.probes import identify
from mesascope.theory import zheng2024

LINEAR = ("gradient-descent", "least-squares", "ridge", "preconditioned-gradient-descent", "average", "zero")


@pytest.mark.slow
def test_the_gaussian_limit_is_one_step_with_the_step_of_the_theorem():
    process, task = ms.DiagonalUnitary(ms.Gaussian(1.0), 3), ms.NextToken(12)
    model = ms.gradient_flow(ms.LinearAttention.diagonal(3, 0.1, 0.1), process, task).model
    answer = identify(model, process, task, tasks=400, learners=LINEAR)
    assert (answer.verdict, answer.candidates) == ("identified", ("gradient-descent",))
    found = answer.entry("gradient-descent")
    assert found.hyperparameters["steps"] == 1
    assert found.hyperparameters["step_size"] == pytest.approx(
        float(zheng2024.limit_product(process, task)), rel=1e-6
    )
    assert "preconditioned-gradient-descent" in found.contains
    assert answer.reading.algorithm == "gradient-descent"
    assert answer.reading.step_size == pytest.approx(found.hyperparameters["step_size"], rel=1e-6)
    assert answer.reading.disagreement < 1e-12


@pytest.mark.slow
def test_the_full_one_limit_is_preconditioned_and_no_plain_step():
    process, task = ms.DiagonalUnitary(ms.Constant(1.0), 3), ms.NextToken(12)
    model = ms.gradient_flow(ms.LinearAttention.diagonal(3, 0.1, 0.1), process, task).model
    answer = identify(model, process, task, tasks=400, learners=LINEAR)
    assert (answer.verdict, answer.candidates) == ("identified", ("preconditioned-gradient-descent",))
    right, left = np.asarray(model.w_kq[3:, :3]), np.asarray(model.w_pv[:, :3])
    found = answer.ranking[0].hyperparameters
    size = np.linalg.norm(left) / np.sqrt(3)
    np.testing.assert_allclose(found["preconditioner"], right * size, rtol=1e-2)
    np.testing.assert_allclose(found["output_map"], left / size, rtol=1e-2)
    fitted = np.asarray(found["preconditioner"])
    beta = fitted[~np.eye(3, dtype=bool)]
    assert np.ptp(beta) < 1e-2 * abs(beta.mean())  # αI + β11ᵀ
    assert any("R = " in reason and "11ᵀ" in reason for reason in answer.reasons)
    assert answer.reading.algorithm == "preconditioned-gradient-descent"
    assert answer.entry("gradient-descent").distance > 10 * answer.ranking[0].distance


@pytest.mark.slow
def test_the_one_hot_limit_is_one_step_equal_to_least_squares_on_its_data():
    process, task = ms.DiagonalUnitary(ms.Sparse(2.0), 3), ms.NextToken(12)
    model = ms.LinearAttention.diagonal(3, 0.5, 0.5)  # a b = 1/c²
    alone = identify(model, process, task, tasks=400, learners=LINEAR, search=False)
    assert alone.verdict == "ambiguous"
    assert {"gradient-descent", "least-squares"} <= set(alone.candidates)
    answer = identify(model, process, task, tasks=400, learners=LINEAR)
    assert (answer.verdict, answer.candidates) == ("identified", ("gradient-descent",))
    assert answer.ranking[0].hyperparameters["step_size"] == pytest.approx(0.25, rel=1e-6)
    assert answer.separated_by
    assert answer.separated_by[0].decided
    assert answer.separated_by[0].distances["least-squares"] > 0.01


@pytest.mark.slow
def test_signed_diagonal_limits_are_the_same_algorithm_up_to_signs():
    """Equal signs have no effect; different signs change the sign of interactions of coordinates."""
    process, task, step = ms.DiagonalUnitary(ms.Gaussian(1.0), 3), ms.NextToken(12), 0.2
    for signs in ([1, 1, 1], [-1, -1, -1], [1, -1, 1], [-1, -1, 1]):
        matrix = np.diag(np.sqrt(step) * np.array(signs, float))
        zero = np.zeros((3, 3))
        model = ms.LinearAttention(np.block([[zero, zero], [matrix, zero]]), np.hstack([matrix, zero]))
        answer = identify(model, process, task, tasks=400, learners=LINEAR)
        assert answer.verdict == "identified"
        assert answer.reading.step_size == pytest.approx(step, rel=1e-12)
        if len(set(signs)) == 1:
            assert answer.candidates == ("gradient-descent",)
            assert answer.reading.algorithm == "gradient-descent"
            continue
        assert answer.candidates == ("preconditioned-gradient-descent",)
        assert answer.reading.algorithm == "signed-gradient-descent"
        found = answer.ranking[0].hyperparameters
        relative = np.array(signs) * signs[0] * np.sign(sum(signs) * signs[0])
        np.testing.assert_allclose(np.array(found["output_map"]), relative, rtol=1e-6)
        np.testing.assert_allclose(np.array(found["preconditioner"]), step * relative, rtol=1e-6)
        assert any("it is gradient descent with step size 0.2:" in reason for reason in answer.reasons)


@pytest.mark.slow
def test_a_mesa_layer_is_ridge_regression():
    """Keys x_{i−1}, values x_i, query x_t: the ridge solution with penalty 1/λ."""
    d, zero, identity = 3, np.zeros((3, 3)), np.eye(3)
    first, second = np.hstack([identity, zero])[None], np.hstack([zero, identity])[None]
    layer = ms.MesaLayer(w_k=second, w_q=first, w_p=identity[None], w_v=first, regularization=2.0)

    def model(contexts):
        previous = jnp.concatenate([jnp.zeros_like(contexts[:, :1]), contexts[:, :-1]], 1)
        return layer(jnp.concatenate([contexts, previous], -1))[:, -1]

    process = ms.LinearAR.contracting(ms.Gaussian(1.0), d, 0.3, 0.9, noise=0.5)
    answer = identify(
        model,
        process,
        ms.NextToken(12),
        tasks=400,
        learners=(*LINEAR, "recursive-least-squares", "posterior-mean"),
    )
    assert (answer.verdict, answer.candidates) == ("identified", ("ridge",))
    assert answer.ranking[0].hyperparameters["penalty"] == pytest.approx(0.5, rel=1e-5)
    assert set(answer.ranking[0].contains) == {"recursive-least-squares", "posterior-mean"}


@pytest.mark.slow
def test_the_search_distinguishes_what_the_data_of_the_process_do_not():
    """One-hot tokens do not depend on off-diagonal entries of a preconditioner: for them it is a plain step."""
    process, task = ms.DiagonalUnitary(ms.Sparse(1.0), 3), ms.NextToken(12)
    truth = learners.PreconditionedGradientDescent(0.2 * np.eye(3) + 0.1)

    def model(contexts):
        return learners.predictions(truth, contexts[:, :-1], contexts[:, 1:], contexts)[:, -1]

    names = ("gradient-descent", "preconditioned-gradient-descent")
    alone = identify(model, process, task, tasks=400, learners=names, search=False)
    assert (alone.verdict, set(alone.candidates)) == ("ambiguous", set(names))
    assert max(entry.distance for entry in alone.ranking) < 1e-12
    answer = identify(model, process, task, tasks=400, learners=names)
    assert (answer.verdict, answer.candidates) == ("identified", (truth.name,))
    np.testing.assert_allclose(
        answer.ranking[0].hyperparameters["preconditioner"], truth.preconditioner, rtol=1e-6
    )
    (separation,) = answer.separated_by
    assert separation.distances["gradient-descent"] > 0.1
    assert separation.distances[truth.name] < 1e-12
    assert any("gradient-descent were compared on" in reason for reason in answer.reasons)


@pytest.mark.slow
def test_nothing_is_decided_on_data_where_a_model_fails():
    """A model that accepts only tokens ±e_j cannot be evaluated on data that distinguish candidates."""
    process, task = ms.DiagonalUnitary(ms.Sparse(1.0), 3), ms.NextToken(12)
    step = learners.GradientDescent(1.0)

    def model(contexts):
        answered = np.array(learners.predictions(step, contexts[:, :-1], contexts[:, 1:], contexts)[:, -1])
        sizes = np.abs(contexts)
        answered[((sizes > 1e-9) & (np.abs(sizes - 1) > 1e-9)).any((1, 2))] = np.nan
        return answered

    answer = identify(model, process, task, tasks=200, learners=("gradient-descent", "least-squares"))
    assert (answer.verdict, set(answer.candidates)) == ("ambiguous", {"gradient-descent", "least-squares"})
    (separation,) = answer.separated_by
    assert not separation.decided and separation.distances == {}
    assert any("does not answer there with finite numbers" in reason for reason in answer.reasons)
    with pytest.raises(ValueError, match="infinite or nan"):
        identify(model, PROCESS, TASK, tasks=200)


@pytest.mark.slow
def test_a_trained_layer_does_the_best_step_on_noisy_regression():
    """The step that mahankali2024 derives: η* = 1/(N + d + 1 + σ²) on the sum, N η* on the mean."""
    d, examples, noise = 3, 10, 1.0
    process, task = ms.LinearRegression(d, noise=noise), ms.FewShot(examples)
    training = ms.train(
        ms.prompt_linear_transformer(d, 1, key=jax.random.key(0)),
        process,
        task,
        optimizer=ms.Optimizer(learning_rate=1e-2, schedule="cosine"),
        steps=3000,
        batch=512,
    )
    names = (
        "gradient-descent",
        "preconditioned-gradient-descent",
        "ridge",
        "least-squares",
        "average",
        "zero",
    )
    answer = identify(training.model, process, task, tasks=1000, learners=names)
    assert (answer.verdict, answer.candidates) == ("identified", ("gradient-descent",))
    found = answer.ranking[0].hyperparameters
    assert found["steps"] == 1
    # training ends within some percent of the optimum: the loss is flat there, and its gradient noisy
    assert found["step_size"] == pytest.approx(examples / (examples + d + 1 + noise**2), rel=0.03)


@pytest.mark.slow
def test_a_trained_mesa_layer_is_ridge_regression():
    process, task = ms.OrthogonalAR(ms.Gaussian(1.0), 3, noise=0.3), ms.NextToken(12)
    training = ms.train(
        ms.mesa_transformer(3, 1, scale=0.3, key=jax.random.key(0)),
        process,
        task,
        optimizer=ms.Optimizer(learning_rate=1e-2, schedule="cosine"),
        steps=1500,
        batch=256,
    )
    names = (*LINEAR, "recursive-least-squares", "posterior-mean", "newton")
    answer = identify(training.model, process, task, tasks=1000, learners=names)
    assert (answer.verdict, answer.candidates) == ("identified", ("ridge",))
    assert {"recursive-least-squares", "posterior-mean"} <= set(answer.ranking[0].contains)


@pytest.mark.slow
def test_a_torch_module_and_its_numpy_version_have_the_same_result():
    torch = pytest.importorskip("torch")

    class Step(torch.nn.Module):
        def forward(self, contexts):
            x, y, query = contexts[:, :-1], contexts[:, 1:], contexts[:, -1]
            return 0.3 / x.shape[1] * torch.einsum("bim,bip,bp->bm", y, x, query)

    def twin(contexts):
        x, y, query = contexts[:, :-1], contexts[:, 1:], contexts[:, -1]
        return 0.3 / x.shape[1] * jnp.einsum("bim,bip,bp->bm", y, x, query)

    found, wanted = (identify(m, PROCESS, TASK, tasks=200, learners=LINEAR) for m in (Step(), jax.jit(twin)))
    assert (found.verdict, found.candidates) == (wanted.verdict, wanted.candidates)
    for one, other in zip(found.ranking, wanted.ranking, strict=True):
        assert one.learner == other.learner
        assert one.distance == pytest.approx(other.distance, rel=1e-6, abs=1e-12)


@pytest.mark.slow
def test_prompts_are_identified_too():
    process, task = ms.LinearRegression(3, noise=0.1), ms.FewShot.every(8)

    def model(x, y):
        gram = np.einsum("bip,biq->bpq", x[:, :-1], x[:, :-1]) + 0.5 * np.eye(3)
        moment = np.einsum("bi,bip->bp", y, x[:, :-1])
        return np.einsum("bp,bp->b", np.linalg.solve(gram, moment[..., None])[..., 0], x[:, -1])

    answer = identify(model, process, task, tasks=400, learners=LINEAR)
    assert (answer.verdict, answer.candidates) == ("identified", ("ridge",))
    assert answer.ranking[0].hyperparameters["penalty"] == pytest.approx(0.5, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("truth", "names"),
    [
        (learners.GradientDescent(0.1, 20), ("gradient-descent", "momentum", "gradient-descent++")),
        (learners.NearestNeighbours(9), ("nearest-neighbours", "average", "kernel-smoother")),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_many_steps_are_counted(truth, names):
    answer = identify(as_model(truth), PROCESS, TASK, tasks=200, learners=names)
    assert (answer.verdict, answer.candidates) == ("identified", (truth.name,)), str(answer)
    (count,) = (value for value in vars(truth).values() if isinstance(value, int))
    assert count in answer.ranking[0].hyperparameters.values()


@pytest.mark.slow
def test_a_step_uphill_is_a_preconditioner_and_no_step_size():
    names = ("gradient-descent", "preconditioned-gradient-descent", "zero")
    answer = identify(as_model(learners.GradientDescent(-0.3), 0.0), PROCESS, TASK, tasks=200, learners=names)
    assert (answer.verdict, answer.candidates) == ("identified", ("preconditioned-gradient-descent",))
    assert any("gradient descent with step size -0.3" in reason for reason in answer.reasons)


@pytest.mark.slow
def test_a_plain_step_beyond_the_tolerance_excludes_no_preconditioner_within_it():
    """The plain step is less than twice as far from the model, but too far, and the preconditioner is not."""
    truth = learners.PreconditionedGradientDescent(0.3 * np.diag([0.93, 1.0, 1.07]))

    def model(contexts):
        exact = np.asarray(learners.predictions(truth, contexts[:, :-1], contexts[:, 1:], contexts))[:, -1]
        noise = np.sin(1e4 * contexts.sum((1, 2)))[:, None] * np.sqrt((exact**2).mean(1, keepdims=True))
        return exact + 0.1 * noise

    names = ("gradient-descent", "preconditioned-gradient-descent")
    asked = {"tasks": 2000, "learners": names, "search": False}
    wide = identify(model, PROCESS, TASK, tolerance=0.5, **asked)
    plain, flexible = (wide.entry(name) for name in names)
    assert flexible.interval[1] < plain.interval[0] and plain.distance < 2 * flexible.distance
    between = (flexible.interval[1] + plain.interval[0]) / 2
    answer = identify(model, PROCESS, TASK, tolerance=between, **asked)
    assert (answer.verdict, answer.candidates) == ("identified", (truth.name,)), str(answer)


@pytest.mark.slow
def test_in_one_dimension_several_steps_are_no_preconditioner():
    process = ms.LinearAR.contracting(ms.Gaussian(1.0), 1, 0.3, 0.9, noise=0.5)
    names = ("gradient-descent", "preconditioned-gradient-descent")
    truth = as_model(learners.GradientDescent(0.3, 3))
    answer = identify(truth, process, TASK, tasks=200, learners=names)
    assert (answer.verdict, answer.candidates) == ("identified", ("gradient-descent",))
    assert answer.ranking[0].contains == ()


@pytest.mark.slow
def test_deviations_on_other_data_are_reported():
    """A model that fails for large tokens is ridge regression only on the data of the process."""

    def model(contexts):
        x, y, query = contexts[:, :-1], contexts[:, 1:], contexts[:, -1]
        solved = np.asarray(learners.predictions(learners.Ridge(0.5), x, y, contexts))[:, -1]
        return np.where(np.abs(contexts).max((1, 2))[:, None] > 4, query, solved)

    answer = identify(model, PROCESS, TASK, tasks=200, tolerance=0.05, learners=("ridge", "zero"))
    assert answer.candidates == ("ridge",)
    told = [reason for reason in answer.reasons if reason.startswith("out of distribution")]
    assert len(told) == 3 and any("does something else than ridge" in reason for reason in told)
    exact = identify(as_model(learners.Ridge(0.5)), PROCESS, TASK, tasks=200, learners=("ridge", "zero"))
    assert not any("something else" in reason for reason in exact.reasons)


@pytest.mark.slow
def test_a_model_that_is_not_a_learner_is_not_identified():
    answer = identify(
        lambda c: np.sin(3 * c[:, -1]) + c[:, 0] ** 2, PROCESS, TASK, tasks=200, learners=LINEAR
    )
    assert (answer.verdict, answer.candidates) == ("none", ())
    assert "beyond the tolerance 0.01" in answer.reasons[0]
    assert answer.reading is None


@pytest.mark.slow
def test_the_answer_is_the_same_every_time_and_prints_a_table():
    model = as_model(learners.Ridge(0.7))
    names = ("ridge", "zero")
    seen = []
    one = identify(model, PROCESS, TASK, tasks=200, learners=names, progress=seen.append)
    other = identify(model, PROCESS, TASK, tasks=200, learners=names)
    assert str(one) == str(other)
    assert str(one).startswith("identified: ridge (penalty 0.7): ")
    stages = ["ask the model", "fit zero", "fit ridge", "compare", "ask beyond its data"]
    assert [p.stage for p in seen] == stages
    assert [p.done for p in seen] == [0, 1, 2, 3, 4]
    different = identify(model, PROCESS, TASK, tasks=200, learners=names, seed=1)
    assert different.ranking[0].distance != one.ranking[0].distance


@pytest.mark.parametrize(
    ("settings", "kind", "said"),
    [
        ({"search": "no"}, TypeError, "search: must be True or False"),
        ({"tasks": 60}, ValueError, r"at least 40 tasks .* got 30; .* \(one half of the 60 tasks"),
        ({"tasks": 200, "level": 0.99}, ValueError, "at least 200 tasks"),
        ({"tasks": 10**30}, ValueError, r"tasks: 1000000.* GiB at once; take a smaller batch or fewer tasks"),
        (
            {"tasks": 9000, "level": 0.999},
            ValueError,
            "level must be at most 0.99, the limit for 1000 resamples",
        ),
        ({"tolerance": 0}, ValueError, "tolerance must lie strictly between 0 and 1"),
        ({"learners": ["rigde"]}, ValueError, "unknown learner 'rigde'; did you mean 'ridge'"),
        ({"learners": []}, ValueError, r"must be a list of ids such as \['ridge'\]"),
        ({"tasks": 2.5}, TypeError, "tasks must be an integer"),
        ({"seed": -1}, ValueError, "seed must be at least 0"),
        ({"seed": "1"}, TypeError, "seed must be an integer"),
    ],
)
def test_invalid_settings_are_refused(settings, kind, said):
    with pytest.raises(kind, match=said):
        identify(as_model(learners.Zero()), PROCESS, TASK, **settings)
