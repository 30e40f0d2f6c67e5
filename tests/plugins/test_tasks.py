"""A task of a file in specifications: its weights count, and fields that say the same are refused."""

import json
from pathlib import Path

import pytest

from mesascope.cli import main
from mesascope.processes import FewShot
from mesascope.specs import SpecError
from mesascope.studies import IdentifySpec, ModelLossSpec, TrainSpec, parse_spec

FILE = Path(__file__).parent / "outside" / "discounted.py"
TASK = {"kind": "discounted", "horizon": 5, "discount": "1/2"}
WEIGHTS = {"2": "1/4", "3": "1/2", "4": 1}  # by hand: w_t = γ^(T − 1 − t)
DATA = {"process": {"kind": "diagonal-unitary", "law": "gaussian", "dim": 1}, "plugins": [str(FILE)]}
LAYER = {"kind": "linear-attention", "init": {"kind": "diagonal", "a": 0.3, "b": 0.2}}


def test_the_weights_of_the_task_count(tmp_path, capsys):
    losses = []
    for counted in ({"task": TASK}, {"horizon": 5, "weights": WEIGHTS}, {"horizon": 5}):
        (tmp_path / "spec.json").write_text(json.dumps({**DATA, "model": LAYER, **counted}))
        assert main(["loss", str(tmp_path / "spec.json"), "--json"]) == 0
        losses.append(json.loads(capsys.readouterr().out)["loss"])
    assert losses[0] == losses[1] != losses[2]


def test_a_task_is_its_specification():
    spec = parse_spec({**DATA, "model": LAYER, "task": TASK}, ModelLossSpec)
    written = json.loads(spec.model_dump_json())
    assert written["task"] == TASK
    assert ModelLossSpec.model_validate(written) == spec
    assert spec.build_task().describe() == "Discounted(T=5, w_2=1/4, w_3=1/2, w_4=1)"


def test_a_model_at_the_end_of_a_flow_takes_the_task():
    model = {"kind": "flow", "init": LAYER["init"]}
    spec = parse_spec({**DATA, "model": model, "task": TASK}, IdentifySpec)
    assert spec.model.flow(spec).build_task().weights == spec.task.weights


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"task": TASK, "horizon": 5}, "^horizon: is given by task; leave out one of the two"),
        ({"task": TASK, "weights": "last"}, "^weights: is given by task; leave out one of the two"),
        ({"task": "few-shot"}, "^task.examples: missing"),
        (
            {"task": {"kind": "few-shot", "examples": 3}},
            "^task: process 'diagonal-unitary' draws sequences; take 'next-token', or a kind derived from NextToken",
        ),
        ({"task": {**TASK, "weights": [1]}}, "^task: unknown field 'weights'"),
        ({"task": {**TASK, "discount": 0}}, "^task.discount: "),
        ({"task": {"kind": "discount", "horizon": 5}}, "^task.kind: unknown kind 'discount'; did you mean"),
    ],
)
def test_what_does_not_fit_the_task_is_refused(given, told):
    with pytest.raises(SpecError, match=told):
        parse_spec({**DATA, "model": LAYER, **given}, ModelLossSpec)


def test_prompts_take_few_shot():
    prompts = {
        "process": {"kind": "linear-regression", "dim": 2},
        "model": {"kind": "prompt-linear-transformer", "layers": 1},
    }
    task = {"kind": "few-shot", "examples": 3, "weights": {"1": 2}}
    assert parse_spec({**prompts, "task": task}, TrainSpec).build_task() == FewShot(3, {1: 2})
