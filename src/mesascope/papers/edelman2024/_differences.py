"""What differs from the setting of edelman2024."""

from __future__ import annotations

from .._claim import Difference

DIFFERENCES = (
    Difference(
        "model",
        "two layers of attention alone with relative positions, one head, width 16, dropout 0.1 "
        "(`training_pipeline.py:27-36`, `mingpt/model_rpe.py`)",
        "an own pre-norm transformer with MLPs and learned positions: two layers, two heads, width 32, no dropout",
    ),
    Difference(
        "data",
        "k = 2, 100 predictions in a sequence (`training_pipeline.py:30-31`)",
        "k = 2, 22 predictions (full: 99)",
    ),
    Difference(
        "data",
        "the first symbol is meant to be stationary (`datasets.py:63-66`); for k < 5 it is uniform, since the power of the "
        "matrix is averaged over the next symbol (`utils.py:14-20`)",
        "the first symbol is uniform",
        departure="same",
    ),
    Difference(
        "optimizer",
        "AdamW, 5·10⁻⁴, decay 0.1, betas 0.9 and 0.95 (`mingpt/trainer.py:25-27`)",
        "Adam, 0.003",
    ),
    Difference("steps", "2000 (`training_pipeline.py:38`)", "2500 (full: 6000)"),
    Difference("batch", "64 (`mingpt/trainer.py:24`)", "64", departure="same"),
    Difference(
        "evaluation",
        "distances are cross-entropies (`utils.py:141-184`), as a function of the number of sequences",
        "relative squared differences of probabilities",
    ),
    Difference(
        "precision",
        "single: the default of PyTorch, which nothing in the program changes",
        "single in training, double where models are compared",
        departure="same",
    ),
    Difference("seeds", "one in the notebook (`plots.ipynb`)", "10 to 19", departure="same"),
)
