"""What the abstract of kim2024 announces."""

from .._headline import Headline

HEADLINES = (
    Headline(
        "The landscape over distributions of parameters is benign, although it is not convex.",
        ("benign-landscape",),
        "A test with few neurons: the theorem is about infinitely many.",
    ),
    Headline(
        "Wasserstein gradient flow almost always avoids saddle points.",
        ("mean-field-flow",),
        "Finitely many neurons; that almost no start stays at a saddle is not checked.",
    ),
    Headline(
        "Concrete rates of improvement away from and near critical points.",
        rest="The rates could not be read.",
    ),
    Headline(
        "An MLP before linear attention learns nonlinear features in context.",
        ("learned-features",),
    ),
)
