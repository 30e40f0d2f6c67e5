"""The exact losses of the paper's strategies."""

from __future__ import annotations

from itertools import product

import numpy as np

from mesascope.records import Figure, Line
from mesascope.theory import edelman2024 as theory

from .._claim import Claim, Finding, Settings, presets, verdict_if, within
from .._figures import one_panel
from ._data import PAPER


def _losses(settings: _Losses) -> Finding:
    """How far the bigram strategy is from Bayes' rule, and the order of the losses at every context length."""
    found = {symbols: theory.losses(symbols, length) for symbols, length in settings.sizes}
    apart = {symbols: _from_bayes(symbols, length - 1) for symbols, length in settings.sizes}
    parts = {}
    for symbols, one in found.items():
        later = settings.first - 1  # places are context lengths less 1
        gains = np.diff([one[name][later:] for name in ("bigram", "unigram", "uniform")], axis=0)
        parts[f"Bayes' rule, {symbols} symbols"] = within(apart[symbols], settings.rounding)
        parts[f"order, {symbols} symbols"] = verdict_if(bool((gains > 0).all()))
    return Finding.of_parts(
        {f"{symbols} symbols": {name: one[name][-1] for name in one} for symbols, one in found.items()},
        f"bigram < unigram < uniform from {settings.first} symbols on; bigram is Bayes' rule",
        settings.rounding,
        parts,
        {
            "losses": {str(symbols): one for symbols, one in found.items()},
            "largest_difference_from_bayes": {str(symbols): one for symbols, one in apart.items()},
            "meaning": "measured: cross-entropy in nats after the longest context",
        },
        {"losses": _picture(settings, found)},
        difference=f"After one symbol, unigram counts are worse than uniform: {found[2]['unigram'][0]:.3f} against "
        f"{found[2]['uniform'][0]:.3f} nats."
        if 2 in found
        else "",
    )


def _from_bayes(symbols: int, longest: int) -> float:
    """The largest difference of the bigram strategy from P(s₁ … s_{t+1}) / P(s₁ … s_t), over all sequences."""
    largest = 0.0
    for t in range(1, longest + 1):
        sequences = np.array(list(product(range(symbols), repeat=t)))
        before = theory.likelihoods(sequences, symbols, 1.0)
        after = [theory.likelihoods(np.insert(sequences, t, b, axis=1), symbols, 1.0) for b in range(symbols)]
        bayes = np.stack(after, 1) / before[:, None]
        given = theory.probabilities("bigram", sequences, symbols, 1.0)
        largest = max(largest, float(np.abs(bayes - given).max()))
    return largest


def _picture(settings: _Losses, found: dict[int, dict[str, np.ndarray]]) -> Figure:
    symbols, length = settings.sizes[0]
    return one_panel(
        "What each strategy loses",
        f"Markov chains of {symbols} symbols, exact",
        *(
            Line(x=np.arange(1, length), y=found[symbols][name], label=name, series=series)
            for series, name in enumerate(theory.STRATEGIES)
        ),
        xlabel="context length $t$",
        ylabel="expected cross-entropy [nats]",
        caption="Sums over all sequences; the transition matrix is integrated out.",
    )


class _Losses(Settings):
    sizes: tuple[tuple[int, int], ...] = ((2, 12), (3, 8))
    first: int = 2
    rounding: float = 1e-12


CLAIMS = (
    Claim(
        id=f"{PAPER}/strategies",
        title="Bigram counts are Bayes' rule; unigram counts beat uniform",
        evidence="exact",
        origin="paper",
        statement="""On Markov chains with uniform Dirichlet rows, in-context bigram counts with add-one smoothing are the
            Bayes predictor; from two symbols on their loss is below that of unigram counts, which is below uniform.""",
        source="edelman2024, section 2 (the strategies), `utils.py:40-53` of the authors' program at 3ab0b29",
        settings=presets(_Losses(), sizes=((2, 18), (3, 11), (4, 8))),
        check=_losses,
        criterion="""Expectations are sums over all sequences. The bigram strategy differs from the ratio of the probabilities
            of sequences, which are products of Gamma functions, by at most 10⁻¹² (rounding), and the losses are in this order
            at every context length.""",
    ),
)
