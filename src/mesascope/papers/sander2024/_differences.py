"""What differs from the setting of the authors' program."""

from .._claim import Difference

_FLOWS = ("unitary-minimiser", "fewer-heads", "rotation-minimiser", "rotation-ends")
_STEP = ("without-commuting",)
_LAYERS = (*_STEP, "softmax-and-mlp")

DIFFERENCES = (
    Difference(
        "model",
        "bare tokens: d = 10, H = 10 diagonal heads for independent eigenvalues, 8 for conjugate pairs "
        "(`unitary.py:7, 16-17`, `orthogonal.py:7-8`)",
        "d = 3, H = 2 and 3, and d = 4, H = 3 and 4; full d = 10, H = 1, 4, 7, 10, and H = 8, 10",
        _FLOWS,
    ),
    Difference(
        "data",
        "bare tokens: contexts of 2 to 20 tokens (`unitary.py:55-56`); the loss for independent eigenvalues has one term "
        "twice (`unitary.py:35`)",
        "2 to 5 and 2 to 4 tokens, full 2 to 20; half the sum of the right losses",
        _FLOWS,
    ),
    Difference(
        "optimizer",
        "bare tokens: gradient descent from 0.1·N(0, 1): 100 steps of 0.01, 100 000 of 0.001 (`unitary.py:9-18, 64-68`, "
        "`orthogonal.py:63-71`)",
        "gradient flow until rest from 0.3·N(0, 1), full 0.1·N(0, 1)",
        _FLOWS,
    ),
    Difference("seeds", "one start, `PRNGKey(0)` (`unitary.py:13-14`)", "8 starts; pairs 6, full 16", _FLOWS),
    Difference(
        "precision", "single (the stored files)", "double", (*_FLOWS, "stored-weights", "double-count")
    ),
    Difference(
        "implementation",
        "positions alone: single precision; 1000 angles, drawn without a seed (`pe_only.py:31, 45`)",
        "double precision; the mean over all angles, and 20 draws of 1000 beside it",
        ("positions-alone",),
    ),
    Difference(
        "model",
        "W not commuting: separate keys and queries with biases, residual, LayerNorm, linear read-out "
        "(`augmented.py:13-67, 123-130, 159-180`)",
        "one linear attention layer with merged keys and queries, no biases, no LayerNorm, no residual, sums over t − 1",
        _STEP,
    ),
    Difference(
        "model",
        "W not commuting: no softmax, and an MLP of 15 hidden units with ReLU that no forward pass calls "
        "(`augmented.py:51-59, 77-88, 281`)",
        "linear attention (merged keys and queries, no biases, sums over t − 1) or softmax, and an MLP of 48 hidden units with "
        "gelu, full 60, both with residual connections; no LayerNorm",
        ("softmax-and-mlp",),
    ),
    Difference(
        "data",
        "first token (1, …, 1)/√d, d = 5, n = 50 (`augmented.py:191-192, 224`)",
        "first token N(0, I/d), for layers with an MLP also theirs; d = 4, T = 10, full d = 5, T = 50",
        _LAYERS,
    ),
    Difference(
        "optimizer",
        "Adam, rate 0.01, constant (`augmented.py:289`)",
        "Adam, rate 0.02, with an MLP 0.03, warm-up of 20 steps, cosine schedule, gradients clipped at 1",
        _LAYERS,
    ),
    Difference(
        "steps", "3200: 200 epochs of 16 batches (`augmented.py:240-241, 300`)", "600, full 5000", _LAYERS
    ),
    Difference(
        "batch",
        "1024 of 16 384 sequences that stay the same (`augmented.py:240-241`)",
        "256 fresh sequences a step; with an MLP 128, full 256",
        _LAYERS,
    ),
    Difference("seeds", "one run, no seed (`augmented.py`)", "6, with an MLP 5; full 8", _LAYERS),
    Difference(
        "evaluation",
        "1024 test sequences (`augmented.py:241`)",
        "20 000 fresh test sequences a seed",
        _LAYERS,
    ),
)
