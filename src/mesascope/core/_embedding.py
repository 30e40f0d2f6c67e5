r"""The token embedding $e_i = (0, x_i, x_{i-1})$ of zheng2024, with and without the zero block."""

import jax.numpy as jnp
from jaxtyping import Array, Inexact


def embed(tokens: Inexact[Array, "*batch T d"]) -> Inexact[Array, "*batch T 2d"]:
    r"""Return the reduced embedding: rows $e_i = (x_i; x_{i-1})$ with $x_0 = 0$.

    The first block of the paper's $e_i$ is zero, so nothing is lost. The paper's $E_t$ has the $e_i$ as
    columns.

    Args:
        tokens: $x_1, \dots, x_T$, real or complex, shape `(…, T, d)`.

    Returns:
        Embedded tokens, shape `(…, T, 2d)`.
    """
    tokens = jnp.asarray(tokens)
    previous = jnp.concatenate([jnp.zeros_like(tokens[..., :1, :]), tokens[..., :-1, :]], axis=-2)
    return jnp.concatenate([tokens, previous], axis=-1)


def embed_full(tokens: Inexact[Array, "*batch T d"]) -> Inexact[Array, "*batch T 3d"]:
    r"""Return the paper's embedding: rows $e_i = (0; x_i; x_{i-1})$ with $x_0 = 0$ (zheng2024, Section 3).

    Args:
        tokens: $x_1, \dots, x_T$, real or complex, shape `(…, T, d)`.

    Returns:
        Embedded tokens, shape `(…, T, 3d)`.
    """
    return full_from_reduced(embed(tokens))


def full_from_reduced(embedded: Inexact[Array, "*batch T 2d"]) -> Inexact[Array, "*batch T 3d"]:
    r"""Return the embedding with the zero block of the paper in front: $(x_i; x_{i-1}) \mapsto (0; x_i; x_{i-1})$.

    Args:
        embedded: output of `embed`, shape `(…, T, 2d)`.

    Raises:
        ValueError: the last axis is not a multiple of 2.
    """
    embedded = jnp.asarray(embedded)
    dim = _block(embedded, 2, "reduced")
    return jnp.concatenate([jnp.zeros_like(embedded[..., :dim]), embedded], axis=-1)


def reduced_from_full(embedded: Inexact[Array, "*batch T 3d"]) -> Inexact[Array, "*batch T 2d"]:
    r"""Return the embedding without the zero block of the paper: $(0; x_i; x_{i-1}) \mapsto (x_i; x_{i-1})$.

    Args:
        embedded: output of `embed_full`, shape `(…, T, 3d)`.

    Raises:
        ValueError: the last axis is not a multiple of 3.
    """
    embedded = jnp.asarray(embedded)
    return embedded[..., _block(embedded, 3, "full") :]


def _block(embedded: Array, blocks: int, what: str) -> int:
    width = embedded.shape[-1]
    if width % blocks:
        raise ValueError(
            f"a {what} embedding has {blocks} blocks of d entries, but the last axis has {width}"
        )
    return width // blocks
