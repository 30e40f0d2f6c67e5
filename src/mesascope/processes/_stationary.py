"""The stationary distribution of a Markov chain."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


def stationary_distribution(transitions: Float[Array, "S S"]) -> Float[Array, " S"]:
    r"""Return the $\mu$ with $\mu^\top \pi = \mu^\top$, $\sum_s \mu_s = 1$.

    By the elimination of Grassmann, Taksar and Heyman: the states are taken out of the chain one by one, and
    every number is a sum, product or quotient of positive ones, so that nothing cancels however small the
    probabilities are. A solver of the linear system has no digit left when the chain hardly ever leaves a set
    of states, as is usual for rows from a Dirichlet distribution with a small parameter.

    Args:
        transitions: $\pi$, rows of probabilities. Entries below $\sqrt{\text{least normal float}}$ count as
            that, so that every chain can reach every state.
    """
    states = len(transitions)
    places = jnp.arange(states)
    positive = jnp.maximum(transitions, jnp.finfo(transitions.dtype).tiny ** 0.5)

    def take_out(step: Array, chain: Float[Array, "S S"]) -> Float[Array, "S S"]:
        state = states - 1 - step
        remains = places < state
        leave = jnp.where(remains, chain[state], 0.0)
        enter = jnp.where(remains, chain[:, state] / leave.sum(), chain[:, state])
        chain = chain + jnp.where(remains, enter, 0.0)[:, None] * leave
        return chain.at[:, state].set(enter)

    def put_back(state: Array, mu: Float[Array, " S"]) -> Float[Array, " S"]:
        mu = mu.at[state].set(jnp.sum(jnp.where(places < state, mu * chain[:, state], 0.0)))
        return mu / mu.sum()

    chain = jax.lax.fori_loop(0, states - 1, take_out, positive)
    return jax.lax.fori_loop(1, states, put_back, (places == 0).astype(transitions.dtype))
