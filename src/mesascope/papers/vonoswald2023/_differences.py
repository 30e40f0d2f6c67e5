"""What differs from the setting of the paper and of its authors' program."""

from .._claim import Difference

_LAYER = ("trained-loss", "sensitivities", "interpolated-weights", "larger-inputs", "named")
_LOOPED = ("looped-gd-plus-plus",)
_FIVE = ("five-layers",)
_TRAINED = (*_LAYER, *_LOOPED)
_INTERLEAVED = ("interleaved-one-step", "interleaved-copying")
_CURVED = ("curved-functions",)

DIFFERENCES = (
    Difference(
        "model",
        "one head, separate W_K, W_Q, W_V and P of 11 × 11, sum over the examples (`attn.py:156-198`)",
        "the same functions: merged W^KQ and W^PV of 11 × 11, mean over the N examples",
        (*_TRAINED, *_FIVE),
        departure="same",
    ),
    Difference(
        "model",
        "10 + 10 entries, fixed positions, one head, not causal, no embedding, ŷ = −(last entry); start: truncated normal, "
        "variance 0.01/20 (`normal_token_construct.ipynb`, cell 4; `transformer.py:246`)",
        "3 + 10 entries and a start of variance 0.3/13, all else the same",
        _INTERLEAVED,
        ("small",),
        "smaller",
    ),
    Difference(
        "data",
        "d = N = 10, x uniform on (−½, ½) in the program (`data.py:173-176`; text, section 3: (−1, 1))",
        "d = 3, N = 4, x uniform on (−½, ½)",
        _INTERLEAVED,
        ("small",),
        "smaller",
    ),
    Difference(
        "data",
        "d = N = 10, x uniform on (−½, ½) in the program (`data.py:173-176`; text, section 3: (−1, 1))",
        "d = 5, all else the same",
        _FIVE,
        ("small",),
        "smaller",
    ),
    Difference(
        "model",
        "embedding of (x, y) in 40 entries, an MLP with 160 hidden units added to it, one head, no read-out, ŷ = −(last "
        "entry); start: truncated normal, variance 0.002/columns (`non_linear_regression.ipynb`, cell 3; "
        "`transformer.py:246-264`)",
        "8 entries, 32 hidden units and a start of variance 1/columns",
        _CURVED,
        ("small",),
        "smaller",
    ),
    Difference(
        "model",
        "GELU in its form with tanh (`attn.py:254`, JAX's default)",
        "GELU",
        _CURVED,
        departure="same",
    ),
    Difference(
        "data",
        "y = A sin(x + φ), A uniform on (0.1, 0.5), φ on (0, π); both are drawn from one key, so that A = 0.1 + 0.4 φ/π "
        "(`data.py:103-105`)",
        "A and φ are independent",
        _CURVED,
    ),
    Difference(
        "data",
        "N = 10, x uniform on (−5, 5) (`data.py:107-110`)",
        "x uniform on (−2, 2)",
        _CURVED,
        ("small",),
        "smaller",
    ),
    Difference(
        "optimizer",
        "Adam, second decay 0.98, rate 0.001, clip 0.001 (`constructed_token_setup.ipynb`, cell 4; `config.py:22`; text, "
        "A.12: clip 10); start: truncated normal, variance 0.002/11, looped 0.001/11 (`transformer.py:246`; the notebook's "
        "cell 4)",
        "Adam, second decay 0.999, cosine schedule, clip 1; rate 0.03 (named and looped 0.01), full 0.01; start: N(0, 0.1²)",
        _TRAINED,
    ),
    Difference(
        "optimizer",
        "Adam, second decay 0.98, constant rate 0.0005, clip 10; start: truncated normal, variance 0.0004/11 "
        "(`constructed_token_setup.ipynb`, cell 4; `transformer.py:246`)",
        "Adam, second decay 0.999, cosine schedule, clip 0.1, rate 0.02, full 0.01; start: N(0, 0.1²)",
        _FIVE,
    ),
    Difference("steps", "50 000 (`constructed_token_setup.ipynb`, cell 4)", "3000", _FIVE, ("small",)),
    Difference("batch", "2048 (`constructed_token_setup.ipynb`, cell 4)", "128", _FIVE, ("small",)),
    Difference("seeds", "1 in the notebook (`constructed_token_setup.ipynb`, cell 4)", "5", _FIVE),
    Difference(
        "evaluation",
        "gradient descent with the best equal steps on a grid, GD++ tuned by Adam (`train.py:477-579`); 10⁴ fixed tasks",
        "the best five steps along gradients that are the same for all prompts, with momentum, by least squares; fresh prompts",
        _FIVE,
    ),
    Difference(
        "optimizer",
        "Adam, second decay 0.98, rate 0.001, clip 10 (`normal_token_construct.ipynb`, cell 4)",
        "the same with rate 0.01 and a cosine schedule",
        _INTERLEAVED,
        ("small",),
    ),
    Difference(
        "steps",
        "5000 (`constructed_token_setup.ipynb`, cell 4; Figure 3a ends near 3500)",
        "one layer 1000, full 5000; named 2000, full 5000; looped 1500, full 10 000",
        _TRAINED,
    ),
    Difference(
        "optimizer",
        "Adam, second decay 0.98 (`config.py:23`), rate 0.001, clip 100 (`non_linear_regression.ipynb`, cell 3)",
        "the same with rate 0.03 and a cosine schedule",
        _CURVED,
        ("small",),
    ),
    Difference("steps", "20 000 (`non_linear_regression.ipynb`, cell 3)", "2000", _CURVED, ("small",)),
    Difference("batch", "2048 (`non_linear_regression.ipynb`, cell 3)", "64", _CURVED, ("small",)),
    Difference("seeds", "1 (`non_linear_regression.ipynb`, cell 3)", "5", _CURVED),
    Difference(
        "steps",
        "more than 40 000 (Figure 5); 10 000 in `normal_token_construct.ipynb`, cell 4",
        "6000, full 10 000 (78 min; 40 000 would take about 5 h on two cores)",
        _INTERLEAVED,
    ),
    Difference(
        "batch", "2048 (`constructed_token_setup.ipynb`, cell 4)", "512; named 2048", _TRAINED, ("small",)
    ),
    Difference("batch", "2048 (`normal_token_construct.ipynb`, cell 4)", "96", _INTERLEAVED, ("small",)),
    Difference(
        "precision",
        "single: JAX's default, which nothing in `src/` changes",
        "single in training, double where layers are judged",
        (*_TRAINED, *_FIVE, *_INTERLEAVED, *_CURVED),
    ),
    Difference("seeds", "5 (Figure 2), 1 in the notebook (cell 4)", "5, full 10; named 2, full 5", _LAYER),
    Difference("seeds", "1 in the notebook (`constructed_token_setup.ipynb`, cell 4)", "5", _LOOPED),
    Difference("seeds", "several single curves (Figure 5), 1 in the notebook (cell 4)", "5", _INTERLEAVED),
    Difference(
        "seeds",
        "a stored number (`normal_token_construct.ipynb`, cell 8), from 10⁴ tasks by `train.py:477`; its seed is not stated",
        "40 other samples of 10⁴ tasks",
        ("printed-loss",),
    ),
    Difference(
        "seeds",
        "trained layers (A.10); prompts and seeds are not stated",
        "4000 drawn prompts",
        ("printed-curvatures",),
    ),
    Difference(
        "evaluation",
        "10⁴ fixed tasks; best step on a grid, on 10⁴ tasks (`train.py:477-501`); L2 norms of differences, mean cosine; "
        "GD++ tuned by Adam (`train.py:523-579`)",
        "fresh prompts for every seed; best step in closed form, GD++ by a search; relative squared distance, mean cosine",
        _TRAINED,
    ),
    Difference(
        "evaluation",
        "2048 fixed prompts; beside the same network with a fixed step of η = 0.1 for attention (cell 6), its embedding and "
        "MLP trained by Adam with rate 0.0003 (`train.py:523-579`), whose features see the labels; cosine and L2 norms of "
        "differences",
        "fresh prompts for every seed; beside the best step on any features of the inputs, in closed form; the share of the "
        "answers that is affine in one label",
        _CURVED,
    ),
    Difference(
        "evaluation",
        "51 scales of inputs and 46 of targets, other prompts for each (`train.py:442-456`)",
        "6 of each, the same prompts multiplied",
        ("larger-inputs",),
        departure="smaller",
    ),
    Difference(
        "evaluation",
        "losses on 10⁴ fixed tasks; norms of gradients in the own, the next and all other tokens (`train.py:308-323`)",
        "losses on 10⁴ fresh prompts; the next over the others, with the next left out of these",
        _INTERLEAVED,
    ),
)
