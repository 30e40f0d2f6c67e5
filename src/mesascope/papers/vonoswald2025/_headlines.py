"""What the abstract of vonoswald2025 announces."""

from .._headline import Headline

HEADLINES = (
    Headline(
        "The mesa layer minimizes an in-context loss to optimality at every time.",
        ("layer-is-optimal",),
    ),
    Headline(
        "A solver by conjugate gradients makes it stable and parallel in chunks.",
        ("conjugate-gradients",),
        "Its speed on accelerators is not measured.",
    ),
    Headline(
        "Optimal test-time training beats earlier recurrent layers.",
        ("linear-regression", "linear-systems"),
        "In context only: language models of a billion parameters are out of reach here.",
    ),
    Headline(
        "The gain costs more operations at inference.",
        rest="Operations are not counted.",
    ),
)
