"""The weights that the authors store, against the minimisers."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._claim import Claim, Finding, Settings, presets, within
from .._runs import require_finished
from ._authors import LONGEST, PROGRAM, authors_descent, stored_weights
from ._bare_tokens import ConjugatePairs, DiagonalHeads, IndependentEigenvalues
from ._ends import PAPER, errors_of, exact_loss, picture


def _stored(settings: _Stored) -> Finding:
    """Heads and positions in units of their own c, and the loss that they leave."""
    unitary, pairs = stored_weights("unitary"), stored_weights("orthogonal")
    rounding, unfinished = settings.rounding, settings.unfinished
    exact, near = errors_of(unitary), errors_of(pairs, 1.0)
    exact["loss"] = exact_loss(unitary, IndependentEigenvalues(unitary.a.shape[1]), LONGEST)
    near["loss"] = exact_loss(pairs, ConjugatePairs(pairs.a.shape[1]), LONGEST)
    rows = {"unitary": exact, "pairs": near}
    off_by = max(near["error_of_C"], near["error_of_c_p_T-1"])
    parts = {
        "independent eigenvalues: heads": within(exact["error_of_C"], rounding),
        "independent eigenvalues: p_T": within(exact["error_of_c_p_T"], rounding),
        "independent eigenvalues: other positions": within(
            max(exact["error_of_c_p_T-1"], exact["error_of_other_positions"]), rounding
        ),
        "conjugate pairs: heads": within(near["error_of_C"], unfinished),
        "conjugate pairs: p_T": within(near["error_of_c_p_T"], rounding),
        "conjugate pairs: p_{T-1}": within(near["error_of_c_p_T-1"], unfinished),
        "conjugate pairs: other positions": within(near["error_of_other_positions"], rounding),
    }
    more = _further(pairs, settings.rate, settings.steps)
    difference = (
        f"For conjugate pairs C/c is off by up to {_short(off_by)}, at a loss of {_short(near['loss'])}"
    )
    if more["loss"] < near["loss"]:
        difference += f", which {settings.steps} further steps lower to {_short(more['loss'])}"
    title = "The authors' stored weights, conjugate pairs"
    return Finding.of_parts(
        rows,
        {name: dict.fromkeys(row, 0.0) for name, row in rows.items()},
        rounding,
        parts,
        {
            "c": {"unitary": unitary.scale(), "pairs": pairs.scale()},
            "p_T": {"unitary": unitary.row(LONGEST)[-1], "pairs": pairs.row(LONGEST)[-1]},
            "p_T-1": {"unitary": unitary.row(LONGEST)[-2], "pairs": pairs.row(LONGEST)[-2]},
            "largest_entry_outside_the_blocks": _outside(pairs),
            "singular_values": {
                "unitary": np.linalg.svd(unitary.product())[1],
                "pairs": np.linalg.svd(pairs.product())[1],
            },
            "descent_for_pairs_goes_on": more,
            "meaning": "largest errors of C/c and c·p over contexts of 2 to 20 tokens; loss: E‖x̂ − x‖² per context length",
        },
        {"stored": picture(title, pairs, LONGEST, "As they are stored.")},
        difference=f"{difference}." if off_by > rounding else "",
    )


def _short(number: float) -> str:
    return np.format_float_scientific(number, 1, exp_digits=1)


def _outside(layer: DiagonalHeads) -> float:
    """Largest entry of C/c outside the blocks of partners."""
    heads = layer.product() / layer.scale()
    index = np.arange(len(heads))
    heads[index, index] = heads[index, index ^ 1] = 0
    return float(np.abs(heads).max())


def _further(layer: DiagonalHeads, rate: float, steps: int) -> dict[str, Any]:
    """What further steps of their descent make of the weights for conjugate pairs."""
    process = ConjugatePairs(layer.a.shape[1])
    end = require_finished(authors_descent(layer, process, rate, steps)).model
    return {
        "further_steps": steps,
        "error_of_C": errors_of(end, 1.0)["error_of_C"],
        "loss": exact_loss(end, process, LONGEST),
    }


class _Stored(Settings):
    rounding: float = 1e-6
    unfinished: float = 2e-3
    rate: float = 1e-3
    steps: int = 20_000


CLAIMS = (
    Claim(
        id=f"{PAPER}/stored-weights",
        title="The authors' stored weights lie on or near the minimisers",
        evidence="exact",
        origin="authors' code",
        statement="""The stored weights have C = cI, c·p_T = 1 for independent eigenvalues, C = c·blockdiag(1_{2×2}), c·p_T = 1,
            c·p_{T−1} = −1/2 for conjugate pairs, and 0 at all other positions.""",
        source=f"sander2024, authors' program {PROGRAM}, tensors/{{A,B,P}}_unitary.npy and tensors/{{A,B,P}}_orthogonal.npy",
        settings=presets(_Stored(), steps=200_000),
        check=_stored,
        criterion="""All numbers come from the six files of the authors, for contexts of 2 to 20 tokens, in units of their c.
            1e-6 is rounding of sums in single precision. For conjugate pairs C and p_{T−1} may be 2e-3 off, twice what was
            seen: descent had not come to its end there. What exceeds rounding is told as a difference.""",
        history="""Until the files were read in full, this claim compared five numbers of three decimals that others had
            printed.""",
        cost="about 3 min",
    ),
)
