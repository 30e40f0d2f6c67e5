"""The interactive page: a conjecture about a law, tried in seconds."""

from ._server import free_port as free_port
from ._server import serve as serve
from ._view import View as View
from ._view import view as view
