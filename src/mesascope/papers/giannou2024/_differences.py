"""What differs: constructions without training; the paper's trained models are no part of its claims here."""

from .._claim import Difference

DIFFERENCES = (
    Difference(
        "model",
        "two layers with two heads, width 4d; one layer for symmetric A (arXiv v1, Lemma 4.1 and proof of Theorem 4.2)",
        "two layers with one head, width 4d; one layer with one head, width 3d, for every A",
        ("newton-step", "newton-step-in-one-layer"),
    ),
    Difference(
        "model",
        "3 + T layers with two heads, width 4d + 3 (arXiv v1, Theorem 4.2)",
        "k + 2 layers with one head, width 3d + 1, and d tokens of workspace",
        ("least-squares",),
    ),
    Difference(
        "model",
        "start αAᵀ with α < 2/λ_max(AᵀA), in regression ε AᵀA (arXiv v1, section 3.2.1, Theorem 4.2)",
        "Aᵀ/(‖A‖₁‖A‖_∞), in regression αI, and I/λ_max for the rates",
    ),
    Difference(
        "data",
        "every matrix A, every prompt; descent takes κ(AᵀA) log(1/ε) steps (arXiv v1, section 3.2.1)",
        "random matrices with d ≤ 20, Gaussian prompts with d ≤ 10; for the rates positive definite A with κ from 2 to 2048, "
        "on which descent takes κ(A) ln(1/ε) steps",
    ),
    Difference(
        "model",
        "linear attention with ReLU layers, which approximate Newton's method on the logistic loss (abstract)",
        "linear attention and gated linear units, which carry it out exactly; d tokens of workspace",
        ("logistic-newton",),
    ),
    Difference("precision", "exact arithmetic", "double precision"),
)
