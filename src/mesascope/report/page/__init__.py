"""The report as one static HTML file."""

from ._figures import without_undrawable as without_undrawable
from ._page import page as page
