"""Causal models of Hugging Face's interfaces, which predict at every position in one pass."""

from types import SimpleNamespace

import numpy as np
import pytest

import mesascope as ms
from mesascope.core import named_key
from mesascope.probes import (
    Embedded,
    EveryPosition,
    TokenLogits,
    answers,
    as_callable,
    draw_problems,
    identify,
)

CHAIN, TASK = ms.MarkovTree("chain", states=3, alpha=1.0), ms.NextToken(6)


@pytest.fixture(scope="module")
def symbols():
    return draw_problems(CHAIN, TASK, 40, named_key(0, "symbols"))


def bigrams(input_ids):
    """The logarithms of one more than the number of times that each symbol followed the last one."""
    found = np.zeros((*input_ids.shape, 3))
    for row, tokens in enumerate(input_ids):
        for t, last in enumerate(tokens):
            followers = [tokens[i + 1] for i in range(t) if tokens[i] == last]
            found[row, t] = (
                np.log(1 + np.bincount(followers, minlength=3)) + 7.0
            )  # logits are free by a constant
    return found


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.uint8, np.float16])
def test_logits_of_narrow_types_do_not_overflow(symbols, kind):
    extremes = np.iinfo(kind) if np.issubdtype(kind, np.integer) else SimpleNamespace(min=-6e4, max=6e4)

    def model(input_ids):
        return np.where(np.eye(3)[input_ids] > 0, extremes.max, extremes.min).astype(kind)

    found = answers(TokenLogits(model), symbols)
    expected = np.eye(3)[np.asarray(symbols.sample)[:, : found.shape[1]]]
    for n in symbols.lengths:
        np.testing.assert_allclose(found[:, n], expected[:, n], atol=1e-100)


@pytest.mark.parametrize("found", [np.array("a"), np.array(None), np.array(1j)])
def test_what_is_no_logit_is_refused(symbols, found):
    with pytest.raises(
        TypeError, match=r"model: forward\(input_ids\) must give real logits at every position, shape"
    ):
        answers(TokenLogits(lambda input_ids: np.broadcast_to(found, (*input_ids.shape, 3))), symbols)


def one_peeks(input_ids):
    """Bigrams, but at one position the logits are those at the next."""
    found = bigrams(input_ids)
    if found.shape[1] > 2:
        found[:, 1] = found[:, 2]
    return found


def compares_later(input_ids):
    """Bigrams, but position two sees whether the two symbols after it are equal."""
    found = bigrams(input_ids)
    if found.shape[1] > 3:
        found[:, 1, 0] += input_ids[:, 2] == input_ids[:, 3]
    return found


@pytest.mark.slow
def test_a_language_model_is_asked_in_one_pass_and_named(symbols):
    calls = []

    def model(input_ids, attention_mask=None):
        calls.append(input_ids.shape)
        return SimpleNamespace(logits=bigrams(input_ids))

    assert isinstance(as_callable(model), TokenLogits)
    found = answers(model, symbols)
    np.testing.assert_allclose(found[:, 1:].sum(-1), 1)
    assert (
        calls[0] == (40, 5) and len(calls) == 7
    )  # a few twice, with other symbols later, and after three numbers again, to see that it answers the same
    single = answers(
        lambda c: np.exp(bigrams(c)[:, -1]) / np.exp(bigrams(c)[:, -1]).sum(-1, keepdims=True), symbols
    )
    np.testing.assert_allclose(found, single, rtol=1e-12)
    few = {"tasks": 100, "learners": ("zero", "dirichlet-posterior"), "search": False}
    answer = identify(model, CHAIN, TASK, **few)
    assert answer.candidates == ("dirichlet-posterior",)
    assert answer.ranking[0].hyperparameters["concentration"] == pytest.approx(1.0, rel=1e-4)


def _gpt2(kind, vocabulary):
    """A small GPT-2 of the library transformers with random weights, in double precision; and torch."""
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    sizes = {"n_positions": 32, "n_embd": 8, "n_layer": 1, "n_head": 1}
    config = transformers.GPT2Config(vocab_size=vocabulary, **sizes)
    return getattr(transformers, kind)(config).double(), torch


@pytest.mark.slow
def test_a_language_model_of_the_library_transformers(symbols):
    model, torch = _gpt2("GPT2LMHeadModel", 3)
    found = answers(model, symbols)
    with torch.no_grad():
        logits = model.eval()(torch.from_numpy(np.array(symbols.sample)).long()).logits
    np.testing.assert_allclose(found[:, 1:], torch.softmax(logits, -1)[:, 1:].numpy(), rtol=1e-9)


@pytest.mark.slow
def test_a_language_model_that_is_trained_comes_to_count_symbols():
    """On chains: at first it answers nearly uniformly, then like counts of symbols with a weaker prior."""
    model, torch = _gpt2("GPT2LMHeadModel", 3)

    def found():
        answer = identify(
            model, CHAIN, TASK, tasks=100, learners=("uniform", "unigram-posterior"), search=False
        )
        ranked = {entry.learner: entry for entry in answer.ranking}
        return ranked["uniform"].distance, ranked["unigram-posterior"]

    uniform_before, counts_before = found()
    optimizer = torch.optim.Adam(model.parameters(), 0.02)
    for step in range(80):
        tokens = torch.from_numpy(
            np.array(CHAIN.sample(named_key(step, "training"), TASK.horizon, 128))
        ).long()
        optimizer.zero_grad()
        model(tokens, labels=tokens).loss.backward()
        optimizer.step()
    uniform, counts = found()
    # measured: 5.4 times, 0.57 and a quarter
    assert uniform > 3 * uniform_before
    assert counts.distance < 0.8 * uniform
    assert counts.hyperparameters["concentration"] < counts_before.hyperparameters["concentration"] / 2


@pytest.mark.slow
def test_a_backbone_of_the_library_transformers_reads_embedded_prompts(prompts):
    backbone, torch = _gpt2("GPT2Model", 1)
    inputs = prompts.x.shape[-1]
    read_in, read_out = torch.nn.Linear(inputs, 8).double(), torch.nn.Linear(8, 1).double()

    def interleaved(x, y):
        labels = torch.nn.functional.pad(y[..., None], (0, inputs - 1, 0, 1))
        return read_in(torch.stack([x, labels], 2).flatten(1, 2)[:, :-1])

    model = as_callable(backbone, embed=interleaved, readout=lambda states: read_out(states)[:, 0])
    assert isinstance(model, Embedded)
    one_pass = answers(model, prompts)
    each = answers(lambda x, y: model(x, y), prompts)
    np.testing.assert_allclose(one_pass, each, rtol=1e-9, atol=1e-12)


class _Sums:
    """The states are running sums of the embedded tokens."""

    def __call__(self, *, inputs_embeds):
        return SimpleNamespace(last_hidden_state=np.cumsum(inputs_embeds, 1))


def _counted(embed):
    calls = []

    def counted(*arrays):
        calls.append(arrays[0].shape)
        return embed(*arrays)

    return counted, calls


def test_embedded_sequences_are_read_in_one_pass(sequences):
    embed, calls = _counted(lambda c: c)
    found, contexts = answers(as_callable(_Sums(), embed=embed), sequences), np.asarray(sequences.sample)
    for n in sequences.lengths:
        np.testing.assert_allclose(found[:, n], contexts[:, : n + 1].sum(1), rtol=1e-12)
    assert [shape[0] for shape in calls].count(len(contexts)) == 1


def _with_a_token_more(c):
    return np.concatenate([np.ones_like(c[:, :1]), c], 1)


def _pairs(c):
    """(x_i, x_{i+1}), and (x_t, 0) for the last: every position but the last sees its target."""
    return np.concatenate([c, np.concatenate([c[:, 1:], 0 * c[:, :1]], 1)], -1)


@pytest.mark.parametrize("embed", [_with_a_token_more, _pairs])
def test_other_embeddings_are_asked_for_each_number_of_examples(embed, sequences):
    counted, calls = _counted(embed)
    found, contexts = (
        answers(as_callable(_Sums(), embed=counted, readout=lambda s: s[:, -3:]), sequences),
        np.asarray(sequences.sample),
    )
    for n in sequences.lengths:
        np.testing.assert_allclose(found[:, n], embed(contexts[:, : n + 1]).sum(1)[:, -3:], rtol=1e-12)
    assert [shape[0] for shape in calls].count(len(contexts)) == 1 + len(sequences.lengths)
    plain = as_callable(_Sums(), embed=embed, readout=lambda s: s[:, -3:], interface="context")
    assert not isinstance(plain, EveryPosition)
    np.testing.assert_array_equal(answers(plain, sequences), found)


@pytest.mark.slow
def test_only_the_lengths_that_count_are_read():
    """The model has no position for longer contexts, and no number for shorter ones."""
    task = ms.NextToken(20, {2: 1, 4: 1})
    problems = draw_problems(ms.OrthogonalAR(ms.Gaussian(1.0), dim=2), task, 40, named_key(0, "short"))

    class Model:
        def __call__(self, *, inputs_embeds):
            assert inputs_embeds.shape[1] <= 4
            counts = np.arange(inputs_embeds.shape[1])[:, None]
            with np.errstate(invalid="ignore"):
                return SimpleNamespace(last_hidden_state=np.cumsum(inputs_embeds, 1) * counts / counts)

    found = answers(as_callable(Model(), embed=lambda c: c), problems)
    np.testing.assert_allclose(found[:, 3], np.asarray(problems.sample)[:, :4].sum(1))


@pytest.mark.parametrize(
    ("model", "data", "kind", "said"),
    [
        (lambda input_ids: bigrams(input_ids), "sequences", TypeError, r"reads symbols.*embed=…, readout=…"),
        (lambda input_ids: bigrams(input_ids)[:, -1], "symbols", ValueError, r"at every position, shape \(40, 5, 'S'\)"),
        (lambda input_ids: np.zeros((*input_ids.shape, 5)), "symbols", ValueError, r"shape \(40, 5, 3\), gave \(40, 5, 5\)"),
        (lambda input_ids: np.ones((*input_ids.shape, 3)) / 3, "symbols", ValueError, "probabilities; return their logarithms"),
        (lambda input_ids: SimpleNamespace(loss=1.0), "symbols", TypeError, "returns no logits; take the model with its"),
        (lambda ids: bigrams(ids), "symbols", ValueError, 'or set interface="tokens"'),
        (lambda input_ids: bigrams(input_ids) * input_ids[:, -1:, None], "symbols", ValueError, "changes with later ones"),
        (lambda input_ids: compares_later(input_ids), "symbols", ValueError, "after [12] tokens changes with later ones"),
        (lambda input_ids: one_peeks(input_ids), "symbols", ValueError, "after 2 tokens changes with later ones"),
    ],
)  # fmt: skip
def test_bad_models_speak(model, data, kind, said, request):
    with pytest.raises(kind, match=said):
        answers(model, request.getfixturevalue(data))


def test_modules_without_weights_get_symbols_that_they_can_look_up(symbols):
    torch = pytest.importorskip("torch")

    class Uniform(torch.nn.Module):
        def forward(self, input_ids):
            return 0.0 * torch.nn.functional.one_hot(input_ids, 3).double()

    np.testing.assert_allclose(answers(Uniform(), symbols)[:, 1:], 1 / 3)


def test_the_first_of_several_outputs_are_the_logits(symbols):
    found = answers(lambda input_ids: (bigrams(input_ids), None), symbols)
    np.testing.assert_array_equal(found, answers(lambda input_ids: bigrams(input_ids), symbols))


def test_half_precision_may_round_otherwise_for_other_lengths(symbols):
    """Logits of bfloat16, cut after 8 bits, with an error of one spacing where the context is shorter."""

    def half(input_ids):
        logits = bigrams(input_ids).astype(np.float32)
        return (
            (logits * (1 + 2.0**-8 * (input_ids.shape[1] < 5))).view(np.uint32) & np.uint32(0xFFFF0000)
        ).view(np.float32)

    assert np.isfinite(answers(half, symbols)).all()
