"""The weights that the authors store beside their program, and the start from which it trains them."""

from __future__ import annotations

import json
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np

from mesascope.dynamics import Descent, descend
from mesascope.processes import NextToken

from ._bare_tokens import ByClosedForm, DiagonalHeads, Eigencoordinates

DIM, LONGEST = 10, 20
"""Their d, and their longest context: 20 rows of positions, of which the last is not used (unitary.py:7-8)."""
PROGRAM = "michaelsdr/ical@beaf4d6"
"""Their program, at the commit that was read."""
_FILE = Path(__file__).with_name("stored_weights.json")


def stored_weights(name: Literal["unitary", "orthogonal"]) -> DiagonalHeads:
    """The weights in `tensors/{A,B,P}_NAME.npy`, with the row of positions of T tokens where `DiagonalHeads` has it.

    Raises:
        ValueError: the digits are not those of the authors' file.
    """
    files = json.loads(_FILE.read_text(encoding="utf-8"))["files"]
    a, b, positions = (_read(f"tensors/{part}_{name}.npy", files) for part in "ABP")
    return _heads(a, b, positions)


def stored_positions(mu: int) -> np.ndarray:
    """The positions in `results/noisy_pe/pe_eps_mu_MU.npy`, shape (30, 30), of angles that are uniform on [0, 2π/MU].

    Raises:
        ValueError: there is no such file, or the digits are not those of the authors'.
    """
    files = json.loads(_FILE.read_text(encoding="utf-8"))["files"]
    name = f"results/noisy_pe/pe_eps_mu_{mu}.npy"
    if name not in files:
        raise ValueError(f"mus: the authors store no positions for {mu}; take some of 50, 100, 200, 300")
    return np.asarray(_read(name, files), float)


def _read(name: str, files: dict[str, dict[str, object]]) -> np.ndarray:
    """The array of one file, if the file that it makes is theirs, byte by byte."""
    values = np.array(files[name]["values"], np.float32)
    written = BytesIO()
    np.lib.format.write_array(written, values, version=(1, 0))
    if sha256(written.getvalue()).hexdigest() != files[name]["sha256"]:
        raise ValueError(
            f"{name} in {_FILE.name} is not the authors' file: its SHA-256 differs; restore the digits"
        )
    return values


def authors_start(heads: int) -> DiagonalHeads:
    """The start of both programs (unitary.py:11-18): every entry 0.1·N(0, 1) in single precision from PRNGKey(0).

    Their rows of positions that no loss reaches still hold it.
    """
    shapes = ((heads, DIM), (heads, DIM), (LONGEST, LONGEST))
    with jax.threefry_partitionable(False):  # how jax drew numbers when they ran it
        _, *keys = jax.random.split(jax.random.PRNGKey(0), 4)
        tenth = jnp.float32(0.1)
        a, b, positions = (
            tenth * jax.random.normal(k, s, jnp.float32) for k, s in zip(keys, shapes, strict=True)
        )
    return _heads(a, b, positions)


def _heads(a: object, b: object, positions: object) -> DiagonalHeads:
    """Their row r, counted from 0, is that of r + 2 tokens; here it is row r + 1."""
    rows = np.roll(np.asarray(positions, float), 1, axis=0)
    return DiagonalHeads(
        jnp.asarray(np.asarray(a, float)), jnp.asarray(np.asarray(b, float)), jnp.asarray(rows)
    )


def authors_descent(
    start: DiagonalHeads, process: Eigencoordinates, rate: float, steps: int, saves: int = 2
) -> Descent[DiagonalHeads]:
    """Their gradient descent on the sum of E‖x̂ − x‖² over contexts of 2 … 20 tokens, in double precision.

    The objective here is half of this sum, so that its rate is twice theirs.
    """
    task = NextToken(LONGEST + 1)
    return descend(
        start, process, task, learning_rate=2 * rate, steps=steps, engine=ByClosedForm(), saves=saves
    )
