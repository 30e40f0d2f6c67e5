"""The style of figures: for print at the width of a column, and readable without colour vision."""

from typing import Any

# Inches; the column and page of a two-column paper.
WIDTH = {"column": 3.25, "page": 6.75}
DPI = 300

# Okabe and Ito's colours, distinct with every common colour vision deficiency. Black is for
# theory; their yellow is left out: too pale for a line on white.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
THEORY = "#000000"

# Series differ in dashes and markers too: a figure must read in grey.  The numbers of colours, dashes and
# markers share no factor, so that combinations do not soon repeat.
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (5, 1.5, 1, 1.5)), (0, (1, 1.2)), (0, (8, 2)))
RULE_DASHES: tuple[Any, ...] = ((0, (4, 2)), (0, (1, 1.5)), (0, (4, 1.5, 1, 1.5)), (0, (8, 3)))
STYLES: dict[str, Any] = {
    "solid": "-",
    "dashed": (0, (4, 2)),
    "dotted": (0, (1, 1.5)),
    "dashdot": (0, (4, 1.5, 1, 1.5)),
}
MARKERS = ("o", "s", "^", "D", "v", "P", "X")

SEQUENTIAL = "viridis"
DIVERGING = "RdBu_r"

RC: Any = {
    # STIX ships with matplotlib: the same letters on every machine, next to a paper's Times.
    "font.family": "STIXGeneral",
    "mathtext.fontset": "stix",
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "figure.titlesize": 10,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.xmargin": 0.03,
    "axes.formatter.limits": (-3, 4),
    "axes.formatter.use_mathtext": True,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "xtick.minor.size": 1.5,
    "ytick.minor.size": 1.5,
    "xtick.minor.width": 0.4,
    "ytick.minor.width": 0.4,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.5,
    "legend.frameon": True,
    "legend.framealpha": 0.9,
    "legend.edgecolor": "none",
    "legend.borderpad": 0.3,
    "legend.labelspacing": 0.3,
    "legend.handlelength": 2.4,
    "legend.columnspacing": 1.2,
    "figure.dpi": DPI,
    "savefig.dpi": DPI,
    # Outlines of the letters that are used, as TrueType: journals refuse matplotlib's default, Type 3.
    "pdf.fonttype": 42,
    "path.simplify": True,
}
