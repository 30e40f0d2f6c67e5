"""What code of plugins raises, returns and prints: one line with its place, and no change of a result."""

import json
from fractions import Fraction
from types import SimpleNamespace

import jax
import pytest

import mesascope as ms
from mesascope.cli import main
from mesascope.processes import IdenticalLaw, Law, ProductTerm, PromptProcess, Prompts, SequenceProcess
from mesascope.processes import require_possible_moments as require_possible
from mesascope.specs import load_plugin, plugin_error

LAW = '''
import jax
from mesascope.processes import IdenticalLaw
from mesascope.specs import Scale, kind

@kind("mine")
class Mine(IdenticalLaw):
    """A law of a file.

    Args:
        scale: b > 0.
    """

    scale: Scale = 1.0

    def line_moment(self, order):
        {moment}

    def sample(self, key, dim, shape=()):
        {sample}
'''
GAUSSIAN = {
    "moment": "return [1, 0, 1, 0, 3, 0, 15][order]",
    "sample": "return jax.random.normal(key, (*shape, dim))",
}
LOSS = {"law": "mine", "dim": 1, "horizon": 3, "w_kq": [[0, 0], [0.5, 0]], "w_pv": [[0.3, 0]]}
SAMPLED = {"engine": {"kind": "monte-carlo", "samples": 4}}


@pytest.fixture
def loss(tmp_path, monkeypatch, capfd):
    """Compute a loss with the law of a file, by the command line."""
    monkeypatch.setattr("mesascope.specs._plugins._default_plugins", [])

    def run(**changed):
        (tmp_path / "mine.py").write_text(LAW.format(**{**GAUSSIAN, **changed}))
        spec = {**LOSS, **(SAMPLED if "sample" in changed else {})}
        (tmp_path / "spec.json").write_text(json.dumps(spec))
        options = ("--json", "--plugin", str(tmp_path / "mine.py"))
        status = main(["loss", str(tmp_path / "spec.json"), *options])
        return SimpleNamespace(status=status, **capfd.readouterr()._asdict())

    return run


@pytest.mark.parametrize("method", ["line_moment", "sample"])
@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("1 / 0", "raised ZeroDivisionError in {method}, {file}: division by zero; fix it there"),
        ("raise ValueError('boom')", "raised ValueError in {method}, {file}: boom; fix it there"),
        ("raise SystemExit(0)", "ends the program in {method}, {file}; remove its call of exit"),
    ],
)
def test_an_error_of_a_method_is_one_line_with_its_place(loss, tmp_path, method, code, told):
    done = loss(**{"moment" if method == "line_moment" else "sample": code})
    line = 17 if method == "line_moment" else 20
    told = told.format(method=method, file=f"{tmp_path / 'mine.py'}:{line}")
    assert (done.status, done.out) == (2, "")
    assert done.err == f"mesascope loss: the law 'mine' {told}\n"


LEARNER = """
from mesascope.learners import Context, Learner, Scalar, learner

@learner("failing", Scalar("factor", 0.1, 10.0), example={"factor": 0.5})
class Failing(Learner):
    \"\"\"Fails.\"\"\"

    reads = Context
    factor: float

    def respond(self, features):
        return features.there_is_no_such_thing
"""


@pytest.mark.slow
def test_an_error_of_a_learner_is_one_line_with_its_place(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr("mesascope.specs._plugins._default_plugins", [])
    (tmp_path / "mine.py").write_text(LEARNER)
    (tmp_path / "models_of_mine.py").write_text("def last(tokens): return tokens[:, -1]\n")
    asked = {
        "model": {"kind": "function", "name": "models_of_mine:last"},
        "process": {"kind": "orthogonal-ar", "law": "gaussian", "dim": 2},
        **{"horizon": 4, "tasks": 80, "learners": ["failing", "zero"]},
    }
    (tmp_path / "spec.json").write_text(json.dumps(asked))
    status = main(["identify", str(tmp_path / "spec.json"), "--plugin", str(tmp_path / "mine.py")])
    told = f"the learner 'failing' raised AttributeError in respond, {tmp_path / 'mine.py'}:12: "
    ended = capfd.readouterr()
    assert (status, ended.out) == (2, "") and ended.err.startswith(f"mesascope identify: {told}")
    assert ended.err.count("\n") == 1


def test_only_code_from_outside_is_blamed():
    with pytest.raises(TypeError) as caught:
        ms.Gaussian().sample(0, 1)
    assert plugin_error(caught.value) is None


def test_what_a_plugin_prints_is_no_part_of_the_result(loss):
    done = loss(moment="import os; print('by Python'); os.write(1, b'by C'); " + GAUSSIAN["moment"])
    assert done.status == 0 and json.loads(done.out)["loss"] > 0
    assert "by Python" in done.err and "by C" in done.err


@pytest.mark.parametrize(
    ("moments", "told"),
    [
        ([1, 0, -1, 0, 3, 0, 15], r"E x\^2 = -1 is impossible"),
        ([2, 0, 1, 0, 3, 0, 15], r"E x\^0 is 2, not 1"),
        ([1, 0, 1, 0, 0.5, 0, 15], r"E x\^4 = 0\.5 is impossible"),
        ([1, 0, 1, 0, 1, 0, 2], r"E x\^6 = 2 is impossible"),  # of order 4 it has the two values ±1
        ([1, 0, 0, 0, 0, 0, 1], r"E x\^6 = 1 is impossible"),
        ([1, 1j, 1, 0, 3, 0, 15], r"E x\^1 of .* must be a number"),
    ],
)
def test_moments_that_no_distribution_has_are_refused(moments, told):
    with pytest.raises((ValueError, TypeError), match=told):
        Given(tuple(moments)).moment(6)


def test_moments_with_rounding_errors_are_accepted():
    moments = tuple(
        0.3 * 0.1**n + 0.7 * 0.2**n * (1 + 1e-9) for n in range(7)
    )  # two values: a singular matrix
    assert Given((1.0, *moments[1:])).moment(6) == Fraction(moments[6])


@ms.specs.component
class Given(IdenticalLaw):
    moments: tuple

    def line_moment(self, order):
        return self.moments[order]

    def sample(self, key, dim, shape=()):
        raise NotImplementedError


def general(**members):
    """A law with these members."""
    rest = dict.fromkeys(("moment", "product_terms", "quadrature", "zero_probability"), lambda *_: None)
    return ms.specs.component(
        type(
            "Own",
            (Law,),
            {"exchangeable": True, "even": True, "fixed_dim": None, "sample": rest["moment"]}
            | rest
            | members,
        )
    )()


def test_joint_moments_that_no_distribution_has_are_refused():
    def joint(self, orders, dim):  # E x_1² x_2² is too small for E x_1⁴ = 1 and E x² = 1
        return {(2, 2): Fraction(1, 2)}.get(orders, 0 if any(n % 2 for n in orders) else 1)

    require_possible(general(joint_moment=lambda self, orders, dim: int(not any(n % 2 for n in orders))), 3)
    with pytest.raises(ValueError, match=r"E x_2\^2 x_3\^2 = 1/2 is impossible"):
        require_possible(general(joint_moment=joint), 3)
    mixture = ms.Mixture([("1/2", ms.Gaussian()), ("1/2", general(joint_moment=joint))])
    for law in (mixture, ms.Symmetrized(mixture)):  # parts are checked as laws are
        with pytest.raises(ValueError, match=r"E x_2\^2 x_3\^2 = 1/2 is impossible"):
            require_possible(law, 3)
    terms = (ProductTerm(1, ((1, 0, 1, 0, 3, 0, 15),)), ProductTerm(0, ((1, 0, -1, 0, 3, 0, 15),)))
    with pytest.raises(ValueError, match=r"E x\^2 = -1 is impossible"):
        require_possible(general(exchangeable=False, product_terms=lambda self, dim: terms), 1)


def law_with(sample):
    return general(sample=lambda self, key, dim, shape=(): sample(key, (*shape, dim)))


def process_with(sample, data="real tokens"):
    members = {
        "data": data,
        "dim": 2,
        "sample": lambda self, key, horizon, batch: sample(key, (batch, horizon, 2)),
    }
    return ms.specs.component(type("Own", (SequenceProcess,), members))()


def prompts_with(sample):
    members = {"dim": 2, "sample": lambda self, key, examples, batch: sample(key, (batch, examples + 1))}
    return ms.specs.component(type("Own", (PromptProcess,), members))()


KEY = jax.random.key(0)
normal = jax.random.normal
IGNORED, OTHER = "must draw another sample from another key", "must draw the same sample from the same key"


@pytest.mark.parametrize(
    ("draw", "told"),
    [
        (
            lambda: law_with(lambda key, shape: 1j * normal(key, shape)).sample(KEY, 2, (5,)),
            "real numbers of shape .5, 2., got complex",
        ),
        (
            lambda: law_with(lambda key, shape: normal(key, shape[::-1])).sample(KEY, 2, (5,)),
            r"got float64 of shape \(2, 5\)",
        ),
        (lambda: law_with(lambda key, shape: None).sample(KEY, 2), "got none"),
        (lambda: law_with(lambda key, shape: normal(KEY, shape)).sample(KEY, 2), IGNORED),
        (
            lambda: law_with(lambda key, shape: normal(jax.random.key(next(COUNT)), shape)).sample(KEY, 2),
            OTHER,
        ),
        (lambda: process_with(normal).sample(KEY, 3, 4).shape, None),
        (
            lambda: process_with(normal, "complex tokens").sample(KEY, 3, 4),
            "complex numbers of shape .4, 3, 2., got float64",
        ),
        (lambda: process_with(normal, "symbols").sample(KEY, 3, 4), "integers of shape .4, 3., got float64"),
        (
            lambda: process_with(lambda key, shape: normal(key, shape[1:])).sample(KEY, 3, 4),
            r"of shape .4, 3, 2., got .*\(3, 2\)",
        ),
        (lambda: process_with(lambda key, shape: normal(KEY, shape)).sample(KEY, 3, 4), IGNORED),
        (
            lambda: process_with(lambda key, shape: jax.numpy.ones(shape)).sample(KEY, 3, 4),
            None,
        ),  # deterministic
        (
            lambda: prompts_with(normal).sample(KEY, 3, 4),
            r"of shape .4, 4, 2., got float64 of shape \(4, 4\)",
        ),
        (
            lambda: prompts_with(
                lambda key, shape: Prompts(normal(key, (*shape, 2)), 1j * normal(key, shape))
            ).sample(KEY, 3, 4),
            "real numbers of shape .4, 4., got complex",
        ),
        (
            lambda: prompts_with(
                lambda key, shape: Prompts(normal(KEY, (*shape, 2)), normal(KEY, shape))
            ).sample(KEY, 3, 4),
            IGNORED,
        ),
    ],
)
def test_samples_of_another_kind_are_refused(draw, told):
    if told is None:
        draw()
        jax.jit(draw)()
        return
    with pytest.raises(ValueError, match=told):
        draw()
    with pytest.raises(ValueError, match=told):  # in a compiled program
        jax.jit(draw)()


COUNT = iter(range(1000))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("Scale = 1.0", "Scale = -1.0"), "mine.py:6: no example of the law 'mine' can be made: scale: must be greater than 0"),
        (("Scale = 1.0", "Scale"), "mine.py:6: no example of the law 'mine' can be made: scale: missing; add it"),
        (("Scale = 1.0", "'Scael' = 1.0"), "mine.py:6: NameError: a field of Mine has the unknown type Scael; import it"),
        (("(IdenticalLaw)", ""), "mine.py:6: TypeError: Mine is not a class derived from Law, SequenceProcess or another"),
        (("class Mine", "def f(): pass\nclass Mine"), "mine.py:6: TypeError: f is not a class derived from Law"),
        (('@kind("mine")', "@kind"), 'mine.py:6: TypeError: Mine is not a name of a kind; write @kind("name") above'),
        (("return jax", "return ("), "mine.py:20: SyntaxError"),
    ],
)  # fmt: skip
def test_a_wrong_declaration_is_one_line_with_its_place(tmp_path, change, told):
    file = tmp_path / "mine.py"
    file.write_text(LAW.format(**GAUSSIAN).replace(*change))
    with pytest.raises(ValueError) as caught:
        load_plugin(file)
    assert told in str(caught.value) and "\n" not in str(caught.value)
    assert "mine" not in ms.specs.known_kinds("law")
