"""What users print: one line, and in notebooks a table with the same texts."""

from xml.etree import ElementTree

import jax
import pytest

import mesascope as ms
from mesascope.dynamics import flow_ends
from mesascope.dynamics.certificates import certify
from mesascope.dynamics.landscape import (
    conserved_quantities,
    critical_point,
    critical_points,
    stability,
)

PROCESS, TASK = ms.DiagonalUnitary(dim=1, law=ms.Gaussian(scale=1)), ms.NextToken(horizon=5)
START = ms.LinearAttention.diagonal(1, 0.5, 0.2)
LOSS = "sum over 3 context lengths"


@pytest.fixture(scope="module")
def flow():
    return ms.gradient_flow(START, PROCESS, TASK)


def printed(shown):
    """The line, and the table without its title: they hold the same texts."""
    line = repr(shown)
    root = ElementTree.fromstring(f"<div>{shown._repr_html_()}</div>")
    rows = {name.text: (value.text or "") for name, value in root.find("table")}
    for name, value in rows.items():
        assert name == "meaning" or f"{name} {value}".strip() in line
    assert line.startswith(f"<{root.find('p/b').text}: ") and "\n" not in line and len(line) < 300
    return line, rows


def test_a_flow_says_how_it_ended_and_what_its_loss_is(flow):
    line, rows = printed(flow)
    assert line.startswith(f"<Flow of LinearAttention: converged at time {flow.time:.6g}, loss ")
    assert rows["meaning"] == "the gradient fell below the tolerance"
    assert rows["loss"] == f"{flow.loss[-1]:.10g} ({LOSS})"
    assert float(rows["a_j b_j"]) == pytest.approx(float(ms.theory.zheng2024.limit_product(PROCESS, TASK)))


@pytest.mark.filterwarnings("error")
def test_complex_products_are_shown_by_their_size():
    start = ms.LinearAttention(START.w_kq * (1 + 1j), START.w_pv)
    _, rows = printed(ms.gradient_flow(start, PROCESS, TASK, until=0.1))
    assert rows["a_j b_j"].startswith("of modulus 0.")


def test_a_flow_that_needs_more_steps_names_the_remedy():
    _, rows = printed(ms.gradient_flow(START, PROCESS, TASK, max_steps=3))
    assert "raise max_steps" in rows["meaning"]


@pytest.mark.slow
def test_a_descent_and_a_training():
    descent = ms.descend(START, PROCESS, TASK, learning_rate=0.01, steps=20)
    line, rows = printed(descent)
    assert "finished at step 20" in line and rows["loss"] == f"{descent.loss[-1]:.10g} ({LOSS})"
    training = ms.train(START, PROCESS, TASK, steps=4, batch=4, held_out=8)
    line, rows = printed(training)
    assert "finished after 4 steps" in line and LOSS in rows["held-out loss"]
    assert f"{float(training.loss):.6g} [" in rows["held-out loss"]


@pytest.mark.slow
def test_a_critical_point_and_its_stability(flow):
    point = critical_point(flow.model, PROCESS, TASK)
    _, rows = printed(point)
    assert rows["loss"] == f"{point.loss:.10g}"
    here = stability(point.model, PROCESS, TASK)
    line, rows = printed(here)
    assert line.startswith(f"<Stability: {here.kind}: ") and rows["negative"] == str(here.index)


@pytest.mark.slow
def test_many_points_and_ends(flow):
    found = critical_points(START, PROCESS, TASK, starts=8)
    _, rows = printed(found)
    assert rows["points"] == "1 degenerate, 1 saddle"  # ab = 0.2 on a curve, and 0
    assert rows["losses"] == "0.6, 1.5" and rows["starts"] == "8, 0 of them lost"
    starts = jax.vmap(lambda key: ms.LinearAttention.gaussian(1, 0.3, key=key))(
        jax.random.split(jax.random.key(0), 3)
    )
    ends = flow_ends(starts, PROCESS, TASK)
    _, rows = printed(ends)
    assert rows["converged"] == f"{int(ends.converged.sum())} of 3"
    forms = conserved_quantities(START, PROCESS, TASK)
    assert printed(forms)[1]["number"] == str(len(forms))


def test_a_certificate():
    proof = certify(START, PROCESS, TASK)
    _, rows = printed(proof)
    positive, negative, zero = proof.proved.inertia
    assert rows["curvatures"] == f"{positive} positive, {negative} negative, {zero} zero"
    assert float(rows["loss"].removeprefix("≈ ")) == pytest.approx(float(proof.proved.loss[1]), rel=1e-9)
