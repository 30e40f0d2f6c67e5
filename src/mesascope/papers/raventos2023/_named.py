"""What `identify` calls the transformers."""

from __future__ import annotations

from mesascope.processes import FewShot

from .._claim import Claim, Finding, presets
from .._names import IdentifySettings, answer_of, identified_as, identify_all, name_of, unidentified
from ._data import PAPER, PAPER_DIRECTION, Training, pool, recorded, trained


def _named(settings: _Named) -> Finding:
    """`identify` on the transformers of all seeds, trained on few and on many tasks."""
    answers = {
        tasks: identify_all(
            trained(settings, tasks)[recorded(settings)[-1]],
            pool(settings, tasks),
            FewShot.every(settings.examples),
            settings,
        )
        for tasks in (settings.few, settings.many)
    }
    few, many = answers.values()
    parts = {
        f"memorizing, K = {settings.few}": identified_as("memorizing", *few),
        f"none, K = {settings.many}": unidentified(*many),
    }
    return Finding.of_parts(
        {f"K = {tasks}": [name_of(one) for one in found] for tasks, found in answers.items()},
        {f"K = {settings.few}": "memorizing", f"K = {settings.many}": "none"},
        None,
        parts,
        {f"K = {tasks}": [answer_of(one, "memorizing") for one in found] for tasks, found in answers.items()},
    )


class _Named(Training, IdentifySettings):
    few: int = 2
    many: int = 32
    tasks: int = 400
    learners: tuple[str, ...] = (
        *("zero", "average", "gradient-descent"),
        *("memorizing", "bayes-mixture", "ridge"),
    )


CLAIMS = (
    Claim(
        id=f"{PAPER}/named",
        title="`identify` names memorizing on few tasks and nothing on many",
        evidence="measured, reduced",
        origin="ours",
        statement="""Asked about transformers trained on few tasks `identify` names the memorizing learner; trained on many
            it finds that they do what none of its learners does, ridge regression and Bayes mixtures included.""",
        source="raventos2023, section 3.1, asked of `identify`",
        settings=presets(_Named(), **{**PAPER_DIRECTION, "many": 512}),
        check=_named,
        criterion="""The name for every seed with the tolerance of `identify`, a hundredth of the mean square of the
            answers. Its other fitted number is the noise variance.""",
        history="""It was first to name ridge regression on many tasks. One transformer (seed 1) was asked before, with 2,
            8, 32 and 128 tasks: the nearest learner left 3 to 5 % unexplained at 8 tasks and more, also with a tolerance of
            a tenth, where it named no ridge either. The statement was then changed to what is said now.""",
        cost="about 20 min",
    ),
)
