"""What works without the optional packages, and what is said where one is missing."""

import re
import subprocess
import sys
from importlib.metadata import packages_distributions, requires

import pytest

from mesascope.specs import MissingExtraError, extra

EXTRAS = ("lab", "store", "cluster", "exporters")


def packages():
    """Import names of the packages that only extras install."""
    lines = [line.partition(";") for line in requires("mesascope")]
    name = re.compile(r"[\w-]+")
    named = {
        what: {name.match(line)[0].lower() for line, _, marker in lines if what in marker} for what in EXTRAS
    }
    core = {name.match(line)[0].lower() for line, _, marker in lines if "extra" not in marker}
    optional = set().union(*named.values()) - core - {"mesascope"}
    return sorted(
        module
        for module, distributions in packages_distributions().items()
        if {one.lower() for one in distributions} <= optional and not module.startswith("_")
    )


PROGRAM = """
import sys
for name in {packages}:
    sys.modules[name] = None  # as if it were not installed
import mesascope as ms
for name in dir(ms):
    getattr(ms, name)
from mesascope.cli import main
sys.exit(main({arguments}))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "missing"),
    [
        (["claims", "zheng2024"], None),
        (["cite", "zheng2024"], None),
        (["lab"], ("nicegui", "lab")),
        (["report", "{tmp}"], ("markupsafe|jinja2|plotly", "lab")),
        (["runs", "list", "--store", "{tmp}"], ("sqlalchemy", "store")),
    ],
)
def test_commands_work_without_extras_or_name_the_one_that_is_missing(tmp_path, arguments, missing):
    arguments = [one.format(tmp=tmp_path) for one in arguments]
    program = PROGRAM.format(packages=packages(), arguments=arguments)
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    if missing is None:
        assert (ended.returncode, ended.stderr) == (0, "")
        return
    package, name = missing
    assert ended.returncode == 2, ended.stderr
    fix = rf"pip install 'mesascope\[{name}\]' \(in a clone: make setup\)"
    said = rf"mesascope {arguments[0]}: this needs the package ({package}): {fix}"
    assert re.fullmatch(said, ended.stderr.strip())


@pytest.mark.slow
def test_packages_of_extras_are_known():
    assert {"nicegui", "plotly", "sqlalchemy", "psycopg", "distributed", "dask_jobqueue", "pyarrow"} <= {
        *packages()
    }
    assert not {"jax", "numpy", "matplotlib", "xarray"} & {*packages()}


def test_an_error_of_our_own_modules_is_not_explained_away():
    with pytest.raises(ModuleNotFoundError, match="mesascope") as raised, extra("lab"):
        import mesascope.nothing  # noqa: F401
    assert not isinstance(raised.value, MissingExtraError)
