"""Settings of data: their changes of samples."""

import jax
import numpy as np
import pytest

import mesascope as ms
from mesascope.core import named_key
from mesascope.probes._settings import Setting, settings_of

KEY = named_key(0, "tests", "settings")
PROCESS = ms.DiagonalUnitary(ms.Gaussian(4.0), 3)


def drawn(setting, process=PROCESS, horizon=6, batch=200):
    return setting.changed(np.asarray(setting.source(process).sample(KEY, horizon, batch)), KEY)


@pytest.mark.parametrize("setting", settings_of(PROCESS), ids=lambda setting: setting.describe())
def test_every_setting_draws_sequences_like_those_of_the_process(setting):
    sample = drawn(setting)
    assert sample.shape == (200, 6, 3) and np.isfinite(sample).all()
    size = np.sqrt(np.mean(np.abs(sample) ** 2)) / setting.scale
    assert 1 < size < 2 * 4 * setting.condition**0.5  # standard deviation 4, and what stretching makes of it


def test_settings_have_distinct_descriptions():
    names = [setting.describe() for setting in settings_of(PROCESS)]
    assert names[0] == "the process itself"
    assert len(set(names)) == len(names)


def test_initial_tokens_of_another_law_have_the_size_of_those_of_the_process():
    own = np.mean(np.abs(drawn(Setting())[:, 0]) ** 2)
    first = drawn(Setting(start="one-hot"))[:, 0]
    assert (np.count_nonzero(first, axis=1) == 1).all()
    # both are means over a few hundred tokens: 256 that the size is measured on, 200 here
    assert np.mean(np.abs(first) ** 2) == pytest.approx(own, rel=0.3)
    equal = drawn(Setting(start="full-one"))[:, 0]
    np.testing.assert_array_equal(equal, np.full_like(equal, equal[0, 0]))
    assert np.mean(np.abs(equal) ** 2) == pytest.approx(own, rel=0.3)


@pytest.mark.slow
@pytest.mark.parametrize(
    "process",
    [
        ms.OrthogonalAR(ms.Gaussian(1.0), 3),
        ms.RotationAR(ms.Constant([1, 2]), 4, start="axis"),
        ms.LinearAR.contracting(ms.Gaussian(1.0), 4, 0.3, 0.9, observed=2),
        ms.NonlinearAR(ms.Gaussian(1.0), 3, hidden=6),
    ],
    ids=lambda process: type(process).__name__,
)
def test_every_process_with_a_law_can_start_elsewhere(process):
    for setting in settings_of(process):
        if setting.start:
            assert drawn(setting, process).shape == (200, 6, process.dim)
    assert {setting.start for setting in settings_of(process)} == {"", "one-hot", "full-one"}


def test_prompts_and_processes_of_others_have_no_initial_law():
    class Mine:
        dim = 3

        def sample(self, key, horizon, batch):
            return jax.random.normal(key, (batch, horizon, 3))

    for process in (ms.LinearRegression(3), Mine()):
        assert {setting.start for setting in settings_of(process)} == {""}
