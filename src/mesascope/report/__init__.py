"""Figures drawn from their traces: shows what `records` hold, computes nothing, knows no jax."""

from ._render import render as render
from ._run import render_run as render_run
