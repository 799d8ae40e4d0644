"""The terminal user interface of stepping: one event for a key, the cluster beside it, and a line for commands."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical, VerticalScroll
from textual.events import Resize
from textual.widgets import Footer, Input, Static

from yarn.errors import YarnException
from yarnling.report.escapes import in_line
from yarnling.stepping.controls import Controls
from yarnling.stepping.moment_list import MomentList
from yarnling.stepping.panes import applications_text, nodes_text, queues_text, step_text, trail_text

WIDE_FROM = 110
"""From so many columns on, the cluster is beside the step instead of below it."""
COLUMNS_MIN, ROWS_MIN = 80, 24
"""In a smaller terminal parts are cut off, and the first line says so."""
TRAIL_ROWS_MIN, TRAIL_ROWS_MAX = 3, 16
"""The number of lines of the steps around the current one: a third of their pane, within these bounds."""
PLAY_S = 0.4
"""The time between two events while the run is played."""
_MARGIN = 4
_PLACEHOLDERS = {
    "time": "seconds since the start, such as 12.5",
    "fork": "kill n2, submit eve containers=4, remove n1, set root.a.capacity=30 root.b.capacity=70",
}


class StepApp(App[None]):
    """Shows a run at one position. The footer lists the keys; `f` and `k` ask for a change and fork the run."""

    TITLE = "yarnling step"
    ENABLE_COMMAND_PALETTE = False
    AUTO_FOCUS = None
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE_FROM, "-wide")]  # noqa: RUF012  App declares it so
    CSS = """
    #where { height: 2; padding: 0 1; background: $panel; }
    #body { height: 1fr; }
    .-wide #body { layout: horizontal; }
    .-wide #left { width: 45%; border-right: solid $panel; }
    .-narrow #left { height: 50%; border-bottom: solid $panel; }
    #happened { height: 1fr; }
    #left, #right { padding: 0 1; }
    #right Static { margin-bottom: 1; }
    #trail { height: auto; }
    #said { height: auto; max-height: 4; padding: 0 1; color: $error; }
    #command { display: none; }
    #command.-asked { display: block; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n,space", "do('next')", "next"),
        Binding("b,backspace", "do('back')", "back"),
        Binding("m", "do('moment')", "moment"),
        Binding("M", "do('previous moment')", "previous moment", show=False),
        Binding("l", "moments", "list"),
        Binding("h", "do('heartbeat')", "heartbeat"),
        Binding("H", "do('previous heartbeat')", "previous heartbeat", show=False),
        *(
            Binding(str(number), f"heartbeat({number})", f"heartbeat of n{number}", show=False)
            for number in range(1, 10)
        ),
        Binding("c", "do('change')", "change"),
        Binding("C", "do('previous change')", "previous change", show=False),
        Binding("p", "play", "play"),
        Binding("f", "ask('fork', '')", "fork"),
        Binding("q", "quit", "quit"),
        Binding("g", "ask('time', '')", "go to time"),
        Binding("k", "ask('fork', 'kill ')", "kill"),
        Binding("left_square_bracket", "branch(-1)", "other run", show=False),
        Binding("right_square_bracket", "branch(1)", "other run"),
        Binding("d", "fields", "fields"),
        Binding("home", "do('start')", "start", show=False),
        Binding("end", "do('end')", "end", show=False),
    ]

    def __init__(self, controls: Controls) -> None:
        super().__init__()
        self.controls = controls
        self._asked = ""
        self._with_fields = False
        self.is_playing = False

    def compose(self) -> ComposeResult:
        yield Static(id="where")
        with Container(id="body"):
            with Vertical(id="left"):
                with VerticalScroll(id="happened", can_focus=False):
                    yield Static(id="step")
                yield Static(id="trail")
            with VerticalScroll(id="right", can_focus=False):
                yield Static(id="queues")
                yield Static(id="nodes")
                yield Static(id="applications")
        yield Static(id="said")
        yield Input(id="command", select_on_focus=False)
        yield Footer()

    def on_mount(self) -> None:
        self.set_interval(PLAY_S, self._play)
        self._draw()

    def on_resize(self, _: Resize) -> None:
        self.call_after_refresh(self._draw)

    def action_do(self, command: str, argument: str = "") -> None:
        """Carry out a command and show where it led."""
        try:
            said = self.controls.do(command, argument)
        except YarnException as error:
            said = error.message
        if said:
            self.is_playing = False
        self._draw(said)

    def action_play(self) -> None:
        """Play the run, event by event, or pause it."""
        self.is_playing = not self.is_playing
        self._draw()

    def action_moments(self) -> None:
        """Show the list of moments, and go to the one that is chosen."""
        session = self.controls.session
        if not session.is_complete:
            self.action_do("moments")
        if not session.moments:
            self._draw("there is no moment in this run")
            return

        def chosen(step: int | None) -> None:
            if step is not None:
                self.action_do("step", str(step))

        self.push_screen(MomentList(tuple(session.moments), session.position), chosen)

    def _play(self) -> None:
        if self.is_playing:
            self.action_do("next")

    def action_heartbeat(self, number: int) -> None:
        """Go to the next heartbeat of the node."""
        nodes = self.controls.session.view().nodes
        if number <= len(nodes):
            self.action_do("heartbeat", nodes[number - 1].name)

    def action_ask(self, command: str, begun: str) -> None:
        """Ask for the argument of a command."""
        self._asked = command
        line = self.query_one("#command", Input)
        line.placeholder = _PLACEHOLDERS[command]
        line.value = begun
        line.cursor_position = len(begun)
        line.add_class("-asked")
        line.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        argument, command = event.value, self._asked
        self._put_away()
        if argument.strip():
            self.action_do(command, argument)

    def key_escape(self) -> None:
        self._put_away()

    def _put_away(self) -> None:
        line = self.query_one("#command", Input)
        line.remove_class("-asked")
        self.set_focus(None)

    def action_branch(self, by: int) -> None:
        """Show the next or the previous run."""
        self.action_do("branch", str((self.controls.current + by) % len(self.controls.branches)))

    def action_fields(self) -> None:
        """Show or hide the fields of the event."""
        self._with_fields = not self._with_fields
        self._draw()

    def _draw(self, said: str = "") -> None:
        session = self.controls.session
        view = session.view()
        left, width = (max(20, self.query_one(pane).size.width - _MARGIN) for pane in ("#left", "#right"))
        rows = max(TRAIL_ROWS_MIN, min(TRAIL_ROWS_MAX, self.query_one("#left").size.height // 3))
        panes = {
            "where": self._where(),
            "step": step_text(session.step, left, with_fields=self._with_fields),
            "trail": trail_text(session.steps, session.position, left, rows),
            "queues": queues_text(view, width),
            "nodes": nodes_text(view, width),
            "applications": applications_text(view, width),
            "said": Text(in_line(said)),
        }
        for name, text in panes.items():
            text.rstrip()
            self.query_one(f"#{name}", Static).update(text)
        self.query_one("#happened", VerticalScroll).scroll_home(animate=False)

    def _where(self) -> Text:
        controls, session = self.controls, self.controls.session
        last = f" of {len(session.steps)}" if session.is_complete else ""
        text = Text(in_line(controls.source.title), "bold")
        if self.size.width < COLUMNS_MIN or self.size.height < ROWS_MIN:
            is_now = f"this terminal has {self.size.width} x {self.size.height}"
            text = Text.assemble((f"needs {COLUMNS_MIN} x {ROWS_MIN}, {is_now}: make it larger", "bold red"))
        text.append(f"\nstep {session.position}{last}, {session.at_ms / 1000:.3f} s")
        if self.is_playing:
            text.append("   playing: p pauses", "bold green")
        if len(controls.branches) > 1 or session.changes:
            name = in_line(controls.branches[controls.current].name)
            text.append(f"   run {controls.current + 1} of {len(controls.branches)}: {name}", "magenta")
        text.no_wrap, text.overflow = True, "ellipsis"
        return text
