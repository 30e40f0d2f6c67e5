"""The command line: parse, call, print."""

from ._main import main as main
from ._main import run as run
