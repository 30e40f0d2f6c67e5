"""What differs from the setting of the paper, as far as it is known."""

from .._claim import Difference

_REVIEWS = "reviews of the ICLR 2024 submission, second-hand"
_FLOWS = ("balanced", "late-rate", "stages", "order-of-features")

DIFFERENCES = (
    Difference(
        "model",
        f"one softmax layer with one merged matrix for keys and queries, values fixed ({_REVIEWS})",
        "the same layer: Q alone is trained",
        (*_FLOWS, "sampled-stages"),
        departure="same",
    ),
    Difference(
        "model",
        f"one merged matrix, values fixed ({_REVIEWS})",
        "keys, queries, values and projection are all trained, from random starts",
        ("trained-layer",),
    ),
    Difference(
        "data",
        f"K orthonormal features, K large, p_k of order 1/K ({_REVIEWS}); sizes not stated where we could read",
        "K = 4, p_k = 1/4; N = 30, full N = 100 (late-rate: K = 2 to 4, N = 20 to 100)",
        ("balanced", "late-rate"),
        departure="smaller",
    ),
    Difference(
        "data",
        f"p_1 of order 1, all others of order 1/K, K large ({_REVIEWS})",
        "K = 4, p = 0.7, 0.12, 0.1, 0.08; N = 30, full N = 100 (sampled-stages: N = 30)",
        ("stages", "order-of-features", "sampled-stages"),
        departure="smaller",
    ),
    Difference(
        "data",
        f"K large, p_k of order 1/K ({_REVIEWS})",
        "K = 4 and N = 30, full K = 8 and N = 100",
        ("trained-layer",),
        departure="smaller",
    ),
    Difference(
        "optimizer",
        f"gradient descent (abstract) on the population loss ({_REVIEWS}); step size and start not stated where we could read",
        "exact gradient flow from Q = 0",
        _FLOWS,
    ),
    Difference(
        "optimizer",
        f"gradient descent (abstract) on the population loss ({_REVIEWS})",
        "stochastic gradient descent from Q = 0, rate 1",
        ("sampled-stages",),
    ),
    Difference(
        "optimizer",
        f"gradient descent (abstract) on the population loss ({_REVIEWS})",
        "Adam, rate 0.03, cosine schedule",
        ("trained-layer",),
    ),
    Difference(
        "steps",
        f"bounds that grow with K² ({_REVIEWS}), no numbers",
        "flows to time 1000, late-rate to 10⁵",
        _FLOWS,
    ),
    Difference(
        "steps",
        f"bounds that grow with K² ({_REVIEWS}), no numbers",
        "sampled-stages: 12 and 600; trained-layer: 400, full 5000",
        ("sampled-stages", "trained-layer"),
    ),
    Difference(
        "batch",
        f"none, the population loss ({_REVIEWS})",
        "256 prompts, full sampled-stages 2048",
        ("sampled-stages", "trained-layer"),
    ),
    Difference(
        "precision",
        "none: theorems without experiments, as far as we could read",
        "single precision in training",
        ("sampled-stages", "trained-layer"),
    ),
    Difference("seeds", "none", "five, full ten", ("sampled-stages", "trained-layer")),
    Difference(
        "evaluation",
        "near-zero error (abstract), no number",
        "excess of the exact loss below 0.05; dominant half done and the others not half as far",
        ("stages", "order-of-features", "sampled-stages"),
    ),
    Difference(
        "evaluation",
        "near-zero error (abstract), no number",
        "below 0.01 of the error of predicting 0; attention above 0.95",
        ("balanced", "trained-layer"),
    ),
)
