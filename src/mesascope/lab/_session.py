"""What one window of a browser holds: its form, its setting, what was computed for it, and what is on its way."""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from mesascope.report import LIGHT, Theme
from mesascope.studies import FlowSpec, SpecError

from ._form import Form, field_of, form_of, setting_of
from ._jobs import Job, JobCancelledError, JobFailedError
from ._pool import Pool, quick_processes
from ._setting import DEFAULT, from_query, plain_setting, read_setting

_KEPT = 64  # results that several windows may want
_LONG = 5_000  # characters of a form that take some time to read
_SHARED = {"facts", "flow", "mind", "claims"}


class Lab:
    """What all windows share: the processes that compute, and results that were computed.

    Attributes:
        records: folders of claim records to show; checks run anew go to the last.
    """

    def __init__(self, records: list[Path]) -> None:
        self.records = records
        self._pools = {
            "quick": Pool("quick", quick_processes(), niceness=3),  # the page itself goes first
            "slow": Pool("slow", 2, niceness=7),
            "warm": Pool("warm", 1, niceness=19),
        }
        self._results: OrderedDict[str, Any] = OrderedDict()

    def submit(self, job: Job, pool: str) -> None:
        """Let a process do a job: "quick" ones answer a slider, "slow" ones a button, "warm" ones nobody."""
        self._pools[pool].submit(job)

    def known(self, name: str, arguments: dict[str, Any]) -> Any | None:
        """What was computed before with these arguments; None if nothing was, or it is not kept."""
        if name not in _SHARED:
            return None
        key = _key(name, arguments)
        if key in self._results:
            self._results.move_to_end(key)
        return self._results.get(key)

    def keep(self, name: str, arguments: dict[str, Any], result: Any) -> None:
        """Keep a result for the next who asks."""
        if name in _SHARED:
            self._results[_key(name, arguments)] = result
            while len(self._results) > _KEPT:
                self._results.popitem(last=False)

    def idle(self, *pools: str) -> bool:
        """Whether these have nothing to do."""
        return all(self._pools[pool].idle for pool in pools)

    def close(self, *pools: str) -> None:
        """End the processes, or those of some pools, all at the same time."""
        chosen = [self._pools[name] for name in pools or self._pools]
        with ThreadPoolExecutor(len(chosen)) as threads:
            list(threads.map(Pool.close, chosen))


def _key(name: str, arguments: dict[str, Any]) -> str:
    return json.dumps([name, {k: v.tolist() if hasattr(v, "tolist") else v for k, v in arguments.items()}])


async def _read(form: Form) -> FlowSpec:
    """The setting that a form spells; a long text is read beside the event loop, which other windows share."""
    if sum(map(len, form.values())) < _LONG:
        return setting_of(form)
    return await asyncio.to_thread(setting_of, form)


class Session:
    """The state of one window.

    Attributes:
        form: texts of its fields.
        spec: the last setting that was good.
        wrong: messages by field.
        results: what is drawn, by name; that of the setting before while another is on its way.
        busy: progress of what is being computed, by name.
        theme: colours of its figures.
    """

    def __init__(self, lab: Lab, query: str) -> None:
        self.lab, self.theme = lab, LIGHT
        self.results: dict[str, Any] = {}
        self.busy: dict[str, str] = {}
        self.wrong: dict[str, str] = {}
        self.notice = ""
        self._closed = False
        self._jobs: dict[str, Job] = {}
        self._computed_for: dict[str, FlowSpec] = {}
        try:
            self.spec: FlowSpec = from_query(query)
        except SpecError as error:
            self.notice = f"The address could not be read ({error}); this is the default."
            self.spec = read_setting(DEFAULT)
        self.form: Form = form_of(self.spec)

    def recolour(self, theme: Theme) -> None:
        """Draw in other colours from now on."""
        self.theme = theme

    async def read_form(self) -> bool:
        """Take the form as the setting if it is good and another one; else say at its field what is wrong."""
        form = dict(self.form)
        try:
            spec = await _read(form)
        except SpecError as error:
            if form == self.form:
                self.fail(error)
            return False
        if form != self.form:  # something else was typed meanwhile, and is read by itself
            return False
        self.wrong = {}
        if spec == self.spec:
            return False
        self.spec = spec
        return True

    def fail(self, error: SpecError) -> None:
        """Show an error at its field."""
        self.wrong = {field_of(error, self.form): error.what}

    def replace(self, spec: FlowSpec) -> None:
        """Take another setting, as from a file."""
        self.spec, self.form, self.wrong = spec, form_of(spec), {}

    @property
    def setting(self) -> dict[str, Any]:
        """The setting as workers take it."""
        return plain_setting(self.spec)

    def current(self, name: str) -> Any | None:
        """What was computed for the present setting; None while it is on its way, was stopped, or failed."""
        return self.results.get(name) if self._computed_for.get(name) is self.spec else None

    async def compute(self, name: str, pool: str = "quick", **arguments: Any) -> Any | None:
        """Compute something for this window; None if it was cancelled, or asked for anew meanwhile.

        Raises:
            SpecError, JobFailedError: it cannot be computed.
        """
        if self._closed:
            return None
        self.drop(name)
        spec = self.spec
        known = self.lab.known(name, arguments)
        if known is not None:
            self.results[name], self._computed_for[name] = known, spec
            return known

        def tell(text: str) -> None:
            if self._jobs.get(name) is job:
                self.busy[name] = text

        job = Job(name, arguments, tell, owner=self)
        self._jobs[name], self.busy[name] = job, "waiting for its turn"
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
                self.busy.pop(name, None)
        self.lab.keep(name, arguments, result)
        if job.unwanted or self._closed:
            return None
        self.results[name], self._computed_for[name] = result, spec
        return result

    def drop(self, *names: str) -> None:
        """What is being computed under these names is not wanted any more."""
        for name in names:
            if (job := self._jobs.pop(name, None)) is not None:
                job.drop()
                self.busy.pop(name, None)

    def cancel(self, name: str) -> None:
        """Stop what is being computed under this name; what waits for its turn is forgotten at once."""
        if (job := self._jobs.get(name)) is None:
            return
        if job.started:
            job.cancel()
            self.busy[name] = "stopping"
        else:
            self.drop(name)

    def close(self) -> None:
        """The window is gone: nobody waits for what it asked."""
        self._closed = True
        for name in list(self._jobs):
            self.cancel(name)
