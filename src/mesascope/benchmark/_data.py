"""The data of the benchmark: processes of tokens, prompts and symbols, each as it is and changed in two ways."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import jax
import numpy as np
from pydantic import BaseModel, ConfigDict

from mesascope.core import named_key
from mesascope.probes import Problems, draw_problems
from mesascope.processes import (
    FewShot,
    Gaussian,
    LinearAR,
    LinearRegression,
    MarkovChains,
    NextToken,
    SymbolPool,
    TaskPool,
)
from mesascope.specs import one_of

USUAL = "usual"
"""The setting on which models are identified."""
TASKS = 400
"""Tasks whose predictions are recorded in every setting."""
LENGTH = 10
"""The largest number of examples in the usual setting."""
_NOISE = 0.5
_SMALLER = "inputs × ½"  # larger ones would make descents diverge


class Setting(BaseModel):
    """A process, and the numbers of examples after which predictions count."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    process: Annotated[Any, *one_of("process")]
    task: Annotated[Any, *one_of("task")]

    def problems(self, seed: int, *names: str) -> Problems:
        """Draw the tasks whose predictions are recorded, by a seed and names."""
        return draw_problems(self.process, self.task, TASKS, named_key(seed, "benchmark", *names))


def standard_data() -> dict[str, dict[str, Setting]]:
    """Return the data that most models read, by name, in all settings: the usual one, other data, longer contexts."""
    tokens = LinearAR.contracting(Gaussian(1.0), 3, 0.3, 0.9, noise=_NOISE)
    smaller = LinearAR.contracting(Gaussian(0.5), 3, 0.3, 0.9, noise=_NOISE / 2)
    prompts = LinearRegression(3, noise=_NOISE)
    pool, chains = TaskPool(prompts, tasks=8), MarkovChains(symbols=3)
    few = SymbolPool(chains, tasks=4)
    return {
        "tokens": _settings(tokens, {_SMALLER: smaller}),
        "prompts": _settings(prompts, {_SMALLER: LinearRegression(3, Gaussian(0.5), noise=_NOISE)}),
        "pool-of-prompts": _settings(pool, {"fresh tasks": prompts}),
        "chains": _settings(chains, {"concentration 4": MarkovChains(3, concentration=4)}),
        "pool-of-chains": _settings(few, {"fresh tasks": chains}),
    }


def settings_of(process: Any, length: int) -> dict[str, Setting]:
    """Return the settings of another process: as it is, and with contexts of twice the length."""
    return _settings(process, {}, length)


def _settings(process: Any, others: Mapping[str, Any], length: int = LENGTH) -> dict[str, Setting]:
    named = {USUAL: (process, length)} | {name: (other, length) for name, other in others.items()}
    named |= {"contexts 2 × as long": (process, 2 * length)}
    return {name: Setting(process=one, task=_task(one, size)) for name, (one, size) in named.items()}


def _task(process: Any, examples: int) -> Any:
    """Return the task that counts the predictions after 1 … `examples` examples."""
    return FewShot.every(examples) if process.data == "prompts" else NextToken(examples + 2)


def outputs(process: Any) -> tuple[int, int]:
    """Return the numbers of entries of an input and of an output: (d, 1) for prompts, (d, d) for tokens, (S, S) for symbols."""
    size = getattr(process, "vocabulary", None) or process.dim
    return size, 1 if process.data == "prompts" else size


def arrays_of(problems: Problems) -> dict[str, np.ndarray]:
    """Return the contexts of problems as models read them: x and y, tokens, or symbols."""
    if problems.prompts:
        x, y = map(np.asarray, problems.sample)
        return {"x": x, "y": y}
    return {"symbols" if problems.symbols else "tokens": np.asarray(jax.device_get(problems.sample))}
