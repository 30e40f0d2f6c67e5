"""A batch divided among devices: the same training up to rounding, and resumed to the same bits."""

import json
import os
import subprocess
import sys

import jax.numpy as jnp
import numpy as np
import pytest

from mesascope.dynamics._devices import _WORTHWHILE_BYTES, number_of_devices

RUN = """
import json, sys
import jax
devices, folder = int(sys.argv[1]), sys.argv[2]
jax.config.update("jax_num_cpu_devices", devices)
jax.config.update("jax_enable_x64", True)
import mesascope as ms
from mesascope.dynamics import _devices, _training_steps, real_vector

_devices._WORTHWHILE_BYTES = 1
shared, on_devices = [], _devices.on_devices
_training_steps.on_devices = lambda f, n: shared.append(n) or on_devices(f, n)
model = ms.linear_transformer(dim=3, layers=2, key=jax.random.key(0))
process, task = ms.DiagonalUnitary(ms.Gaussian(0.5), dim=3), ms.NextToken(horizon=6)
settings = dict(batch=12, held_out=8, precision="float64", average=0.9, record_every=3)
whole = ms.train(model, process, task, steps=9, **settings)
ms.train(model, process, task, steps=4, checkpoint=folder, **settings)
resumed = ms.train(model, process, task, steps=9, checkpoint=folder, **settings)
vectors = [real_vector(one)[0].tolist() for one in (whole.model, whole.average, resumed.model, resumed.average)]
devices_of = [len(x.devices()) for x in jax.tree.leaves(whole.model) if isinstance(x, jax.Array)]
found = dict(shared=shared, vectors=vectors, on=max(devices_of))
print(json.dumps(dict(found, losses=whole.losses.tolist(), loss=float(whole.loss.value))))
"""


def trained(devices, folder):
    finished = subprocess.run(
        [sys.executable, "-c", RUN, str(devices), str(folder)], capture_output=True, text=True, env=os.environ
    )
    assert finished.returncode == 0, finished.stderr
    return json.loads(finished.stdout)


@pytest.mark.slow
@pytest.mark.parametrize(("devices", "used"), [(3, 3), (5, 4)])
def test_devices_change_nothing_but_rounding(tmp_path, devices, used):
    alone, together = trained(1, tmp_path / "one"), trained(devices, tmp_path / "many")
    assert set(alone["shared"]) == {1} and set(together["shared"]) == {used}
    assert together["on"] == 1
    np.testing.assert_allclose(together["losses"], alone["losses"], rtol=1e-12)
    assert together["loss"] == pytest.approx(alone["loss"], rel=1e-10)
    # Adam divides by the square root of squared gradients: the first steps amplify rounding where gradients are small
    np.testing.assert_allclose(together["vectors"], alone["vectors"], rtol=1e-8, atol=1e-10)
    assert together["vectors"][:2] == together["vectors"][2:]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parts", "batch", "most", "devices"), [(0.5, 8, 4, 1), (3, 8, 4, 2), (100, 8, 4, 4), (100, 7, 4, 1)]
)
def test_a_device_gets_work_that_is_worth_it(parts, batch, most, devices):
    size = int(parts * _WORTHWHILE_BYTES) // (4 * batch)
    sample = jnp.zeros((batch, size), jnp.float32)
    assert number_of_devices(lambda w, x: jnp.sum(jnp.exp(x)), most, jnp.zeros(()), sample) == devices
