"""Write results/benchmark.json into the pages that show it: `python benchmarks/write_tables.py` after `make bench`."""

import json
from pathlib import Path

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "results" / "benchmark.json"
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


def table(results, files):
    """The lines of a table of the benchmarks in these files, and of what they were measured on."""
    machine = results["machine_info"]
    chosen = [one for one in results["benchmarks"] if _file(one).startswith(files)]
    yield (
        f"Measured on {results['datetime'][:10]} on {machine['cores']} cores of {machine['cpu']['brand_raw']}, "
        f"Python {machine['python_version']}, jax {machine['jax']} on {machine['device']}:"
    )
    yield ""
    yield "| what | measured | bar |"
    yield "|---|---|---|"
    for one in chosen:
        what, measured, limit, met = row(one["extra_info"], one["stats"]["median"], one["name"])
        yield f"| {what} | {measured} | {limit}{'' if met else ', **missed**'} |"


def main():
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    for page, files in PAGES.items():
        before, rest = page.read_text(encoding="utf-8").split(BEGIN)
        after = rest.split(END)[1]
        lines = "\n".join(table(results, files))
        page.write_text(f"{before}{BEGIN}\n\n{lines}\n\n{END}{after}", encoding="utf-8")


def _file(bench):
    return bench["fullname"].split("::")[0].rsplit("/", 1)[-1]


def _time(seconds):
    return f"{1e3 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def _size(size):
    return f"{size / 1e9:.2f} GB"


if __name__ == "__main__":
    main()
