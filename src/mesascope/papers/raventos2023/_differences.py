"""What differs from the setting of raventos2023."""

from __future__ import annotations

from .._claim import Difference

DIFFERENCES = (
    Difference(
        "model",
        "GPT-2 with 8 layers, width 128, 2 heads, or 4 layers, width 64 (section 3; `icl/configs/example.py:24-28`), "
        "weights from N(0, 0.02²) (`icl/gpt2.py:26`)",
        "an own pre-norm transformer with its own initialization, width 32: 2 layers, 4 heads (full: 3 and 8)",
    ),
    Difference(
        "data",
        "D = 8, 16 pairs, σ² = 0.25, x and w ~ N(0, I) (`icl/configs/example.py:13-21`, `icl/tasks.py:58-84`)",
        "d = 2 (full: 4), 9 pairs, the same σ², x and w",
    ),
    Difference(
        "data",
        "pools of up to 2²⁰ tasks (Figure 6; `icl/configs/example.py:12`)",
        "pools of 2, 8 and 32 tasks (full: 2, 16, 64 and 512), one pool of each size",
    ),
    Difference(
        "optimizer",
        "Adam, 10⁻³, a rate that rises linearly over the first half and falls to 0 (`icl/configs/example.py:32-36`, "
        "`icl/optim.py:11-18`), no clipping",
        "Adam, 0.006, a rise over a tenth, then a cosine to 0; gradients clipped at 1",
    ),
    Difference("steps", "500 000 (`icl/configs/example.py:36`)", "8000 (full: 16 000)"),
    Difference("batch", "256 (`icl/configs/example.py:15`), up to 1024", "16"),
    Difference(
        "evaluation",
        "1 048 576 prompts of each law (`icl/configs/example.py:39`), one model each",
        "2000 prompts, five models each",
    ),
    Difference(
        "evaluation",
        "the threshold is where more data brings the model nearer to ridge on new tasks (section 3.1)",
        "where the model is as near to ridge as to dMMSE on new tasks",
        ("crossing",),
    ),
    Difference("precision", "float32 (`icl/configs/example.py:7`)", "float32, estimators in float64"),
    Difference("seeds", "one (`icl/configs/example.py:16-18`, `:29`)", "1 to 5, the same pool for all"),
)
