"""The list of moments in the terminal: one is chosen, and the run goes there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static

from yarnling.stepping.moments import StepMoment
from yarnling.stepping.panes import moment_text


class MomentList(ModalScreen[int | None]):
    """A choice from these moments. Its result is the number of a step, None if nothing was chosen."""

    CSS = """
    MomentList { align: center middle; }
    #title { width: 90%; background: $panel; padding: 0 1; }
    #moments { width: 90%; height: auto; max-height: 80%; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,l,q", "dismiss(None)", "close")]

    def __init__(self, moments: Sequence[StepMoment], position: int) -> None:
        super().__init__()
        self._moments = moments
        self._position = position

    def compose(self) -> ComposeResult:
        yield Static("Moments: choose with the arrow keys and Enter; Esc closes", id="title")
        yield OptionList(*map(moment_text, self._moments), id="moments")

    def on_mount(self) -> None:
        """Begin at the last moment up to the present position."""
        before = [index for index, moment in enumerate(self._moments) if moment.step <= self._position]
        options = self.query_one("#moments", OptionList)
        options.highlighted = before[-1] if before else 0
        options.focus()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._moments[event.option_index].step)
