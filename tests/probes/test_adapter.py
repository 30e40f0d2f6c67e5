"""Models of all libraries have one interface; models that are not functions of the context are refused."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mesascope as ms
from mesascope.core import named_key
from mesascope.probes import answers, as_callable, draw_problems, import_callable


@pytest.mark.slow
def test_a_function_of_numpy_answers_after_every_number_of_examples(sequences, one_step, answers_of_a_step):
    found, wanted = answers(one_step, sequences), answers_of_a_step(sequences)
    np.testing.assert_allclose(found[:, 1:], wanted[:, 1:], rtol=1e-12, atol=1e-14)
    assert not found[:, 0].any()  # one token alone is never a context of the task


@pytest.mark.slow
def test_a_function_of_jax_answers_like_one_of_numpy(sequences, one_step):
    def in_jax(contexts):
        x, y, query = contexts[:, :-1], contexts[:, 1:], contexts[:, -1]
        return 0.3 * jnp.einsum("bim,bip,bp->bm", y, x, query) / x.shape[1]

    np.testing.assert_allclose(
        answers(jax.jit(in_jax), sequences), answers(one_step, sequences), rtol=1e-12, atol=1e-14
    )


@pytest.mark.slow
def test_one_pass_and_single_calls_of_a_sequence_model_agree(complex_sequences):
    model = ms.LinearAttention.gaussian(3, 0.3, key=jax.random.key(0))
    one_by_one = answers(lambda contexts: model(contexts), complex_sequences)
    np.testing.assert_allclose(answers(model, complex_sequences), one_by_one, rtol=1e-10, atol=1e-13)


@pytest.mark.slow
def test_one_pass_and_single_calls_of_a_prompt_model_agree(prompts):
    model = ms.prompt_linear_transformer(3, 1, scale=0.3, key=jax.random.key(0))
    one_by_one = answers(lambda x, y: model(x, y), prompts)
    np.testing.assert_allclose(answers(model, prompts), one_by_one, rtol=1e-10, atol=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_torch_modules_in_half_precision_get_half_precision(sequences, one_step, dtype):
    torch = pytest.importorskip("torch")
    module = torch.nn.Linear(3, 3, bias=False).to(getattr(torch, dtype))
    seen = []

    class Last(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = module

        def forward(self, contexts):
            seen.append(contexts.dtype)
            return self.inner(contexts[:, -1])

    found = answers(Last(), sequences)
    weight = module.weight.detach().double().numpy()
    wanted = np.asarray(sequences.queries) @ weight.T
    # three products of numbers of so many bits
    rounding = 8 * float(torch.finfo(getattr(torch, dtype)).eps) * np.abs(wanted).max()
    np.testing.assert_allclose(found[:, 1:], wanted[:, 1:], rtol=0, atol=rounding)
    assert set(seen) == {getattr(torch, dtype)}


@pytest.mark.slow
def test_a_torch_module_of_symbols_gets_integers_and_parts_keep_their_modes():
    torch = pytest.importorskip("torch")
    process = ms.MarkovTree.chain(5, 3, 1.0)
    problems = draw_problems(process, ms.NextToken(6), 20, named_key(0, "torch"))

    class Table(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table = torch.nn.Embedding(3, 3)
            self.frozen = torch.nn.Dropout(0.5).eval()

        def forward(self, contexts):
            return torch.softmax(self.frozen(self.table(contexts[:, -1])), -1)

    module = Table().train()
    module.frozen.eval()
    found = answers(module, problems)
    table = torch.softmax(module.table.weight.detach(), -1).numpy()
    np.testing.assert_allclose(found[:, 1:], table[np.asarray(problems.sample)][:, 1:], rtol=1e-6)
    assert module.training and module.table.training and not module.frozen.training


@pytest.mark.slow
def test_a_torch_module_answers_in_its_precision_and_keeps_its_mode(sequences, one_step):
    torch = pytest.importorskip("torch")

    class Step(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.step = torch.nn.Parameter(torch.tensor(0.3, dtype=torch.float64))
            self.dropout = torch.nn.Dropout(0.5)

        def forward(self, contexts):
            x, y, query = contexts[:, :-1], contexts[:, 1:], contexts[:, -1]
            moved = self.step / x.shape[1] * torch.einsum("bim,bip,bp->bm", y, x, query)
            return self.dropout(moved)

    module = Step()
    np.testing.assert_allclose(
        answers(module, sequences), answers(one_step, sequences), rtol=1e-12, atol=1e-14
    )
    assert module.training
    single = as_callable(module.float())(np.asarray(sequences.sample))
    assert single.dtype == np.float32


def test_a_causal_model_in_the_style_of_hugging_face_reads_embedded_tokens(sequences):
    class Output:
        def __init__(self, states):
            self.last_hidden_state = states

    class Model:
        def __call__(self, *, inputs_embeds):
            return Output(np.cumsum(inputs_embeds, 1))

    function = as_callable(Model(), embed=lambda x: 2 * x, readout=lambda entries: -entries)
    contexts = np.asarray(sequences.sample)
    np.testing.assert_allclose(function(contexts), -2 * contexts.sum(1), rtol=1e-12)


@pytest.mark.slow
def test_torch_is_imported_only_for_its_models():
    code = (
        "import sys, numpy as np; from mesascope.probes import as_callable; "
        "as_callable(lambda c: c[:, -1])(np.ones((2, 3, 4))); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def _by_batch(contexts):
    return contexts[:, -1] * contexts.mean()


async def _later(contexts):
    return contexts[:, -1]


def _wrong_from_one(contexts):
    return np.where(np.arange(len(contexts)) == 3, np.nan, 1.0)[:, None] * contexts[:, -1]


@pytest.mark.parametrize(
    ("model", "kind", "said"),
    [
        (3, TypeError, "model: must be a model, or a function of contexts .* got int"),
        (dict, TypeError, r"model: dict is a class, not a model; create one: dict\(…\)"),
        (lambda c: c[:, -1, :2], ValueError, r"predictions of shape \(200, 3\), gave \(200, 2\)"),
        (lambda c: c, ValueError, r"predictions of shape \(200, 3\), gave \(200, 2, 3\)"),
        (
            lambda c: c[:, -1] + 1e-3 * np.random.default_rng().normal(size=c[:, -1].shape),
            ValueError,
            "differently when asked again",
        ),
        (_by_batch, ValueError, "let no context see the others"),
        (_wrong_from_one, ValueError, "infinite or nan for 0.5 % of the tasks"),
        (lambda c: 1j * c[:, -1], TypeError, "complex predictions"),
        (lambda c: np.full(c[:, -1].shape, "a"), TypeError, "must answer with numbers"),
        (lambda c: np.ma.masked_less(c[:, -1], 0), TypeError, "answers with a masked array"),
        (_later, TypeError, "is an async function"),
    ],
)
def test_models_that_are_not_functions_of_contexts_are_refused(model, kind, said, sequences):
    with pytest.raises(kind, match=said):
        answers(model, sequences)


def test_bfloat16_is_read_in_single_precision(sequences):
    found = answers(lambda c: np.asarray(c[:, -1]).astype(jnp.bfloat16), sequences)
    n = int(sequences.lengths[-1])
    assert np.array_equal(found[:, n], np.asarray(sequences.sample[:, n]).astype(jnp.bfloat16).astype(float))


def test_a_readout_needs_an_embedding():
    with pytest.raises(TypeError, match="readout: is used only with embed"):
        as_callable(lambda c: c, readout=lambda c: c)
    with pytest.raises(
        TypeError, match=r"takes inputs_embeds; say how to make them: as_callable\(model, embed"
    ):
        as_callable(lambda inputs_embeds, attention_mask=None: inputs_embeds)


def test_a_model_that_returns_no_states_is_refused():
    with pytest.raises(TypeError, match="neither last_hidden_state nor logits"):
        as_callable(lambda inputs_embeds: inputs_embeds, embed=lambda c: c)(np.ones((2, 3, 4)))


def test_functions_are_found_by_name():
    import json

    assert import_callable("json:dumps") is json.dumps


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("json", ValueError, "write package.module:function"),
        ("json:nothing", ValueError, "module json has no 'nothing'"),
        ("no_such_package.part:f", ModuleNotFoundError, "needs the package 'no_such_package'"),
    ],
)
def test_wrong_names_are_refused_with_the_fix(name, kind, said):
    with pytest.raises(kind, match=said):
        import_callable(name)


def test_a_model_that_changes_the_precision_is_refused():
    def narrow(context):
        jax.config.update("jax_enable_x64", False)
        return context[:, -1]

    process = ms.DiagonalUnitary(ms.Gaussian(1.0), 2)
    problems = draw_problems(process, ms.NextToken(5), 10, named_key(0))
    with pytest.raises(ValueError, match="changes JAX's 64-bit mode while it predicts"):
        answers(narrow, problems)
    assert jax.config.jax_enable_x64


def _adds(x, y):
    return (x[..., 0] * y).sum(-1)  # wants a label for every input


@pytest.mark.parametrize(
    ("model", "interface", "arrays", "note"),
    [
        (_adds, None, [(2, 4, 3), (2, 3)], "x (2, 4, 3) and y (2, 3), without a label of the query; give interface='xs-ys'"),
        (lambda x: x @ x, None, [(2, 4, 3)], "contexts (2, 4, 3); give interface='tokens' if it returns logits"),
        (lambda x, y: x @ x, "xs-ys", [(2, 4, 3), (2, 4)], "xs (2, 4, 3) and ys (2, 4); give interface='context'"),
        (lambda x: x @ np.ones(7), "tokens", [(2, 4)], "symbols (2, 4) of type float64; PyTorch looks up"),
    ],
)  # fmt: skip
def test_an_exception_of_a_model_says_how_it_was_called_and_which_interface_may_fit(
    model, interface, arrays, note
):
    predict = as_callable(model, interface=interface)
    predict = getattr(predict, "function", predict)
    with pytest.raises(ValueError, match=r"matmul|broadcast") as raised:
        predict(*map(np.ones, arrays))
    assert note in raised.value.__notes__[0]
