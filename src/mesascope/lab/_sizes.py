"""How much of a computation the page shows; the page knows it without the libraries that compute."""

POINTS = 96  # of a path: one number for all, so that one program computes their losses
FRAMES = 48  # of heat maps
SHOWN_TOKENS = 48  # of a sample, and the longest context whose predictions are measured
SEQUENCES = 1024  # that predictions are measured on
WARMED = [
    (law, dim)
    for dim in (5, 2, 3, 4, 6, 8)
    for law in ({"kind": "gaussian"}, {"kind": "sparse"}, {"kind": "constant", "value": 1})
]
"""Laws and dimensions whose programs are compiled before someone asks: laws of one kind share them."""
