"""Learners that change their weights after every example, and learn from its error alone."""

from __future__ import annotations

import abc
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax import Array

from ._arithmetic import einsum, inverse_above, real_in_precision_of
from ._checks import checked_integer, fraction, nonnegative_number, real_number
from ._examples import Context
from ._fitting import MOMENTUM, STEP_SIZE, Scalar, learner
from ._learner import Features, Learner


def answers(context: Context, step: Any, start: Any, weights: Any) -> Array:
    """Return W_n q, with the weights of all n from one pass over the examples.

    Args:
        context: the examples and the query.
        step: (state, x, y) → the state after one more example.
        start: the state before the first example.
        weights: a state → W, shape (…, m, p).
    """
    x, y = jnp.moveaxis(context.x, -2, 0), jnp.moveaxis(context.y, -2, 0)

    def one(state: Any, example: tuple[Array, Array]) -> tuple[Any, Array]:
        state = step(state, *example)
        return state, weights(state)

    after = jax.lax.scan(one, start, (x, y))[1]
    every = jnp.moveaxis(jnp.concatenate([weights(start)[None], after]), 0, -3)  # (…, N + 1, m, p)
    chosen = jnp.take_along_axis(every, context.n[..., None, None, None], axis=-3)[..., 0, :, :]
    return einsum("...mp,...p->...m", chosen, context.query)


def no_weights(context: Context) -> Array:
    """Return W = 0 for every task, shape (…, m, p)."""
    shape = (*context.x.shape[:-2], context.y.shape[-1], context.x.shape[-1])
    return jnp.zeros(shape, context.x.dtype)


def error_of(weights: Array, x: Array, y: Array) -> Array:
    """Return y − W x, shape (…, m)."""
    return y - einsum("...mp,...p->...m", weights, x)


def outer(y: Array, x: Array) -> Array:
    """Return y x*, shape (…, m, p)."""
    return y[..., :, None] * x.conj()[..., None, :]


class OnlineLearner(Learner):
    """A learner whose state is its weights, or begins with them."""

    reads: ClassVar[type[Features]] = Context

    @abc.abstractmethod
    def after(self, weights: Array, x: Array, y: Array) -> Array:
        """Return the weights after one more example."""

    def respond(self, features: Context) -> Array:
        """Return the prediction, shape (…, m)."""
        return answers(features, self.after, no_weights(features), lambda weights: weights)


@learner(
    "delta-rule",
    STEP_SIZE,
    Scalar("forgetting", 0.5, 0.99, bounded=True),
    extends=("online-gradient-descent", (("forgetting", 1.0),)),
    family="descent",
    flexibility=142,
    example={"step_size": 0.05, "forgetting": 0.9},
)
class DeltaRule(OnlineLearner):
    r"""Online gradient descent that forgets: before each step the weights are multiplied by $\phi$.

    $$W_i = \phi W_{i-1} + \eta\, (y_i - \phi W_{i-1} x_i)\, x_i^*, \qquad W_0 = 0.$$

    A gated DeltaNet with constant gates $\alpha = \phi$ and $\beta = \eta$ computes it.

    Args:
        step_size: $\eta$, a number; stable for $\eta |x_i|^2 < 1 + 1/\phi$.
        forgetting: $\phi \in (0, 1]$; 1 is online gradient descent.

    Raises:
        TypeError, ValueError: `step_size` is not a finite number, `forgetting` is not a number in (0, 1].

    Source: yang2025, section on the gated delta rule; yang2024 for $\phi = 1$.
    """

    step_size: Array
    forgetting: Array

    def __init__(self, step_size: Any, forgetting: Any = 1.0):
        self.step_size = real_number("step_size", step_size)
        self.forgetting = fraction("forgetting", forgetting)

    def after(self, weights: Array, x: Array, y: Array) -> Array:
        """Return the weights after one more example."""
        step_size, forgetting = (real_in_precision_of(x, one) for one in (self.step_size, self.forgetting))
        kept = forgetting * weights
        return kept + step_size * outer(error_of(kept, x, y), x)


@learner(
    "normalized-lms",
    Scalar("rate", 0.05, 1.9),
    Scalar("offset", 1e-3, 1e3, power=1),
    family="descent",
    flexibility=143,
    example={"rate": 0.8, "offset": 0.5},
)
class NormalizedLMS(OnlineLearner):
    r"""Online gradient descent whose step is divided by the size of the input: normalized least mean squares.

    $$W_i = W_{i-1} + \frac{\mu}{\epsilon + |x_i|^2} (y_i - W_{i-1} x_i)\, x_i^*, \qquad W_0 = 0.$$

    For $\mu = 1$ it is the implicit step of Longhorn with $\beta = 1/\epsilon$: the minimum of $\|W - W_{i-1}\|^2 + \beta
    |y_i - W x_i|^2$. For inputs of one length $r$ it is online gradient descent with the step size $\mu/(\epsilon + r^2)$.

    Args:
        rate: $\mu$, a number; stable for $0 < \mu |x_i|^2 < 2 (\epsilon + |x_i|^2)$. With an offset far above $|x_i|^2$ it is
            online gradient descent with the step size $\mu/\epsilon$.
        offset: $\epsilon \ge 0$.

    Raises:
        TypeError, ValueError: `rate` is not a finite number, `offset` is not a finite number ≥ 0.

    Source: liu2025, Theorem 3.1, for $\mu = 1$.
    """

    rate: Array
    offset: Array

    def __init__(self, rate: Any, offset: Any = 0.0):
        self.rate, self.offset = real_number("rate", rate), nonnegative_number("offset", offset)

    def after(self, weights: Array, x: Array, y: Array) -> Array:
        """Return the weights after one more example."""
        rate, offset = (real_in_precision_of(x, one) for one in (self.rate, self.offset))
        size = offset + jnp.sum(jnp.abs(x) ** 2, -1, keepdims=True)
        return weights + outer(rate * inverse_above(jnp.zeros_like(size), size) * error_of(weights, x, y), x)


def _with_slow_weights(step_size: Any, momentum: Any, forgetting: Any) -> OnlineMomentum:
    """Return the learner with the smaller of the two decays as its momentum: β and 1 − α can be exchanged."""
    momentum, kept = jnp.minimum(momentum, 1 - forgetting), jnp.maximum(momentum, 1 - forgetting)
    return OnlineMomentum(step_size, momentum, 1 - kept)


@learner(
    "online-momentum",
    STEP_SIZE,
    MOMENTUM,
    Scalar("forgetting", 0.01, 0.5, bounded=True),
    make=_with_slow_weights,
    extends=("online-gradient-descent", (("momentum", 0.0), ("forgetting", 0.0))),
    family="descent",
    flexibility=195,
    example={"step_size": 0.05, "momentum": 0.5, "forgetting": 0.1},
)
class OnlineMomentum(Learner):
    r"""Online gradient descent with momentum and weight decay.

    $$V_i = \beta V_{i-1} + \eta\, (y_i - W_{i-1} x_i)\, x_i^*, \qquad W_i = (1 - \alpha) W_{i-1} + V_i, \qquad W_0 = V_0 = 0.$$

    The memory of Titans with constant gates computes it. Without $V$ it reads

    $$W_i = (\beta + 1 - \alpha) W_{i-1} - \beta (1 - \alpha) W_{i-2} + \eta\, (y_i - W_{i-1} x_i)\, x_i^*,$$

    so $\beta$ and $1 - \alpha$ can be exchanged: predictions determine the two as a set. A fit calls the smaller one $\beta$.

    Args:
        step_size: $\eta$, a number; while one input $x$ is repeated, stable for $0 < \eta |x|^2 < (1 + \beta)(2 - \alpha)$ and
            $\alpha$, $\beta$ in $[0, 1)$. With inputs that change it can diverge below that.
        momentum: $\beta$, a number.
        forgetting: $\alpha$, a number.

    Raises:
        TypeError, ValueError: for anything but finite numbers.

    Source: behrouz2025, section on the long-term memory.
    """

    reads: ClassVar[type[Features]] = Context

    step_size: Array
    momentum: Array
    forgetting: Array

    def __init__(self, step_size: Any, momentum: Any, forgetting: Any = 0.0):
        self.step_size = real_number("step_size", step_size)
        self.momentum = real_number("momentum", momentum)
        self.forgetting = real_number("forgetting", forgetting)

    def respond(self, features: Context) -> Array:
        """Return the prediction, shape (…, m)."""
        step_size, momentum, forgetting = (
            real_in_precision_of(features.x, one) for one in (self.step_size, self.momentum, self.forgetting)
        )

        def step(state: tuple[Array, Array], x: Array, y: Array) -> tuple[Array, Array]:
            weights, velocity = state
            velocity = momentum * velocity + step_size * outer(error_of(weights, x, y), x)
            return (1 - forgetting) * weights + velocity, velocity

        start = no_weights(features)
        return answers(features, step, (start, start), lambda state: state[0])


@learner(
    "mini-batch-gradient-descent",
    STEP_SIZE,
    integer="batch",
    largest=16,
    family="descent",
    flexibility=144,
    example={"step_size": 0.05, "batch": 3},
)
class MiniBatchGradientDescent(Learner):
    r"""Gradient descent in mini-batches: the errors of $b$ examples are those of the weights before the first of them.

    $$W_i = W_{i-1} + \eta\, (y_i - W_{b \lfloor (i-1)/b \rfloor} x_i)\, x_i^*, \qquad W_0 = 0.$$

    TTT-Linear from weights 0, without layer normalization and with a constant gate, computes it on inputs with one more
    entry that is 1: its bias. For $b = 1$ it is online gradient descent.

    Args:
        step_size: $\eta$, a number.
        batch: $b \ge 1$.

    Raises:
        TypeError, ValueError: `step_size` is not a finite number, `batch` is not an integer ≥ 1.

    Source: sun2024, section on mini-batch TTT.
    """

    reads: ClassVar[type[Features]] = Context

    step_size: Array
    batch: int | Array

    def __init__(self, step_size: Any, batch: int):
        self.step_size = real_number("step_size", step_size)
        self.batch = checked_integer("batch", batch, 1)

    def respond(self, features: Context) -> Array:
        """Return the prediction, shape (…, m)."""
        step_size = real_in_precision_of(features.x, self.step_size)

        def step(state: tuple[Array, Array, Array], x: Array, y: Array) -> tuple[Array, Array, Array]:
            weights, before, count = state
            before = jnp.where(count % self.batch == 0, weights, before)
            return weights + step_size * outer(error_of(before, x, y), x), before, count + 1

        start = no_weights(features)
        return answers(features, step, (start, start, jnp.zeros((), int)), lambda state: state[0])
