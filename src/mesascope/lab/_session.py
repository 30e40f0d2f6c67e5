"""The state of one window of a browser: form, setting, results, and running jobs."""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from mesascope.report import LIGHT
from mesascope.specs import Spec
from mesascope.studies import FlowSpec, IdentifySpec, SpecError

from ._form import Form, field_of, form_of, setting_of
from ._jobs import PROGRAMS, Job, JobCancelledError, JobFailedError
from ._setting import DEFAULT, from_query, read_setting
from ._workers import Workers, quick_processes

_MAX_CACHED = 64  # results
_LONG = 5_000  # characters of a form that take some time to read


Point = tuple[Any, Any]
"""A part of a result that is shown before the rest: a point of a curve, or a name and what belongs to it."""


class Lab:
    """What all windows share: the processes that compute, and a cache of results.

    Attributes:
        records: folders of claim records to show; checks that are repeated go to the last.
        models: the user's own models, by the name that they are shown with.
    """

    def __init__(self, records: list[Path], models: Mapping[str, IdentifySpec] | None = None) -> None:
        self.records, self.models = records, models or {}
        self._pools = {
            "quick": Workers("quick", quick_processes(), niceness=3),  # below the page itself
            "slow": Workers("slow", 2, niceness=7),
            "warm": Workers("warm", 1, niceness=19),
        }
        self._results: OrderedDict[str, Any] = OrderedDict()

    def submit(self, job: Job, pool: str) -> None:
        """Submit a job to a pool: "quick" for sliders, "slow" for buttons, "warm" for compilation in advance."""
        self._pools[pool].submit(job)

    def cached(self, name: str, arguments: dict[str, Any]) -> Any | None:
        """Return the cached result for these arguments; None if there is none."""
        if not PROGRAMS[name].shared:
            return None
        key = _key(name, arguments)
        if key in self._results:
            self._results.move_to_end(key)
        return self._results.get(key)

    def cache(self, name: str, arguments: dict[str, Any], result: Any) -> None:
        """Cache a result that other windows may want."""
        if PROGRAMS[name].shared:
            self._results[_key(name, arguments)] = result
            while len(self._results) > _MAX_CACHED:
                self._results.popitem(last=False)

    def idle(self, *pools: str) -> bool:
        """Return whether these pools have no jobs."""
        return all(self._pools[pool].idle for pool in pools)

    def close(self, *pools: str) -> None:
        """End all processes, or those of some pools, at the same time."""
        chosen = [self._pools[name] for name in pools or self._pools]
        with ThreadPoolExecutor(len(chosen)) as threads:
            list(threads.map(Workers.close, chosen))


def _key(name: str, arguments: dict[str, Any]) -> str:
    return json.dumps([name, arguments], default=_plain)


def _plain(value: Any) -> Any:
    return value.model_dump(mode="json") if isinstance(value, Spec) else value.tolist()


async def _read(form: Form) -> FlowSpec:
    """The setting of a form; a long text is read in a thread, since all windows share the event loop."""
    if sum(map(len, form.values())) < _LONG:
        return setting_of(form)
    return await asyncio.to_thread(setting_of, form)


class Session:
    """The state of one window.

    Attributes:
        form: texts of its fields.
        spec: the last valid setting.
        errors: messages by field.
        results: what is drawn, by name; results of the setting before until new ones are computed.
        progress: of what is being computed, by name.
        points: parts of the result that were reported with it, by name.
        watchers: called now and then to show progress.
        theme: colours of its figures.
        closed: whether the window is gone.
    """

    def __init__(self, lab: Lab, query: str) -> None:
        self.lab, self.theme = lab, LIGHT
        self.watchers: list[Callable[[], None]] = []
        self.results: dict[str, Any] = {}
        self.progress: dict[str, str] = {}
        self.points: dict[str, list[Point]] = {}
        self.errors: dict[str, str] = {}
        self.notice = ""
        self.closed = False
        self._jobs: dict[str, Job] = {}
        self._computed_for: dict[str, FlowSpec] = {}
        try:
            self.spec: FlowSpec = from_query(query)
        except SpecError as error:
            self.notice = f"The address could not be read ({error}); this is the default."
            self.spec = read_setting(DEFAULT)
        self.form: Form = form_of(self.spec)

    async def read_form(self) -> bool:
        """Take the form as the setting and return whether it is a new one; show an error at its field."""
        form = dict(self.form)
        try:
            spec = await _read(form)
        except SpecError as error:
            if form == self.form:
                self.fail(error)
            return False
        if form != self.form:  # something else was typed meanwhile, and is read by itself
            return False
        self.errors = {}
        if spec == self.spec:
            return False
        self.spec = spec
        return True

    def fail(self, error: SpecError) -> None:
        """Show an error at its field."""
        self.errors = {field_of(error, self.form): error.what}

    def replace(self, spec: FlowSpec) -> None:
        """Take another setting, such as that of a file."""
        self.spec, self.form, self.errors = spec, form_of(spec), {}

    def current(self, name: str) -> Any | None:
        """Return the result for the present setting; None while it is computed, after it was stopped, or failed."""
        return self.results.get(name) if self._computed_for.get(name) is self.spec else None

    async def compute(self, name: str, pool: str = "quick", **arguments: Any) -> Any | None:
        """Compute something for this window; None if it was cancelled, or submitted again meanwhile.

        Raises:
            SpecError, JobFailedError: it cannot be computed.
        """
        if self.closed:
            return None
        self.drop(name)
        spec = self.spec
        cached = self.lab.cached(name, arguments)
        if cached is not None:
            self.results[name], self._computed_for[name] = cached, spec
            return cached

        def show(text: str, *points: Point) -> None:
            if self._jobs.get(name) is job:
                self.progress[name] = text
                self.points[name] += points

        job = Job(name, arguments, show, owner=self)
        self._jobs[name], self.progress[name], self.points[name] = job, "waiting for its turn", []
        self.lab.submit(job, pool)
        try:
            result = await asyncio.wrap_future(job.future)
        except JobCancelledError:
            return None
        except (SpecError, JobFailedError):
            if job.unwanted:
                return None
            raise
        finally:
            if self._jobs.get(name) is job:
                del self._jobs[name]
                self.progress.pop(name, None)
        self.lab.cache(name, arguments, result)
        if job.unwanted or self.closed:
            return None
        self.results[name], self._computed_for[name] = result, spec
        return result

    def drop(self, *names: str) -> None:
        """Declare what is being computed under these names unwanted."""
        for name in names:
            if (job := self._jobs.pop(name, None)) is not None:
                job.drop()
                self.progress.pop(name, None)

    def cancel(self, name: str) -> None:
        """Stop what is being computed under this name; a job that has not started is dropped at once."""
        if (job := self._jobs.get(name)) is None:
            return
        if job.started:
            job.cancel()
            self.progress[name] = "stopping"
        else:
            self.drop(name)

    def close(self) -> None:
        """Stop all jobs of a window that was closed."""
        self.closed = True
        for name in list(self._jobs):
            self.cancel(name)
