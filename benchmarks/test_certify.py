"""Certificates of whole problems: how long a proof takes, and how long proving it again."""

import json

import pytest

SPEC = {"dim": 5, "horizon": 100, "init": {"kind": "diagonal", "a": "1/10", "b": "1/10"}}
LAWS = {"Gaussian": {"kind": "gaussian"}, "full-one": {"kind": "constant", "value": 1}}


@pytest.mark.parametrize("law", LAWS)
def test_certify(benchmark, bar, run_command, tmp_path, law):
    bar(what=f"`mesascope certify`, {law}, d = 5, T = 100, 150 weights, radius 1e-40, cold", seconds=60)
    spec, out = tmp_path / "spec.json", tmp_path / "certificate.json"
    spec.write_text(json.dumps({**SPEC, "law": LAWS[law]}))
    finished = []
    benchmark.pedantic(
        lambda: finished.append(run_command("certify", spec, "--out", out, "--json")), rounds=1
    )
    benchmark.extra_info["memory"] = finished[-1].memory
    found = json.loads(finished[-1].output)
    assert found["proved"] and (found["positive"], found["negative"], found["zero"]) == (149, 0, 1)
    assert float(found["radius"]) == pytest.approx(1e-40)


def test_check(benchmark, bar, run_command, tmp_path):
    bar(what="`mesascope certify --check`, the same certificate, cold")
    spec, out = tmp_path / "spec.json", tmp_path / "certificate.json"
    spec.write_text(json.dumps({**SPEC, "law": LAWS["Gaussian"]}))
    assert run_command("certify", spec, "--out", out, "--json").status == 0
    finished = []
    benchmark.pedantic(lambda: finished.append(run_command("certify", "--check", out, "--json")), rounds=1)
    benchmark.extra_info["memory"] = finished[-1].memory
    assert json.loads(finished[-1].output)["proved"]
