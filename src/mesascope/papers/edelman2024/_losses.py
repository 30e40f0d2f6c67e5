"""The exact losses of the paper's strategies."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mesascope.records import Figure, Line, Panel
from mesascope.theory import edelman2024 as theory

from .._claim import Claim, Finding, Settings, presets, verdict_if, within
from .._pools import off_bayes
from ._data import PAPER

Losses = Mapping[str, np.ndarray]


def _bayes(settings: _Bayes) -> Finding:
    """How far the bigram strategy is from Bayes' rule, and from the losses of the others."""
    found = {symbols: theory.losses(symbols, length) for symbols, length in settings.sizes}
    apart = {symbols: _from_bayes(symbols, length - 1) for symbols, length in settings.sizes}
    gains = {symbols: _gain(one) for symbols, one in found.items()}
    parts = {
        f"Bayes' rule, {symbols} symbols": within(one, settings.rounding) for symbols, one in apart.items()
    }
    parts |= {
        f"least loss, {symbols} symbols": verdict_if(one > settings.rounding)
        for symbols, one in gains.items()
    }
    return Finding.of_parts(
        {f"largest difference, {symbols} symbols": one for symbols, one in apart.items()},
        "0, and less loss than both others from two symbols on",
        settings.rounding,
        parts,
        {
            "losses": {str(symbols): one for symbols, one in found.items()},
            "least_gain_from_two_symbols_on": {str(symbols): one for symbols, one in gains.items()},
            "meaning": "losses in nats after 1, 2, … symbols",
        },
        {"losses": _picture(found)},
    )


def _gain(losses: Losses) -> float:
    """How much less the bigram strategy loses than the better one of the others, at least, from two symbols on."""
    others = np.minimum(losses["unigram"], losses["uniform"])
    return float((others - losses["bigram"])[1:].min())


def _from_bayes(symbols: int, longest: int) -> float:
    """The largest difference of the bigram strategy from Bayes' rule."""
    return off_bayes(
        symbols,
        longest,
        lambda sequences: theory.likelihoods(sequences, symbols, 1.0),
        lambda sequences: theory.probabilities("bigram", sequences, symbols, 1.0),
    )


def _short(settings: _Short) -> Finding:
    """From which context length on unigram counts lose less than the uniform prediction."""
    found = {symbols: theory.losses(symbols, length) for symbols, length in settings.sizes}
    first = {symbols: _first(one) for symbols, one in found.items()}
    parts = {
        f"{symbols} symbols": verdict_if(first[symbols] == length)
        for (symbols, _), length in zip(settings.sizes, settings.lengths, strict=True)
    }
    return Finding.of_parts(
        {f"{symbols} symbols": one for symbols, one in first.items()},
        {
            f"{symbols} symbols": length
            for (symbols, _), length in zip(settings.sizes, settings.lengths, strict=True)
        },
        None,
        parts,
        {
            "excess_of_unigrams": {
                str(symbols): one["unigram"] - one["uniform"] for symbols, one in found.items()
            },
            "meaning": "the first context length from which on unigram counts lose less; excess: nats more than uniform",
        },
    )


def _first(losses: Losses) -> int | None:
    """The length from which on unigrams lose less, at all longer ones that were computed; None if there is none."""
    worse = np.flatnonzero(losses["unigram"] >= losses["uniform"])
    last = int(worse[-1]) if len(worse) else -1
    return last + 2 if last + 1 < len(losses["unigram"]) else None


def _picture(found: Mapping[int, Losses]) -> Figure:
    return Figure(
        title="What each strategy loses on Markov chains",
        panels=tuple(
            Panel(
                title=f"{symbols} symbols",
                xlabel="context length $t$",
                ylabel="expected cross-entropy [nats]",
                traces=tuple(
                    Line(x=np.arange(1, len(one[name]) + 1), y=one[name], label=name, series=series)
                    for series, name in enumerate(theory.STRATEGIES)
                ),
            )
            for symbols, one in found.items()
        ),
        caption="Exact: sums over all sequences; the transition matrix is integrated out.",
    )


class _Bayes(Settings):
    sizes: tuple[tuple[int, int], ...] = ((2, 12), (3, 8))
    rounding: float = 1e-12


class _Short(Settings):
    sizes: tuple[tuple[int, int], ...] = ((2, 12), (3, 9), (4, 9))
    lengths: tuple[int, ...] = (2, 4, 8)


CLAIMS = (
    Claim(
        id=f"{PAPER}/bayes",
        title="Bigram counts are Bayes' rule",
        evidence="exact",
        origin="authors' code",
        statement="""On Markov chains with uniform Dirichlet rows, in-context bigram counts with add-one smoothing are the
            Bayes predictor: from two symbols on they lose less than unigram counts and than the uniform prediction.""",
        source="edelman2024, key finding 1 in the README of the authors' program at 3ab0b29; the strategies: `utils.py:40-53`",
        settings=presets(_Bayes(), sizes=((2, 16), (3, 10), (4, 8))),
        check=_bayes,
        criterion="""Sums over all sequences. The strategy differs from the ratio of the probabilities of sequences, which are
            products of Gamma functions, by at most 10⁻¹² (rounding) everywhere, and loses less at every context length.""",
    ),
    Claim(
        id=f"{PAPER}/short-contexts",
        title="In short contexts unigram counts are worse than no counts",
        evidence="exact",
        origin="ours",
        statement="""Unigram counts with add-one smoothing lose more than the uniform prediction in contexts shorter than 2, 4
            and 8, for 2, 3 and 4 kinds of symbols, and less in the longer ones computed.""",
        source="edelman2024, whose strategies they are: `utils.py:40-53` of the authors' program at 3ab0b29",
        settings=presets(_Short(), sizes=((2, 16), (3, 10), (4, 9))),
        check=_short,
        criterion="Sums over all sequences of up to 12, 9 and 9 symbols (full: 16, 10 and 9).",
        history="The lengths were read off these sums before the claim was written.",
    ),
)
