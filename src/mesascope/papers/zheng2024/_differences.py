"""What differs from the setting of the paper, whose text was not read: settings are those of the authors' program."""

from .._claim import Difference

_CURVES = ("figure-1a", "figure-1b", "figure-1c")
_DEPTH = ("several-layers", "softmax")
_FLOWS = ("theorem-4.1", "standard-initialization", "theorem-4.3", "proposition-4.2", "full-one-limit")

DIFFERENCES = (
    Difference(
        "model",
        "complex weights (`models/lsa.py:24-30`), real at the start",
        "real weights: there the gradient of the expected loss is real",
        (*_FLOWS, "ratio-by-context"),
        departure="same",
    ),
    Difference(
        "data",
        "10 000 sequences, drawn once (`main_train_ar.py:28, 116`)",
        "the exact expectation over all sequences",
        _FLOWS,
    ),
    Difference(
        "optimizer",
        "gradient flow in the theorems, descent for 120 to 201 epochs in the program (`plot.py:6-16, 82-92`)",
        "gradient flow until rest",
        _FLOWS,
    ),
    Difference(
        "model",
        "one layer of linear attention with all entries of the merged matrices free, complex weights (`models/lsa.py:24-38`)",
        "linear attention of two and four layers, real weights",
        ("several-layers",),
    ),
    Difference(
        "model",
        "one layer of linear attention (`models/lsa.py:24-38`)",
        "a softmax transformer: two layers of width 32 with MLPs, four heads, normalized before each part",
        ("softmax",),
    ),
    Difference(
        "data",
        "d = 5, T = 100 (`scripts/main_train_ar.sh:3-5`, `main_train_ar.py:26-28`)",
        "d = 3, T = 20, full d = 5, T = 50",
        _DEPTH,
    ),
    Difference(
        "data",
        "Gaussian σ = 0.5, 1, 2, three starts (`plot.py:6-18`)",
        "batches for σ = 1 from a0 = b0 = 0.1 alone; the exact curves of all nine runs",
        ("figure-1a", "figure-1b"),
        ("small",),
        "smaller",
    ),
    Difference(
        "data",
        "one-hot c = 0.5, 1, 2, three starts (`plot.py:82-94`)",
        "batches for c = 1 from a0 = b0 = 0.1 alone; the exact curves of all nine runs",
        ("figure-1c",),
        ("small",),
        "smaller",
    ),
    Difference(
        "optimizer",
        "full-batch gradient descent at constant rates (`main_train_ar.py:132, 141-151`)",
        "Adam, cosine schedule, clipped norms",
        _DEPTH,
    ),
    Difference(
        "optimizer",
        "full-batch gradient descent for 150 epochs (`plot.py:6-16`)",
        "exact gradient flow until rest",
        ("ratio-by-context",),
    ),
    Difference(
        "steps", "120 to 201 epochs (`plot.py:6-16, 82-92`)", "600 (softmax) and 800 steps, full 5000", _DEPTH
    ),
    Difference(
        "batch",
        "10 000 training and 10 000 test sequences (`main_train_ar.py:28`, `data/generate_data.py:43`)",
        "500 of each (one-hot: 1000), in five batches",
        _CURVES,
        ("small",),
    ),
    Difference(
        "batch",
        "the same 10 000 sequences in every step (`main_train_ar.py:28`)",
        "fresh sequences in every step: 64 (several-layers), 128 (softmax), full 128",
        _DEPTH,
    ),
    Difference(
        "precision",
        "complex64 (`data/generate_data.py:4`, `models/lsa.py:24`)",
        "float32 in training",
        _DEPTH,
    ),
    Difference(
        "seeds",
        "1 (`main_train_ar.py:44`, all paths in `plot.py`)",
        "five batches of our own; full Gaussian runs have the program's own batch beside them",
        _CURVES,
    ),
    Difference("seeds", "1 (`main_train_ar.py:44`)", "five", _DEPTH),
    Difference(
        "evaluation",
        "10 000 test sequences at the longest context (`main_train_ar.py:76-80`)",
        "20 000 test sequences, full 200 000, at six context lengths",
        ("ratio-by-context",),
    ),
)
