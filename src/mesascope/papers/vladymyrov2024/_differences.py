"""What differs from the setting of the paper."""

from .._claim import Difference

_ROWS = ("two-layers", "three-layers", "three-layers-beside-ridge")
_BESIDE = ("mixed-noise", "untuned-rivals", "categorical-noise")
_DIAGONAL = (*_ROWS, *_BESIDE, "diagonal-heads-nameless")
_TRAINED = (*_DIAGONAL, "gd-plus-plus-named")
_PLACE = "section 6"

DIFFERENCES = (
    Difference(
        "model",
        f"one head a layer, so that ω_xx ω_yy = ω_xy ω_yx (sections 5 and 6); 1 to 7 layers ({_PLACE})",
        "four free numbers a layer, what two or more heads can do: a larger class",
        _DIAGONAL,
    ),
    Difference(
        "model",
        f"sums over the examples, no 1/N visible (section 5.2); initialization not stated ({_PLACE})",
        "means over the examples, labels scaled to variance 1 while training: the same functions, trained from N(0, 0.05²)",
        _TRAINED,
        departure="same",
    ),
    Difference(
        "data",
        f"d = 10, N = 20, σ_max = 0 to 7, and noise from {{1, 3}} and {{1, 3, 5}} ({_PLACE}, Table 1)",
        "the paper's sizes, σ_max = 5",
        _ROWS,
        ("small",),
        "smaller",
    ),
    Difference(
        "data",
        f"d = 10, N = 20 ({_PLACE})",
        "d = 4, N = 8, σ_max = 5, in categorical-noise {1, 3}; four layers, in mixed-noise five",
        (*_BESIDE, "gd-plus-plus-named", "diagonal-heads-nameless"),
        ("small",),
        "smaller",
    ),
    Difference(
        "optimizer",
        f"Adam, rate 1e-4, changed by hand where training is unstable; schedule and clipping not stated ({_PLACE})",
        "Adam, rate 0.1 (mixed-noise 0.05; full: 0.02), warm-up of a tenth, cosine schedule to 0, gradients clipped at 1",
        _TRAINED,
    ),
    Difference("steps", f"200 000 ({_PLACE})", "600, three layers at d = 10: 2000", _TRAINED, ("small",)),
    Difference("steps", f"200 000 ({_PLACE})", "50 000", _TRAINED, ("full",)),
    Difference("batch", f"2048 ({_PLACE})", "256", _TRAINED, ("small",)),
    Difference("precision", f"not stated ({_PLACE})", "float32 for training, float64 for judging", _TRAINED),
    Difference(
        "seeds", f"the best of 5 ({_PLACE}, Table 1)", "the best of 5", ("two-layers", "three-layers")
    ),
    Difference(
        "seeds",
        f"the best of 5 ({_PLACE}, Table 1)",
        "mean and 95 % interval over 5",
        ("three-layers-beside-ridge", *_BESIDE, "diagonal-heads-nameless"),
    ),
    Difference(
        "evaluation",
        f"100 000 new sequences, σ drawn; baselines tuned to minimize the evaluation loss ({_PLACE})",
        "20 000 prompts (full: 200 000) for every seed, σ at ten midpoints, in categorical-noise half at 1 and half at 3; "
        "baselines tuned on prompts of their own",
        _TRAINED,
    ),
    Difference(
        "seeds",
        f"a mean over 100 000 drawn sequences ({_PLACE}, Table 1)",
        "its expectation in closed form",
        ("one-layer-row",),
    ),
)
