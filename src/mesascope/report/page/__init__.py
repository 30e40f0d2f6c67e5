"""The report as one static HTML file."""

from ._page import page as page
