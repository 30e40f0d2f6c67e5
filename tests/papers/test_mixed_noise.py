"""Seeds of vladymyrov2024's claims are judged on prompts of their own, on which nothing but the model may differ."""

import numpy as np
import pytest

from mesascope.models import (
    DiagonalSelfAttention,
    LastEntry,
    LinearAttentionStack,
    PromptModel,
    StackedPrompt,
)
from mesascope.papers import claims
from mesascope.papers.vladymyrov2024 import _mixed_noise, _rows
from mesascope.papers.vladymyrov2024._ridge import Examples

SETTINGS = _mixed_noise.Rivals(
    dim=2,
    examples=4,
    noise=_mixed_noise.uniform_noise(2.0),
    levels=2,
    prompts=40,
    steps=2,
    seed=7,
    seeds=2,
    rivals=("adaptive",),
)


@pytest.mark.slow
def test_every_seed_and_all_rivals_on_it_have_the_same_prompts_and_other_seeds_others(monkeypatch):
    # heads of zeros answer 0
    silent = PromptModel(
        StackedPrompt(2),
        LinearAttentionStack([DiagonalSelfAttention(np.zeros(4), (2, 1), context="examples")]),
        LastEntry(-1),
    )
    monkeypatch.setattr(_mixed_noise, "trained", lambda settings, heads: {1: [silent] * 2, 2: [silent] * 2})
    profiles = _mixed_noise.profiles(SETTINGS).losses
    for row, seed in enumerate([7, 8]):
        prompts = Examples.of(*_mixed_noise.test_prompts(SETTINGS, seed))
        expected = prompts.excess(np.zeros(40)).reshape(2, -1).mean(1)
        assert profiles["diagonal"][row] == pytest.approx(expected, rel=1e-12)
        estimated = prompts.answers(_mixed_noise.adaptive(prompts))
        assert profiles["adaptive"][row] == pytest.approx(
            prompts.excess(estimated).reshape(2, -1).mean(1), rel=1e-12
        )
    assert abs(profiles["diagonal"][0] / profiles["diagonal"][1] - 1).min() > 1e-3


def test_a_network_that_diverges_half_way_on_a_prompt_is_not_all_of_the_loss(monkeypatch):
    # half way the answer to one prompt of forty is beyond all bounds, at the end the error is the same on all others
    monkeypatch.setattr(
        _mixed_noise, "trained", lambda settings, heads: {1: ["diverged"] * 2, 2: ["rests"] * 2}
    )
    unknown = np.zeros(40)

    def answers(model, x, y, settings):
        return unknown + (1e6 * (np.arange(40) == 3) if model == "diverged" else 0)

    monkeypatch.setattr(_mixed_noise, "answers", answers)
    found = _mixed_noise.judged(SETTINGS, "diagonal")
    for row, seed in enumerate([7, 8]):
        excess = Examples.of(*_mixed_noise.test_prompts(SETTINGS, seed)).excess(unknown)
        assert found.losses[row] == pytest.approx(excess.mean(), rel=1e-12)
    assert 0 < found.falling < 0.3


@pytest.mark.parametrize(("falling", "difference"), [(0.05, ""), (0.11, "11 %")])
def test_a_loss_that_is_the_tables_on_its_way_down_is_told_as_a_difference(falling, difference, monkeypatch):
    (claim,) = claims("vladymyrov2024/two-layers")
    settings = claim.settings["small"]
    near = settings.table["5"] * np.ones(5)
    losses = _mixed_noise.TrainedLosses(near, np.stack([near, near], 1), falling)
    monkeypatch.setattr(_rows, "judged", lambda judging, heads: losses)
    finding = claim.check(settings)
    assert finding.decision == "met"
    assert (difference in finding.difference) if difference else not finding.difference
