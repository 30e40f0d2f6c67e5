"""Records of every kind in folders, written without computing anything: what reports are made of."""

import hashlib
from pathlib import Path

import numpy as np

from mesascope.records import (
    AlongRecord,
    Band,
    CertificateRecord,
    ClaimRecord,
    Figure,
    Heatmap,
    Histogram,
    IdentificationRecord,
    Line,
    Panel,
    PlannedRun,
    Points,
    Rule,
    RunDirectory,
    RunFolders,
    RunRecord,
    StudyAxis,
    StudyPoint,
    StudyRecord,
    open_store,
    provenance,
    write_along,
    write_certificate,
    write_checkpoint,
    write_identification,
)

FROM = provenance()


def curves_figure(title="Curves"):
    """Two panels with every kind of trace but maps."""
    x = np.linspace(1, 10, 20)
    panel = Panel(
        title="Loss of $W^{KQ}$",
        xlabel="flow time $t$",
        ylabel=r"squared error $E\|\hat y - y\|^2$",
        yscale="log",
        traces=(
            Band(x=x, low=0.5 / x, high=2 / x, label="exact & more", series=0),
            Line(x=x, y=1 / x, label="exact & more", series=0),
            Points(x=x[::5], y=1 / x[::5], yerr=0.1 / x[::5], label="sampled"),
            Rule(value=0.2, label=r"theory $\frac{1}{5\sigma^2}$"),
        ),
    )
    ratios = Panel(
        title="Ratios",
        xlabel="ratio",
        ylabel="count",
        traces=(
            Histogram.of(np.sqrt(x), bins=5, label="ratios"),
            Rule(value=2.0, axis="x", label="truth"),
        ),
    )
    return Figure(title=title, panels=(panel, ratios), caption="Loss falls by 50 % & more.")


def map_figure():
    """A heat map with names."""
    trace = Heatmap(z=np.eye(2) - 0.2, colorlabel="weight", center=0, rows=("a_1", "b"), columns=("a_1", "b"))
    return Figure(
        title="Weights", panels=(Panel(title="Weights", xlabel="to", ylabel="from", traces=(trace,)),)
    )


def panel(*traces, **fields):
    """A panel of these traces."""
    words = {"title": "A title with $a_j b_j$", "xlabel": "epoch", "ylabel": "$ab$"}
    return Panel(**{**words, "traces": traces, **fields})


def laid_out(figure):
    """A figure as matplotlib lays it out."""
    import matplotlib
    from matplotlib.figure import Figure as Canvas

    from mesascope.report._render import draw_panels
    from mesascope.report._style import DPI, RC

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(RC)
        canvas = Canvas(dpi=DPI, layout="constrained")
        draw_panels(figure, canvas)
        canvas.draw_without_rendering()
    return canvas


def claim(id="zheng2024/theorem-4.1", **changes):
    """A claim of the small preset that holds."""
    facts = {
        "id": id,
        "title": "The flow ends at the paper's product",
        "statement": "The flow ends at ab = κ1/(κ2 + κ3/(T−2) Σ 1/(t−1)).",
        "source": "zheng2024, Theorem 4.1",
        "origin": "paper",
        "evidence": "exact",
        "decision": "met",
        "criterion": "a flow at rest",
        "measured": {"error_of_ab": 1.25e-9, "loss": 0.4},
        "expected": {"error_of_ab": 0.0, "loss": "below 1"},
        "tolerance": 1e-8,
        "seconds": 1.5,
        "details": {
            "intervals_95": {"loss": [0.25, 0.5]},
            "cases": [{"dim": 2, "error": 1e-9}, {"dim": 5, "error": 1.25e-9}],
        },
        "setting": {"dim": [2, 5], "seed": 7},
        "preset": "small",
        "seed": 7,
        "fingerprint": "f",
        "provenance": FROM,
    }
    return ClaimRecord(**{**facts, **changes})


def run_directory(path, *records, figures=None):
    """A folder as `reproduce` fills it; the figures belong to the first record."""
    run = RunDirectory.create(path)
    files = tuple(run.write_figure(name, figure) for name, figure in (figures or {}).items())
    for place, record in enumerate(records):
        run.write_claim(record.model_copy(update={"files": files if place == 0 else ()}))
    return Path(path)


def store(path, name="grid", failed=()):
    """A store with a study of three starts times two laws, and a run that no study has."""
    folders = RunFolders.create(path)
    axes = (
        StudyAxis(name="init.a", labels=(0.1, 0.2, 0.3)),
        StudyAxis(name="law", labels=("gaussian", "<heavy>")),
    )
    points = []
    for a in range(3):
        for law in range(2):
            place = (a, law)
            points.append(StudyPoint(run=finish(folders, place, place in failed), place=place))
    finish(folders, (9, 9))
    with open_store(path) as opened:
        record = StudyRecord(name=name, kind="flow", spec={"name": name}, axes=axes, points=tuple(points))
        opened.write_study(record)
    return Path(path)


def finish(folders, place, failed=False):
    """Write the run at a place, done or failed; give its id."""
    run = run_id(place)
    plan = PlannedRun(id=run, kind="flow", spec={"dim": 2, "place": list(place)}, code="c")
    folders.plan(plan)
    record = RunRecord(
        **plan.model_dump(),
        status="failed" if failed else "done",
        outcome={} if failed else {"loss": 1.0 + place[0], "product": [0.19, 0.19], "converged": True},
        error="the flow diverged" if failed else None,
        traceback="Traceback: here\nand there" if failed else None,
        started="2026-01-01T00:00:00Z",
        ended="2026-01-01T00:01:00Z",
        seconds=0.5,
        provenance=FROM,
    )
    time = np.array([0.0, 0.1, 1.0, 10.0])
    with folders.holding(run):
        folders.finish(
            record, None if failed else {"time": ("time", time), "loss": ("time", 1 + 2 / (1 + time))}
        )
    return run


def run_id(place):
    """The id of the run at a place."""
    return hashlib.sha256(f"run {place}".encode()).hexdigest()[:32]


def training(path):
    """A folder as `train` leaves it, with two checkpoints."""
    for step in (100, 200):
        log = {
            "steps": [50, 100, 150, 200],
            "losses": [3.0, 1.0, 0.3, 0.2],
            "evaluated": [100, 200],
            "values": [0.9, 0.25],
            "errors": [0.05, 0.01],
        }
        header = {
            "step": step,
            "run": {"process": "LinearRegression(dim=3)", "seed": "0"},
            "log": log,
            "weights": {"model": "PromptModel"},
            "provenance": FROM.model_dump(),
        }
        write_checkpoint(Path(path) / f"step-{step:09}.checkpoint", header, b"")
    (Path(path) / "spec.json").write_text('{"examples": 10}')
    return Path(path)


def certificate(path):
    """A certificate, as if it were proved."""
    record = CertificateRecord(
        statement=("Exactly one critical point of L lies within 1e-40.", "Every a_j b_j is exactly 18/101."),
        spec={"law": {"kind": "gaussian", "scale": "1"}, "dim": 1, "horizon": 3},
        weights={"w_kq": (("0", "0"), ("1/2", "0")), "w_pv": (("1/3", "0"),)},
        radius="0.0000000000000000000000000000000000000001",
        unique_within="1/10000",
        positive=2,
        negative=0,
        zero=1,
        loss=("1.39", "1.40"),
        products=(("0.17", "0.18"),),
        theorem="18/101",
        provenance=FROM,
    )
    write_certificate(path, record)
    return Path(path)


def curve(name, value):
    """A curve of an identification, between nine and eleven tenths of itself."""
    value = np.asarray(value, float)
    return {"name": name, "value": value, "low": 0.9 * value, "high": 1.1 * value}


def identification_record(names, lengths, errors, distances, ranking, **facts):
    """An identification among the learners of these names.

    `errors`, of the model and of every learner, and `distances` of every learner are curves over `lengths`.
    """
    size = len(names) + 1
    return IdentificationRecord.model_validate(
        {
            "ranking": ranking,
            "separated_by": (),
            "reasons": ("it is near",),
            "reading": None,
            "process": "Noise(dim=2)",
            "task": "NextToken(T=6)",
            "tasks": 100,
            "seed": 0,
            "tolerance": 0.01,
            "level": 0.95,
            "spec": {"tasks": 100},
            "provenance": FROM,
            "curves": {
                "lengths": lengths,
                "errors": errors,
                "distances": distances,
                "names": ("model", *names),
                "differences": np.full((size, size), 0.1) - 0.1 * np.eye(size),
            },
            **facts,
        }
    )


def identification(path):
    """A folder with an identification and its curves."""
    names = ("ridge", "zero")
    record = identification_record(
        names,
        (1, 2, 3),
        [curve(name, [2.0, 1.0, 0.5]) for name in ("model", *names)],
        [curve(name, [0.01, 0.02, 0.04]) for name in names],
        [
            {
                "learner": name,
                "hyperparameters": {"penalty": 0.5},
                "distance": 0.01,
                "interval": (0.005, 0.02),
                "contains": (),
            }
            for name in names
        ],
        verdict="ambiguous",
        candidates=("ridge",),
    )
    write_identification(Path(path) / "identification.json", record)
    return Path(path)


def along_record(determined=(False, True, True), steps=(0, 10, 1000)):
    """A training that goes from zero to ridge."""
    zero, ridge = [1.0, 0.5, 0.0], [0.0, 0.5, 1.0]
    ranking = [
        {"learner": name, "hyperparameters": {}, "distance": 0.5, "interval": (0.4, 0.6), "contains": ()}
        for name in ("zero", "ridge")
    ]
    verdicts = ("none", "ambiguous", "identified")
    return AlongRecord.model_validate(
        {
            "headline": "nearest to zero, then ridge from step 10 [0, 1000]",
            "stages": [
                {
                    "step": step,
                    "verdict": verdict,
                    "candidates": () if verdict == "none" else ("ridge",),
                    "headline": verdict,
                    "reasons": (),
                    "ranking": ranking,
                    "mixtures": (),
                }
                for step, verdict in zip(steps, verdicts, strict=True)
            ],
            "strategies": [
                {"name": "zero", "learner": "zero", "hyperparameters": {}, "step": 0},
                {"name": "ridge", "learner": "ridge", "hyperparameters": {"penalty": 0.3}, "step": 1000},
            ],
            "weights": [curve("zero", zero), curve("ridge", ridge)],
            "sums": [curve("zero", zero), curve("ridge", [1.0, 1.0, 1.0])],
            "determined": determined,
            "unexplained": curve("mixture", [1.0, 0.3, 0.0]),
            "distances": [curve("zero", [1.0, 1.0, 1.0]), curve("ridge", [9.0, 1.0, 0.0])],
            "changes": [{"before": "zero", "after": "ridge", "step": 10, "interval": (0, 1000)}],
            "process": "Noise(dim=2)",
            "task": "NextToken(T=6)",
            "tasks": 100,
            "seed": 0,
            "tolerance": 0.01,
            "level": 0.95,
            "spec": {"tasks": 100},
            "provenance": FROM,
        }
    )


def along(path):
    """A folder with an identification along training."""
    write_along(Path(path) / "along.json", along_record())
    return Path(path)
