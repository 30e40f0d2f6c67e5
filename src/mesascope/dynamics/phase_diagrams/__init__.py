"""Thousands of flows over two parameters: which critical point each start reaches, when, and how well it then predicts."""

from ._phase_diagram import phase_diagram as phase_diagram
from ._points import PhasePoint as PhasePoint
