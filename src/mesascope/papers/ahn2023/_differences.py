"""What differs from the setting of the paper and of its authors' program (chengxiang/LinearTransformer, commit b6ddc35)."""

from .._claim import Difference

_P0 = "`rotation demonstration-Adam-p0.ipynb`, cells 1"
_ADAM = "`rotation demonstration-Adam.ipynb`, cells 1"

DIFFERENCES = (
    Difference(
        "implementation",
        "layers read the examples of a prompt (`linear_transformer.py:32-65`)",
        "the same layers read S = (1/n) Σ x xᵀ, w and the query: equal but for rounding",
        ("theorem-3", "theorem-4"),
    ),
    Difference(
        "model",
        "one layer (Theorem 1, second-hand); no experiment",
        "the same, all its weights trained",
        ("named",),
        departure="same",
    ),
    Difference(
        "data",
        "w ~ N(0, I), x ~ N(0, Σ) for every Σ (Theorem 1, second-hand); no experiment",
        "Σ = U diag(1, 1, ½, ¼, 1) Uᵀ, d = 5, n = 20",
        ("named",),
        departure="smaller",
    ),
    Difference(
        "optimizer",
        "no experiment",
        "Adam, rate 0.01, warm-up and cosine; 3000 steps of 512 prompts, full 10 000 of 4096",
        ("named",),
    ),
    Difference(
        "steps",
        f"30 000, rate 0.02 halved every 2000 ({_P0} and 2)",
        "10 000: the first third, rate 0.02 halved every 2000 as there",
        ("theorem-3",),
        ("small",),
    ),
    Difference(
        "steps",
        f"100 000, rate 0.1 halved every 4000 ({_ADAM} and 2)",
        "24 000, rate 0.1 halved every 3000",
        ("theorem-4",),
        ("small",),
    ),
    Difference(
        "batch",
        "20 000 prompts, one batch for 100 steps (section 4.3; `rotation demonstration-Adam.ipynb`, cells 1 and 2)",
        "2000 prompts, one batch for 20 steps",
        ("theorem-3", "theorem-4"),
        ("small",),
    ),
    Difference(
        "precision",
        "float32, PyTorch's default (`linear_transformer.py`; `rotation demonstration-Adam.ipynb`, cell 2)",
        "float32 in training, float64 where layers are judged",
        ("theorem-3", "theorem-4"),
        departure="same",
    ),
    Difference("seeds", "5 (section 4.3), another U in each", "3, full 5, another U in each", ("theorem-3",)),
    Difference(
        "seeds",
        "5 (section 5.1), 3 in the program, two of them printed",
        "3, another U in each",
        ("theorem-4",),
    ),
    Difference(
        "implementation",
        "U: a uniform rotation in the text (section 4.3); in the program Q of a QR factorization of a matrix with uniform "
        "entries (`rotation demonstration-Adam.ipynb` and `-p0.ipynb`, cell 2)",
        "U uniform, as in the text",
        ("theorem-3", "theorem-4"),
    ),
)
