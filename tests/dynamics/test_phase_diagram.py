"""Phase diagrams against single flows, against closed forms, and what is left of them when they are interrupted."""

import jax
import numpy as np
import pytest

import mesascope as ms
from mesascope.dynamics import PhasePoint, gradient_flow, phase_diagram
from mesascope.records import RecordError, read_dataset, write_dataset
from mesascope.theory import zheng2024

PROCESS = ms.DiagonalUnitary(ms.Gaussian(1.0), 2)


def gaussian_starts(scale, horizon, key):
    return ms.LinearAttention.gaussian(2, scale, key=key), PROCESS, ms.NextToken(horizon)


def diagonal_starts(a, horizon, key):
    start = ms.LinearAttention.diagonal(2, a, 0.2)
    return PhasePoint(start, PROCESS, ms.NextToken(horizon), ms.NextToken.last(50))


@pytest.fixture(scope="module")
def gaussian():
    return phase_diagram(gaussian_starts, {"scale": [0.05, 0.3, 1.0], "horizon": [6, 9]}, seed=7)


@pytest.fixture(scope="module")
def diagonal():
    return phase_diagram(diagonal_starts, {"a": [-0.3, 0.05, 1.0], "horizon": [6, 9]})


def product_of_layer(vector, dim=2):
    """W^PV ⊗ W^KQ, which rescaling the two does not change."""
    kq, pv = vector[: 4 * dim**2], vector[4 * dim**2 :]
    return np.outer(pv, kq)


@pytest.mark.slow
def test_ends_and_times_are_those_of_single_flows(gaussian):
    from mesascope.core import named_key

    key = named_key(7, "phase diagram")
    for scale, horizon in ((0.05, 9), (0.3, 6)):
        one = gaussian.sel(scale=scale, horizon=horizon)
        problem = gaussian_starts(scale, horizon, key)
        flow = gradient_flow(*problem)
        assert flow.converged and one.status.item() == "converged"
        assert one.loss.item() == pytest.approx(flow.loss[-1], rel=1e-10)
        assert one.loss_start.item() == pytest.approx(flow.loss[0], rel=1e-12)
        end = np.concatenate([np.ravel(flow.model.w_kq), np.ravel(flow.model.w_pv)])
        # how W^KQ and W^PV share the product depends on errors of 1e-6 a step; the product does not
        assert product_of_layer(one.end.values) == pytest.approx(product_of_layer(end), abs=1e-6)
        until = gradient_flow(*problem, until=one.time_to_reach.item())
        fallen = (flow.loss[0] - until.loss[-1]) / (flow.loss[0] - flow.loss[-1])
        assert fallen == pytest.approx(0.99, abs=1e-6)  # rtol is 1e-6, and 0.01 of the way is left


@pytest.mark.slow
def test_several_critical_points_are_reached_from_gaussian_starts(gaussian):
    assert set(gaussian.name.values) == {"diagonal + +", "diagonal + −"}
    for scale in gaussian.scale.values:
        for horizon in gaussian.horizon.values:
            one = gaussian.sel(scale=scale, horizon=horizon)
            pv = one.end.values[16:].reshape(2, 4)
            name = str(gaussian.name.values[int(one.critical_point)])
            assert name == f"diagonal + {'+' if pv[0, 0] * pv[1, 1] > 0 else '−'}"
    # no order and no signs of two coordinates turn one pattern into the other
    assert (gaussian.up_to_symmetry == gaussian.critical_point).all()
    assert gaussian.relative_loss.values == pytest.approx(1.0, rel=1e-9)
    assert np.isnan(gaussian.risk).all()


@pytest.mark.slow
def test_diagonal_starts_agree_with_the_closed_forms(diagonal):
    assert (diagonal.status == "converged").all() and set(diagonal.name.values) == {"diagonal + +"}
    for a in diagonal.a.values:
        for horizon in diagonal.horizon.values:
            one, task = diagonal.sel(a=a, horizon=horizon), ms.NextToken(int(horizon))
            product = float(zheng2024.limit_product(PROCESS, task))
            assert one.end.values[8] * one.end.values[16] == pytest.approx(product, rel=1e-7)
            assert one.relative_loss.item() == pytest.approx(1.0, rel=1e-10)
            # the loss is a parabola in ab: a tenth of the distance is left when a hundredth of its excess is
            flow = zheng2024.diagonal_flow(PROCESS, task, a, 0.2)
            time = flow.time_to_reach(product + (a * 0.2 - product) / 10)
            # rtol is 1e-6 a step; errors of many steps add up
            assert one.time_to_reach.item() == pytest.approx(time, rel=1e-4)
            risk = zheng2024.diagonal_loss(PROCESS, ms.NextToken.last(50), product)
            assert one.risk.item() == pytest.approx(float(risk), rel=1e-9)


@pytest.mark.slow
def test_weights_of_zero_are_a_critical_point_of_their_own():
    def make(a, horizon, key):
        return ms.LinearAttention.diagonal(2, a, a), PROCESS, ms.NextToken(horizon)

    data = phase_diagram(make, {"a": [0.0, 0.2], "horizon": [6]})
    names = [str(data.name.values[int(number)]) for number in data.critical_point.values[:, 0]]
    assert names == ["zero", "diagonal + +"] and (data.status == "converged").all()
    assert data.loss.values[0, 0] == pytest.approx(PROCESS.dim * (6 - 2) / 2, rel=1e-12)
    assert data.time_to_reach.values[0, 0] == 0


@pytest.mark.slow
def test_the_data_set_is_labelled_and_survives_a_file(diagonal, tmp_path):
    assert dict(diagonal.sizes) == {"a": 3, "horizon": 2, "weight": 24, "point": 1}
    assert diagonal.time.attrs["units"] == "flow time" and diagonal.attrs["seed"] == 0
    assert '"mesascope":' in diagonal.attrs["provenance"] and '"rtol":1e-06' in diagonal.attrs["settings"]
    write_dataset(tmp_path / "diagram.nc", diagonal)
    assert read_dataset(tmp_path / "diagram.nc").identical(diagonal)


def test_an_interrupted_diagram_goes_on_to_the_same_bits(diagonal, tmp_path):
    axes = {"a": [-0.3, 0.05, 1.0], "horizon": [6, 9]}
    seen = []

    def interrupt(progress):
        seen.append(progress)
        if progress.done:
            raise KeyboardInterrupt

    first = phase_diagram(diagonal_starts, axes, folder=tmp_path, workers=1, progress=interrupt)
    assert (seen[0].done, seen[-1].done, seen[-1].total) == (0, 2, 6)
    solved = (first.status != "interrupted").values.all(1)
    assert solved[0] and not solved[-1]
    assert np.isnan(first.loss.values[~solved]).all() and np.isnan(first.critical_point.values[~solved]).all()
    seen.clear()
    again = phase_diagram(diagonal_starts, axes, folder=tmp_path, progress=seen.append)
    assert seen[0].done == 2 * solved.sum() and seen[-1].done == 6
    # solved in other threads, in another order, and read from files: bit by bit
    assert again.equals(diagonal)


def _normalized(a, shift):
    return ms.LinearAttention.diagonal(2, a, 0.2, lambda lengths: lengths + shift)


@pytest.mark.slow
@pytest.mark.parametrize(
    "other",
    [
        {"seed": 1},
        {"rtol": 1e-5},
        {"make": lambda a, T, key: diagonal_starts(2 * a, T, key)},
        {"make": lambda a, T, key: diagonal_starts(a, T + 1, key)},
        # the same weights in other places, and a normalizer that differs in its values only
        {"make": lambda a, T, key: (ms.LinearAttention.diagonal(2, 0.2, a), *diagonal_starts(a, T, key)[1:])},
        {"make": lambda a, T, key: (_normalized(a, 2.0), *diagonal_starts(a, T, key)[1:])},
        {"axes": {"a": [0.5, 0.06], "horizon": [6, 9]}},
    ],
)
def test_rows_of_another_diagram_are_refused(tmp_path, other):
    given = {"make": diagonal_starts, "axes": {"a": [0.5], "horizon": [6, 9]}, "folder": tmp_path}
    if "make" in other and other["make"](0.5, 6, None)[0].normalizer != "t-1":
        given["make"] = lambda a, T, key: (_normalized(a, 1.0), *diagonal_starts(a, T, key)[1:])
    phase_diagram(**given)
    if "axes" in other:  # more rows on the same axis are welcome
        assert phase_diagram(**(given | other)).sizes["a"] == 2
        return
    with pytest.raises(RecordError, match=r"another phase diagram .*; choose another folder"):
        phase_diagram(**(given | other))


@pytest.mark.slow
def test_flows_that_do_not_end_are_named_and_have_no_numbers():
    short = phase_diagram(diagonal_starts, {"a": [0.1], "horizon": [6]}, max_steps=3).squeeze()
    assert short.status.item() == "step limit" and short.steps.item() == 3
    assert all(
        np.isnan(short[name]).all() for name in ("loss", "risk", "time", "time_to_reach", "critical_point")
    )
    huge = phase_diagram(diagonal_starts, {"a": [1e200], "horizon": [6]}).squeeze()
    assert huge.status.item() == "diverged" and np.isnan(huge.loss)
    some = phase_diagram(diagonal_starts, {"a": [0.1], "horizon": [6]}, until=0.5).squeeze()
    assert some.status.item() == "finished" and some.time.item() == 0.5
    exact = zheng2024.diagonal_flow(PROCESS, ms.NextToken(6), 0.1, 0.2)(0.5).product
    assert some.end.values[8] * some.end.values[16] == pytest.approx(float(exact), rel=1e-6)


@pytest.mark.slow
def test_huge_starts_are_not_said_to_have_arrived():
    """Weights of 1e10 hardly move any more, relative to their size, at a loss that is twice that of the limit."""

    def make(scale, number, key):
        start = ms.LinearAttention.gaussian(2, scale, key=jax.random.fold_in(key, number))
        return start, PROCESS, ms.NextToken(6)

    data = phase_diagram(make, {"scale": [0.1, 1e10], "number": [1, 2]})
    np.testing.assert_array_equal(data.status[0], "converged")
    np.testing.assert_allclose(data.relative_loss[0], 1.0, rtol=1e-9)
    np.testing.assert_array_equal(data.status[1], "step limit")
    assert np.isnan(data.loss[1]).all()


@pytest.mark.slow
def test_steady_states_are_judged_by_the_landscape_where_they_are():
    """At a start of 100 the curvature is far greater than at the end."""

    def make(a, horizon, key):
        return ms.LinearAttention.diagonal(2, a, 1e-3), PROCESS, ms.NextToken(horizon)

    data = phase_diagram(make, {"a": [100.0, 0.01], "horizon": [6]})
    np.testing.assert_array_equal(data.status, "converged")
    for a in data.a.values:
        end = gradient_flow(*make(float(a), 6, None))
        product = product_of_layer(np.concatenate([np.ravel(end.model.w_kq), np.ravel(end.model.w_pv)]))
        assert product_of_layer(data.end.sel(a=a, horizon=6).values) == pytest.approx(product, abs=1e-8)


@pytest.mark.slow
def test_most_of_the_way_may_come_after_the_flow_has_seemed_steady():
    """Entries of W^KQ of 100 and 0.01 with W^PV of 1e-6: the flow rests near a saddle before the loss falls."""
    start = ms.LinearAttention.diagonal(2, 1.0, 1e-6)
    w_kq = np.array(start.w_kq)
    w_kq[2, 0], w_kq[3, 1] = 100, 0.01
    start = ms.LinearAttention(w_kq, start.w_pv)
    data = phase_diagram(
        lambda one, other, key: (start, PROCESS, ms.NextToken(6)), {"one": [1], "other": [1]}, fraction=0.9
    )
    time, end = data.time_to_reach.item(), data.time.item()
    flow = gradient_flow(start, PROCESS, ms.NextToken(6), solver=ms.dynamics.Rodas4(), rtol=1e-6, until=time)
    fallen = (data.loss_start - flow.loss[-1]) / (data.loss_start - data.loss)
    assert data.status.item() == "converged" and time < end / 10
    # the time at which a flow leaves a saddle grows with the logarithm of its local errors
    assert fallen.item() == pytest.approx(0.9, abs=5e-3)


def test_folders_that_are_files_are_refused(tmp_path):
    (tmp_path / "file").write_text("mine")
    axes = {"a": [0.5], "horizon": [6]}
    with pytest.raises(RecordError, match="is a file; name a folder"):
        phase_diagram(diagonal_starts, axes, folder=tmp_path / "file")
    (tmp_path / "diagram" / "row-00000.nc").mkdir(parents=True)
    with pytest.raises(RecordError, match="is a folder, where a row should be"):
        phase_diagram(diagonal_starts, axes, folder=tmp_path / "diagram")


@pytest.mark.slow
def test_points_of_other_shapes_and_words_share_a_diagram():
    laws = {"gaussian": ms.Gaussian(1.0), "uniform": ms.Uniform(1.0)}

    def make(dim, law, key):
        return ms.LinearAttention.diagonal(dim, 0.1, 0.1), ms.DiagonalUnitary(laws[law], dim), ms.NextToken(5)

    data = phase_diagram(make, {"dim": [1, 2], "law": list(laws)})
    assert list(data.law.values) == list(laws) and (data.status == "converged").all()
    assert data.relative_loss.values == pytest.approx(1.0, rel=1e-10)
    assert np.isnan(data.end.values[0, :, 6:]).all() and np.isfinite(data.end.values[1]).all()
    assert list(data.name.values) == ["diagonal +, d = 1", "diagonal + +, d = 2"]


START, TASK = ms.LinearAttention.diagonal(2, 0.1, 0.1), ms.NextToken(5)
AXES = {"a": [0.1], "b": [0.2]}


@pytest.mark.parametrize(
    ("axes", "error", "words"),
    [
        ([1, 2], TypeError, "axes: must be a mapping"),
        ({"a": [1]}, ValueError, "a phase diagram has two, got 1"),
        ({"a": [], "b": [1]}, ValueError, "a has no values"),
        ({"a": [1, 2, 1], "b": [1]}, ValueError, "a has 1 twice"),
        ({"a": [1.0, float("nan")], "b": [1]}, ValueError, "axes: a"),
        ({"a": [float("inf")], "b": [1]}, ValueError, "axes: a"),
        ({"a": "0.1", "b": [1]}, TypeError, "a must be a sequence"),
        ({"loss": [0.1], "b": [1]}, ValueError, "'loss' is the name of a result; choose another"),
    ],
)
def test_bad_axes_are_refused(axes, error, words):
    with pytest.raises(error, match=words):
        phase_diagram(diagonal_starts, axes)


@pytest.mark.parametrize(
    ("made", "error", "words"),
    [
        (None, TypeError, r"make, at a = 0.1, b = 0.2: must return \(start, process, task\)"),
        ((START, PROCESS), TypeError, r"must return \(start, process, task\)"),
        ((PROCESS, START, TASK), TypeError, "the start must be linear attention"),
        ((START, ms.DiagonalUnitary(ms.Gaussian(1), 3), TASK), ValueError, "dim 2, the process dim 3"),
        (
            (START, PROCESS, TASK, (ms.DiagonalUnitary(ms.Gaussian(1), 3), TASK)),
            ValueError,
            "process of the test dim 3",
        ),
        ((START, PROCESS, 5), TypeError, "make, at a = 0.1, b = 0.2: .*task"),
        (
            (START, ms.OrthogonalAR(ms.Gaussian(1), 2), TASK),
            TypeError,
            "make, at a = 0.1, b = 0.2: ExactMoments supports NextToken on DiagonalUnitary",
        ),
        ((START, ms.DiagonalUnitary(ms.StudentT(5, 1.0), 2), TASK), ValueError, "make, at a = 0.1, b = 0.2"),
    ],
)
def test_what_make_must_not_return_is_refused_by_its_place(made, error, words):
    with pytest.raises(error, match=words):
        phase_diagram(lambda a, b, key: made, AXES)


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"fraction": 1.0}, ValueError, "fraction must be greater than 0 and below 1"),
        ({"rtol": 0}, ValueError, "rtol"),
        ({"max_steps": 0}, ValueError, "max_steps"),
        ({"until": "rest"}, ValueError, "until"),
        ({"solver": "Tsit5"}, TypeError, "solver: must be a diffrax solver"),
        ({"workers": 0}, ValueError, "workers"),
        ({"mask": "diagonal"}, ValueError, "mask"),
    ],
)
def test_bad_settings_are_refused(settings, error, words):
    with pytest.raises(error, match=words):
        phase_diagram(diagonal_starts, AXES | {"b": [5]}, **settings)


def test_make_must_be_a_function():
    with pytest.raises(TypeError, match="make: must be a function"):
        phase_diagram(TASK, AXES)


@pytest.mark.slow
def test_rows_that_other_code_computed_are_not_used(tmp_path, monkeypatch):
    axes = {"a": [0.3], "horizon": [6]}
    phase_diagram(diagonal_starts, axes, folder=tmp_path)
    monkeypatch.setattr("mesascope.dynamics.phase_diagrams._rows._own_code", lambda: "0.0+other")
    with pytest.raises(RecordError, match=r"its code differs from what is asked for.*choose another folder"):
        phase_diagram(diagonal_starts, axes, folder=tmp_path)
