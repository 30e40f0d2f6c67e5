"""`mesascope certify`: certificates are proved, written, proved again, and refused if a line is false."""

import json
import re
from fractions import Fraction

import pytest

SPEC = {"law": "gaussian", "dim": 2, "horizon": 6, "init": {"kind": "diagonal", "a": 0.3, "b": 0.4}}


@pytest.fixture
def certificate(run, spec, tmp_path):
    path = tmp_path / "certificate.json"
    assert run("certify", spec({**SPEC, "digits": 30}), "--out", path, "--json").status == 0
    return path


@pytest.mark.slow
def test_one_object(run, spec):
    found = run("certify", spec({**SPEC, "digits": 30}), "--json").json
    assert found["proved"] is True and found["reason"] is None
    assert Fraction(found["radius"]) == Fraction(1, 10**30) < Fraction(found["unique_within"])
    assert (found["positive"], found["negative"], found["zero"]) == (23, 0, 1)
    # κ1 = 3, κ2 = 15, κ3 = 3; the mean of 1/(t − 1) over t = 2 … 5 is 25/48
    assert Fraction(found["theorem"]) == 3 / (15 + 3 * Fraction(25, 48)) == Fraction(48, 265)
    assert "Every a_j b_j is exactly 48/265" in found["statement"]


def test_a_certificate_is_not_written_through_a_link(run, spec, tmp_path):
    (tmp_path / "link").symlink_to("nowhere")
    assert "a link lies there" in run("certify", spec(SPEC), "--out", tmp_path / "link").refusal


def test_for_people(run, spec):
    ended = run("certify", spec(SPEC))
    assert ended.status == 0 and ended.out.startswith("proved\n")
    assert "strict minimum" in " ".join(ended.out.split())


def test_a_certificate_is_proved_again(run, certificate):
    found = run("certify", "--check", certificate, "--json").json
    assert found["proved"] is True and found["theorem"] == "48/265"
    assert found["weights"] == json.loads(certificate.read_text())["weights"]


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("radius", "0.1", "radius: no critical point was proved within"),
        ("radius", "0", "weights.w_kq: the gradient is not 0 at these weights"),
        ("positive", 4, "positive: states 4, and 23 is proved"),
        ("negative", 1, "negative: states 1, and 0 is proved"),
        ("theorem", "1/6", "theorem: states 1/6, and 48/265 is proved"),
        ("theorem", None, "theorem: states None, and 48/265 is proved"),
        ("unique_within", "0.5", "unique_within: states 0.5, and"),
        ("loss", ["0", "0.1"], "loss: states 0 … 0.1, and"),
        ("products", [["0.18", "0.19"], ["0.21", "0.22"]], "products.1: states 0.21 … 0.22, and"),
        ("loss", ["0", "1e3"], "loss.1: must be a number in quotes such as"),
        ("statement", ["L is convex."], "statement: sentence 1 is not what is proved"),
        ("spec", {"law": "gaussian"}, "spec: dim: missing"),
        ("w_pv", [["1", "2", "3"]], "weights.w_pv: must have 2 rows of 4 numbers"),
        ("weights", {"w": [["1"]]}, "weights: must have the arrays w_kq, w_pv"),
        ("w_pv", [["1", "two"]], "weights.w_pv.0.1: must be a number in quotes such as"),
        ("zero", -1, "zero: Input should be greater than or equal to 0"),
        ("surprise", 1, "surprise: Extra inputs are not permitted"),
    ],
)
def test_a_false_line_is_named(run, certificate, field, value, message):
    content = json.loads(certificate.read_text())
    (content["weights"] if field == "w_pv" else content)[field] = value
    certificate.write_text(json.dumps(content, indent=1))
    ended = run("certify", "--check", certificate)
    assert (ended.status, ended.out) == (2, "")
    first = next(
        n
        for n, line in enumerate(certificate.read_text().splitlines(), 1)
        if line.startswith(f' "{field}"') or (line.startswith(f'  "{field}"') and field == "w_pv")
    )
    # the line of the entry that the message names: lists are written with one entry, or one bracket, a line
    first += {"products.1": 5, "weights.w_pv.0.1": 3, "loss.1": 2}.get(message.split(":")[0], 0)
    if field != "radius" or value != "0":  # there the centre fails
        assert f"{certificate}:{first}: " in ended.err
    assert message in ended.err


def test_numbers_of_any_size_are_refused_with_their_line(run, certificate):
    """10⁴⁰⁰ is no float; 5000 digits are more than Python reads."""
    for value, message in (
        ("1" + 400 * "0", "may be singular|no critical point"),
        (5000 * "1", "at most 4000"),
    ):
        content = json.loads(certificate.read_text())
        content["weights"]["w_pv"][0][0] = value
        certificate.with_name("huge.json").write_text(json.dumps(content, indent=1))
        ended = run("certify", "--check", certificate.with_name("huge.json"))
        assert ended.status == 2 and re.search(rf"huge\.json:\d+: .*({message})", ended.err)
    assert run("certify", "--check", certificate).status == 0


def test_plugins_that_a_certificate_names_are_not_executed(run, certificate, tmp_path):
    trace = tmp_path / "executed"
    (tmp_path / "theirs.py").write_text(f"open({str(trace)!r}, 'w').close()")
    stated = json.loads(certificate.read_text())
    stated["spec"]["plugins"] = [str(tmp_path / "theirs.py")]
    certificate.write_text(json.dumps(stated))
    assert run("certify", "--check", certificate).status == 0
    stated["spec"]["law"] = {"kind": "their-law"}
    certificate.write_text(json.dumps(stated))
    refused = run("certify", "--check", certificate)
    assert refused.status == 2 and "spec: law.kind: unknown kind 'their-law'" in refused.err
    assert "not executed unless you give them: --plugin" in " ".join(refused.err.split())
    assert not trace.exists()
    assert run("certify", "--check", certificate, "--plugin", tmp_path / "theirs.py").status == 2
    assert trace.exists()


@pytest.mark.slow
@pytest.mark.parametrize("horizon", [600, 2000])  # longer than a certificate holds, and than Python writes
def test_numbers_of_thousands_of_digits_are_refused(run, spec, horizon):
    many = {str(t): f"1/{10**9 + t}" for t in range(2, horizon)}
    ended = run("certify", spec({**SPEC, "horizon": horizon, "weights": many}))
    assert ended.status == 2 and "exact numbers have thousands of digits" in " ".join(ended.err.split())


def test_a_name_that_occurs_twice_is_refused(run, certificate):
    text = certificate.read_text().replace("{\n", '{\n "theorem": "1/2",\n', 1)
    certificate.write_text(text)
    assert "theorem: occurs twice" in run("certify", "--check", certificate).refusal


def test_many_digits(run, spec):
    found = run("certify", spec({**SPEC, "digits": 400}), "--json").json
    assert Fraction(found["radius"]) == Fraction(1, 10**400)
    assert "lies within 1e-400 of it" in found["statement"]


def test_a_moved_centre_is_refused(run, certificate):
    content = json.loads(certificate.read_text())
    content["weights"]["w_kq"][2][0] = str(float(content["weights"]["w_kq"][2][0]))
    certificate.write_text(json.dumps(content, indent=1))
    refusal = run("certify", "--check", certificate).refusal
    assert "radius: no critical point was proved within 1e-30" in refusal


def test_damaged_files_are_refused_with_their_line(run, certificate):
    certificate.write_text(certificate.read_text()[:400])
    assert ": no JSON here" in run("certify", "--check", certificate).refusal
    assert "cannot read" in run("certify", "--check", certificate.with_name("none.json")).refusal


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"law": {"kind": "gaussian", "scale": 0.1}}, "law.scale: 0.1 is a float"),
        ({"law": {"kind": "moments", "moments": [1, 0, 1, 0, 3.3, 0, 15]}}, "law.moments[4]: 3.3 is a float"),
        ({"weights": {"2": 0.1}}, "weights: 2: 0.1 is a float"),
        ({"digits": 5}, "digits"),
        ({"engine": {"kind": "enumeration"}}, "engine: certificates compute the loss exactly"),
        ({"init": None}, "init"),
    ],
)
def test_refused(run, spec, changes, message):
    assert message in run("certify", spec({**SPEC, **changes})).refusal


def test_bad_output_files_are_refused_before_computing(run, spec, certificate, tmp_path):
    """Only certificates are overwritten, and a file that cannot be written is refused before computing."""
    given = spec(SPEC)
    before = given.read_bytes()
    assert "exists and is not a certificate" in run("certify", given, "--out", given).refusal
    assert given.read_bytes() == before
    assert "cannot be written to" in run("certify", given, "--out", certificate / "below.json").refusal
    assert run("certify", spec({**SPEC, "digits": 20}), "--out", certificate, "--json").status == 0
    assert json.loads(certificate.read_text())["radius"] == "0." + 19 * "0" + "1"


def test_options_that_exclude_each_other(run, spec, certificate, tmp_path):
    assert "either SPEC, or --check" in run("certify").refusal
    assert "either SPEC, or --check" in run("certify", spec(SPEC), "--check", certificate).refusal
    assert "--check writes nothing" in run("certify", "--check", certificate, "--out", "x").refusal
    assert "is a folder" in run("certify", spec(SPEC), "--out", tmp_path).refusal


def test_a_failed_proof_is_not_bad_input(run, spec, tmp_path):
    """From zero weights the flow stays at the origin, where the Hessian is degenerate."""
    zero = {"kind": "diagonal", "a": 0, "b": 0}
    path = tmp_path / "none.json"
    ended = run("certify", spec({**SPEC, "init": zero}), "--out", path, "--json")
    assert ended.status == 1
    assert json.loads(ended.out)["proved"] is False
    assert "not proved: " in ended.err
    assert not path.exists()


PROMPTS = {
    "process": {"kind": "linear-regression", "dim": 1, "covariance": [["7/10"]]},
    "examples": 4,
    "model": {"kind": "prompt-linear-transformer", "layers": 1, "scale": 0.5},
}


@pytest.mark.slow
def test_a_certificate_on_prompts_is_written_and_proved_again_without_the_flow(run, spec, tmp_path):
    path = tmp_path / "prompts.json"
    assert run("certify", spec(PROMPTS), "--out", path).status == 0
    content = json.loads(path.read_text())
    # the least loss of one layer: ½ λ (1 − 1/(1 + (1 + tr Λ/λ)/N)), with λ = tr Λ = 7/10 and N = 4
    low, high = map(Fraction, content["loss"])
    assert low <= Fraction(7, 20) * (1 - 1 / (1 + Fraction(2, 4))) <= high
    found = run("certify", "--check", path, "--json").json
    assert found["proved"] is True and found["weights"] == content["weights"]
    content["weights"]["w_kq"][0][0] = "1/2"
    path.write_text(json.dumps(content, indent=1))
    ended = run("certify", "--check", path)
    assert ended.status == 2 and f"{path}:" in ended.err and "spec, weights and radius" in ended.err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"process": {**PROMPTS["process"], "covariance": [[0.7]]}}, "covariance[0][0]: 0.7 is a float"),
        ({"engine": "monte-carlo"}, "engine: certificates compute the loss exactly"),
        ({"model": {"kind": "checkpoint", "path": "run"}}, "model.kind: unknown kind 'checkpoint'"),
        ({"test_process": PROMPTS["process"]}, "test_process: certificates are about one loss"),
        (
            {"model": {"kind": "preconditioned-linear-transformer", "layers": 2}},
            "rational losses of prompts are those of one layer",
        ),
        (
            {"process": {"kind": "task-pool", "process": PROMPTS["process"], "tasks": 2}},
            "process: must be a LinearRegression",
        ),
    ],
)
def test_what_cannot_be_certified_on_prompts(run, spec, change, message):
    ended = run("certify", spec({**PROMPTS, **change}))
    assert ended.status == 2 and message in ended.err and ended.err.count("\n") == 1
