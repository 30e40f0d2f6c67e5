"""What differs from the setting of the paper, whose model is the GPT-2 that Garg et al. trained (section 4, appendix D)."""

from __future__ import annotations

from .._claim import Difference

DIFFERENCES = (
    Difference(
        "model",
        "GPT-2 of 12 layers, 8 heads, width 256, trained by Garg et al. (section 4, appendix D; their `standard.yaml:2-5`)",
        "an own pre-norm transformer with its own initialisation: 4 layers, 4 heads, width 32 (full: 12, 8, 256)",
        ("transformer",),
    ),
    Difference(
        "model",
        "the layers of one softmax transformer, trained by Adam (section 4)",
        "linear attention (GD++ layers), one network for each depth from 1 to 4, the best of many searches",
        ("depth",),
    ),
    Difference(
        "model",
        "k + 8 layers with two heads of normalised ReLU attention, and MLPs (Theorem 5.1)",
        "k + 2 layers of linear attention with one head, without MLPs",
        ("newton-layers",),
    ),
    Difference(
        "data",
        "x, w ~ N(0, I), no noise, d = 20, up to 40 examples (`samplers.py:50`, `tasks.py:83`, `linear_regression.yaml:9`)",
        "d = 2, up to 6 examples",
        ("transformer",),
        ("small",),
    ),
    Difference(
        "data",
        "x, w ~ N(0, I), no noise, d = 20, up to 40 examples; a prediction after each (`samplers.py:50`, `tasks.py:83`)",
        "d = 8, 16 examples (full: 20, 40), w ~ N(0, I/d), one prediction after all; 1000 fixed prompts (full: 4000)",
        ("depth",),
    ),
    Difference(
        "data",
        "5 to 20 dimensions and 11 to 41 points, one and two more every 2000 steps (`base.yaml:17-22`)",
        "no curriculum",
        ("transformer",),
    ),
    Difference(
        "optimizer",
        "Adam, constant rate 0.0001, no clipping (`train.py:39`, `base.yaml:13`)",
        "Adam, cosine with 10 % warm-up, clipped at 1, rate 0.004 (full: 0.0001)",
        ("transformer",),
    ),
    Difference(
        "optimizer",
        "Adam, constant rate 0.0001 (`train.py:39`, `base.yaml:13`)",
        "BFGS from 160 random starts (full: 200)",
        ("depth",),
    ),
    Difference("steps", "500 001 (`base.yaml:16`)", "1500 (full: 500 000)", ("transformer",)),
    Difference(
        "batch",
        "320 prompts (`eval_similarity.py:40, 50`)",
        "five batches of 60 prompts",
        ("gradient-steps", "root-two", "printed-steps", "ill-conditioned"),
        ("small",),
    ),
    Difference(
        "evaluation",
        "read-outs trained for each layer by Adam, 500 001 steps of 64 prompts (`train_linear.py:162-167`)",
        "read-outs by ridge regression on 1000 prompts (full: 4000)",
        ("transformer",),
    ),
    Difference(
        "evaluation",
        "iterations of matrices, each compared with a layer; similarity after 0 to 40 examples (`eval_similarity.py:105`)",
        "closed forms in eigenvalues, compared with each other; similarity after 1 to 40 examples (as section 3.3)",
        ("gradient-steps", "root-two", "printed-steps"),
    ),
    Difference(
        "evaluation",
        "similarity of the errors of predictions (section 3.3)",
        "iterations and steps with the same median of |ŵ − w|²",
        ("depth",),
    ),
    Difference(
        "evaluation",
        "predictions at a condition number of 100 (`samplers.py:73-79`), beside those of a trained transformer (abstract)",
        "the two algorithms, by the error of their weights, at condition numbers from 10 to 10 000",
        ("ill-conditioned",),
    ),
    Difference(
        "precision",
        "float32 (nothing set in the program)",
        "double precision",
        ("gradient-steps", "root-two", "printed-steps", "ill-conditioned", "depth"),
    ),
    Difference(
        "seeds",
        "one model, one batch of prompts, no seed set (`train.py`)",
        "five seeds; five batches (full: ten)",
    ),
)
