"""What differs from the setting of wurgaft2025."""

from __future__ import annotations

from .._claim import Difference

_TRAINED = ("weights", "superlinear", "odds", "left-out", "constant-complexity")

DIFFERENCES = (
    Difference(
        "model",
        "GPT-NeoX with rotary positions, one layer, one head, width 64, MLPs of 32 to 512 hidden units "
        "(`models.py:46-59`; `experiments/categorical-sequence/full-exp-params/yaml-configs`)",
        "an own pre-norm transformer with learned positions: one layer, one head, width 32, MLPs of 128 hidden units",
        _TRAINED,
    ),
    Difference(
        "data",
        "8, 12 and 16 symbols, 128 to 320 draws, pools of 4 to 4096 (`full-exp-params/experiment_params.txt`)",
        "8 symbols, 24 draws, pools of 4 to 64 (full: 64 draws, pools of 8 to 128), one pool of each size",
        _TRAINED,
        departure="smaller",
    ),
    Difference(
        "data",
        "a start token; every draw is predicted (`utils.py:155-177`)",
        "no start token; predicted from the third draw on",
        _TRAINED,
    ),
    Difference(
        "data",
        "8, 12 and 16 symbols, 128 to 320 draws (`full-exp-params/experiment_params.txt`)",
        "3 symbols (full: 4), 24 draws, other pools",
        ("loss-gap",),
        departure="smaller",
    ),
    Difference(
        "optimizer",
        "AdamW without decay (the default of the library), 5·10⁻⁴ after a rise over 5000 steps, clipping at 1 "
        "(`full-exp-params/yaml-configs`)",
        "Adam, 0.01, no rise, no clipping",
        _TRAINED,
    ),
    Difference("steps", "100 000 (`full-exp-params/experiment_params.txt`)", "1000 (full: 5000)", _TRAINED),
    Difference("batch", "64 (`full-exp-params/experiment_params.txt`)", "32", _TRAINED),
    Difference(
        "evaluation",
        "distances are symmetrized relative entropies (`analysis_utils.py:563-647`), 500 sequences",
        "squared differences of probabilities: relative distance is then the weight in the nearest mixture; 1000 sequences",
        _TRAINED,
    ),
    Difference(
        "evaluation",
        "the three numbers are fitted by the relative entropy of predictions (`models.py:971-976`)",
        "by squared differences of predictions, for each seed",
        _TRAINED[2:],
    ),
    Difference(
        "evaluation",
        "bits of code and of priors are those of compressed files (`compression_utils.py:14-158`)",
        "64 bits for each number of a prior and 5000 for the code, about what the two classes take with bz2",
        _TRAINED[2:],
    ),
    Difference(
        "evaluation",
        "losses are medians of means over 10 000 sequences (`analysis_utils.py:474-494`)",
        "means over 1000 sequences, with the probabilities of the next symbol in place of the symbol",
        _TRAINED[2:],
    ),
    Difference(
        "precision",
        "single: the default of PyTorch, which nothing in `src/code` changes for models",
        "single in training, double where models are compared",
        _TRAINED,
        departure="same",
    ),
    Difference(
        "seeds", "one (`full-exp-params/experiment_params.txt`)", "30 to 34, the same pool for all", _TRAINED
    ),
)
