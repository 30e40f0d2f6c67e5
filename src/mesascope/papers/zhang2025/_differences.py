"""What differs from the setting of the paper: the authors' program, commit 9a481d5."""

from .._claim import Difference

_FLOWS = ("order", "predicted-times", "inverse-times", "merged", "low-rank")
_ALL = (*_FLOWS, "in-weights")

DIFFERENCES = (
    Difference(
        "model",
        "separate keys and queries, or merged ones; the query attends to itself, no division by N (`net.py:80-99`)",
        "the same heads; the query's token, whose label is 0, is left out, and sums are divided by N, as in the README",
        _FLOWS,
        departure="same",
    ),
    Difference(
        "data",
        "D = 4, N = 31, eigenvalues 1, 2, 3, 4 over their sum, random axes (`data.py:8-19`), 5000 prompts (`config.py:12`)",
        "the same eigenvalues, in the axes of Λ; the mean over all prompts",
        _ALL,
    ),
    Difference(
        "data",
        "rank R = 1, 2, 4, 8 at D = 8, with 9 heads (README)",
        "R = 2, 3, 4 at D = 4, with 5 heads",
        ("low-rank",),
        departure="smaller",
    ),
    Difference(
        "optimizer",
        "gradient descent with rates 0.02 and 0.001 (README, `config.py:6`)",
        "gradient flow",
        _ALL,
    ),
    Difference(
        "optimizer",
        "starts N(0, σ²), σ = 0.01 over the root of the number of entries (`net.py:101-109`); 10⁻⁶ for merged heads (README)",
        "σ = 0.0003 to 0.001; for merged heads 10⁻³ and 10⁻⁵; 0.01 with shares of new tasks",
        _ALL,
    ),
    Difference("seeds", "one (`config.py:8`)", "0 to 4; 0 and 1 with shares of new tasks", _ALL),
    Difference(
        "model",
        "eight merged heads (file names in `plot_loss.ipynb`), the query attends to itself, no division by N",
        "two such heads (full: eight); sums are divided by N + 1",
        ("in-weights",),
        departure="smaller",
    ),
)
