"""What differs from the setting of the paper and of its authors' program at commit c8c1e37."""

from .._claim import Difference

_ONE = ("one-layer", "second-block")
_PROBED = ("compressed-depth", "preconditioned-inputs")
_DEPTH = ("depth-and-mesa-layer", "mesa-layer-named", *_PROBED)
_FEW = ("few-shot",)
_COPY = ("copying", *_FEW)
_RUNS = "`run_construction_experiments.ipynb`"

DIFFERENCES = (
    Difference(
        "model",
        "attention sums over tokens (`attn.py:57-68`)",
        "the sum, and beside it the mean over t − 1",
        ("second-block",),
    ),
    Difference(
        "model",
        "4 heads (one layer: 2), key size 20, sum over tokens, values clipped at ±4 behind layers; mesa layer: 4 heads, a λ "
        f"each ({_RUNS}, cells 7 and 11; `attn.py:57-68`, `mesa.py`)",
        "one head of 3d × 3d, mean over t − 1, no clip; mesa layer: one head of size d, one λ",
        _DEPTH,
    ),
    Difference(
        "model",
        "7 softmax layers of width 40 without MLP and norms, positions for keys and queries of layer 1 only "
        "(`run_sensitivity_experiments.ipynb`, cells 7 and 9; `attn.py:110-119`)",
        "2 pre-norm layers with MLPs, width 32, full 128, learned positions added",
        _COPY,
    ),
    Difference(
        "data",
        "d = 10, T = 50, s_1 uniform on (−1, 1) in the program (`linear_seq.py:105-116`; text, Methods: N(0, 1))",
        "entries of s_1 ±1; d = 4, T = 20, full d = 10, T = 50",
        (*_DEPTH, *_COPY),
    ),
    Difference(
        "optimizer",
        f"AdamW, decay 0.1, rate 1e-4 (`src/optim.py:37-49`; {_RUNS}, cell 7), start N(0, 0.0002²) (`config.py`)",
        "Adam, rate 0.003, warm-up and cosine schedule, start N(0, 0.1²)",
        _ONE,
        ("small",),
    ),
    Difference(
        "optimizer",
        f"AdamW, decay 0.1, rate 1e-4, mesa layer 4e-4, entries clipped at 1 (`src/optim.py:37-49`; {_RUNS}, cells 7 and 11)",
        "Adam, rate 0.01, full 0.003, warm-up 100 and cosine schedule, norm clipped at 1",
        _DEPTH,
    ),
    Difference(
        "optimizer",
        "AdamW, decay 0.05, warm-up 1000 to 7e-4, cosine (`run_sensitivity_experiments.ipynb`, cell 7; table 1)",
        "Adam, rate 0.01 (few-shot 0.005), full 0.001, warm-up 100 and cosine schedule, norm clipped at 1",
        _COPY,
    ),
    Difference("steps", f"5000 ({_RUNS}, cell 7)", "600", _ONE, ("small",)),
    Difference(
        "steps",
        f"5000, 4 layers 10 000, 6 layers 15 000, mesa layer 5000 ({_RUNS}, cells 7 to 15)",
        "600, full 20 000",
        _DEPTH,
    ),
    Difference(
        "steps", "3000 (`run_sensitivity_experiments.ipynb`, cell 7)", "600, full 20 000", ("copying",)
    ),
    Difference("steps", "15 000 (`run_icl.ipynb`, cell 7)", "2500, full 20 000", _FEW),
    Difference("batch", f"256 ({_RUNS}, cell 7)", "64", (*_ONE, *_DEPTH, *_COPY), ("small",)),
    Difference(
        "precision",
        "single: JAX's default, which nothing in `src/` or `configs/` changes",
        "single in training, double where layers are judged",
        (*_DEPTH, *_COPY),
    ),
    Difference(
        "seeds",
        f"one model, 5 × 256 test sequences for Figure 4C; 5 for Figure 4A ({_RUNS}, cells 18 and 26)",
        "5",
        _ONE,
    ),
    Difference(
        "seeds", f"one model each, mesa layer 5 ({_RUNS}, cells 11 to 15 and 28; Figure 4D)", "5", _DEPTH
    ),
    Difference("seeds", "5 (`run_sensitivity_experiments.ipynb`, cell 9)", "5", ("copying",)),
    Difference("seeds", "one network; 5 draws of tasks (`run_icl.ipynb`, cells 7 to 12)", "5 networks", _FEW),
    Difference(
        "data",
        "few-shot tasks of 224 tokens, the length of the training; prefix of 20 tokens (`run_icl.ipynb`, cells 8 and 9)",
        "few-shot tasks of 20 tokens, full 50; prefix of 2 tokens",
        _FEW,
    ),
    Difference(
        "optimizer",
        "end token and prefix by Adam, rate 0.001, 5000 steps, batches of 64 and 128 (`run_icl.ipynb`, cell 8)",
        "rate 0.05, 200 steps, batches of 64",
        _FEW,
        ("small",),
    ),
    Difference(
        "model",
        "beside softmax networks also mesa layers behind one softmax layer (`run_icl.ipynb`, cell 5)",
        "softmax networks only",
        _FEW,
    ),
    Difference(
        "evaluation",
        f"half the squared error, mean over t = 1 … 50 (`src/train.py:15-19`), 256 sequences ({_RUNS}, cell 22)",
        "squared error per coordinate, mean over t = 2 … T − 1, 4000 sequences",
        _DEPTH,
    ),
    Difference(
        "evaluation",
        "a compressed expression with 0.5 % of the numbers of six layers (arXiv v2; a summary of it)",
        "multiples of the identity nearest to the blocks, with 1 number in d², nothing trained again",
        ("compressed-depth",),
    ),
    Difference(
        "evaluation",
        "probes by depth and context length, in softmax transformers too (arXiv v2; a summary of it)",
        "ridge probes at the last position, scored on other sequences, in linear layers",
        ("preconditioned-inputs",),
    ),
    Difference(
        "evaluation",
        "norms of gradients of tokens behind layer 1 in the tokens before (Figure 3A)",
        "attention of the head that looks most at the token before",
        ("copying",),
    ),
)
