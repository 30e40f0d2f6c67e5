"""Measure how long a newcomer waits: `python3 benchmarks/doors.py [DOOR …]`, in a clone with nothing installed.

Every door is tried in clones of the last commit, in a folder of their own, with empty caches: packages come from the network,
and no program has been compiled before. What is measured goes into results/doors.json and into the table of README.md; other
rows stay. Leave the machine idle: times on a busy one say nothing, and each row has the load at its start.
"""

import argparse
import datetime
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from measuring import ratio
from write_tables import row

ROOT = Path(__file__).parents[1]
README, RESULTS = (ROOT / "benchmarks" / name for name in ("README.md", "results/doors.json"))
BEGIN, END = "<!-- doors: written by benchmarks/doors.py -->", "<!-- end of doors -->"
ROUNDS = 5
FLOW = {
    "law": {"kind": "gaussian", "scale": 1.0},
    "dim": 5,
    "horizon": 100,
    "init": {"kind": "diagonal", "a": 0.1, "b": 0.1},
}
"""The paper's setting."""


class Row(NamedTuple):
    """A row of the table: what is measured, and the bars."""

    what: str
    bars: dict[str, float]


class Door(NamedTuple):
    """What is tried, and the rows that it fills, in the order in which `measure` returns them."""

    rows: tuple[Row, ...]
    measure: Callable[["Ground"], list[dict[str, Any]]]


DOORS: dict[str, Door] = {}


def door(name: str, *rows: Row) -> Callable[[Any], Any]:
    """Declare a door."""

    def declare(measure: Any) -> Any:
        DOORS[name] = Door(rows, measure)
        return measure

    return declare


class Ground:
    """The folder of the clones and caches.

    Args:
        folder: where; what is there already is used where nothing fresh is asked for.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def run(self, command: str, where: Path, cache: Path | None = None) -> tuple[float, str]:
        """Run a command of the shell with a cache of its own; return its seconds and standard output.

        Raises:
            SystemExit: it failed; with the end of what it said.
        """
        start = time.perf_counter()
        done = subprocess.run(
            ["bash", "-c", command], cwd=where, env=self.environment(cache), capture_output=True, text=True
        )
        seconds = time.perf_counter() - start
        if done.returncode:
            sys.exit(f"{command}: exit status {done.returncode}\n{(done.stdout + done.stderr)[-3000:]}")
        return seconds, done.stdout

    def environment(self, cache: Path | None = None) -> dict[str, str]:
        """The environment of a command: nothing of mesascope is on its path, and it keeps its caches here."""
        kept = {
            name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")
        }
        return {**kept, "XDG_CACHE_HOME": str(cache or self.folder / "cache")}

    def fresh(self, name: str) -> Path:
        """An empty place of this name."""
        path = self.folder / name
        shutil.rmtree(path, ignore_errors=True)
        return path

    def clone(self, name: str) -> tuple[float, Path]:
        """A fresh clone of the last commit; also the seconds that it took."""
        path = self.fresh(name)
        return self.run(f"git clone --quiet --no-hardlinks '{ROOT}' '{path}'", self.folder)[0], path

    def ready(self) -> Path:
        """A clone of the last commit with everything installed, which takes no part in the times."""
        path, commit = self.folder / "ready", "git rev-parse HEAD"
        installed = (path / ".venv" / ".all").exists()
        if not installed or self.run(commit, path)[1] != self.run(commit, ROOT)[1]:
            _, path = self.clone("ready")
            self.run("make setup", path)
        return path


@door(
    "set-up",
    Row("set-up: `make setup` in a fresh clone, all packages from the network (by pip it took 150 s)", {}),
)
def set_up(ground: Ground) -> list[dict[str, Any]]:
    """Install everything."""
    _, clone = ground.clone("set-up")
    return [{"seconds": ground.run("make setup", clone, ground.fresh("empty"))[0]}]


@door(
    "reproduce",
    Row("`make reproduce` after set-up, nothing compiled before: until the first verdict", {"seconds": 10}),
    Row(
        "the same until the table of all verdicts of zheng2024 (fewer claims took 288 s at first)",
        {"seconds": 100},
    ),
    Row("one claim again after a change of its code: `reproduce zheng2024/theorem-4.1`", {"seconds": 5}),
)
def reproduce(ground: Ground) -> list[dict[str, Any]]:
    """Check the claims of one paper; then change the code of one, and check it again."""
    clone, cache, out = ground.ready(), ground.fresh("empty"), ground.fresh("verdicts")
    first, whole = _first_and_last(ground, f"make reproduce ARGS='--out {out}'", clone, cache, out)
    module = clone / "src" / "mesascope" / "papers" / "zheng2024" / "__init__.py"
    before = module.read_text(encoding="utf-8")
    module.write_text(f"{before}# changed\n", encoding="utf-8")
    try:
        again = ground.run(f".venv/bin/mesascope reproduce zheng2024/theorem-4.1 --out {out}", clone, cache)[
            0
        ]
    finally:
        module.write_text(before, encoding="utf-8")
    return [{"seconds": first}, {"seconds": whole}, {"seconds": again}]


def _first_and_last(ground: Ground, command: str, where: Path, cache: Path, out: Path) -> tuple[float, float]:
    """The seconds until the first record of a claim stands in a folder, and until the command ends."""
    start, first = time.perf_counter(), None
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(
            ["bash", "-c", command], cwd=where, env=ground.environment(cache), stdout=said, stderr=said
        )
        while process.poll() is None:
            if first is None and any(out.glob("*/claims/*/*.json")):
                first = time.perf_counter() - start
            time.sleep(0.02)
        seconds = time.perf_counter() - start
        if process.returncode or first is None:
            said.seek(0)
            sys.exit(f"{command}: exit status {process.returncode}\n{said.read()[-3000:]}")
    return first, seconds


@door("test", Row("`make test` after set-up (half an hour at first)", {"seconds": 480}))
def test(ground: Ground) -> list[dict[str, Any]]:
    """Run the tests that take seconds."""
    seconds, said = ground.run("make test", ground.ready(), ground.fresh("empty"))
    return [{"seconds": seconds, "detail": said.strip().splitlines()[-1].strip("= ")}]


@door("gate", Row("the gate, `.ci/run`, in a fresh clone", {"seconds": 2400}))
def gate(ground: Ground) -> list[dict[str, Any]]:
    """Run what must pass before a change lands; it installs packages of the system where they are missing."""
    _, clone = ground.clone("gate")
    return [{"seconds": ground.run(".ci/run", clone, ground.fresh("empty"))[0]}]


@door(
    "flow",
    Row(
        "`mesascope flow`, the paper's setting, nothing compiled before, against `import jax, equinox, diffrax` "
        "(about 6 × at first)",
        {"slower": 3},
    ),
    Row("the same with the programs that the command before compiled", {"slower": 1.6}),
)
def flow(ground: Ground) -> list[dict[str, Any]]:
    """Time commands and the bare import in turns."""
    clone, spec = ground.ready(), ground.folder / "flow.json"
    spec.write_text(json.dumps(FLOW), encoding="utf-8")
    command = f".venv/bin/mesascope flow '{spec}' --json"
    times: dict[str, list[float]] = {"import": [], "cold": [], "cached": []}
    for turn in range(ROUNDS + 1):
        cache = ground.fresh("empty")
        found = {
            "import": ground.run(".venv/bin/python -c 'import jax, equinox, diffrax'", clone, cache)[0],
            "cold": ground.run(command, clone, cache)[0],
            "cached": ground.run(command, clone, cache)[0],
        }
        for name, seconds in found.items():
            times[name] += [seconds] if turn else []  # the first turn writes the byte code
    medians = {name: statistics.median(seconds) for name, seconds in times.items()}
    return [
        {
            "slower": ratio(times, name, "import")[0],
            "seconds": medians[name],
            "detail": f"{medians[name]:.3g} and {medians['import']:.3g} s, medians of {ROUNDS}",
        }
        for name in ("cold", "cached")
    ]


@door("clone-to-verdict", Row("from `git clone` to the first verdict of `make reproduce`", {"seconds": 90}))
def clone_to_verdict(ground: Ground) -> list[dict[str, Any]]:
    """Arrive with nothing."""
    took, clone = ground.clone("arrival")
    out = ground.fresh("verdicts")
    first, whole = _first_and_last(
        ground, f"make reproduce ARGS='--out {out}'", clone, ground.fresh("empty"), out
    )
    return [{"seconds": took + first, "detail": f"all verdicts after {took + whole:.0f} s"}]


@door(
    "clone-to-model",
    Row(
        "from `git clone` to the algorithm of the tutorial's PyTorch model, training it included, installing PyTorch not",
        {"seconds": 180},
    ),
)
def clone_to_model(ground: Ground) -> list[dict[str, Any]]:
    """Arrive with a module of PyTorch: install, then run the blocks of the tutorial until the first verdict."""
    took, clone = ground.clone("arrival")
    cache = ground.fresh("empty")
    installed = ground.run("make .venv/.core", clone, cache)[0]
    torch = re.search(r"^python3 -m pip .*torch==.*$", (clone / ".ci/run").read_text(encoding="utf-8"), re.M)
    assert torch, ".ci/run installs PyTorch"
    extra = ground.run(torch[0], clone, cache)[0]
    page = (clone / "docs/tutorials/pytorch-model.md").read_text(encoding="utf-8")
    blocks = re.findall(
        r"^```python\n(.*?)^```$", page.partition("print(answer)\n")[0] + "print(answer)\n```", re.M | re.S
    )
    program = clone / "until_it_is_named.py"
    program.write_text("\n".join(blocks), encoding="utf-8")
    seconds, said = ground.run(f".venv/bin/python {program.name}", clone, cache)
    verdict = next((line for line in said.splitlines() if line.startswith("identified")), None)
    assert verdict, said
    detail = f"{installed:.0f} s of it install, {seconds:.0f} s train and identify; PyTorch {extra:.0f} s beside it; {verdict}"
    return [{"seconds": took + installed + seconds, "detail": detail}]


def table(found: dict[str, dict[str, Any]]) -> str:
    """The table: every row that is declared, with what was found."""
    lines = ["| what | measured | bar |", "|---|---|---|"]
    for name, one in DOORS.items():
        for what, bars in one.rows:
            info = {"what": what, **{f"bar_{bar}": value for bar, value in bars.items()}}
            told = found.get(what)
            _, measured, bar, met = row({**dict.fromkeys(bars, 0), **info, **(told or {})}, 0, name)
            shown = f"{measured}; {told['when']}" if told else "not measured yet"
            lines.append(f"| {what} (`{name}`) | {shown} | {bar}{'' if met else ', **missed**'} |")
    return "\n".join(lines)


def written(page: str, found: dict[str, dict[str, Any]]) -> str:
    """The page with its table."""
    top, rest = page.split(BEGIN)
    return f"{top}{BEGIN}\n\n{table(found)}\n\n{END}{rest.split(END)[1]}"


def stored() -> dict[str, dict[str, Any]]:
    """What was found, by the texts of the rows."""
    return json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}


def _machine() -> str:
    """Date, cores, Python and load."""
    version = ".".join(map(str, sys.version_info[:3]))
    cores = len(os.sched_getaffinity(0))
    return f"{datetime.date.today()}, {cores} cores, Python {version}, load {os.getloadavg()[0]:.1f}"


def main() -> None:
    """Measure the doors that are named, and write the table after each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("doors", nargs="*", metavar="DOOR", help=f"by default all: {', '.join(DOORS)}")
    parser.add_argument(
        "--folder",
        type=Path,
        help="of clones and caches, kept and used again; by default one that is removed",
    )
    given = parser.parse_args()
    for name in given.doors:
        if name not in DOORS:
            parser.error(f"unknown door {name!r}; use {', '.join(DOORS)}")
    with tempfile.TemporaryDirectory(prefix="doors-") as temporary:
        ground = Ground((given.folder or Path(temporary)).resolve())
        for name in given.doors or DOORS:
            when = _machine()
            for (what, _), found in zip(DOORS[name].rows, DOORS[name].measure(ground), strict=True):
                RESULTS.parent.mkdir(exist_ok=True)
                RESULTS.write_text(
                    json.dumps({**stored(), what: {**found, "when": when}}, indent=1, ensure_ascii=False)
                    + "\n",
                    encoding="utf-8",
                )
                print(f"{what}: {found}", flush=True)
            README.write_text(written(README.read_text(encoding="utf-8"), stored()), encoding="utf-8")


if __name__ == "__main__":
    main()
