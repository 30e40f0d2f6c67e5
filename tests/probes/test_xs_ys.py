"""Models of the interface forward(xs, ys), which predict every label of a prompt in one pass."""

import warnings
from dataclasses import replace

import jax
import numpy as np
import pytest

import mesascope as ms
from mesascope.cli import main
from mesascope.probes import EveryPosition, answers, as_callable, draw_problems, identify


def ridge(xs, ys):
    """Ridge regression of every label on the pairs before it, by sums in NumPy."""
    found = np.zeros(ys.shape)
    for i in range(ys.shape[1]):
        x, y, query = xs[:, :i], ys[:, :i], xs[:, i]
        gram = np.einsum("bip,biq->bpq", x, x) + 0.5 * np.eye(xs.shape[2])
        weights = np.linalg.solve(gram, np.einsum("bip,bi->bp", x, y)[..., None])[..., 0]
        found[:, i] = (weights * query).sum(1)
    return found


def last(x, y):
    """The same for the last label only, as a function of a prompt."""
    return ridge(x, np.pad(y, ((0, 0), (0, 1))))[:, -1]


def test_one_pass_gives_what_single_calls_give(prompts):
    found = answers(ridge, prompts)
    np.testing.assert_allclose(found, answers(last, prompts), rtol=1e-10, atol=1e-12)
    assert np.abs(found).max() > 1


@pytest.mark.slow
def test_a_model_is_named_from_one_call_for_each_half(prompts):
    calls = []

    def counted(xs, ys):
        calls.append(xs.shape)
        return ridge(xs, ys)[..., None]  # with a last axis, as read-outs of width 1 have it

    process, task = ms.LinearRegression(3, noise=0.1), ms.FewShot.every(8)
    answer = identify(
        counted, process, task, tasks=200, learners=("zero", "ridge", "least-squares"), search=False
    )
    assert answer.candidates == ("ridge",)
    assert answer.ranking[0].hyperparameters["penalty"] == pytest.approx(0.5, rel=1e-4)
    # all tasks; four of them twice, and with other entries after each of 9 numbers; eight again after three numbers
    assert calls[0] == (200, 9, 3) and calls.count((200, 9, 3)) == 1 and len(calls) == 7


@pytest.mark.slow
def test_a_module_of_torch(prompts):
    torch = pytest.importorskip("torch")

    class Ridge(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.penalty = torch.nn.Parameter(torch.tensor(0.5, dtype=torch.float64))

        def forward(self, xs, ys, inds=None):
            found = []
            for i in range(ys.shape[1]):
                x, y = xs[:, :i], ys[:, :i]
                gram = torch.einsum("bip,biq->bpq", x, x) + self.penalty * torch.eye(
                    xs.shape[2], dtype=xs.dtype
                )
                weights = torch.linalg.solve(gram, torch.einsum("bip,bi->bp", x, y))
                found.append((weights * xs[:, i]).sum(1))
            return torch.stack(found, 1)

    np.testing.assert_allclose(answers(Ridge(), prompts), answers(ridge, prompts), rtol=1e-10, atol=1e-12)


def test_other_names_need_the_interface_named(prompts):
    def renamed(x, y):
        return ridge(x, np.pad(y, ((0, 0), (0, 1))))

    with pytest.raises(ValueError, match=r'predictions at every position.*interface="xs-ys"'):
        answers(renamed, prompts)
    every = as_callable(lambda inputs, labels: ridge(inputs, labels), interface="xs-ys")
    assert isinstance(every, EveryPosition) and as_callable(every) is every
    np.testing.assert_array_equal(answers(every, prompts), answers(ridge, prompts))


SEES = {
    "its label": lambda xs, ys: ys,
    "the label after it": lambda xs, ys: np.roll(ys, -1, 1),
    "a label at an odd place": lambda xs, ys: np.where(np.arange(ys.shape[1]) == 1, ys, 0 * ys),
    "a later input": lambda xs, ys: np.roll(xs[..., 0], -1, 1) * ys[:, :1],
    "a label in the middle": lambda xs, ys: np.where(np.arange(ys.shape[1]) == ys.shape[1] // 2, ys, 0 * ys),
    "its label in single precision, times 1e22": lambda xs, ys: (1e22 * ys).astype(np.float32),
    "its label as a whole number": lambda xs, ys: (1e6 * ys).astype(np.int32),
    "labels in reverse": lambda xs, ys: np.flip(ys, 1),
    "all labels": lambda xs, ys: np.broadcast_to(ys.sum(1, keepdims=True), ys.shape),
}


@pytest.mark.parametrize("model", SEES.values(), ids=SEES)
def test_a_model_that_sees_later_labels_is_refused(model, prompts):
    with pytest.raises(ValueError, match=r"changes with this label, or with later labels or inputs"):
        answers(model, prompts)


@pytest.mark.parametrize(
    "name", ["its label", "all labels"]
)  # nothing comes after the only label that counts
def test_a_model_that_sees_the_label_of_the_query_is_refused(name):
    problems = draw_problems(ms.LinearRegression(3), ms.FewShot(8), 20, jax.random.key(0))
    with pytest.raises(ValueError, match="of label 9 changes with this label"):
        answers(SEES[name], problems)


def test_labels_are_tried_with_values_that_they_have(prompts):
    """A table of embedded labels has no row for others."""
    x, y = prompts.sample
    problems = replace(prompts, sample=type(prompts.sample)(x, (y > 0) * 1.0))
    table = np.array([0.3, -0.2])

    def shares(xs, ys):
        return np.cumsum(table[ys.astype(int)], 1) - table[ys.astype(int)]

    assert np.isfinite(answers(shares, problems)).all()


@pytest.mark.parametrize(
    "gain",
    [
        lambda count: np.random.default_rng(0).random(count) < 0.9,
        lambda count: 1 + 1e-2 * (np.arange(count) % 2),
        lambda count: 1 + 1e-3 * np.arange(count),
    ],
)
def test_a_model_whose_answers_depend_on_the_place_in_the_batch_is_refused(prompts, gain):
    with pytest.raises(ValueError, match="or its own place in it"):
        answers(lambda xs, ys: ridge(xs, ys) * gain(len(xs))[:, None], prompts)


def test_a_model_that_draws_is_refused_for_that(prompts):
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="switch off dropout"):
        answers(lambda xs, ys: ridge(xs, ys) + 1e-3 * rng.normal(size=ys.shape), prompts)


@pytest.mark.parametrize(
    ("function", "arguments", "kind", "said"),
    [
        (lambda xs, ys: ys[:, -1], {}, ValueError, r"a prediction at every position, shape \(200, 9\)"),
        (ridge, {"interface": "xs"}, ValueError, "unknown interface 'xs'; use one of context, xs-ys, tokens"),
        (
            ridge,
            {"interface": "xs-ys", "embed": np.abs},
            TypeError,
            "embed: is not used with the interface xs-ys",
        ),
    ],
)
def test_bad_models_speak(function, arguments, kind, said, prompts):
    with pytest.raises(kind, match=said):
        answers(as_callable(function, **arguments), prompts)


def test_sequences_are_refused(sequences):
    with pytest.raises(TypeError, match=r"forward\(xs, ys\) reads prompts, and these data are sequences"):
        answers(ridge, sequences)


def test_functions_get_arrays_of_their_own(prompts):
    torch = pytest.importorskip("torch")

    def function(x, y):
        x *= 1.0  # may be changed
        return torch.from_numpy(x[:, -1]).sum(1).numpy()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answers(function, prompts)


@pytest.mark.slow
def test_on_the_command_line(tmp_path, monkeypatch, capsys):
    (tmp_path / "mine_xs_ys.py").write_text(
        "import numpy as np\n\n\ndef average(inputs, labels):\n"
        "    counts = np.arange(labels.shape[1])\n"
        "    sums = np.cumsum(labels, 1) - labels\n"
        "    return sums / np.maximum(counts, 1)\n"
    )
    (tmp_path / "ask.toml").write_text(
        'model = { kind = "function", name = "mine_xs_ys:average", interface = "xs-ys" }\n'
        'process = { kind = "linear-regression", dim = 2 }\n'
        'examples = 5\ntasks = 100\nlearners = ["zero", "ridge"]\nsearch = false\n'
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    assert main(["identify", "ask.toml"]) == 0
    assert capsys.readouterr().out.startswith("none")
