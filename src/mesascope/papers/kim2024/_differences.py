"""What differs from the setting of the paper, as far as it is known."""

from .._claim import Difference

_LEARNED = ("learned-features",)
_BENIGN = ("benign-landscape",)
_FLOW = ("mean-field-flow",)

DIFFERENCES = (
    Difference(
        "model",
        "an MLP with k outputs, infinitely many neurons in theory (section 2.1), 500 sigmoid neurons in section 6; "
        "W is k × k (all second-hand)",
        "d–16–16 ReLU neurons and W 16 × 16, full d–64–64 and 64 × 64: more features than targets",
        _LEARNED,
    ),
    Difference(
        "model",
        "a mean over infinitely many neurons with output weights; W is k × k and alone at its optimum "
        "(sections 2.1 and 3.1, second-hand)",
        "4, 8 or 16 single ReLU features without output weights, W at its optimum: the second layer is solved, too",
        _BENIGN,
    ),
    Difference(
        "model",
        "a mean over infinitely many neurons with output weights; W is k × k and alone at its optimum "
        "(sections 2.1 and 3.1, second-hand)",
        "32 ReLU neurons with output weights, full 128; W k × k at its optimum",
        _FLOW,
    ),
    Difference(
        "data",
        "k targets that are themselves such an MLP; prompts of infinite length (section 2, second-hand)",
        "two random ReLU targets, full three; Gaussian inputs, d = 3, full 5; exact loss of endless context",
        _FLOW,
    ),
    Difference(
        "optimizer",
        "Wasserstein gradient flow, W infinitely fast (abstract: two-timescale limit; section 3.1, second-hand)",
        "the same, of the distribution of finitely many neurons",
        _FLOW,
        departure="same",
    ),
    Difference("steps", "gradient flow for all time", "to time 100, full 1000", _FLOW),
    Difference("seeds", "none: a theorem", "five starts", _FLOW),
    Difference(
        "evaluation",
        "no bad minima and strict saddles only (theorem 3.3, second-hand); rates of improvement (abstract)",
        "a thousandth of the targets outside of the span at the end",
        _FLOW,
    ),
    Difference(
        "data",
        "k targets that are themselves such an MLP, v with second moments I (section 2.2); k = 5, d = 20, prompts of 1000 "
        "pairs, 10 000 of them, in section 6 (all second-hand)",
        "four random ReLU targets, v ~ N(0, I/2), d = 4, fresh prompts of 40 Gaussian inputs; full ten, N(0, I/5), d = 10, 200",
        _LEARNED,
    ),
    Difference(
        "data",
        "k targets that are themselves such an MLP; prompts of infinite length (section 2, second-hand)",
        "four random ReLU targets, Gaussian inputs, d = 4, exact loss of endless context",
        _BENIGN,
    ),
    Difference(
        "data",
        "prompts of infinite length in theory; finite ones are bounded in appendix C.4 (second-hand)",
        "all prompts of 1 to 4 examples on 3 to 5 inputs",
        ("optimal-attention",),
    ),
    Difference(
        "optimizer",
        "W and MLP jointly in section 6 (second-hand); which optimizer is not stated where we could read",
        "Adam on both from W = I, rate 0.03, full 0.003, cosine schedule, gradients clipped at 1",
        _LEARNED,
    ),
    Difference(
        "optimizer",
        "Wasserstein gradient flow, W infinitely fast (abstract: two-timescale limit; section 3.1, second-hand)",
        "L-BFGS on the features",
        _BENIGN,
    ),
    Difference("steps", "not stated where we could read", "500, full 20 000", _LEARNED),
    Difference(
        "steps", "gradient flow for all time", "at most three times 5000 iterations of L-BFGS", _BENIGN
    ),
    Difference("batch", "not stated where we could read", "128 fresh prompts, full 512", _LEARNED),
    Difference("precision", "not stated where we could read", "double", _LEARNED),
    Difference("seeds", "not stated where we could read", "five sets of targets", _LEARNED),
    Difference(
        "seeds", "none: a theorem", "100 sets of targets with 4 starts each, full 300 with 10", _BENIGN
    ),
    Difference(
        "evaluation",
        "no bad minima and strict saddles only (theorem 3.3, second-hand)",
        "a start is bad where it rests with more than a thousandth of the targets outside of the span",
        _BENIGN,
    ),
)
