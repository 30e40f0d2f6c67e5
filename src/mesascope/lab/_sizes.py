"""How much of a computation the page shows."""

POINTS = 96  # of every path, so that one compiled program computes their losses
FRAMES = 48  # of heat maps
SHOWN_TOKENS = 48  # of a sample, and the longest context whose predictions are measured
SHOWN_SEQUENCES = 4  # drawn in one figure
FIRST_TOKENS = 8  # of each of them
SEQUENCES = 1024  # that predictions are measured on
IDENTIFY_TASKS, IDENTIFY_TOKENS = 400, 16  # sequences of `identify`, and their maximum length
RESERVED = {
    **{"product": 375, "loss": 290, "phase": 420, "w_kq": 410, "w_pv": 260},
    **{"error": 402, "predictions": 375, "ratio": 375, "sensitivity": 470},
}
"""Pixels of height that the page keeps free for figures, so that nothing jumps: what they need with the default setting."""
WARMED = [
    (law, dim)
    for dim in (5, 2, 3, 4, 6, 8)
    for law in ({"kind": "gaussian"}, {"kind": "sparse"}, {"kind": "constant", "value": 1})
]
"""Laws and dimensions whose programs are compiled in advance: laws of one kind share them."""
