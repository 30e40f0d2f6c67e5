"""Figures drawn from their traces: shows what `records` hold, computes nothing, knows no jax."""

from ._csv import write_csv as write_csv
from ._identification import draw_identification as draw_identification
from ._identification import identification_figures as identification_figures
from ._identification import redraw_identification as redraw_identification
from ._layer_map import layer_map as layer_map
from ._phase_figure import phase_figure as phase_figure
from ._render import render as render
from ._run import render_run as render_run
