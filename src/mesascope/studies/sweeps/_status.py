"""How far a study is, whoever computes it."""

from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from ._drivers import Driver, drivers
from ._failures import Failure, grouped

if TYPE_CHECKING:
    from mesascope.records import Store


class StudyStatus(BaseModel):
    """How far a study is.

    Attributes:
        study: its name.
        total: its runs, without those that were removed from the store.
        planned, running, done, failed: how many are in each state.
        per_minute: how many end in a minute, by what the drivers say; 0 where nobody drives it.
        seconds_left: until all have ended; None where nobody drives it, or it cannot be told yet.
        failures: the reasons, those that are alike together, most first.
        drivers: who drives it now.
    """

    model_config = ConfigDict(frozen=True)

    study: str
    total: int
    planned: int
    running: int
    done: int
    failed: int
    per_minute: float
    seconds_left: float | None
    failures: tuple[Failure, ...]
    drivers: tuple[Driver, ...]


def study_status(store: "Store", study: str) -> StudyStatus:
    """Look at a study.

    Raises:
        RecordError: there is none of this name.
    """
    store.refresh()
    mine = f"study={study}"
    total = store.count([mine])  # by the index: the file of a large study takes seconds to read
    if not total:
        store.folders.study(study)  # or says that there is none
    failed = store.rows([mine, "state=failed"])
    done, running = (store.count([mine, f"state={state}"]) for state in ("done", "running"))
    driven = drivers(store.folders.root, study)
    rate = sum(driver.per_minute for driver in driven)
    left = total - done - len(failed)
    return StudyStatus(
        study=study,
        total=total,
        planned=max(left - running, 0),
        running=running,
        done=done,
        failed=len(failed),
        per_minute=rate,
        seconds_left=60 * left / rate if rate else None,
        failures=grouped({row.id: row.error or "" for row in failed}),
        drivers=tuple(driven),
    )
