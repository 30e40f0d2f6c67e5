"""What differs from the setting of park2024."""

from __future__ import annotations

from .._claim import Difference

_TRAINED = ("unigrams-first", "diversity", "uni-inf-first", "mixture")

DIFFERENCES = (
    Difference(
        "model",
        "two layers, four heads, width 64 (`yamls/markov_mixture/final_v1/default_long/default_long/n=64.yaml`)",
        "an own pre-norm transformer with learned positions: two layers, two heads, width 24 (full: 32)",
        _TRAINED,
    ),
    Difference(
        "data",
        "10 symbols, 512 in a sequence, pools of 4 to 2048 chains (`default_long/n=64.yaml`)",
        "3 symbols, 24 in a sequence (full: 64), pools of 2, 16 and 128 (full: 4, 32 and 256), one of each size",
        _TRAINED,
        departure="smaller",
    ),
    Difference(
        "data",
        "chains have different probabilities, drawn uniformly (`make_yamls.ipynb`)",
        "all chains of a pool have the same probability",
        _TRAINED,
    ),
    Difference(
        "data",
        "the first symbol is drawn from the stationary distribution (`utils.py:1113-1131`)",
        "the first symbol is uniform",
        _TRAINED,
    ),
    Difference(
        "data",
        "10 symbols (`default_long/n=64.yaml`), contexts from 1 to 400 symbols (`analysis_markov_mixture.py:78`)",
        "3 symbols, contexts from 1 to 8 (full: 9)",
        ("short-contexts",),
        departure="smaller",
    ),
    Difference(
        "optimizer",
        "AdamW, 6·10⁻⁴, decay 0.1, betas 0.9 and 0.95 (`default_long/n=64.yaml`)",
        "Adam, 0.01, no decay",
        _TRAINED,
    ),
    Difference("steps", "107 979 (`default_long/n=64.yaml`)", "1500 (full: 5000)", _TRAINED),
    Difference("batch", "128 (`default_long/n=64.yaml`)", "32", _TRAINED),
    Difference(
        "evaluation",
        "relative entropies of transition matrices, from contexts that end with every symbol (`utils.py:731-777`, `:831-879`)",
        "squared differences of probabilities over all contexts of 2 to 23 symbols, divided by those between the model and 1/S",
        _TRAINED,
    ),
    Difference(
        "evaluation",
        "Uni-Inf is the stationary distribution of the matrix that Bi-Inf infers (`analysis_markov_mixture.py:196-204`)",
        "counts of symbols, each with 1 added",
    ),
    Difference(
        "precision",
        "single: the default of PyTorch, which nothing in the program changes for models",
        "single in training, double where models are compared",
        _TRAINED,
        departure="same",
    ),
    Difference("seeds", "one (`default_long/n=64.yaml`)", "20 to 24, the same pool for all", _TRAINED),
)
