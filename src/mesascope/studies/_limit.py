"""Which limit of the products a_j b_j theory names for a flow, if it names one."""

from typing import Literal

from ._problem import Problem


def theory_limit(
    problem: Problem, mask: Literal["off-diagonal"] | None, *, drawn: bool
) -> tuple[float | None, str]:
    """Return the limit of every a_j b_j under gradient flow, or None, and the reason in one line.

    From diagonal starts a I, b I: Theorem 4.1 of zheng2024, for every law whose flow stays diagonal; with the
    mask Theorem 4.3; what they generalize to for other normalizers and weights; 0 if a = −b. From starts drawn
    at random without a mask: the same limit, for laws that satisfy Assumption 4.1; that the flow ends there is
    an observation, not a theorem. Other starts: None.

    Args:
        problem: initial model, process and task.
        mask: "off-diagonal" when gradients off the diagonals are masked.
        drawn: whether the initial weights are drawn at random.
    """
    from mesascope.theory.zheng2024 import limit_product, satisfies_assumption_41

    model, process, task, _ = problem
    start = _diagonal(problem)
    reason = _source(problem, mask)
    try:
        if start is None:
            if mask is not None or not drawn:
                return None, "theory speaks about diagonal starts a I, b I"
            satisfies_assumption_41(process.law, process.dim).require("Assumption 4.1")
            reason = f"{reason}; observed, not proved, for random starts"
        limit = float(limit_product(process, task, mask=mask, normalizer=str(model.normalizer)))
    except ValueError as error:
        return None, " ".join(str(error).split())
    if start is not None and start[0] == -start[1]:
        return 0.0, "from a = −b exactly, the flow ends at the saddle at zero; rounding may lead away from it"
    return limit, reason


def _source(problem: Problem, mask: Literal["off-diagonal"] | None) -> str:
    """The theorem, and to what it is generalized: it speaks about ρ_t = t − 1 and the weights 1."""
    theorem = f"zheng2024, Theorem {'4.1' if mask is None else '4.3'}"
    others = []
    if problem.model.normalizer != "t-1":
        others.append(f"ρ_t = {problem.model.normalizer}")
    if problem.task.weights is not None:
        others.append("these weights")
    return f"{theorem} generalized to {' and '.join(others)}" if others else theorem


def _diagonal(problem: Problem) -> tuple[float, float] | None:
    """The a and b of a model that is exactly a I, b I and zero elsewhere."""
    import numpy as np

    from mesascope.models import LinearAttention

    model, dim = problem.model, problem.process.dim
    w_kq, w_pv = np.asarray(model.w_kq), np.asarray(model.w_pv)  # jax would compile for every shape
    a, b = float(w_kq[dim, 0]), float(w_pv[0, 0])
    form = LinearAttention.diagonal(dim, a, b)
    same = np.array_equal(form.w_kq, w_kq) and np.array_equal(form.w_pv, w_pv)
    return (a, b) if same else None
