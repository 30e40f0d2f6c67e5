"""Settings of data that distinguish algorithms: other scales, conditions, noise, tokens, new tasks, independent inputs."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array

from mesascope.processes import Constant, Law, Pool, Prompts, SequenceProcess, Sparse, with_law

from ._problems import vocabulary

_ITSELF = "the process itself"
_NEW_TASKS = "new tasks, which are not of the pool"


class Setting(NamedTuple):
    """Changes of the tokens or prompts of a process.

    Attributes:
        scale: factor of the inputs.
        condition: condition number of a random linear map of the inputs.
        noise: standard deviation of noise on tokens or labels, relative to their size.
        white: whether tokens are replaced by independent Gaussian tokens of the same size (for prompts the inputs, with
            labels that are a random linear function of them).
        start: another law of the initial token, of the same size: "one-hot" or "full-one"; empty for that of the process.
        new_tasks: of a pool: whether tasks are new, drawn by the process of the pool.
        longer: factor of the length of contexts.
    """

    scale: float = 1.0
    condition: float = 1.0
    noise: float = 0.0
    white: bool = False
    start: str = ""
    new_tasks: bool = False
    longer: int = 1

    def describe(self) -> str:
        """Return a short text, e.g. `inputs × 2, condition 10`."""
        parts = ["white Gaussian inputs"] if self.white else []
        if self.start:
            parts.append(f"{self.start} initial tokens")
        if self.new_tasks:
            parts.append(_NEW_TASKS)
        if self.scale != 1:
            parts.append(f"inputs × {self.scale:g}")
        if self.condition != 1:
            parts.append(f"condition {self.condition:g} in random directions")
        if self.noise:
            parts.append(f"noise {self.noise:g}")
        if self.longer != 1:
            parts.append(f"contexts {self.longer} × as long")
        return ", ".join(parts) or _ITSELF

    def source(self, process: Any) -> Any:
        """Return the process of the samples, with the law of initial tokens or of tasks that the setting has.

        Raises:
            ValueError: the law does not exist in the dimension of the process.
        """
        if self.new_tasks:
            return process.process
        if not self.start:
            return process
        dim = process.law.fixed_dim or process.dim
        size = _size(np.asarray(process.law.sample(jax.random.key(0), dim, (_LAW_SAMPLES,))))
        return with_law(process, _STARTS[self.start](size, dim))

    def changed(self, sample: Any, key: Array) -> Any:
        """Return a sample of the source, tokens (batch, T, d) or `Prompts`, with the changes of this setting."""
        if isinstance(sample, Prompts):
            return _changed_prompts(self, sample, _generator(key))
        return _changed_tokens(self, np.asarray(sample), _generator(key))


class SymbolSetting(NamedTuple):
    """Changes of the symbols of a process.

    Attributes:
        replaced: the probability, in [0, 1], that a symbol is replaced by one from a random position of the sample.
        new_tasks: of a pool: whether tasks are new, drawn by the process of the pool.
        longer: factor of the length of contexts.
    """

    replaced: float = 0.0
    new_tasks: bool = False
    longer: int = 1

    def describe(self) -> str:
        """Return a short text, e.g. `30 % of the symbols replaced at random`."""
        if self.longer != 1:
            return f"contexts {self.longer} × as long"
        if self.new_tasks:
            return _NEW_TASKS
        if self.replaced == 1:
            return "independent symbols"
        return f"{100 * self.replaced:g} % of the symbols replaced at random" if self.replaced else _ITSELF

    def source(self, process: Any) -> Any:
        """Return the process of the samples, with the law of tasks that the setting has."""
        return process.process if self.new_tasks else process

    def changed(self, sample: Any, key: Array) -> np.ndarray:
        """Return symbols of the process, shape (batch, T), with the changes of this setting."""
        symbols, rng = np.asarray(sample), _generator(key)
        others = rng.choice(symbols.reshape(-1), symbols.shape)
        return np.where(rng.uniform(size=symbols.shape) < self.replaced, others, symbols)


_LAW_SAMPLES = 256  # number of samples for the size of an initial token
_STARTS: dict[str, Callable[[float, int], Law]] = {
    "one-hot": lambda size, dim: Sparse(size * dim**0.5),
    "full-one": lambda size, _: Constant(size),
}
_SETTINGS = tuple(
    Setting(scale, condition, noise, white)
    for white, noise, condition, scale in product(
        (False, True), (0.0, 0.3), (1.0, 10.0), (1.0, 0.5, 2.0, 0.25, 4.0)
    )
)
_START_SETTINGS = tuple(Setting(start=start) for start in _STARTS)
_SYMBOL_SETTINGS = tuple(SymbolSetting(share) for share in (0.0, 0.3, 1.0))
_BEYOND = Setting(scale=2.0), Setting(condition=10.0), Setting(longer=2)
_SYMBOLS_BEYOND = SymbolSetting(0.3), SymbolSetting(longer=2)
# independent inputs determine hyperparameters that the inputs of a process may not determine
_INFORMATIVE, _INFORMATIVE_SYMBOLS = Setting(white=True), SymbolSetting(1.0)


def settings_of(process: Any) -> tuple[Setting | SymbolSetting, ...]:
    """Return all settings of the search, the unchanged process first."""
    more = _new_tasks(process)
    if vocabulary(process) is not None:
        return _SYMBOL_SETTINGS + more
    starts = isinstance(process, SequenceProcess) and isinstance(getattr(process, "law", None), Law)
    return _SETTINGS + (_START_SETTINGS if starts else more)


def settings_beyond(process: Any) -> tuple[Setting | SymbolSetting, ...]:
    """Return the settings out of distribution: new tasks of a pool, other inputs, random symbols, more examples."""
    return _new_tasks(process) + (_BEYOND if vocabulary(process) is None else _SYMBOLS_BEYOND)


def _new_tasks(process: Any) -> tuple[Setting | SymbolSetting, ...]:
    kind = Setting if vocabulary(process) is None else SymbolSetting
    return (kind(new_tasks=True),) if isinstance(process, Pool) else ()


def informative_setting(process: Any) -> Setting | SymbolSetting:
    """Return the setting whose data determine most hyperparameters: independent inputs."""
    return _INFORMATIVE if vocabulary(process) is None else _INFORMATIVE_SYMBOLS


def _generator(key: Array) -> np.random.Generator:
    """Return a generator of NumPy, which needs no compilation."""
    return np.random.default_rng(np.asarray(jax.random.key_data(key)))


def _changed_tokens(setting: Setting, tokens: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    if setting.white:
        tokens = _size(tokens) * _normal(rng, tokens)
    tokens = _stretched(setting, tokens, rng)
    return tokens + setting.noise * _size(tokens) * _normal(rng, tokens)


def _changed_prompts(setting: Setting, prompts: Prompts, rng: np.random.Generator) -> Prompts:
    x, y = map(np.asarray, prompts)
    if setting.white:
        x = _size(x) * _normal(rng, x)
        labels = np.einsum("bnp,bp->bn", x, _normal(rng, x[:, 0]))
        y = labels * _size(y) / _size(labels)
    noise = setting.noise * _size(y) * _normal(rng, y)
    return Prompts(_stretched(setting, x, rng), y + noise)  # type: ignore[arg-type]  # NumPy's arrays do as well


def _stretched(setting: Setting, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return A x for every token x of a task, A = scale · U diag(stretch) Vᵀ with random orthogonal U, V per task."""
    if setting.condition == 1:
        return setting.scale * rows
    batch, _, dim = rows.shape
    one, other = (np.linalg.qr(rng.normal(size=(batch, dim, dim)))[0] for _ in range(2))
    stretch = setting.scale * setting.condition ** np.linspace(-0.5, 0.5, dim)
    return np.einsum("bij,j,bkj,bnk->bni", one, stretch, other, rows, optimize=True)


def _normal(rng: np.random.Generator, array: np.ndarray) -> np.ndarray:
    """Return normal numbers of variance 1 with the shape of `array`, complex if it is complex."""
    if not np.iscomplexobj(array):
        return rng.normal(size=array.shape)
    return (rng.normal(size=array.shape) + 1j * rng.normal(size=array.shape)) / np.sqrt(2)


def _size(array: np.ndarray) -> float:
    """Return the root mean square of the entries."""
    return float(np.sqrt(np.mean(np.abs(array) ** 2)))
