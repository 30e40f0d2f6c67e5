"""Planted learners behind opaque functions with noise: named right or left open, never named wrong."""

import numpy as np
import pytest
from planted_models import PROCESS, TASK, as_model, planted

from mesascope.probes import identify

# One of each of these kinds, compared with all of these kinds; `make bench` may compare all with all.
NUMBERS = (2, 3, 4, 9, 10, 12, 14, 15, 16, 17, 19, 20)
LEARNERS = tuple({planted(number).name for number in NUMBERS})


def _spoken_of(answer):
    """The ids that the verdict speaks of: its candidates and what is the same as one of them."""
    named = [entry for entry in answer.ranking if entry.learner in answer.candidates]
    return {name for entry in named for name in (entry.learner, *entry.contains)}


def _whole(value):
    """A matrix for the diagonal of one; everything else as it is."""
    array = np.asarray(value, float)
    return np.diag(array) if array.ndim == 1 else array


@pytest.mark.slow
def test_planted_learners_are_named(subtests):
    """Never a wrong name; at most one of twelve is only narrowed down to several."""
    ambiguous = []
    for number in NUMBERS:
        learner = planted(number)
        with subtests.test(number=number, learner=learner.name):
            answer = identify(as_model(learner), PROCESS, TASK, tasks=200, seed=number, learners=LEARNERS)
            assert learner.name in _spoken_of(answer), str(answer)
            if answer.verdict == "ambiguous":
                ambiguous.append(learner.name)
                continue
            found = answer.entry(learner.name).hyperparameters
            for name, value in learner.hyperparameters.items():
                if value is not None:
                    # entries of a matrix are known up to its size, numbers up to their own
                    one, other = (_whole(v) for v in (found[name], value))
                    np.testing.assert_allclose(one, other, rtol=0, atol=1e-2 * np.abs(other).max())
    assert len(ambiguous) <= 1, ambiguous
