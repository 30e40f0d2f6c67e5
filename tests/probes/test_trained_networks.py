"""Forty trained networks get the answers that are stored: changes of fits, verdicts and headlines are seen here."""

import json
import re

import pytest
from safetensors.numpy import load_file

from trained_networks import ANSWERS, SPECS, WEIGHTS, answer

_NUMBER = r"\b\d+(?:\.\d+)?(?:e[-+]\d+)?"
STORED = json.loads(ANSWERS.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def tensors():
    return load_file(WEIGHTS)


@pytest.mark.slow
@pytest.mark.parametrize("name", SPECS)
def test_a_trained_network_gets_its_answer(name, tensors):
    """After an intended change: python tests/trained_networks.py --answers, and read what became of them."""
    found, before = answer(name, tensors), STORED[name]
    assert found["distance"] == pytest.approx(before["distance"], rel=1e-3, abs=1e-12)
    assert (found["verdict"], set(found["candidates"])) == (before["verdict"], set(before["candidates"]))
    words, numbers = zip(*(_parts(one["headline"]) for one in (found, before)), strict=True)
    assert words[0] == words[1]
    assert numbers[0] == pytest.approx(numbers[1], rel=0.11)  # they have two digits


def _parts(headline):
    """Its words, and the shares. Fitted numbers that the data hardly determine, and the order of equal learners, may vary."""
    rest = re.sub(rf"({_NUMBER})(?=[^()]*\))", "#", headline)
    words = re.findall(r"[\w+≥-]+", re.sub(_NUMBER, "#", rest))
    return sorted(words), [float(one) for one in re.findall(_NUMBER, rest)]
