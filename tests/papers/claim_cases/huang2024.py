"""How the claims of huang2024 are tested."""

from mesascope.papers.huang2024 import _model, _trained
from mesascope.processes import OrthonormalFeatures
from mesascope.theory import huang2024 as theory

from . import Case, scaled

SMALL = {"features": 3, "examples": 20}


def short_prompts(patch):
    """A world in which prompts hold a quarter of the examples: many lack the query's feature."""
    right = theory.feature_counts
    patch.setattr(theory, "feature_counts", lambda p, examples: right(p, examples // 4))


def nearly_balanced(module):
    """A world in which the dominant feature hardly dominates."""

    def break_it(patch):
        patch.setattr(
            module,
            "process_of",
            lambda settings: OrthonormalFeatures(4, probabilities=[0.28, 0.24, 0.24, 0.24]),
        )

    return break_it


def query_sees_itself(patch):
    """The query's token (x_q, 0) is among those that it attends to: the best match has no label."""
    patch.setattr(_trained, "_CONTEXT", "all")


CASES = {
    "huang2024/exact-loss": Case(
        {"laws": [[0.6, 0.3, 0.1]], "examples": 8, "prompts": 4000},
        scaled(theory, "equal_gap_loss", 1 + 1e-10),
    ),
    "huang2024/balanced": Case(SMALL, short_prompts),
    "huang2024/late-rate": Case({"cases": [[2, 12]]}, scaled(theory, "late_excess", 1.02)),
    "huang2024/stages": Case({"examples": 25}, nearly_balanced(_model)),
    "huang2024/trained-layer": Case({"prompts": 4000}, query_sees_itself),
    "huang2024/sampled-stages": Case({"examples": 25}, nearly_balanced(_trained)),
}
