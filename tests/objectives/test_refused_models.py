"""Models whose sampled loss on a process cannot be computed are refused before sampling."""

import jax
import pytest

from mesascope.core import named_key
from mesascope.models import (
    MLP,
    BareTokens,
    FirstBlock,
    LinearAttention,
    OneHot,
    Projected,
    SequenceModel,
    SinusoidalPositions,
    SoftmaxSelfAttention,
    Stack,
    TokenTable,
    WithPositions,
    linear_transformer,
    mesa_transformer,
    prompt_linear_transformer,
    prompt_transformer,
    token_transformer,
)
from mesascope.objectives import MonteCarlo, population_loss
from mesascope.processes import (
    DiagonalUnitary,
    FewShot,
    Gaussian,
    LinearRegression,
    MarkovTree,
    MomentError,
    NextToken,
    RotationAR,
    StudentT,
)

KEY = named_key(0, "models")
ENGINE = MonteCarlo(samples=20, batch=20)


def test_sequences_and_prompts_are_distinguished():
    with pytest.raises(TypeError, match=r"LinearRegression draws prompts; use prompt_linear_transformer"):
        population_loss(linear_transformer(2, 1, key=KEY), LinearRegression(2), FewShot(3), ENGINE)
    with pytest.raises(TypeError, match=r"DiagonalUnitary draws sequences; use linear_transformer"):
        process = DiagonalUnitary(StudentT(9), 2)
        population_loss(prompt_linear_transformer(2, 1, key=KEY), process, NextToken(4), ENGINE)


@pytest.mark.slow
def test_another_vocabulary_is_refused():
    process = MarkovTree.chain(5, 4, 1.0)
    with pytest.raises(ValueError, match="gives 3 logits, but MarkovTree draws 4 symbols"):
        population_loss(token_transformer(3, 4, 1, 1, 6, key=KEY), process, NextToken(6), ENGINE)


def test_symbols_that_the_embedding_does_not_know_are_refused():
    # inside compiled code the symbols 2 and 3 would silently be taken for others
    model = SequenceModel(OneHot(2), Stack([MLP.gaussian((2, 4), key=KEY)]), FirstBlock(4))
    embedded = Projected.gaussian(TokenTable.gaussian(5, 2, key=KEY), 2, key=KEY)
    larger = SequenceModel(WithPositions(embedded, SinusoidalPositions(2)), model.network, model.readout)
    for wrong, symbols in ((model, 2), (larger, 5)):
        with pytest.raises(
            ValueError, match=f"SequenceModel embeds {symbols} symbols, but MarkovTree draws 4"
        ):
            population_loss(wrong, MarkovTree.chain(5, 4, 1.0), NextToken(6), ENGINE)


@pytest.mark.slow
def test_positions_for_the_shortest_task_are_enough():
    model = prompt_transformer(2, 4, 1, 1, examples=1, key=KEY)
    assert population_loss(model, LinearRegression(2), FewShot(1), ENGINE).value > 0


def test_custom_models_are_refused_for_data_that_they_do_not_read():
    with pytest.raises(
        ValueError, match=r"^model: LinearAttention does not read what RotationAR draws: .* \(…, t, 3\)"
    ):
        model = LinearAttention.gaussian(3, 0.1, key=KEY)
        population_loss(model, RotationAR(Gaussian(), 2), NextToken(4), ENGINE)
    with pytest.raises(
        TypeError, match=r"^model: SequenceModel does not .* DiagonalUnitary draws: SoftmaxSelf.* real"
    ):
        network = SoftmaxSelfAttention.gaussian(2, 1, key=KEY)
        model = SequenceModel(BareTokens(2), network, FirstBlock(2))
        population_loss(model, DiagonalUnitary(Gaussian(), 2), NextToken(4), ENGINE)


@pytest.mark.parametrize("layers", [1, 2])
def test_stacks_of_linear_attention_need_moments_as_one_layer_does(layers):
    process = DiagonalUnitary(StudentT(5), 2)
    with pytest.raises(MomentError):
        population_loss(linear_transformer(2, layers, key=KEY), process, NextToken(4), ENGINE)
    # a mesa layer does not grow like a power of the tokens
    assert population_loss(mesa_transformer(2, 1, key=KEY), process, NextToken(4), ENGINE).value > 0


@pytest.mark.parametrize("alpha", [1e-31, 1e31, "1e-40"])
def test_dirichlet_parameters_beyond_single_precision_are_refused(alpha):
    with pytest.raises(ValueError, match="alpha must lie between 1e-30 and 1e30"):
        MarkovTree.chain(5, 4, alpha)


@pytest.mark.slow
def test_the_smallest_dirichlet_parameter_still_draws_every_symbol():
    with jax.enable_x64(False):
        symbols = MarkovTree.chain(5, 4, 1e-30).sample(named_key(1), 6, 2000)
    counts = [int((symbols == s).sum()) for s in range(4)]
    # 12 000 symbols in near-deterministic chains: at least 2 000 independent draws of one in four, six standard errors
    assert all(abs(count / 12_000 - 0.25) < 6 * (0.25 * 0.75 / 2000) ** 0.5 for count in counts)
