"""A fold-out below the training: the plateaus of its flow, and its loss as a formula."""

from __future__ import annotations

from nicegui import ui

from ._plateaus_view import PlateausView
from ._session import Session
from ._widgets import Work, sentence

_FORMULA = (
    "The loss of the weights a I and b I in symbols, with m_n = E x^n the moments of a coordinate of the first token, and the "
    "product ab at which it is least."
)


class LandscapePanel:
    """Plateaus and formula of the setting; each is computed when it is asked for.

    Args:
        session: of the window.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        with (
            ui.expansion("Plateaus of this flow, and its loss as a formula")
            .classes("w-full lab-fold")
            .props("data-act=landscape")
        ):
            self._plateaus = PlateausView(session, lambda: session.spec)
            sentence(_FORMULA)
            ui.button("Derive the formula", on_click=self._derive).props("no-caps unelevated")
            self.deriving = Work(session, "derivation")
            self._formula = ui.column().classes("w-full gap-1").props('data-fact="formula"')

    def clear(self) -> None:
        """Stop and remove what belongs to another setting."""
        self._plateaus.clear()
        self._session.cancel("derivation")
        self._session.results.pop("derivation", None)
        self._formula.clear()

    def draw(self) -> None:
        """Draw the figure in the colours of the theme."""
        self._plateaus.draw()

    async def _derive(self) -> None:
        found = await self.deriving.compute(
            "The formula could not be derived", "slow", spec=self._session.spec
        )
        if found is None:
            return
        self._formula.clear()
        with self._formula:
            for equation in found["symbols"].values():
                _equation(equation)
            values = ", ".join(f"{symbol} = {value}" for symbol, value in found["values"].items())
            sentence(f"With {values}:")
            for equation in found["numbers"].values():
                _equation(equation)


def _equation(equation: str) -> None:
    written = f'<math display="block">{equation}</math>'
    ui.html(written, sanitize=False).classes("lab-formula").props("tabindex=0 role=group aria-label=formula")
