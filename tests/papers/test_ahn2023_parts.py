"""Spectra, the loss of multiples and the training that the claims of ahn2023 share, each against another derivation."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from mesascope.papers import claims
from mesascope.papers._progress import working
from mesascope.papers._prompts import construction_model
from mesascope.papers._spectral_steps import loss_of_steps
from mesascope.papers.ahn2023 import _multiples, _training
from mesascope.papers.ahn2023._common import covariance
from mesascope.papers.ahn2023._multiples import Spectrum, density, expected_spectrum, nodes
from mesascope.theory import ahn2023 as theory

SETTINGS = _training.Training(
    eigenvalues=(1.0, 0.25),
    examples=8,
    layers=2,
    scale=0.01,
    rate=0.05,
    halvings=4,
    batch=200,
    renewed_every=10,
    steps=400,
    seeds=1,
)


@pytest.mark.parametrize("power", [0, 1, 2, 8, 20])
def test_the_density_of_eigenvalues_has_the_moments_of_the_joint_density(power):
    examples = 8  # of two eigenvalues x > y, integrated over both
    points, widths = np.polynomial.legendre.leggauss(200)
    root, width = (points + 1) / 2, widths / 2
    x = 40 * root**2
    y = x[:, None] * root**2
    jacobian = (width * 80 * root)[:, None] * width * 2 * root * x[:, None]
    joint = (x[:, None] * y) ** 2.5 * np.exp(-examples * (x[:, None] + y) / 2) * (x[:, None] - y) * jacobian
    values, weights = density(examples, 2)
    expected = (joint * (x[:, None] ** power + y**power)).sum() / joint.sum()
    assert weights @ values**power == pytest.approx(expected, rel=1e-10)


def test_of_five_eigenvalues_it_has_the_first_moments():
    values, weights = density(20, 5)
    expected = {0: 5, 1: 5, 2: 5 * (1 + 6 / 20)}
    for power, moment in expected.items():
        assert weights @ values**power == pytest.approx(moment, rel=1e-9)


def test_nodes_integrate_polynomials():
    whole = Spectrum(*density(20, 5))
    few = nodes(whole)
    for power in (0, 1, 26, 47):
        expected = whole.weights @ whole.values**power
        assert few.weights @ few.values**power == pytest.approx(expected, rel=1e-9)


def test_the_loss_of_multiples_is_that_of_steps_with_the_gradient_of_differences():
    spectrum = expected_spectrum(SETTINGS)
    v = np.array([0.4, 2.0, 0.8])
    a, b = v[:2], np.array([0.8, 0.0])
    expected = 2 * sum(
        weight * loss_of_steps(np.array([[value]]), a, a * b, 1.0)
        for value, weight in zip(*spectrum, strict=True)
    )
    found, slope = _multiples._loss(spectrum, v, 2)
    assert found == pytest.approx(expected, rel=1e-12)
    for axis, step in enumerate(1e-5 * np.eye(3)):
        up, down = (_multiples._loss(spectrum, v + sign * step, 2)[0] for sign in (1, -1))
        assert slope[axis] == pytest.approx((up - down) / 2e-5, rel=1e-6)


def test_the_training_descends_on_the_loss_of_the_layers():
    rng = np.random.default_rng(0)
    layers = _training.Layers(*(0.3 * np.eye(3) + 0.1 * rng.normal(size=(2, 3, 3, 3))))
    model = construction_model(theory.preconditioned_gradient_descent(*layers))
    x, w = rng.normal(size=(50, 9, 3)), rng.normal(size=(50, 3))
    y = np.einsum("bni,bi->bn", x, w)
    expected = float(np.mean((model(x, y[:, :-1]) - y[:, -1]) ** 2))
    second = np.einsum("bni,bnj->ijb", x[:, :-1], x[:, :-1]) / 8
    loss = _training._loss(layers, second, w.T, x[:, -1].T, True)
    assert float(loss) == pytest.approx(expected, rel=1e-10)


@pytest.mark.slow
def test_an_interrupted_training_goes_on_with_the_same_bits(tmp_path):
    whole = _training._trained(SETTINGS, True, 0)

    def stop(line):
        if line.startswith("seed 0: 250 of 400"):
            raise KeyboardInterrupt

    with working(stop, tmp_path), pytest.raises(KeyboardInterrupt):
        _training._trained(SETTINGS, True, 0)
    lines = []
    with working(lines.append, tmp_path):
        again = _training._trained(SETTINGS, True, 0)
    assert lines[0] == "seed 0: goes on from step 240" and lines[1].startswith("seed 0: 250 of 400")
    for one, other in zip((*whole.middle, *whole.end), (*again.middle, *again.end), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.slow
@pytest.mark.parametrize("damage", [b"", b"torn", None])
def test_a_damaged_checkpoint_is_reported_and_the_training_starts_again(tmp_path, monkeypatch, damage):
    settings = replace(SETTINGS, steps=40)
    whole = _training._trained(settings, True, 0)
    monkeypatch.setattr(_training, "_CHECKPOINTS", 4)
    lines = []
    with working(lines.append, tmp_path):
        _training._trained(settings, True, 0)
        (kept,) = tmp_path.rglob("state.checkpoint")
        content = kept.read_bytes()
        # by default a number in it is another
        kept.write_bytes(content[:-1] + bytes([content[-1] ^ 1]) if damage is None else damage)
        with pytest.warns(UserWarning, match=f"^{kept}: is .*; this training starts again$"):
            again = _training._trained(settings, True, 0)
    np.testing.assert_array_equal(again.end.a, whole.end.a)
    assert not any("goes on" in line for line in lines)


def test_matrices_are_clipped_one_by_one():
    shape = (2, 2, 2)
    slope = _training.Layers(jnp.ones(shape), 1e-3 * jnp.ones(shape))
    rule = _training._rule(True)
    state = rule.init(slope)
    _, state = rule.update(slope, state)
    first = state[1].mu  # a hundredth of the clipped gradient
    np.testing.assert_allclose(first.a, 0.01 * 0.01 / 2, rtol=1e-6)
    np.testing.assert_allclose(first.b, 0.01 * 1e-3, rtol=1e-6)


def test_full_presets_are_the_settings_of_the_authors_program():
    for name, rate, steps, every in (("theorem-3", 0.02, 30_000, 2000), ("theorem-4", 0.1, 100_000, 4000)):
        (claim,) = claims(f"ahn2023/{name}")
        full = claim.settings["full"]
        assert (full.rate, full.steps, full.steps // full.halvings) == (rate, steps, every)
        assert (full.batch, full.renewed_every, full.scale) == (20_000, 100, 1e-4)
        np.testing.assert_allclose(
            np.linalg.eigvalsh(covariance(full.eigenvalues, 1)),
            np.array([0.25, 0.5, 1, 1, 1]) ** 2,
            rtol=1e-12,
        )
