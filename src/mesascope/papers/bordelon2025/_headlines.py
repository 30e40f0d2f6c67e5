"""What the abstract of bordelon2025 announces."""

from .._headline import Headline

HEADLINES = (
    Headline(
        "Exact asymptotics of the risk where dimension, context length and width grow in proportion.",
        ("isotropic-best", "finite-dimension"),
        "Isotropic data and unlimited width; steps of sizes of their own, where the paper repeats one layer.",
    ),
    Headline(
        "On isotropic data and for a fixed covariance depth helps only where the context is limited.",
        ("isotropic-depth",),
    ),
    Headline(
        "Where covariances are rotated in every context depth helps at infinite context length, too.",
        ("rotated-depth",),
    ),
    Headline(
        "Power laws follow under source and capacity conditions.",
        ("rotated-power-law",),
        "In depth, at infinite context length and width.",
    ),
    Headline(
        "The theory predicts an optimal shape of a transformer for a given compute.",
        rest="It takes the paper's finite width and training time, which are not modelled here.",
    ),
)
