"""What differs from the paper's setting, claim by claim."""

from __future__ import annotations

from .._claim import Difference

_REDUCED = ("first-gradient", "adjacency", "trained-loss", "trained-approaches-bayes", "induction-head")
_TRAINED = _REDUCED[1:]
_FULL_MODEL = ("full-model", "full-model-loss")
_LENGTHS = ("construction-approaches-bayes",)

DIFFERENCES = (
    Difference(
        "model",
        "full A (30 × 30, 60 × 60) on token and position, layers append, learned read-out W, no ε (`catformer.py:47–82`)",
        "reduced: A⁽¹⁾ by positions, A⁽²⁾ by symbols, no W, log(f + ε) with ε = 0.1",
        claims=_REDUCED,
    ),
    Difference(
        "model",
        "a trained transformer with a learned read-out (`catformer.py:47–82`)",
        "attention along the known graph, nothing trained, best β and ε",
        claims=_LENGTHS,
    ),
    Difference(
        "model",
        "A = 0 and W = 0 at the start (`catformer.py:71, 73`); the theory's start not stated where we could read",
        "A⁽¹⁾ = 0, A⁽²⁾ = I",
        claims=_REDUCED,
    ),
    Difference(
        "data",
        "S = 10, T = 20, α = 0.1, a chain unless another graph is asked for (`single_parent.py:15–18`); Figure 9: S = 3",
        "S = 10, T = 20, α = 0.1, random graphs with the program's law (`single_parent.py:35`)",
        claims=("first-gradient", "adjacency", "trained-loss"),
        departure="smaller",
    ),
    Difference(
        "data",
        "S = 10, T = 20 (`single_parent.py:15–16`); no other length in the program",
        "T = 10, 20, 40; full: also 80",
        claims=("trained-approaches-bayes",),
    ),
    Difference(
        "data",
        "S = 10, T = 20 (`single_parent.py:15–16`); no other length in the program",
        "T = 10, 80, 640; full: also 5120",
        claims=_LENGTHS,
    ),
    Difference(
        "data",
        "S = 5, T = 32, parents ⌊(i − 1)/2⌋ and i − 1 (`multi_parent.ipynb`, cell 1)",
        "S = 2, T = 8, parents i − 2 and i − 1; full: T = 10",
        claims=("two-parents-information",),
    ),
    Difference(
        "data",
        "the target is the whole row π(s_T, ·) (`single_parent.py:52–61`)",
        "the target is one symbol drawn from it: the same expected loss",
        claims=(*_REDUCED, *_FULL_MODEL),
        departure="same",
    ),
    Difference(
        "data",
        "the target is the whole row π(s_T, ·) (`problems.py`, `InContextTree.sample`)",
        "the target is one symbol drawn from it: the same expected loss",
        claims=("with-mlp",),
        departure="same",
    ),
    Difference(
        "data",
        "S = 10, T = 20, α = 0.1, chains (`tf_with_mlp.ipynb`, cell 1)",
        "S = 5, T = 10, α = 0.1, chains",
        claims=("with-mlp",),
        departure="smaller",
        presets=("small",),
    ),
    Difference(
        "optimizer",
        "SGD, rate 1, cosine to 0 (`single_parent.py:20, 88–95`); Figure 9: constant (`many_graphs.ipynb`, cell 4)",
        "Adam, constant, rate 0.1; full: 0.05",
        claims=_TRAINED,
    ),
    Difference(
        "optimizer",
        "SGD, rate 1, cosine to 0 (`single_parent.py:20, 88–95`)",
        "Adam, cosine to 0, rate 0.02",
        claims=_FULL_MODEL,
        presets=("small",),
    ),
    Difference(
        "steps",
        "131 072 (`single_parent.py:22`); Figure 9: 16 384 (`many_graphs.ipynb`, cell 4)",
        "250, by length 200; full: 2000",
        claims=_TRAINED,
    ),
    Difference("steps", "131 072 (`single_parent.py:22`)", "600", claims=_FULL_MODEL, presets=("small",)),
    Difference(
        "steps", "4096 (`tf_with_mlp.ipynb`, cell 2)", "2000", claims=("with-mlp",), presets=("small",)
    ),
    Difference("batch", "1024 (`single_parent.py:24`)", "128; full: 1024", claims=_TRAINED),
    Difference(
        "batch", "1024 (`tf_with_mlp.ipynb`, cell 2)", "128", claims=("with-mlp",), presets=("small",)
    ),
    Difference("batch", "1024 (`single_parent.py:24`)", "128", claims=_FULL_MODEL, presets=("small",)),
    Difference("precision", "single (nothing set in the program)", "double", claims=("first-gradient",)),
    Difference(
        "seeds",
        "one (`single_parent.py:19`; `tf_with_mlp.ipynb`, cell 1); Figure 9: 20 graphs",
        "5; full: 10, `full-model` and `with-mlp` 5",
    ),
    Difference(
        "evaluation",
        "attention, a mean over one batch of training (`tf_with_mlp.ipynb`, cell 5)",
        "a mean over fresh sequences, at the positions that have a parent: all but the first and the last",
        claims=("with-mlp",),
        departure="same",
    ),
    Difference(
        "evaluation",
        "Bayes line: counts along the graph, to which every root adds the last symbol before the query "
        "(`problems.py:46–51`); 65 536 sequences",
        "posterior mean without that, 5000 or 10 000 sequences; full: 100 000",
        claims=("trained-loss", "trained-approaches-bayes", "full-model-loss"),
    ),
    Difference(
        "evaluation",
        "chains (`single_parent.py:29–30`)",
        "attention on uniform symbols that no chain made",
        claims=("induction-head",),
    ),
)
