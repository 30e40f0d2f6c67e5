r"""Run the blocks of a page, in their order, and keep what they print and draw.

What a block is, its language says: `python` runs, or is written to a file if its first line names one (`# name.py`);
`toml` is such a file; `latex` is for another program; `sh` are commands of mesascope, which go on after a `\` at the end of a
line; `console` are commands that are refused with the line below, which may be broken; `text` is what the block before it
prints; `pycon` is a session whose answers are compared; `py` runs alone, in a process of its own. A block below
`<!-- needs PACKAGE -->` is left out where that is not installed, and one inside a comment that begins with the line
`<!-- not shown` runs without being shown.

The tests run every page, and `make docs` runs those that have not been run with these blocks and this code of the package:
outputs are kept in docs/_build/outputs, and the site shows them below their blocks.
"""

import argparse
import base64
import builtins
import doctest
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from unittest.mock import patch

DOCS = Path(__file__).parents[1]
KEPT = DOCS / "_build" / "outputs"
BLOCK = re.compile(r"(?:<!-- needs (\w+) -->\n)?^```(\w+)\n(.*?)^```$", re.M | re.S)

# Pages that only their tests can run: they know what has to lie in the folder, and which commands need a cluster.
RUN_BY = {
    "docs/report.md": "tests/cli/test_report_page.py",
    "docs/studies.md": "tests/studies/sweeps/test_page.py",
}


@dataclass(frozen=True)
class Output:
    """What a block printed, the PNG files that it drew (names and contents in base64), and the package that it lacked."""

    text: str = ""
    pictures: dict[str, str] = field(default_factory=dict)
    lacked: str = ""


class PageError(Exception):
    """A block does not do what its page says."""


def _python(text, names):
    if re.match(r"# \S+\.py\n", text):
        _file(text, names)
    else:
        exec(compile(text, "page", "exec"), names)


def _pycon(text, names):
    said = []
    example = doctest.DocTestParser().get_doctest(text, names, "page", None, 0)
    failed = (
        doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
        .run(example, out=said.append, clear_globs=False)
        .failed
    )
    vars(builtins).pop("_", None)  # the last answer, with which tyro could not be imported
    if failed:
        raise PageError("".join(said))


def _alone(text, names):
    program = f"import jax\n{text}print(len(jax.devices()))"
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    if (finished.returncode, finished.stdout) != (0, "8\n"):
        raise PageError(finished.stdout + finished.stderr)


def _file(text, names):
    Path(re.match(r"# (\S+)\n", text).group(1)).write_text(text, encoding="utf-8")


def _nothing(text, names):
    pass


def _commands(text, names):
    from mesascope.cli import main

    printed = StringIO()
    with redirect_stdout(printed):
        for line in text.replace("\\\n", "").splitlines():
            status = _status_of(main, shlex.split(line)[1:])
            if status != 0:
                raise PageError(f"{line}: exit status {status}\n{printed.getvalue()}")
    names["printed"] = printed.getvalue()
    print(printed.getvalue(), end="")


def _status_of(main, arguments):
    try:
        return main(arguments)
    except SystemExit as end:  # of --help
        return end.code or 0


def _refused(text, names):
    from mesascope.cli import main

    for refused in re.findall(r"^\$ .*\n(?:(?!\$ ).*\n)+", text, re.M):
        command, *broken = refused.splitlines()
        lines, said = [], " ".join(line.strip() for line in broken)
        with patch("mesascope.cli._main.say", lines.append):
            status = _status_of(main, shlex.split(command)[2:])
        if (status, lines) != (2, [said]):
            raise PageError(f"{command}: exit status {status}, {lines} instead of {said!r}")


def _printed(text, names):
    """What the block before prints or a part of it, but for the width of columns and last digits."""
    shown, printed = _words(text), _words(names["printed"])
    starts = range(len(printed) - len(shown) + 1)
    if not any(all(map(_agree, shown, printed[start:])) for start in starts):
        raise PageError(f"the page shows\n{text}where its blocks print\n{names['printed']}")


NUMBER = r"\d+(?:\.\d+)?(?:e[-+]?\d+)?"
CLOSE = 0.02  # processors differ in the last digits of sums; what was trained carries that on
NOTHING = 1e-20  # below are rounding errors of what is 0: no digit of them means anything


def _words(text):
    return re.findall(rf"{NUMBER}|[^\W\d]+|[^\w\s]", text.replace("─", ""))


def _agree(shown, printed):
    """Whether two words are the same: whole numbers to the last digit, others to `CLOSE`."""
    if shown == printed:
        return True
    if not all(re.fullmatch(NUMBER, one) for one in (shown, printed)) or shown.isdecimal():
        return False
    one, other = float(shown), float(printed)
    return abs(one - other) <= max(CLOSE * abs(other), NOTHING)


RUNNERS = {
    "python": _python,
    "py": _alone,
    "pycon": _pycon,
    "toml": _file,
    "latex": _nothing,
    "sh": _commands,
    "console": _refused,
    "text": _printed,
}


def run(page, names):
    """Run all blocks of a page's text in the current folder, in the names given; one output for each block."""
    outputs = []
    for package, kind, text in BLOCK.findall(page):
        if package and not find_spec(package):
            outputs.append(Output(lacked=package))
            continue
        before, printed = _drawn(), StringIO()
        with redirect_stdout(printed):
            RUNNERS[kind](text, names)
        if kind == "python" and printed.getvalue():
            names["printed"] = printed.getvalue()
        drawn = {name: picture for name, picture in _drawn().items() if before.get(name) != picture}
        lines = (line.rstrip() for line in printed.getvalue().splitlines())
        outputs.append(Output("\n".join(lines).strip("\n"), drawn))
    keep(page, outputs)
    return outputs


def _drawn():
    return {
        path.name: base64.b64encode(path.read_bytes()).decode("ascii")
        for path in sorted(Path().glob("*.png"))
    }


def keep(page, outputs):
    """Write the outputs to where `kept` finds them, as a whole or not at all."""
    KEPT.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=KEPT, suffix=".tmp", delete=False, encoding="utf-8") as file:
        json.dump([asdict(output) for output in outputs], file)
    os.replace(file.name, place_of(page))


def kept(page):
    """The outputs of a page with these blocks under the code of today, or None."""
    if not place_of(page).exists():
        return None
    return [Output(**output) for output in json.loads(place_of(page).read_text(encoding="utf-8"))]


def place_of(page):
    """The file that keeps the outputs of a page with these blocks under the code and with the packages of today."""
    from mesascope.records import code_version

    blocks = BLOCK.findall(page)
    lacked = sorted({package for package, *_ in blocks if package and not find_spec(package)})
    told = json.dumps([code_version(), blocks, lacked])
    return KEPT / f"{hashlib.sha256(told.encode()).hexdigest()[:32]}.json"


def pages():
    """All pages with blocks that are run here, by their paths."""
    for path in sorted(DOCS.rglob("*.md")):
        if "_build" in path.parts or path.relative_to(DOCS.parent).as_posix() in RUN_BY:
            continue
        if any(kind in RUNNERS for _, kind, _ in BLOCK.findall(path.read_text(encoding="utf-8"))):
            yield path


def not_run():
    """Those of the pages that have no kept outputs with their blocks and the code of today."""
    return [path for path in pages() if kept(path.read_text(encoding="utf-8")) is None]


def _run_alone(path):
    """Run a page in a process and a folder of its own; what it said if it failed."""
    programs = {
        "JAX_COMPILATION_CACHE_DIR": str(DOCS / "_build" / "programs"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1",
        "EQX_ON_ERROR": "nan",  # checks at run time call back into Python, which no kept program can
    }
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-W", "error", __file__, "--page", str(path)]
        finished = subprocess.run(
            command, cwd=folder, env=programs | os.environ, capture_output=True, text=True
        )
    verdict = "failed" if finished.returncode else "done"
    print(f"{path.relative_to(DOCS.parent)}: {verdict}, {time.perf_counter() - began:.0f} s", flush=True)
    return f"{path}:\n{finished.stdout}{finished.stderr}" if finished.returncode else None


def main(arguments=None):
    """Run the page that is named, or every page without kept outputs, as many at once as there are cores."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--page", type=Path, help="this one, here in this process")
    given = parser.parse_args(arguments)
    if given.page:
        run(given.page.read_text(encoding="utf-8"), {"__name__": given.page.stem})
        return 0
    todo = not_run()
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        failures = [failure for failure in pool.map(_run_alone, todo) if failure]
    print("\n".join(failures), file=sys.stderr, end="")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
