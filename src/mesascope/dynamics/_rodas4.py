"""A linearly implicit solver for stiff flows: one Jacobian and one factorization a step, no iteration inside."""

from __future__ import annotations

from typing import Any, ClassVar

import diffrax
import jax
import jax.numpy as jnp
import jax.scipy as jsp
import numpy as np

from mesascope.core import lu_factor

_GAMMA = 0.25
_STAGES = 6
# Weights of the stages in the points (A), of which the last is the end of the step, and in the right-hand sides (C).
_A = np.zeros((_STAGES + 1, _STAGES))
_A[1, :1] = [1.544]
_A[2, :2] = [0.9466785280815826, 0.2557011698983284]
_A[3, :3] = [3.314825187068521, 2.896124015972201, 0.9986419139977817]
_A[4, :4] = [1.221224509226641, 6.019134481288629, 12.53708332932087, -0.6878860361058950]
_A[5, :5] = [*_A[4, :4], 1.0]
_A[6] = [*_A[5, :5], 1.0]
_C = np.zeros((_STAGES, _STAGES))
_C[1, :1] = [-5.6688]
_C[2, :2] = [-2.430093356833875, -0.2063599157091915]
_C[3, :3] = [-0.1073529058151375, -9.594562251023355, -20.47028614809616]
_C[4, :4] = [7.496443313967647, -10.24680431464352, -33.99990352819905, 11.70890893206160]
_C[5, :5] = [8.083246795921522, -7.981132988064893, -31.52159432874371, 16.31930543123136, -6.058818238834054]


class Rodas4(diffrax.AbstractAdaptiveSolver):
    r"""Rosenbrock method of order 4 with an embedded one of order 3, L-stable and stiffly accurate, for $y' = f(y)$.

    Every stage solves one linear system with the same matrix, $J = \partial f/\partial y$ at the start of the step $h$:

    $$\left(\frac{1}{\gamma h} - J\right) u_i = f\Big(y + \sum_{j<i} a_{ij} u_j\Big) + \sum_{j<i} \frac{c_{ij}}{h} u_j,
    \qquad y_1 = y + \sum_j a_{6j} u_j + u_6,$$

    and $u_6$ estimates the error. The next step begins with $f(y_1)$. Steps are bounded by accuracy alone, so that a flow
    along a flat valley, which takes an explicit solver tens of thousands of steps, takes hundreds. One step costs a Jacobian,
    as much as $n$ gradients for $n$ weights: for models of up to some hundred weights.

    The state must be one real vector, as in `gradient_flow` and `flow_ends`; $f$ must not depend on time.

    Source: hairer1996, section VI.4 (RODAS).
    """

    term_structure: ClassVar = diffrax.AbstractTerm
    interpolation_cls: ClassVar = diffrax.LocalLinearInterpolation

    def order(self, terms: Any) -> int:
        """4."""
        return 4

    def init(self, terms: Any, t0: Any, t1: Any, y0: Any, args: Any) -> tuple[Any, Any]:
        """The state between steps, that of diffrax's own solvers that reuse a stage: whether f(y) is missing, and f(y)."""
        return jnp.asarray(False), self.func(terms, t0, y0, args)

    def func(self, terms: Any, t0: Any, y0: Any, args: Any) -> Any:
        """f(y)."""
        return terms.vf(t0, y0, args)

    def step(
        self, terms: Any, t0: Any, t1: Any, y0: Any, args: Any, solver_state: tuple[Any, Any], made_jump: Any
    ) -> tuple[Any, ...]:
        """The state after one step, and the estimate of its error."""
        h = terms.contr(t0, t1)

        def f(y: Any) -> Any:
            return terms.vf(t0, y, args)

        factors = lu_factor(jnp.eye(y0.size) / (_GAMMA * h) - jax.jacfwd(f)(y0))
        a, c = jnp.asarray(_A, y0.dtype), jnp.asarray(_C, y0.dtype)

        def stage(i: Any, carry: Any) -> Any:  # f is compiled once for all stages
            moves, _, slope = carry
            moves = moves.at[i].set(jsp.linalg.lu_solve(factors, slope + c[i] @ moves / h))
            point = y0 + a[i + 1] @ moves
            return moves, point, f(point)

        begin = jnp.zeros((_STAGES, y0.size), y0.dtype), y0, solver_state[1]
        moves, y1, slope = jax.lax.fori_loop(0, _STAGES, stage, begin)
        state = jnp.asarray(False), slope
        return y1, moves[-1], {"y0": y0, "y1": y1}, state, diffrax.RESULTS.successful
