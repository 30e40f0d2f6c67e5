"""`python -m mesascope`: the command line."""

from mesascope.cli import run

run()
