"""A timeline as one SVG picture: each event has a row of its own. For a part of a run that fits on a sheet."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from yarn.errors import YarnException
from yarnling.report.space_time_data import shortened_message, titles_of_nodes
from yarnling.run.records import LOST, Call, Outcome, RecordedRun, Role
from yarnling.run.wording import decision_label, reply_label, request_label, state_label

EVENTS_MAX = 2000
"""More calls, changes and decisions than this do not make a legible picture."""
ROW, COLUMN, GUTTER, HEAD = 17, 130, 80, 40
CHARACTER = 6.7
"""The mean width of a character of a label."""
_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#1b1f24}.t{fill:#5c6570;text-anchor:end}.h{font-weight:600;"
    "text-anchor:middle}.l{stroke:#b9c1ca;stroke-width:1.5}.f{fill:#d63c32;fill-opacity:.12}"
    ".node{--c:#2463b0}.app{--c:#7a3fb0}.start{--c:#a65400}.client{--c:#00706b}.lost{--c:#c5221f}.state{--c:#1b7a38}"
    ".decision{--c:#8a6100}.m{stroke:var(--c);stroke-width:1.5}.r{stroke-dasharray:4 3;stroke-width:1.1}"
    ".m+text,.d+text,.s{fill:var(--c);paint-order:stroke;stroke:var(--g);stroke-width:3px}.d{fill:var(--c)}"
    "svg{--g:#fff;background:#fff}@media(prefers-color-scheme:dark){svg{--g:#14171b;background:#14171b}"
    "text{fill:#e8eaed}.t{fill:#9aa4af}.l{stroke:#49525c}.node{--c:#7fb2f5}.app{--c:#c79bf2}.start{--c:#f0a860}"
    ".client{--c:#5fd0c8}.lost{--c:#ff7b72}.state{--c:#6fd08c}.decision{--c:#e3c15f}}"
)


def svg_of(timeline: RecordedRun) -> str:
    """The picture; heartbeats without news are left out. Raises YarnException for too much of a run."""
    messages = [one for one in timeline.calls if not one.is_quiet]
    count = len(messages) + len(timeline.changes) + len(timeline.decisions)
    if count > EVENTS_MAX:
        raise YarnException(
            f"the picture would have {count} events, at most {EVENTS_MAX} are drawn: "
            f"choose a part with --from, --to, --host, --rpc or --app, or write a page with -o"
        )
    return _Picture(timeline, messages).svg()


class _Picture:
    def __init__(self, timeline: RecordedRun, messages: list[Call]) -> None:
        self._timeline = timeline
        nodes = titles_of_nodes(timeline)
        self._messages = [shortened_message(one, nodes) for one in messages]
        self._titles = {one.name: one.title for one in timeline.lifelines}
        self._x = {one.name: GUTTER + COLUMN * (0.5 + place) for place, one in enumerate(timeline.lifelines)}
        self._roles = {one.name: one.role for one in timeline.lifelines}
        self._rm = next((one.name for one in timeline.lifelines if one.role is Role.RM), "")
        self._times: list[int] = []
        self._rows = self._placed()
        self._labels_end = 0.0

    def svg(self) -> str:
        height = HEAD + ROW * (len(self._times) + 2)
        body = [
            *self._bands(),
            *self._lifelines(height),
            *self._clock(),
            *(part for index in range(len(self._messages)) for part in self._message(index)),
            *self._marks(),
        ]
        width = max(GUTTER + COLUMN * len(self._x), self._labels_end) + 20
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" '
            f'height="{height}" role="img" aria-label="{_text(self._timeline.title)}"><style>{_STYLE}</style>'
        )
        return "\n".join((head, f"<title>{_text(self._timeline.title)}</title>", *body, "</svg>")) + "\n"

    def _placed(self) -> dict[tuple[str, int, int], float]:
        """{(kind, number, part): the middle of its row}."""
        points = [
            (time_ms, order, ("message", number, part))
            for number, one in enumerate(self._messages)
            for part, (time_ms, order) in enumerate(_points(one))
            if time_ms is not None
        ]
        points += [(one.at_ms, 2, ("change", number, 0)) for number, one in enumerate(self._timeline.changes)]
        points += [(one.at_ms, 2, ("decision", number, 0)) for number, one in enumerate(self._timeline.decisions)]
        points.sort()
        self._times = [time_ms for time_ms, _, _ in points]
        return {key: HEAD + ROW * (row + 1) for row, (_, _, key) in enumerate(points)}

    def _y(self, time_ms: int) -> float:
        """The row of a time."""
        return HEAD + ROW * (sum(1 for each in self._times if each < time_ms) + 0.5)

    def _bands(self) -> Iterator[str]:
        for fault in self._timeline.faults:
            top = self._y(fault.from_ms)
            bottom = self._y(self._timeline.until_ms if fault.until_ms is None else fault.until_ms)
            for x in [self._x[host] for host in fault.hosts if host in self._x]:
                left = x - COLUMN / 2 + 4
                yield f'<rect class="f" x="{left}" y="{top}" width="{COLUMN - 8}" height="{max(ROW, bottom - top)}"/>'
                yield f'<text x="{left + 4}" y="{top + 12}">{_text(fault.kind)}</text>'

    def _lifelines(self, height: int) -> Iterator[str]:
        for one in self._timeline.lifelines:
            x = self._x[one.name]
            yield f'<line class="l" x1="{x}" y1="{HEAD - 8}" x2="{x}" y2="{height - 8}"/>'
            yield f'<text class="h" x="{x}" y="{HEAD - 16}">{_text(one.title)}</text>'

    def _clock(self) -> Iterator[str]:
        before = -1
        for row, time_ms in enumerate(self._times):
            if time_ms != before:
                seconds = (time_ms - self._timeline.from_ms) / 1000
                yield f'<text class="t" x="{GUTTER - 10}" y="{HEAD + ROW * (row + 1) + 4}">{seconds:.3f}</text>'
                before = time_ms

    def _message(self, index: int) -> Iterator[str]:
        one = self._messages[index]
        x1, x2 = self._x[one.source], self._x[one.target]
        sent, arrived, replied, over = (self._rows.get(("message", index, part)) for part in range(4))
        assert sent is not None, "each message is sent"
        is_bad = one.outcome in LOST or one.outcome is Outcome.REFUSED
        kind = self._kind(one)
        yield f'<g class="{"lost" if is_bad else kind}">'
        yield from _arrow(kind, x1, sent, x2, arrived, is_lost=one.outcome is not Outcome.UNDER_WAY)
        yield self._label(request_label(one), x1, sent - 3, x2 > x1)
        if replied is not None:
            is_lost = one.outcome in LOST
            yield from _arrow(
                "lost" if is_bad else kind, x2, replied, x1, None if is_lost else over, is_lost=is_lost, extra=" r"
            )
            yield self._label(reply_label(one), x2, replied + 11, x2 < x1)
        elif is_bad:
            yield self._label(reply_label(one), x1, (over or sent) + 11, x2 > x1)
        yield "</g>"

    def _kind(self, one: Call) -> str:
        if self._roles[one.source] is Role.CLIENT:
            return "client"
        if self._roles[one.target] is Role.NM:
            return "start"
        return "node" if self._roles[one.source] is Role.NM else "app"

    def _marks(self) -> Iterator[str]:
        for number, change in enumerate(self._timeline.changes):
            yield self._mark("state", change.host, self._rows["change", number, 0], state_label(change))
        for number, decision in enumerate(self._timeline.decisions):
            text = decision_label(decision, self._titles.get(decision.node, decision.node))
            yield self._mark("decision", self._rm, self._rows["decision", number, 0], text)

    def _mark(self, kind: str, host: str, y: float, text: str) -> str:
        x = self._x[host]
        right = x < GUTTER + COLUMN * len(self._x) * 0.7
        radius = 4 if kind == "state" else 0.5
        shape = f'<rect class="d" x="{x - 4}" y="{y - 4}" width="8" height="8" rx="{radius}"/>'
        return f'<g class="{kind}">{shape}{self._label(text, x, y + 4, right)}</g>'

    def _label(self, text: str, x: float, y: float, right: bool) -> str:
        """A text on one side of the line at `x`. One that would reach into the times on the left is on the right."""
        if not text:
            return ""
        length = CHARACTER * len(text)
        right = right or x - 9 - length < GUTTER
        if right:
            self._labels_end = max(self._labels_end, x + 9 + length)
        anchor = "" if right else ' text-anchor="end"'
        return f'<text class="s" x="{x + (9 if right else -9)}" y="{y}"{anchor}>{_text(text)}</text>'


def _points(one: Call) -> tuple[tuple[int | None, float], ...]:
    """When it was sent, arrived, was replied to and was answered, each with its order within its millisecond: what
    comes in, what happens then, what goes out; but each message in its own order.
    """
    return (
        (one.sent_ms, 0.5 if one.arrived_ms == one.sent_ms else 4),
        (one.arrived_ms, 1),
        (one.replied_ms, 3),
        (one.over_ms, 5 if one.over_ms in (one.replied_ms, one.sent_ms) else 0),
    )


def _arrow(
    kind: str, x1: float, y1: float, x2: float, y2: float | None, *, is_lost: bool, extra: str = ""
) -> Iterator[str]:
    """A line with a head at its end; one that is lost ends half-way with a cross."""
    if y2 is None:
        x, y = (x1 + x2) / 2, y1 + ROW / 2
        cross = f"M{x - 5} {y - 5}l10 10m-10 0l10 -10" if is_lost else ""
        yield f'<path class="{"lost" if is_lost else kind} m{extra}" fill="none" d="M{x1} {y1}L{x} {y}{cross}"/>'
        return
    side = -7 if x2 > x1 else 7
    head = f"M{x2 + side} {y2 - 3.5}L{x2} {y2}L{x2 + side} {y2 + 3.5}"
    yield f'<path class="{kind} m{extra}" fill="none" d="M{x1} {y1}L{x2} {y2}{head}"/>'


def _text(text: str) -> str:
    """`text` for XML: escaped, without the control characters that XML cannot have."""
    return escape("".join(one if one.isprintable() else "\ufffd" for one in text))
