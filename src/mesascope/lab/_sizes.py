"""How much of a computation the page shows; the page knows it without the libraries that compute."""

POINTS = 96  # of a path: one number for all, so that one program computes their losses
FRAMES = 48  # of heat maps
SHOWN_TOKENS = 48  # of a sample, and the longest context whose predictions are measured
SHOWN_SEQUENCES = 4  # samples drawn beside each other
FIRST_TOKENS = 8  # of each of them: of more, no path can be followed
SEQUENCES = 1024  # that predictions are measured on
ASKED_TASKS, ASKED_TOKENS = 400, 16  # sequences that `identify` asks on, and their length at most
WARMED = [
    (law, dim)
    for dim in (5, 2, 3, 4, 6, 8)
    for law in ({"kind": "gaussian"}, {"kind": "sparse"}, {"kind": "constant", "value": 1})
]
"""Laws and dimensions whose programs are compiled before someone asks: laws of one kind share them."""
