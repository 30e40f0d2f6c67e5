"""The contract of every process."""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mesascope.processes as processes
from mesascope.core import named_key
from mesascope.processes import (
    Constant,
    DiagonalUnitary,
    Gaussian,
    LinearAR,
    LinearRegression,
    MarkovChains,
    MarkovTree,
    NoiseChoice,
    NoiseRange,
    NonlinearAR,
    NonlinearRegression,
    OrthogonalAR,
    OrthonormalFeatures,
    PromptProcess,
    RandomDiagonal,
    RandomFeatures,
    RotationAR,
    SineWaves,
    Sparse,
    TwoLayerReLU,
    Uniform,
    Urns,
)
from mesascope.specs import known_kinds
from sampled_means import draw

SIZE = 5  # the horizon of sequences, the number of examples of prompts
BATCHES = (7, 1)
COVARIANCE = np.array([[2.0, 0.5], [0.5, 1.0]])

# Processes as their constructions, so that a test can build an equal one again.
PROCESSES = {
    "diagonal-unitary": lambda: DiagonalUnitary(Gaussian(), 3),
    "orthogonal-ar": lambda: OrthogonalAR(Gaussian(), 3, noise="1/10"),
    "orthogonal-commuting": lambda: OrthogonalAR(Uniform(2), 4, basis=1),
    "rotation-ar": lambda: RotationAR(Gaussian(), 4),
    "rotation-axis": lambda: RotationAR(Constant([1, 2]), 4, start="axis"),
    "linear-ar": lambda: LinearAR(Gaussian(), 3, (0.9, (-0.5, "1/2"), 0), noise=0.1),
    "linear-contracting-observed": lambda: LinearAR.contracting(Sparse(), 4, 0.3, 0.9, observed=2),
    "linear-unstable": lambda: LinearAR(Gaussian(), 2, [1.5, 0.5], unstable=True),
    "linear-turning": lambda: LinearAR(Gaussian(), 3, (0.6 + 0.8j, 0.5, 0.6 - 0.8j), noise=0.1),
    "nonlinear-ar": lambda: NonlinearAR(Gaussian(), 3, hidden=6, gain=2, noise=0.1),
    "markov-chain": lambda: MarkovTree.chain(SIZE - 1, states=5, alpha=1),
    "markov-tree": lambda: MarkovTree((None, 0, 0, None), states=4, alpha=0.1),
    "markov-chains": lambda: MarkovChains(5, "1/2"),
    "urns": lambda: Urns(50, 2),  # of so many that no two of a few sequences are equal
    "linear-regression": lambda: LinearRegression(3),
    "linear-regression-all": lambda: LinearRegression(
        2, Uniform(1), covariance=COVARIANCE, prior="inverse", noise=NoiseRange(2), sparsity=1
    ),
    "linear-regression-random": lambda: LinearRegression(
        2, covariance=RandomDiagonal(Gaussian(2)), prior=COVARIANCE, noise=0.1
    ),
    "nonlinear-regression": lambda: NonlinearRegression(3, TwoLayerReLU(10), noise=0.1),
    "random-features": lambda: NonlinearRegression(2, RandomFeatures(10, seed=3), Uniform(1)),
    "orthonormal-features": lambda: OrthonormalFeatures(3, dim=4),
    "features-imbalanced": lambda: OrthonormalFeatures.imbalanced(3, 0.8, law=Uniform(1)),
}
PROCESSES |= {name: kind.example for name, kind in known_kinds("process").items() if name not in PROCESSES}
every_process = pytest.mark.parametrize("name", PROCESSES)


def expected_shapes(process, batch):
    if isinstance(process, PromptProcess):
        return [(batch, SIZE + 1, process.dim), (batch, SIZE + 1)]
    return [(batch, SIZE) if hasattr(process, "vocabulary") else (batch, SIZE, process.dim)]


@pytest.mark.slow
@every_process
@pytest.mark.parametrize("batch", BATCHES)
def test_shapes_types_and_finite_values(name, batch):
    process = PROCESSES[name]()
    arrays = jax.tree.leaves(draw(process, named_key(0), SIZE, batch))
    assert [a.shape for a in arrays] == expected_shapes(process, batch)
    for array in arrays:
        assert np.isfinite(array).all()
        if hasattr(process, "vocabulary"):
            assert array.dtype == jnp.int32
            assert array.min() >= 0
            assert array.max() < process.vocabulary == process.dim
        else:
            assert array.dtype == (jnp.complex128 if process.data == "complex tokens" else jnp.float64)


@pytest.mark.slow
@every_process
def test_samples_depend_on_the_key_and_on_nothing_else(name):
    process = PROCESSES[name]()
    one, again, other = (draw(process, named_key(seed), SIZE, BATCHES[0]) for seed in (0, 0, 1))
    for a, b, c in zip(*map(jax.tree.leaves, (one, again, other)), strict=True):
        np.testing.assert_array_equal(a, b)
        assert (np.asarray(a) != np.asarray(c)).any()


@pytest.mark.parametrize(
    "name", sorted(set(PROCESSES) - {"training-set"})
)  # which draws its prompts again and again
def test_rows_of_a_batch_differ(name):
    rows = np.asarray(jax.tree.leaves(draw(PROCESSES[name](), named_key(0), SIZE, BATCHES[0]))[-1])
    assert len(np.unique(rows.reshape(len(rows), -1), axis=0)) == len(rows)


@every_process
def test_equal_processes_share_compiled_code(name):
    traces = []

    def sample(process, key):
        traces.append(process)
        return process.sample(key, SIZE, 1)

    shapes = jax.jit(sample, static_argnums=0)
    first, second = PROCESSES[name](), PROCESSES[name]()
    assert first == second
    assert hash(first) == hash(second)
    shapes.eval_shape(first, named_key(0))
    shapes.eval_shape(second, named_key(0))
    assert len(traces) == 1
    assert jax.tree.leaves(first) == []


def test_different_processes_differ():
    assert (
        DiagonalUnitary(Gaussian(1), 3) == DiagonalUnitary(Gaussian(1.0), 3) != DiagonalUnitary(Gaussian(), 4)
    )
    assert len({construct() for construct in PROCESSES.values()}) == len(PROCESSES)
    assert OrthogonalAR(Gaussian(), 4) != OrthogonalAR(Gaussian(), 4, basis=0)
    assert OrthogonalAR(Gaussian(), 4, basis=0) != OrthogonalAR(Gaussian(), 4, basis=1)
    assert LinearRegression(2, covariance=COVARIANCE) != LinearRegression(2, covariance=2 * COVARIANCE)


@every_process
def test_in_32_bit_mode_samples_are_32_bit(name):
    with jax.enable_x64(False):
        shapes = jax.eval_shape(lambda key: PROCESSES[name]().sample(key, SIZE, 2), jax.random.key(0))
    assert {leaf.dtype.name for leaf in jax.tree.leaves(shapes)} <= {"float32", "complex64", "int32"}


@every_process
def test_descriptions(name):
    process = PROCESSES[name]()
    text = process.describe()
    assert text.startswith(f"{type(process).__name__}(")
    assert text.endswith(")")
    assert "\n" not in text
    names = {name: getattr(processes, name) for name in processes.__all__}
    assert eval(repr(process), {**names, "Fraction": Fraction}) == process


@every_process
def test_counts_are_checked(name):
    process = PROCESSES[name]()
    size = "examples" if isinstance(process, PromptProcess) else "horizon"
    for value in (0, -1):
        with pytest.raises(ValueError, match=f"^{size} must be at least 1, got {value}"):
            process.sample(named_key(0), value, 1)
    with pytest.raises(TypeError, match=f"^{size} must be an integer"):
        process.sample(named_key(0), 5.0, 1)
    with pytest.raises(ValueError, match=r"^batch must be at least 1, got 0"):
        process.sample(named_key(0), SIZE, 0)
    with pytest.raises(TypeError, match=r"^batch must be an integer"):
        process.sample(named_key(0), SIZE, True)


@every_process
def test_values_that_are_not_keys_are_refused(name):
    with pytest.raises(TypeError, match=r"^key must be a random key such as jax\.random\.key\(0\), got 0$"):
        PROCESSES[name]().sample(0, SIZE, 2)


@pytest.mark.slow
def test_a_horizon_of_one_is_the_first_token():
    for name in ("orthogonal-ar", "linear-ar", "nonlinear-ar", "rotation-ar"):
        assert draw(PROCESSES[name](), named_key(0), 1, 2).shape == (2, 1, PROCESSES[name]().dim)


@pytest.mark.parametrize(
    ("construct", "error", "message"),
    [
        (lambda: DiagonalUnitary("gausian", 3), ValueError, "law.kind unknown kind 'gausian'; did you mean 'gaussian'"),
        (lambda: DiagonalUnitary(Gaussian(), 0), ValueError, "dim must be at least 1, got 0"),
        (lambda: DiagonalUnitary(Gaussian(), 3.0), TypeError, "dim must be an integer"),
        (lambda: DiagonalUnitary(Constant([1, 2]), 3), ValueError, r"dim is 3, but tokens of Constant\(\[1, 2\]\) have dim"),
        (lambda: OrthogonalAR(3, 3), TypeError, "OrthogonalAR law must be a law or a table with its kind .*, got 3"),
        (lambda: OrthogonalAR(Gaussian(), 0), ValueError, "dim must be at least 1, got 0"),
        (lambda: OrthogonalAR(Gaussian(), 3, noise=-1), ValueError, "OrthogonalAR noise must not be negative"),
        (lambda: OrthogonalAR(Gaussian(), 3, basis=0), ValueError, "dim must be even.*, got 3; remove basis"),
        (lambda: OrthogonalAR(Gaussian(), 4, basis=0.5), TypeError, "basis must be an integer, got 0.5"),
        (lambda: RotationAR(None, 4), TypeError, "RotationAR law must be a law"),
        (lambda: RotationAR(Gaussian(), 3), ValueError, "dim must be even, .* got 3"),
        (lambda: RotationAR(Gaussian(), 0), ValueError, "dim must be at least 1, got 0"),
        (lambda: RotationAR(Gaussian(), 4, "middle"), ValueError, "start unknown value 'middle'; use one of plane, axis"),
        (lambda: RotationAR(Constant([1, 2]), 4), ValueError, r"dim is 4, but tokens of Constant\(\[1, 2\]\)"),
        (lambda: LinearAR("x", 2, (0, 0)), ValueError, "LinearAR law.kind unknown kind 'x'"),
        (lambda: LinearAR(Gaussian(), 2, (0.5,)), ValueError, "each of the 2 state dimensions, got 1; a table"),
        (lambda: LinearAR(Gaussian(), 2, 0.5), TypeError, "spectrum must list eigenvalues, .* got 0.5"),
        (lambda: LinearAR(Gaussian(), 1, ((1, 0),)), ValueError, r"spectrum\[0\] has low = 1 above high = 0: swap"),
        (lambda: LinearAR(Gaussian(), 1, ((0, 1, 2),)), ValueError, r"spectrum\[0\] must be a number or a pair"),
        (lambda: LinearAR(Gaussian(), 2, (0, None)), TypeError, r"spectrum\[1\] must be a number"),
        (lambda: LinearAR(Gaussian(), 2, (0.1, -1.5)), ValueError, r"\|λ\| = 1.5 > 1.* or set unstable to true"),
        (lambda: LinearAR(Gaussian(), 2, (0.5j, 0)), ValueError, r"spectrum\[0\] 0.5j is given without .*: list -0.5j too"),
        (lambda: LinearAR(Gaussian(), 2, (0.5j, 0.5j)), ValueError, r"spectrum\[0\] 0.5j is given without its conj"),
        (
            lambda: LinearAR(Gaussian(), 3, (0.5j, -0.5j, -0.5j)),
            ValueError,
            r"spectrum\[2\] -0.5j is given without its conjugate.*: list 0.5j too",
        ),
        (lambda: LinearAR(Gaussian(), 2, (1 + 1j, 1 - 1j)), ValueError, r"\|λ\| = 1.414\d* > 1.*shrink it to \|λ\| ≤ 1"),
        (lambda: LinearAR(Gaussian(), 2, (complex("nan"), 0)), ValueError, r"spectrum\[0\] must be finite"),
        (lambda: LinearAR(Gaussian(), 1, (0,), noise=-1), ValueError, "LinearAR noise must not be negative"),
        (lambda: LinearAR(Gaussian(), 1, (0,), observed=0), ValueError, "LinearAR observed must be at least 1"),
        (lambda: NonlinearAR(Gaussian(), 2, 0), ValueError, "NonlinearAR hidden must be at least 1"),
        (lambda: NonlinearAR(Gaussian(), 2, 4, gain=0), ValueError, "NonlinearAR gain must be greater than 0"),
        (lambda: NonlinearAR(Gaussian(), 2, 4, noise=-1), ValueError, "NonlinearAR noise must not be negative"),
        (lambda: MarkovTree(3, 2, 1), TypeError, "parents must be 'chain', 'random', or a list of positions.*, got 3"),
        (lambda: MarkovTree((None,), 2, 1), ValueError, "at least 2 positions, got 1"),
        (lambda: MarkovTree((0, None), 2, 1), ValueError, r"parents\[0\] must be an earlier position, below 0, got 0"),
        (lambda: MarkovTree((None, -1, None), 2, 1), ValueError, r"parents\[1\] must be .* counted from 0.* got -1"),
        (lambda: MarkovTree((None, 0), 2, 1), ValueError, r"parents\[1\] must be a root"),
        (lambda: MarkovTree.chain(3, 1, 1), ValueError, "MarkovTree states must be at least 2"),
        (lambda: MarkovTree.chain(1, 2, 1), ValueError, "length must be at least 2"),
        (lambda: MarkovTree.chain(3, 2, 0), ValueError, "MarkovTree alpha must be greater than 0"),
        (lambda: MarkovTree.chain(3, 2, 1).sample(named_key(0), 3, 1), ValueError, "expected horizon − 1 = 2"),
        (lambda: LinearRegression(0), ValueError, "dim must be at least 1"),
        (lambda: LinearRegression(2, 3), TypeError, "LinearRegression law must be a law"),
        (lambda: LinearRegression(2, noise=-1), ValueError, "LinearRegression noise must not be negative"),
        (lambda: LinearRegression(2, sparsity=3), ValueError, "sparsity must be at most dim = 2, got 3"),
        (lambda: LinearRegression(2, prior="flat"), ValueError, "prior unknown value 'flat'; use one of identity, inverse"),
        (
            lambda: LinearRegression(2, covariance=RandomDiagonal(Gaussian()), prior="inverse"),
            ValueError,
            "prior 'inverse' needs a fixed covariance",
        ),
        (lambda: LinearRegression(2, covariance=np.eye(3)), ValueError, r"shape \(2, 2\) for dim = 2, got \(3, 3\)"),
        (lambda: LinearRegression(2, covariance=[[1, 2], [3]]), ValueError, r"covariance\[1\] has 1 numbers, but row 0 has 2"),
        (lambda: LinearRegression(2, covariance=[[1, 1], [0, 1]]), ValueError, "covariance must be symmetric; write"),
        (lambda: LinearRegression(2, prior=[[1, 1], [1, 1]]), ValueError, "prior must be positive definite.* add a"),
        (lambda: LinearRegression(1, prior=[[np.inf]]), ValueError, r"prior\[0\]\[0\] must be finite"),
        (lambda: LinearRegression(2, covariance=1j * np.eye(2)), TypeError, r"covariance\[0\]\[0\] must be a number"),
        (lambda: NoiseRange(0), ValueError, "NoiseRange largest must be greater than 0"),
        (lambda: NoiseChoice(()), ValueError, "NoiseChoice levels must have at least one level"),
        (lambda: NoiseChoice((1, -2)), ValueError, r"NoiseChoice levels\[1\] must not be negative"),
        (lambda: RandomDiagonal(1), TypeError, "RandomDiagonal law must be a law"),
        (lambda: NonlinearRegression(2, 10), TypeError, "target must be a target or a table with its kind .random-features"),
        (lambda: TwoLayerReLU(0), ValueError, "TwoLayerReLU hidden must be at least 1"),
        (lambda: SineWaves(0), ValueError, "SineWaves least must be greater than 0"),
        (lambda: SineWaves(2, 1), ValueError, "SineWaves largest is 1, below `least`, 2: swap them"),
        (lambda: RandomFeatures(0), ValueError, "RandomFeatures features must be at least 1"),
        (lambda: RandomFeatures(1, -1), ValueError, "RandomFeatures seed must be at least 0"),
        (lambda: OrthonormalFeatures(3, dim=2), ValueError, "dim must be at least 3, the number of orthonormal vectors, got 2"),
        (lambda: OrthonormalFeatures(2, probabilities=(1,)), ValueError, "must list 2 numbers, one for each feature, got 1"),
        (lambda: OrthonormalFeatures(2, probabilities=0.5), TypeError, "must be a list of numbers, got 0.5"),
        (lambda: OrthonormalFeatures(2, probabilities=(0.5, 0.6)), ValueError, "must sum to 1, not 1.1; write"),
        (lambda: OrthonormalFeatures(2, probabilities=(2, -1)), ValueError, r"\[1\] must not be negative"),
        (lambda: OrthonormalFeatures.imbalanced(2, 1), ValueError, "dominant must be below 1, got 1"),
        (lambda: OrthonormalFeatures.imbalanced(1, 0.5), ValueError, "features must be at least 2"),
    ],
)  # fmt: skip
def test_impossible_parameters_are_refused(construct, error, message):
    with pytest.raises(error, match=message):
        construct()
