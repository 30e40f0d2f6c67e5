"""A phase diagram of 64 × 64 flows, on all cores, from a cold start."""

PROGRAM = """
import jax, numpy as np
jax.config.update("jax_enable_x64", True)
import mesascope as ms

def make(scale, horizon, key):
    start = ms.LinearAttention.gaussian(3, scale, key=key)
    return start, ms.DiagonalUnitary(ms.Gaussian(1.0), 3), ms.NextToken(horizon)

axes = {"scale": np.geomspace(0.01, 2, 64), "horizon": range(20, 84)}
diagram = ms.phase_diagram(make, axes, seed=1)
assert (diagram.status == "converged").all() and abs(diagram.relative_loss - 1).max() < 1e-9
print(float(diagram.steps.mean()))
"""


def test_four_thousand_flows(benchmark, bar, run_python):
    bar(what="phase diagram, 64 × 64 flows, d = 3, scale × horizon (T = 20 … 83), cold", seconds=300)
    finished = []
    benchmark.pedantic(lambda: finished.append(run_python("-c", PROGRAM)), rounds=1)
    assert finished[-1].status == 0
    benchmark.extra_info["memory"] = finished[-1].memory
