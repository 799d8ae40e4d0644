"""A timeline as compact JSON for the page: columns of numbers, and each text once.

A heartbeat costs some 30 bytes, because its texts are shared with the others. space_time/model.js says what the columns
mean.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from msgspec.structs import replace

from yarnling.run.moments import Moment, moments_of, opening
from yarnling.run.names import Names, short, shortened
from yarnling.run.records import Call, Decision, Lifeline, Outcome, RecordedRun, Role, StateChange
from yarnling.run.wording import (
    cut,
    decision_label,
    details,
    reply_label,
    request_label,
    state_label,
)

DETAILS_BYTES_MAX = 40_000_000
"""When all texts together are longer than this, further messages get no details."""
REASON_MAX = 400
_OUTCOMES = list(Outcome)
OpensAt: TypeAlias = Callable[[Iterable[Moment]], Moment | None]


class _Texts:
    """Numbers the distinct texts of a page, so that each is stored once."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self.length = 0
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        found = self._numbers.get(text)
        if found is None:
            found = self._numbers[text] = len(self.all)
            self.all.append(text)
            self.length += len(text)
        return found

    def detail(self, text: str) -> int:
        """Like `number`, but once there is too much text, returns the number of "(left out)"."""
        return self.number(text if self.length < DETAILS_BYTES_MAX or text in self._numbers else "(left out)")


def page_data(timeline: RecordedRun, names: Names | None = None, opens_at: OpensAt = opening) -> dict[str, Any]:
    """The data of the page. `names`: what applications and containers are called, instead of ids in short.

    `opens_at`: chooses the moment at which the page opens.
    """
    say = short if names is None else names.within
    texts = _Texts()
    places = {lifeline.name: index for index, lifeline in enumerate(timeline.lifelines)}
    from_ms = timeline.from_ms
    titles = {lifeline.name: lifeline.title for lifeline in timeline.lifelines}
    nodes = titles_of_nodes(timeline)
    return {
        "title": timeline.title,
        "from": from_ms,
        "length": timeline.until_ms - from_ms,
        "notes": list(timeline.notes),
        "lifelines": [_lifeline(one) for one in timeline.lifelines],
        "outcomes": [one.value for one in _OUTCOMES],
        "messages": _columns(
            [_message(shortened_message(one, nodes, say), places, from_ms, texts) for one in timeline.calls]
        ),
        "changes": _columns([_change(one, places, from_ms, texts, say) for one in timeline.changes]),
        "decisions": _columns([_decision(one, titles, from_ms, texts, say) for one in timeline.decisions]),
        "applications": {one: say(one) for one in _applications(timeline)},
        "faults": [
            {
                "from": max(0, fault.from_ms - from_ms),
                "until": None if fault.until_ms is None else fault.until_ms - from_ms,
                "hosts": [places[host] for host in fault.hosts if host in places],
                "text": fault.kind if fault.hosts else f"{fault.kind} {short(fault.target)}",
            }
            for fault in timeline.faults
            if not fault.hosts or any(host in places for host in fault.hosts)
        ],
        **_moments(timeline, say, opens_at),
        "texts": texts.all,
    }


def _applications(timeline: RecordedRun) -> list[str]:
    """The ids of the applications whose states or decisions are known."""
    found = {one.application for one in timeline.changes} | {one.application for one in timeline.decisions}
    return sorted(found - {""})


def _moments(timeline: RecordedRun, say: Callable[[str], str], opens_at: OpensAt) -> dict[str, Any]:
    """The moments as [time, kind, text, kind of the item, its number], and the number of the one to open at."""
    items: dict[int, tuple[int, int]] = {}
    for kind, records in enumerate((timeline.calls, timeline.changes, timeline.decisions)):
        items |= {id(record): (kind, number) for number, record in enumerate(records)}
    titles = {one.name: one.title for one in timeline.lifelines if one.role is not Role.AM}
    found = moments_of(timeline, lambda name: titles.get(name) or say(name))
    first = opens_at(found)

    def row(moment: Moment) -> list[object]:
        at_ms = max(0, moment.at_ms - timeline.from_ms)
        return [at_ms, moment.kind.value, moment.text, *items.get(id(moment.record), (-1, -1))]

    return {"moments": [row(moment) for moment in found], "opening": -1 if first is None else found.index(first)}


def embedded(data: dict[str, Any]) -> str:
    """The data as JSON that may stand in a <script> element: no text in it can end the element."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def titles_of_nodes(timeline: RecordedRun) -> dict[str, str]:
    """{id of a node: the title of its lifeline}."""
    titles = {lifeline.name: lifeline.title for lifeline in timeline.lifelines}
    return {node: titles[name] for node, name in timeline.nodes.items() if name in titles}


def shortened_message(one: Call, nodes: dict[str, str], say: Callable[[str], str] = short) -> Call:
    """The message with ids in short in its records."""
    return replace(one, request=shortened(one.request, nodes, say), reply=shortened(one.reply, nodes, say))


def _columns(rows: list[tuple[int, ...]]) -> list[list[int]]:
    return [list(column) for column in zip(*rows, strict=True)]


def _lifeline(lifeline: Lifeline) -> dict[str, str]:
    return {"name": lifeline.name, "title": lifeline.title, "role": lifeline.role.name}


def _message(one: Call, places: dict[str, int], from_ms: int, texts: _Texts) -> tuple[int, ...]:
    def since(time_ms: int | None, start_ms: int) -> int:
        return -1 if time_ms is None else max(0, time_ms - start_ms)

    request, reply = (one.request, one.reply)
    response_id = request.get("response_id", -1) if isinstance(request, dict) else -1
    return (
        places[one.source],
        places[one.target],
        texts.number(one.rpc),
        one.sent_ms - from_ms,
        since(one.arrived_ms, one.sent_ms),
        since(one.replied_ms, one.sent_ms),
        since(one.over_ms, one.sent_ms),
        _OUTCOMES.index(one.outcome),
        texts.number(request_label(one)),
        texts.number(reply_label(one)),
        texts.detail(details(request)),
        texts.detail(details(reply) if not one.error else cut(one.error, REASON_MAX)),
        texts.number(" ".join(one.applications)),
        int(one.is_quiet),
        response_id if isinstance(response_id, int) else -1,
        one.arrivals,
    )


def _change(
    one: StateChange, places: dict[str, int], from_ms: int, texts: _Texts, say: Callable[[str], str]
) -> tuple[int, ...]:
    named = replace(one, subject=say(one.subject))
    return (
        places[one.host],
        one.at_ms - from_ms,
        texts.number(one.kind),
        texts.number(state_label(named)),
        texts.detail(cut(f"{one.kind} {one.subject}\n{one.source} \u2192 {one.target}\non {one.event}", REASON_MAX)),
        texts.number(one.application),
    )


def _decision(
    one: Decision, titles: dict[str, str], from_ms: int, texts: _Texts, say: Callable[[str], str]
) -> tuple[int, ...]:
    named = replace(one, application=say(one.application), container=say(one.container))
    title = titles.get(one.node, one.node)
    lines = (one.what.value, one.application, one.container, title, one.queue, one.reason)
    return (
        one.at_ms - from_ms,
        texts.number(one.what.value),
        texts.number(decision_label(named, title)),
        texts.detail(cut("\n".join(line for line in lines if line), REASON_MAX)),
        texts.number(one.application),
    )
