"""How the claims of kim2024 are tested."""

from mesascope.papers.kim2024 import _trained
from mesascope.processes import NonlinearRegression, RandomFeatures
from mesascope.theory import kim2024 as theory

from . import Case, scaled


def frozen_features(patch):
    """A descent that moves three of the features only, one less than there are targets."""
    right = theory.relu_span_loss

    def wrong(vectors, targets, ridge=1e-9):
        value, slope = right(vectors, targets, ridge)
        slope[3:] = 0
        return value, slope

    patch.setattr(theory, "relu_span_loss", wrong)


def other_targets(patch):
    """Training sees prompts with other features than those that it is judged by."""
    right = _trained._trained

    def wrong(process, settings):
        target = RandomFeatures(process.target.features, 1 + process.target.seed)
        return right(NonlinearRegression(process.dim, target), settings)

    patch.setattr(_trained, "_trained", wrong)


CASES = {
    "kim2024/optimal-attention": Case(
        {"cases": [[3, 2, 2, 3]]}, scaled(theory, "optimal_attention", 1 + 1e-9)
    ),
    "kim2024/benign-landscape": Case({"widths": [4, 8], "starts": 15, "most": 0.2}, frozen_features),
    "kim2024/learned-features": Case(
        {"steps": 250, "prompts": 4000, "inputs": 10_000, "outside": 0.02, "gain": 0.5}, other_targets
    ),
}
