"""What the authors' notebooks print for three layers that move the inputs, d = 5, n = 20.

Read in chengxiang/LinearTransformer, commit b6ddc35.
"""

from typing import Any

# `rotation demonstration-Adam.ipynb`: cell 7, means of the diagonals of Σ^{1/2} A_i Σ^{1/2} (sign of Q turned) and of B_i;
# cell 2, the last 100 prints of each of two runs, and the last of the second
ROTATED: dict[str, Any] = {
    "a": [0.38, 2.398, 9.558],
    "b": [0.904, 0.566],
    "mean of the last 200 losses": 6.873e-4,
    "last loss": 6.578e-4,
}
# `simple demonstration.ipynb`: cell 5, and cell 2, the last ten prints of each of three runs
IDENTITY: dict[str, Any] = {
    "a": [0.715, 2.65, 7.145],
    "b": [0.345, 0.34],
    "mean of the last 30 losses": 1.350e-3,
}
