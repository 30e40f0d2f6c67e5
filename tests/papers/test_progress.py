"""Trainings inside a claim tell how far they are, and go on after an interruption when the claim is large."""

import re

import jax
import numpy as np
import pytest

from mesascope.models import prompt_linear_transformer
from mesascope.papers import Claim, Finding, Settings, _reproduce, reproduce
from mesascope.papers._claim import presets
from mesascope.papers._progress import checkpoint_every, current_work
from mesascope.papers._prompts import layer_weights
from mesascope.papers._recorded import recorded_models
from mesascope.processes import FewShot, LinearRegression

STEPS = 400


def _trained(settings):
    """Two trainings, of which the second is interrupted once half of it is done, if asked."""
    process, task, common = LinearRegression(2), FewShot(3), {"batch": 8, "held_out": 2, "record_every": 10}

    def make(key):
        return prompt_linear_transformer(2, layers=1, key=key)

    one = recorded_models(make, process, task, [1], [STEPS], **common)[STEPS]
    two = recorded_models(make, process, task, [2, 3], [STEPS // 2, STEPS], **common)
    weights = [layer_weights(model) for model in (*one, *two[STEPS // 2], *two[STEPS])]
    return Finding([np.stack(pair[0]).sum() for pair in weights], None, None, "met")


@pytest.fixture
def claim(monkeypatch):
    found = Claim(
        id="zheng2024/trained",
        title="A training",
        statement="A statement for the machinery.",
        source="zheng2024, test",
        origin="ours",
        evidence="measured, reduced",
        settings=presets(Settings()),
        check=_trained,
        criterion="none is needed",
    )
    monkeypatch.setattr(_reproduce, "claims", lambda *selection: (found,))
    return found


@pytest.mark.slow
def test_a_large_claim_goes_on_where_it_was_interrupted(claim, tmp_path):
    lines = []

    def interrupt(event):
        lines.append(event.progress)
        if re.match(r"seed [23]: 3\d\d of", event.progress):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reproduce(preset="full", out=tmp_path, watch=interrupt)
    assert "seed 1: 400 of 400 steps" in "\n".join(lines)
    kept = tmp_path / "full" / "unfinished"
    assert len(list(kept.glob("zheng2024/trained/*/*/seed-*"))) == 3
    of_other_code = kept / "zheng2024" / "trained" / "0123456789abcdef"
    of_other_code.mkdir()
    events = []
    resumed = reproduce(preset="full", out=tmp_path, watch=events.append)
    steps = [int(found[1]) for one in events if (found := re.search(r"seed \d+: (\d+) of", one.progress))]
    assert min(steps) >= 300  # nothing before the last checkpoints is trained again
    assert not kept.exists()
    small = reproduce(preset="small", out=tmp_path)
    assert resumed.records[0].measured == small.records[0].measured  # to the last bit
    assert not (tmp_path / "small" / "unfinished").exists()


@pytest.mark.slow
@pytest.mark.parametrize("damaged", [-1, 0])
def test_damaged_checkpoints_of_a_claim_are_reported_and_computed_again(claim, tmp_path, damaged):
    def interrupt(event):
        if re.match(r"seed 2: 3\d\d of", event.progress):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reproduce(preset="full", out=tmp_path, watch=interrupt)
    (run,) = tmp_path.glob("full/unfinished/*/*/*/*/seed-2")
    torn = sorted(run.iterdir())[damaged]
    torn.write_bytes(torn.read_bytes()[:-50])
    with pytest.warns(
        UserWarning, match=f"^{torn}: is truncated, .*; the training goes on from the checkpoint"
    ):
        (record,) = reproduce(preset="full", out=tmp_path).records
    assert not record.failed
    assert record.measured == reproduce(preset="small", out=tmp_path).records[0].measured


def test_outside_of_reproduce_nothing_is_kept(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert current_work().training(lambda key: jax.random.normal(key), seeds=[0]) is None
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("steps", "unit", "every"),
    [(2000, 2000, 100), (20_000, 10_000, 1000), (4000, 2000, 200), (7, 7, 1), (30, 15, 1), (40, 17, 1)],
)
def test_checkpoints_come_twenty_times_or_more_and_at_all_that_are_recorded(steps, unit, every):
    assert checkpoint_every(steps, unit) == every
