"""Why runs failed, or could not be computed together, those of one reason together."""

from collections import Counter
from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict


class Failure(BaseModel):
    """Runs that failed, or could not be computed together, for one reason.

    Attributes:
        error: why.
        count: how many.
        run: the id of one of them.
    """

    model_config = ConfigDict(frozen=True)

    error: str
    count: int
    run: str


def grouped(errors: Mapping[str, str]) -> tuple[Failure, ...]:
    """The errors of runs by id: those that are the same together, most first."""
    first: dict[str, str] = {}
    for run, error in errors.items():
        first.setdefault(error, run)
    counted = Counter(errors.values()).most_common()
    return tuple(Failure(error=error, count=count, run=first[error]) for error, count in counted)
