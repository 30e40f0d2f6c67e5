"""Reports of records: figures from traces, and one HTML file. Nothing is computed; jax is not imported."""

from ._csv import write_csv as write_csv
from ._gather import gather as gather
from ._identification import draw_identification as draw_identification
from ._identification import identification_figures as identification_figures
from ._identification import redraw_identification as redraw_identification
from ._layer_map import layer_map as layer_map
from ._material import Material as Material
from ._phase_figure import phase_figure as phase_figure
from ._plotly import plotly_panel as plotly_panel
from ._render import render as render
from ._render import render_run as render_run
from ._tex import tex_to_html as tex_to_html
from ._tex import tex_to_text as tex_to_text
from ._theme import DARK as DARK
from ._theme import LIGHT as LIGHT
from ._theme import Theme as Theme
from ._write import Watch as Watch
from ._write import WrittenReport as WrittenReport
from ._write import write_report as write_report
