"""What the claims of edelman2024 share: Markov chains, transformers trained on them, and what they are followed by."""

from __future__ import annotations

from mesascope.learners import DirichletPosterior, Uniform, UnigramPosterior
from mesascope.models import SequenceModel
from mesascope.probes import AlongTraining, identify_along
from mesascope.processes import MarkovChains, NextToken

from .._claim import Settings
from .._pools import SymbolTraining, trained_on
from .._runs import seeds_of
from .._shared import shared

PAPER = "edelman2024"
STRATEGIES = ("uniform", "unigram-posterior", "dirichlet-posterior")
"""The ids of the learners that are the paper's uniform, unigram and bigram strategies."""


class Chains(Settings):
    """Chains of S symbols, of each of which T are seen."""

    symbols: int = 2
    horizon: int = 24


class Training(Chains, SymbolTraining):
    """The transformers that are trained on them."""

    width: int = 32
    layers: int = 2
    heads: int = 2
    rate: float = 0.003
    batch: int = 64
    steps: int = 2500
    per_decade: int = 8
    seed: int = 10
    seeds: int = 10


class Followed(Training):
    """On how many chains the models are compared with the strategies."""

    tasks: int = 400


def chains(settings: Chains) -> MarkovChains:
    """The process."""
    return MarkovChains(settings.symbols)


@shared(Training)
def trained(settings: Training) -> dict[int, list[SequenceModel]]:
    """Steps → one transformer per seed; every prediction counts."""
    return trained_on(chains(settings), settings)


@shared(Followed)
def followed(settings: Followed) -> list[AlongTraining]:
    """The models of every seed along their training, compared with the paper's strategies, which add 1 to every count."""
    models = trained(settings)
    return [
        identify_along(
            {step: several[place] for step, several in models.items()},
            chains(settings),
            NextToken(settings.horizon),
            strategies=[Uniform(), UnigramPosterior(1.0), DirichletPosterior(1.0)],
            learners=STRATEGIES,
            tasks=settings.tasks,
            seed=seed,
        )
        for place, seed in enumerate(seeds_of(settings))
    ]
