"""Take a run over and write it into the pages that show it: `python benchmarks/write_tables.py` after `make bench`.

`make bench` leaves results/run.json. Its benchmarks replace those of the same names in results/benchmark.json; others stay, so
that some can be run alone, `make bench ARGS="-k …"`. Lines of another day than the table say theirs.
"""

import json
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
RESULTS, RUN = (FOLDER / "results" / f"{name}.json" for name in ("benchmark", "run"))
# A page, and which benchmarks its table shows: those whose file is named so.
PAGES = {
    FOLDER / "README.md": ("test_",),
    FOLDER.parent / "docs" / "train-your-own.md": ("test_training", "test_attention"),
}
BEGIN, END = "<!-- measured: written by benchmarks/write_tables.py -->", "<!-- end of measured -->"


def row(info, median, name):
    """What was measured, the value, the bar, and whether it is met."""
    seconds = info.get("seconds", median)
    times, met = [], True
    bars = []
    if "faster" in info:
        times.append(f"**{info['faster']:.1f} ×** as fast")
        bars.append(f"≥ {info['bar_faster']:g} ×")
        met &= info["faster"] >= info["bar_faster"]
    if "slower" in info:
        times.append(f"**{info['slower']:.2f} ×** as long")
        bars.append(f"≤ {info['bar_slower']:g} ×")
        met &= info["slower"] <= info["bar_slower"]
    else:
        times.append(_time(seconds))
    if "bar_seconds" in info:
        bars.append(_time(info["bar_seconds"]))
        met &= seconds <= info["bar_seconds"]
    if "memory" in info:
        times.append(_size(info["memory"]))
    if "bar_memory" in info:
        bars.append(_size(info["bar_memory"]))
        met &= info["memory"] <= info["bar_memory"]
    measured = ", ".join(times)
    if "detail" in info:
        measured += f" ({info['detail']})"
    return info.get("what", name), measured, ", ".join(bars) or "–", met


def table(run, files, before, former):
    """The lines of a table with the benchmarks of a run in these files; of the run alone if it has all of the table.

    Args:
        run: what pytest-benchmark has written.
        files: how the names of the files begin.
        before: the table as it is.
        former: labels that the benchmarks of the run had before.
    """
    machine, day = run["machine_info"], run["datetime"][:10]
    header = (
        f"Measured on {day} on {machine['cores']} cores of {machine['cpu']['brand_raw']}, "
        f"Python {machine['python_version']}, jax {machine['jax']} on {machine['device']}:"
    )
    chosen = [one for one in run["benchmarks"] if _file(one).startswith(files)]
    rows = [row(one["extra_info"], one["stats"]["median"], one["name"]) for one in chosen]
    old_header, _, _, _, *old = before.strip().splitlines()
    lines, note = {line.split(" | ")[0].removeprefix("| "): line for line in old}, f"; {day}"
    for renamed in former - {what for what, *_ in rows}:
        lines.pop(renamed, None)
    if lines.keys() <= {what for what, *_ in rows}:
        lines, note, old_header = {}, "", header
    for what, measured, limit, met in rows:
        lines[what] = f"| {what} | {measured}{note} | {limit}{'' if met else ', **missed**'} |"
    return [old_header, "", "| what | measured | bar |", "|---|---|---|", *lines.values()]


def merged(results, run):
    """The results with the benchmarks of a run in place of those of the same names; of the run alone if it has all."""
    names = {one["fullname"] for one in run["benchmarks"]}
    kept = [one for one in results["benchmarks"] if one["fullname"] not in names]
    new = [{**one, "datetime": run["datetime"]} for one in run["benchmarks"]]
    return {**results, "benchmarks": kept + new} if kept else run


def main():
    run = json.loads(RUN.read_text(encoding="utf-8"))
    before = json.loads(RESULTS.read_text(encoding="utf-8"))
    names = {one["fullname"] for one in run["benchmarks"]}
    if _machine(before) != _machine(run) and not {one["fullname"] for one in before["benchmarks"]} <= names:
        sys.exit("this is another machine than that of results/benchmark.json: run all benchmarks")
    former = {one["extra_info"].get("what") for one in before["benchmarks"] if one["fullname"] in names}
    results = merged(before, run)
    RESULTS.write_text(json.dumps(results, indent=4) + "\n", encoding="utf-8")
    for page, files in PAGES.items():
        top, rest = page.read_text(encoding="utf-8").split(BEGIN)
        now, after = rest.split(END)
        lines = "\n".join(table(run, files, now, former))
        page.write_text(f"{top}{BEGIN}\n\n{lines}\n\n{END}{after}", encoding="utf-8")


def _machine(results):
    machine = results["machine_info"]
    return machine["cores"], machine["cpu"]["brand_raw"]


def _file(bench):
    return bench["fullname"].split("::")[0].rsplit("/", 1)[-1]


def _time(seconds):
    if seconds >= 1000:
        return f"{seconds:.0f} s"
    return f"{1e3 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def _size(size):
    return f"{size / 1e9:.2f} GB"


if __name__ == "__main__":
    main()
