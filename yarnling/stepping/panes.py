"""The panes of the terminal: each is text made from a step or from a view of the cluster, for a width in columns."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

from rich.text import Text

from yarnling.report.escapes import in_line, shown
from yarnling.run.moments import MomentKind
from yarnling.stepping.cluster_view import ApplicationView, BoxView, ClusterView, NodeView, QueueView
from yarnling.stepping.moments import StepMoment
from yarnling.stepping.steps import OUTSIDE, LineKind, Step

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b8a900", "#8a7fd0")
"""The colours of the web pages (Okabe and Ito's, for the colour-blind); black text is readable on all."""
STYLES = {
    LineKind.NOTE: ("!", "bold magenta"),
    LineKind.LOST: ("\u2717", "red"),
    LineKind.PREEMPTED: ("\u2717", "bold red"),
    LineKind.PLACED: ("+", "bold green"),
    LineKind.REFUSED: ("\u2013", "yellow"),
    LineKind.RELEASED: ("-", "cyan"),
    LineKind.STATE: ("\u2022", ""),
    LineKind.EFFECT: ("\u2192", ""),
    LineKind.REPLY: ("\u2190", ""),
    LineKind.THEN: ("\u00bb", "bold"),
}
"""{kind of line: its mark and its style}"""
NAME_CHARS = 14
BAR_CHARS_MIN = 10
MOMENT_STYLES = {
    MomentKind.SUBMITTED: "bold",
    MomentKind.PLACED: "green",
    MomentKind.REFUSED: "yellow",
    MomentKind.RESERVED: "magenta",
    MomentKind.PREEMPTED: "bold red",
    MomentKind.LOST: "red",
    MomentKind.DONE: "bold magenta",
}
TRAIL_HEADED_FROM = 6
"""A trail of fewer lines has no heading."""
FIELDS_MAX = 30
"""The most lines of a message's fields that are shown."""


def step_text(step: Step | None, width: int, *, with_fields: bool) -> Text:
    """The events of a step. Longer lines are continued with an indentation."""
    if step is None:
        return Text("Nothing has happened yet. Press n for the first event.", "dim")
    style = "bold reverse" if step.place in OUTSIDE else "bold"
    text = Text()
    text.append(f"{step.at_ms / 1000:.3f} s  {in_line(step.place)}\n", style)
    text.append(_wrapped(step.title, width, ""), "bold")
    for line in step.lines:
        mark, style = STYLES[line.kind]
        text.append(_wrapped(line.text, width, f" {mark} "), style)
    if not step.lines and step.place not in OUTSIDE:
        text.append(" nothing came of it\n", "dim")
    if with_fields and step.fields:
        text.append("\nfields of the event\n", "dim")
        lines = shown(step.fields).split("\n")
        more = len(lines) - FIELDS_MAX
        text.append("\n".join(f"  {line}" for line in lines[:FIELDS_MAX]))
        text.append(f"\n  and {more} more lines\n" if more > 0 else "\n", "dim")
    return text


def trail_text(steps: Sequence[Step], position: int, width: int, height: int) -> Text:
    """The steps around the position, in `height` lines, the current one always among them. A dot marks a change."""
    text, rows = Text(), height
    if height >= TRAIL_HEADED_FROM:
        text.append("steps around it\n", "bold")
        rows -= 1
    first = max(0, min(position - 1 - rows * 2 // 3, len(steps) - rows))
    for step in steps[first : first + rows]:
        mark = "\u2022" if step.is_change else " "
        said = in_line(f"{step.number:>4} {step.at_ms / 1000:>8.3f} {step.place:<6} {mark} {step.title}")
        style = "bold reverse" if step.number == position else "" if step.is_change else "dim"
        text.append(said if len(said) <= width else f"{said[: width - 1]}\u2026", style)
        text.append("\n")
    return text


def moment_text(moment: StepMoment) -> Text:
    """A moment in a line of a list."""
    text = Text(f"{moment.step:>6} {moment.at_ms / 1000:>9.3f} s  ", no_wrap=True, overflow="ellipsis")
    text.append(f"{moment.kind.value:<10}", MOMENT_STYLES[moment.kind])
    return text.append(in_line(moment.text))


def queues_text(view: ClusterView, width: int) -> Text:
    """The queues as bars: shares of the cluster."""
    text = Text("queues", "bold")
    text.append("   used \u2588 / guaranteed | / maximum \u2591   reserved \u2592  waiting \u00b7\n", "dim")
    if not view.queues:
        return text.append(f"the ResourceManager is {view.rm}\n", "red")
    for queue in view.queues:
        text.append_text(_queue(queue, max(1, view.queues[0].guaranteed_mb), width))
    return text


def _queue(queue: QueueView, total_mb: int, width: int) -> Text:
    name = "  " * queue.depth + queue.path.rpartition(".")[2]
    figures = f" {queue.used_mb}/{queue.guaranteed_mb}/{queue.maximum_mb} MB"
    chars = max(BAR_CHARS_MIN, width - NAME_CHARS - len(figures) - 1)
    text = Text(_padded(name, NAME_CHARS))
    mark = round(queue.guaranteed_mb / total_mb * chars)
    for place in range(chars):
        at_mb = (place + 0.5) / chars * total_mb
        if place == mark:
            text.append("|", "bold")
        elif at_mb <= queue.used_mb - queue.reserved_mb:
            text.append("\u2588", "green" if at_mb <= queue.guaranteed_mb else "yellow")
        elif at_mb <= queue.used_mb:
            text.append("\u2592", "magenta")
        elif at_mb <= queue.used_mb + queue.pending_mb:
            text.append("\u00b7", "bold")
        else:
            text.append("\u2591" if at_mb <= queue.maximum_mb else " ", "dim")
    text.append(f"{figures}\n")
    for user in queue.users:
        who = in_line(f"{'  ' * queue.depth}  {user.name}: {user.used_mb} MB, limit {user.limit_mb} MB")
        text.append(f"{who}{'' if user.is_active else ', wants no more'}\n", "dim")
    return text


def nodes_text(view: ClusterView, width: int) -> Text:
    """The nodes to scale: the longest bar is the largest node, each part of it a container."""
    text = Text("nodes", "bold")
    text.append("   to scale by memory; each box is a container\n", "dim")
    largest_mb = max((node.memory_mb for node in view.nodes), default=1)
    for node in view.nodes:
        text.append_text(_node(node, largest_mb, width))
    return text


def _node(node: NodeView, largest_mb: int, width: int) -> Text:
    chars = max(BAR_CHARS_MIN, width - 6)
    text = Text(_padded(node.name, 5))
    states = [] if node.process == "running" else [f"process {node.process}"]
    states += [] if node.state == "RUNNING" else [node.state]
    drawn_mb = drawn = 0
    for box in (*node.containers, *((node.reserved,) if node.reserved else ())):
        drawn_mb += box.memory_mb
        end = min(round(drawn_mb / largest_mb * chars), chars)
        text.append_text(_box(box, end - drawn))
        drawn = max(drawn, end)
    room = max(0, round(node.memory_mb / largest_mb * chars) - drawn)
    text.append("\u2591" * room + "\n", "dim")
    figures = f"     {node.used_mb} of {node.memory_mb} MB"
    if node.reserved is not None:
        figures += in_line(f", reserved for {node.reserved.name} ({node.reserved.memory_mb} MB)")
    text.append(figures, "dim")
    text.append(f"  {', '.join(states)}\n" if states else "\n", "bold red")
    return text


def _box(box: BoxView, chars: int) -> Text:
    if box.state == "RESERVED":
        return Text("\u2592" * chars, COLOURS[box.application % len(COLOURS)])
    name = in_line(box.name)
    said = name if len(name) < chars else name.rpartition("-")[2]
    said = f"{said[: max(0, chars - 1)]:^{max(0, chars - 1)}}" + ("\u2595" if chars > 0 else "")
    style = f"black on {COLOURS[box.application % len(COLOURS)]}"
    return Text(said, f"bold {style}" if box.is_am else style)


def applications_text(view: ClusterView, width: int) -> Text:
    """The applications, and why each waits."""
    text = Text("applications\n", "bold")
    for app in view.applications:
        text.append_text(_application(app, width))
    if not view.applications:
        text.append("none\n", "dim")
    return text


def _application(app: ApplicationView, width: int) -> Text:
    text = Text()
    text.append(" \u25a0 ", COLOURS[app.number % len(COLOURS)])
    text.append(in_line(app.name), "bold")
    held = f"{app.containers} container{'' if app.containers == 1 else 's'}, {app.memory_mb} MB"
    text.append(in_line(f"  {app.state}  {app.queue}  {held}"))
    text.append(f", {app.pending} waiting\n" if app.pending else "\n")
    for waits in app.waits:
        text.append(_wrapped(waits, width, "   "), "yellow")
    return text


def _wrapped(text: str, width: int, before: str) -> str:
    """Lines of at most that width, all but the first one indented; `before` the first one is something as wide."""
    indent = " " * len(before)
    lines = wrap(in_line(text), width, initial_indent=before, subsequent_indent=indent or "  ")
    return "\n".join(lines) + "\n"


def _padded(text: str, chars: int) -> str:
    text = in_line(text)
    return f"{text if len(text) < chars else text[: chars - 2] + chr(0x2026):<{chars}}"
