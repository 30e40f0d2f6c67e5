"""Colours can be distinguished with each of the common colour vision deficiencies."""

from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pytest

from mesascope.report import DARK, LIGHT
from mesascope.report._style import DIVERGING, SEQUENTIAL

# What is seen without one kind of cones, of linear RGB: Machado, Oliveira & Fernandes 2009, severity 1.
SIGHTS = {
    "all cones": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
# A difference of 2.3 in CIELAB is just noticed side by side; marks apart from each other need several times that.
APART, STEP, ENDS = 15.0, 5.0, 30.0


def seen(rgb, sight):
    """CIELAB coordinates, shape (n, 3), of sRGB colours as somebody sees them."""
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    xyz = np.clip(linear @ sight.T, 0, 1) @ TO_XYZ.T / np.array([0.95047, 1.0, 1.08883])
    f = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], 1)


@pytest.mark.parametrize("sight", SIGHTS.values(), ids=SIGHTS)
@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_no_two_series_look_alike(theme, sight):
    colours = seen(np.array([mpl.colors.to_rgb(colour) for colour in theme.series]), sight)
    distances = np.linalg.norm(colours[:, None] - colours, axis=-1)
    assert distances[~np.eye(len(colours), dtype=bool)].min() > APART


@pytest.mark.parametrize("sight", SIGHTS.values(), ids=SIGHTS)
def test_maps_go_by_lightness(sight):
    shades = np.linspace(0, 1, 11)
    lightness = seen(mpl.colormaps[SEQUENTIAL](shades)[:, :3], sight)[:, 0]
    assert all(right - left > STEP for left, right in pairwise(lightness))
    printed = seen(mpl.colormaps[DIVERGING](shades)[:, :3], sight)
    assert_goes_from_the_middle(printed, -1)  # to darker colours


@pytest.mark.parametrize("sight", SIGHTS.values(), ids=SIGHTS)
@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_maps_with_a_middle_have_the_background_there(theme, sight):
    paper, *colours = (mpl.colors.to_rgb(colour) for colour in (theme.paper, *theme.diverging))
    shown = seen(np.array(colours), sight)
    assert_goes_from_the_middle(shown, -1 if theme is LIGHT else 1)
    # in its own colour, a matrix of zeros would have no edge
    assert 2.3 < np.linalg.norm(shown[5] - seen(np.array([paper]), sight)[0]) < APART


def assert_goes_from_the_middle(colours, sign):
    sides = colours[5:, 0], colours[5::-1, 0]
    assert all(sign * (right - left) > STEP for side in sides for left, right in pairwise(side))
    assert np.linalg.norm(colours[0] - colours[-1]) > ENDS  # below the center is not taken for above it
