"""Compilation with little optimization, for programs that run a few times for less than they take to compile."""

from collections.abc import Callable
from functools import cache, wraps
from typing import Any, TypeVar

import equinox as eqx
import jax

Result = TypeVar("Result")
_OPTIONS = {
    "xla_cpu_use_fusion_emitters": False,
    "xla_cpu_parallel_codegen_split_count": 1,
}


def quick_jit(function: Callable[..., Result], level: int = 1) -> Callable[..., Result]:
    """Compile a function like `equinox.filter_jit`, in less time; results differ by rounding only.

    Args:
        function: is not called inside of another compiled function: JAX allows options of its compiler outermost only.
        level: of optimization; at 0 programs are compiled in half of the time of 1, and run for up to twice as long.
    """
    options = {"xla_backend_optimization_level": level, **_OPTIONS}
    quick = eqx.filter_jit(function, compiler_options=options)  # type: ignore[call-overload]  # passed to jax.jit
    plain = eqx.filter_jit(function)

    @wraps(function)
    def call(*arguments: Any) -> Result:
        return (quick if _are_known() else plain)(*arguments)

    return call


@cache
def _are_known() -> bool:
    """Whether this version of JAX has these options, which belong to no stable interface."""
    try:
        jax.jit(lambda: 0.0, compiler_options=_OPTIONS)()
    except jax.errors.JaxRuntimeError:
        return False
    return True
