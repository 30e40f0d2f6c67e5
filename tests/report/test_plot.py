"""Results as figures of matplotlib."""

import math

import jax
import matplotlib.pyplot as plt
import numpy as np
import pytest

import mesascope as ms
from mesascope.dynamics import Outcome
from mesascope.papers._claim import Finding
from mesascope.records import Figure, Line, Panel, path_figure

PROCESS, TASK = ms.DiagonalUnitary(ms.Gaussian(1.0), dim=2), ms.NextToken(horizon=5)
START = ms.LinearAttention.diagonal(dim=2, a=0.1, b=0.2)


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def flow():
    return ms.gradient_flow(START, PROCESS, TASK)


def drawn(axes):
    return [line.get_xydata() for line in axes.get_lines()]


@pytest.mark.slow
def test_a_flow_shows_its_loss_and_products(flow):
    loss, products = ms.plot(flow)
    assert (loss.get_xlabel(), loss.get_ylabel()) == ("flow time", r"loss $\sum_t w_t L_t$")
    (curve,) = drawn(loss)
    np.testing.assert_array_equal(curve[:, 0], flow.times[: len(curve)])
    np.testing.assert_array_equal(curve[:, 1], flow.loss[: len(curve)])
    (curve,) = drawn(products)  # one, since all coordinates are equal
    np.testing.assert_array_equal(curve[:, 1], flow.products[: len(curve), 0])
    assert curve[-1, 1] == pytest.approx(flow.products[-1, 0], rel=0.01)
    assert plt.get_fignums()  # pyplot shows it


@pytest.mark.slow
def test_products_are_those_of_every_saved_model(flow):
    each = [
        jax.tree.map(lambda weight, number=number: weight[number], flow.trajectory).products()
        for number in (0, len(flow.times) - 1)
    ]
    np.testing.assert_array_equal(flow.products[[0, -1]], each)
    heads = ms.gradient_flow(
        ms.MultiHeadLinearAttention(START.w_kq[None], START.w_pv[None]), PROCESS, TASK, until=0.01
    )
    with pytest.raises(
        AttributeError, match="only LinearAttention has a_j b_j, not MultiHeadLinearAttention"
    ):
        heads.products  # noqa: B018
    assert len(ms.plot(heads)) == 1


@pytest.mark.slow
def test_a_training_shows_its_losses():
    training = ms.train(START, PROCESS, TASK, steps=4, batch=4, held_out=8, record_every=2, evaluate_every=2)
    (loss,) = ms.plot(training)
    batches = next(line for line in drawn(loss) if np.array_equal(line[:, 1], training.losses))
    np.testing.assert_array_equal(batches[:, 0], training.steps)


@pytest.mark.slow
def test_a_training_that_diverges_shows_its_losses_until_then():
    settings = {"steps": 6, "batch": 4, "held_out": 8, "record_every": 1, "evaluate_every": 1}
    training = ms.train(START, PROCESS, TASK, optimizer=ms.Optimizer("sgd", 1e6), **settings)
    assert training.result is Outcome.DIVERGED
    assert ms.plot(training)


def _a_step(x, y):
    return 0.1 * np.einsum("bn,bni,bi->b", y, x[:, :-1], x[:, -1])


@pytest.mark.slow
def test_an_identification_shows_errors_and_distances_by_number_of_examples():
    process, task = ms.LinearRegression(dim=2, noise=0.1), ms.FewShot(examples=3)
    names = ("zero", "gradient-descent")
    answer = ms.identify(_a_step, process, task, tasks=100, learners=names)
    errors, distances, beyond = ms.plot(answer)
    assert distances.get_xlabel() == "number of examples $n$"
    zero = np.stack([[1, 2, 3], answer.curves.errors["zero"].value], 1)
    assert any(line.shape == zero.shape and np.allclose(line, zero) for line in drawn(errors))
    assert len(beyond.get_lines()) > 1
    assert len(ms.plot(answer, "confusion")) >= 1


def test_of_several_figures_one_is_named():
    line = Line(x=(0.0, 1.0), y=(0.0, 1.0), label="line")
    figures = {
        name: Figure(
            title=name, panels=(Panel(title=name, xlabel="x", ylabel="y", traces=(line,)),), caption="c"
        )
        for name in ("first", "second")
    }
    finding = Finding(0.0, 0.0, 1.0, "met", figures=figures)
    assert [axes.get_title() for axes in ms.plot(finding)] == ["first"]
    assert [axes.get_title() for axes in ms.plot(finding, "second")] == ["second"]
    assert [axes.get_title() for axes in ms.plot(figures["second"])] == ["second"]
    with pytest.raises(ValueError, match="there is no figure 'third'; there are first, second"):
        ms.plot(finding, "third")
    with pytest.raises(ValueError, match="this Finding holds no figures"):
        ms.plot(Finding(0.0, 0.0, 1.0, "met"))
    with pytest.raises(TypeError, match="cannot draw int; give a flow, "):
        ms.plot(3)


@pytest.mark.slow
def test_what_diverges_is_drawn_until_then():
    loss = np.array([2.0, 1.0, math.inf, math.nan])
    figure = path_figure("Descent", ("step", np.arange(4)), loss, None)
    assert figure.panels[0].traces[0].y == (2.0, 1.0)
    with pytest.raises(ValueError, match="no point has a finite loss"):
        path_figure("Descent", ("step", np.arange(2)), loss[2:], None)
    descent = ms.descend(START, PROCESS, TASK, learning_rate=50.0, steps=20)
    assert descent.result is Outcome.DIVERGED
    assert ms.plot(descent)


def _study(losses, **coordinates):
    """The arrays of a study, as `Store.to_xarray` gives them."""
    import xarray

    dims, losses = tuple(coordinates), np.asarray(losses, float)
    whole = {name: (dims, np.full(losses.shape, name, object)) for name in ("run", "status")}
    products = np.stack([losses, losses + 2], -1)
    data = {**whole, "loss": (dims, losses), "product": ((*dims, "product_index"), products)}
    return xarray.Dataset(data, coordinates, {"study": "small"})


def test_the_arrays_of_a_study_are_curves_over_a_numeric_axis():
    loss, product = ms.plot(
        _study([[3, 2, 1], [4, np.nan, 2]], law=["gaussian", "uniform"], horizon=[5, 10, 20])
    )
    assert (loss.get_xlabel(), loss.get_ylabel()) == ("horizon", "loss at the end")
    curves = [line for line in drawn(loss) if len(line) > 1]
    np.testing.assert_array_equal(curves[0], [[5, 3], [10, 2], [20, 1]])
    assert any(
        np.array_equal(curve, [[5, 4], [20, 2]]) for curve in curves
    )  # the run that is missing is left out
    np.testing.assert_array_equal(drawn(product)[0][:, 1], [4, 3, 2])  # the mean over coordinates


def test_the_arrays_of_a_study_are_a_map_over_two_long_axes():
    table = np.arange(64.0).reshape(8, 8)
    loss, *_ = ms.plot(_study(table, a=np.linspace(0, 1, 8), b=np.linspace(0, 1, 8)))
    assert (loss.get_xlabel(), loss.get_ylabel()) == ("a", "b")


def test_weights_are_no_outcome_to_draw():
    data = _study([[3, 2, 1]], law=["gaussian"], horizon=[5, 10, 20])
    data["w_kq"] = (("law", "horizon", "row"), np.ones((1, 3, 4)))
    assert len(ms.plot(data)) == 2
    with pytest.raises(TypeError, match="pass all that `to_xarray` returned"):
        ms.plot(data[["loss"]])


def test_arrays_without_numbers_over_axes_are_refused():
    with pytest.raises(ValueError, match="no number of these arrays changes along one or two axes"):
        ms.plot(_study([[1.0]], a=[1], b=[2]))
