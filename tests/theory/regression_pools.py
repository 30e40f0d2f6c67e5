"""Regression with inputs of size one and tasks on the sphere, and the exact features of it or of a pool of its tasks."""

import numpy as np

from mesascope.processes import FewShot, LinearRegression
from mesascope.theory import lu2024


def process(dim, noise):
    return LinearRegression(dim, covariance=np.eye(dim) / dim, prior="sphere", noise=noise)


def features(of, examples):
    return lu2024.features(of, FewShot(examples))
