"""What the abstract of raventos2023 announces."""

from .._headline import Headline

HEADLINES = (
    Headline(
        "Below a threshold of task diversity a transformer is a Bayesian estimator of the pretraining tasks.",
        ("few-tasks", "named"),
    ),
    Headline(
        "Beyond it, it beats that estimator on new tasks and comes near ridge regression.",
        ("many-tasks", "crossing"),
    ),
    Headline(
        "Effects of regularization, model capacity and task structure.",
        rest="One architecture was trained, without weight decay.",
    ),
)
