"""Figures drawn from their traces: shows what `records` hold, computes nothing, knows no jax."""

from ._render import render as render
