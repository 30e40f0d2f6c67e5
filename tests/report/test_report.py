"""The report as HTML: what it shows of claims, studies, runs and other records."""

import re
import subprocess
import sys

import pytest

import stored_records as stored
from mesascope.records import MixtureRecord, RecordError, read_identification, write_identification


def test_claims_one_by_one(tmp_path, report):
    refuted = stored.claim(
        "huang2024/stages", decision="not met", measured=0.5, expected=0.0, source="huang2024", origin="ours"
    )
    folder = stored.run_directory(
        tmp_path / "run", stored.claim(), refuted, figures={"zheng2024/curves": stored.curves_figure()}
    )
    written, page = report(folder)
    assert (
        written.outcomes == {"holds": 1, "contradicted": 1} and written.figures == 1 and not written.problems
    )
    assert page.elements[0] == ("html", {"lang": "en"})
    for text in (
        "✓ holds: 1",
        "✗ contradicted: 1",
        "○ not reproduced at this scale: 0",
        "The flow ends at ab = κ1/(κ2 + κ3/(T−2) Σ 1/(t−1)).",
        "zheng2024, Theorem 4.1",
        "On Mesa-Optimization in Autoregressively Trained Transformers: Emergence and Capability",
        "Chenyu Zheng, Wei Huang",
        "huang2024 · origin: ours",
        "error of ab 1.25·10⁻⁹ 0",
        "loss 0.4 below 1 95 %: [0.25, 0.5]",
        "tolerance 10⁻⁸ criterion a flow at rest",
        "small preset · 1.5 s · seed 7",
        stored.FROM.processor,
        '{ "dim": [2, 5], "seed": 7 }',
        "exact & more",
        "Loss falls by 50 % & more.",
    ):
        assert text in page.text, text
    assert [len(one["data"]) for one in page.data] == [4, 2]
    assert {"zheng2024", "zheng2024/theorem-4.1", "huang2024/stages", "figure/small/zheng2024/curves"} <= set(
        page.ids()
    )


def test_anchors_are_unique_and_links_lead_to_them(tmp_path, report):
    small, full = stored.claim(), stored.claim(preset="full", decision="undecided")
    one = stored.run_directory(
        tmp_path / "results" / "one", small, figures={"zheng2024/m": stored.map_figure()}
    )
    stored.run_directory(tmp_path / "results" / "two", full, figures={"zheng2024/m": stored.map_figure()})
    _, page = report(results=tmp_path / "results")
    assert len(page.ids()) == len(set(page.ids()))
    inner = {link[1:] for link in page.links() if link.startswith("#")}
    assert inner <= set(page.ids())
    assert {"zheng2024/theorem-4.1/small", "zheng2024/theorem-4.1/full"} <= inner
    assert one.exists()


def test_it_opens_with_matrix_findings_and_figures_then_what_does_not_hold_then_the_papers(tmp_path, report):
    found = stored.claim("zheng2024/trajectory", measured=1.0)
    folder = stored.run_directory(
        tmp_path / "run",
        stored.claim("zheng2024/a-first", evidence="measured, reduced"),
        stored.claim("zheng2024/b-second", evidence="proved"),
        stored.claim("ahn2023/open", decision="undecided"),
        stored.claim("ahn2023/refuted", decision="not met"),
    )
    run = stored.RunDirectory(folder)
    figures = [run.write_figure(f"zheng2024/{name}", stored.map_figure()) for name in ("trajectory", "more")]
    run.write_claim(found.model_copy(update={"files": tuple(figures)}))
    _, page = report(folder)
    ids = [one for one in page.ids() if not one.startswith("content")]
    assert ids == [
        *("outcomes", "findings", "figure/small/zheng2024/trajectory", "figures"),
        *("unusual", "ahn2023/refuted", "ahn2023/open"),
        *("zheng2024", "zheng2024/b-second", "zheng2024/trajectory", "figure/small/zheng2024/more"),
        *("zheng2024/a-first", "ahn2023"),
    ]
    assert "From equal diagonal weights the whole training path is an elementary function" in page.text
    cells = [attributes for tag, attributes in page.elements if tag == "a" and "data-claim" in attributes]
    assert {one["href"][1:] for one in cells} == {one for one in ids if re.match(r"(zheng|ahn)\d+/", one)}
    refuted = next(one for one in cells if one["data-claim"] == "ahn2023/refuted")
    assert refuted["aria-label"].endswith("exact – contradicted")


def test_a_finding_whose_claim_does_not_hold_is_none(tmp_path, report):
    folder = stored.run_directory(
        tmp_path / "run", stored.claim("zheng2024/trajectory", decision="undecided")
    )
    assert "findings" not in report(folder)[1].ids()


def test_the_page_loads_nothing_from_the_network(tmp_path, report):
    folder = stored.run_directory(
        tmp_path / "run", stored.claim(), figures={"zheng2024/m": stored.map_figure()}
    )
    _, page = report(folder)
    asking = {"img", "link", "iframe", "object", "embed", "source", "base", "form", "video", "audio"}
    assert not asking & {tag for tag, _ in page.elements}
    assert not any(
        "src" in attributes or ("style" in attributes and "url(" in attributes["style"])
        for _, attributes in page.elements
    )
    policies = [
        attributes["content"]
        for _, attributes in page.elements
        if attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert (
        len(policies) == 1
        and "default-src 'none'" in policies[0]
        and "unsafe-inline'" not in policies[0].split("style-src")[0]
    )
    assert not any(re.match(r"on\w+$", name) for _, attributes in page.elements for name in attributes)


def test_the_last_of_several_checks_is_shown(tmp_path, report):
    later = stored.FROM.model_copy(update={"created": "2099-01-01T00:00:00+00:00"})
    stored.run_directory(tmp_path / "r" / "a", stored.claim(decision="not met", provenance=later))
    stored.run_directory(tmp_path / "r" / "b", stored.claim())
    written, _ = report(results=tmp_path / "r")
    assert written.outcomes == {"contradicted": 1}


def test_folders_of_presets_are_found(tmp_path, report):
    stored.run_directory(tmp_path / "results" / "zheng2024" / "small", stored.claim())
    for where in ("results", "results/zheng2024", "results/zheng2024/small"):
        assert report(results=tmp_path / where)[0].outcomes == {"holds": 1}


def test_a_folder_named_claims_may_hold_several_papers(tmp_path, report):
    """As `reproduce --all` leaves them; `results` is not a run for having such a folder."""
    stored.run_directory(tmp_path / "results" / "claims" / "small", stored.claim())
    stored.run_directory(
        tmp_path / "results" / "huang2024" / "small", stored.claim("huang2024/stages", source="huang2024")
    )
    assert report(results=tmp_path / "results")[0].outcomes == {"holds": 2}
    (tmp_path / "empty" / "claims").mkdir(parents=True)
    with pytest.raises(RecordError, match="holds no records"):
        report(tmp_path / "empty")


def test_papers_and_claims_by_name(tmp_path, report):
    other = stored.claim("huang2024/stages", source="huang2024")
    stored.run_directory(tmp_path / "r" / "a", stored.claim(), stored.claim("zheng2024/example-4.1"), other)
    assert report("zheng2024", results=tmp_path / "r")[0].outcomes == {"holds": 2}
    assert report("zheng2024/example-4.1", "huang2024", results=tmp_path / "r" / "a")[0].outcomes == {
        "holds": 2
    }
    file = tmp_path / "r" / "a" / "claims" / "huang2024" / "stages.json"
    written, page = report(file)
    assert written.outcomes == {"holds": 1} and "huang2024/stages" in page.ids()


def test_a_claim_that_could_not_be_checked_says_why(tmp_path, report):
    details = {"error": "ValueError: a moment is missing", "traceback": "Traceback\n  line 1"}
    broken = stored.claim(decision="undecided", measured=None, expected=None, tolerance=None, details=details)
    _, page = report(stored.run_directory(tmp_path / "run", broken))
    assert "It could not be checked: ValueError: a moment is missing" in page.text and "line 1" in page.text


def test_a_check_that_raised_is_shown_only_if_no_other_ended(tmp_path, report):
    details = {"error": "ValueError: a moment is missing"}
    raised = {
        "decision": "undecided",
        "measured": None,
        "expected": None,
        "details": details,
        "fingerprint": "failed",
    }
    later = stored.FROM.model_copy(update={"created": "2099-01-01T00:00:00+00:00"})
    failed = [stored.claim(**raised, provenance=later), stored.claim("huang2024/stages", **raised)]
    assert all(record.failed for record in failed)
    folder = stored.run_directory(tmp_path / "results" / "all" / "small", stored.claim())
    stored.run_directory(folder / "failed", *failed)
    written, page = report(results=tmp_path / "results")
    assert written.outcomes == {"holds": 1, "undecided": 1}
    assert page.text.count("It could not be checked") == 1
    assert report("huang2024", results=folder)[0].outcomes == {"undecided": 1}


@pytest.mark.slow
def test_studies_runs_trainings_identifications_and_certificates(tmp_path, report):
    where = stored.store(tmp_path / "store", failed={(2, 1)})
    training = stored.training(tmp_path / "training")
    what = (training, stored.certificate(tmp_path / "c.json"), stored.identification(tmp_path / "i"))
    written, page = report("grid", stored.run_id((0, 0))[:8], *what, store=where)
    assert (written.studies, written.runs, written.trainings) == (1, 1, 1)
    assert (written.identifications, written.certificates, written.outcomes) == (1, 1, {})
    for text in (
        "Study grid 6 runs of kind flow: 5 ✓ done 1 ✗ failed",
        "init.a: [0.1, 0.2, 0.3]",
        "0.3 <heavy> ✗ failed the flow diverged",
        "[0.19, 0.19] 3 yes",
        "Loss along the trajectory",
        "law = <heavy>",
        "200 steps; mean loss of the last batches 0.2; held-out loss 0.25 ± 0.01 (standard error)",
        "held-out, 95 % interval",
        "LinearRegression(dim=3)",
        "Every a_j b_j is exactly 18/101.",
        "exactly one critical point within 10⁻⁴⁰",
        "no other within 0.0001",
        "Which algorithm: ridge ? ambiguous",
        "ridge 0.01 [0.005, 0.02] penalty: 0.5",
        "95 % interval",
    ):
        assert text in page.text, text
    assert len(page.ids()) == len(set(page.ids()))
    # losses of the training: the interval is that of its standard errors
    bands = [
        trace
        for one in page.data
        for trace in one["data"]
        if "held-out" in trace.get("name", "") and "fill" in trace
    ]
    assert bands[0]["y"][:2] == pytest.approx([0.9 + 1.96 * 0.05, 0.25 + 1.96 * 0.01])


@pytest.mark.slow
def test_a_whole_store_shows_studies_and_runs_outside_of_studies(tmp_path, report):
    where = stored.store(tmp_path / "store")
    written, page = report(where)
    assert (written.studies, written.runs) == (1, 1)
    assert f"run-{stored.run_id((9, 9))}" in page.ids() and "study-grid" in page.ids()


@pytest.mark.slow
def test_reports_need_no_jax(tmp_path):
    folder = stored.run_directory(
        tmp_path / "run", stored.claim(), figures={"zheng2024/m": stored.map_figure()}
    )
    code = (
        "import sys; from mesascope.report import gather, write_report; "
        "write_report(sys.argv[1], out=sys.argv[2], latex=sys.argv[3]); assert 'jax' not in sys.modules"
    )
    command = [sys.executable, "-W", "error", "-c", code, folder, tmp_path / "r.html", tmp_path / "tex"]
    subprocess.run(command, check=True)
    assert (tmp_path / "r.html").stat().st_size > 1e6 and (tmp_path / "tex" / "figures.tex").exists()


def test_a_mixture(tmp_path, report):
    path = stored.identification(tmp_path / "i") / "identification.json"
    parts = [
        {"learner": name, "hyperparameters": {}, "weight": weight, "interval": (weight - 0.1, weight + 0.1)}
        for name, weight in (("ridge", 0.7), ("zero", 0.3))
    ]
    facts = {"distance": 0.001, "interval": (0.0, 0.002), "condition": 2.0}
    mixture = MixtureRecord(parts=parts, different=True, determined=True, **facts)
    found = read_identification(path).model_copy(update={"verdict": "mixture", "mixtures": (mixture,)})
    write_identification(path, found)
    _, page = report(str(path))
    assert "✓ mixture" in page.text
    assert "A mixture at distance 0.001" in page.text
    assert "ridge 0.7 [0.6, 0.8]" in page.text
