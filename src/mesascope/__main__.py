"""`python -m mesascope`: the command line."""

import sys

from mesascope.cli import main

sys.exit(main())
