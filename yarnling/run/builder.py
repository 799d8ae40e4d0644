"""Puts together a recorded run from what readers find, in whatever order they find it."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from wire.caller import RM_CALLER
from yarn.errors import YarnException
from yarnling.run.heartbeats import Heartbeats
from yarnling.run.names import RM_LIFELINE
from yarnling.run.records import (
    Call,
    Decision,
    Lifeline,
    Outcome,
    RecordedFault,
    RecordedRun,
    Role,
    Sample,
    StateChange,
)

CALLS_MAX = 500_000
"""More calls than this are refused: a page of them would be larger than browsers can show."""
APPLICATIONS_OF_A_CALL_MAX = 20
UNDER_WAY_MS = 1000
"""A call without an answer that was sent so shortly before the end of the run is still under way."""
_ID = re.compile(r"(?:appattempt|container(?:_e\d+)?|application)_(\d+)_(\d+)")
_MASTER = re.compile(r"(?:appattempt|container(?:_e\d+)?)_\d+_(\d+)_(\d+)")
_ROLES = list(Role)
_NODE_REGISTRATION = "registerNodeManager"


@dataclass(slots=True)
class RunBuilder:
    """Collects one run. `nodes` {id of a node: the name of its lifeline}."""

    title: str
    calls: list[Call] = field(default_factory=list)
    changes: list[StateChange] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    faults: list[RecordedFault] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    nodes: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    roles: dict[str, Role] = field(default_factory=lambda: {RM_LIFELINE: Role.RM})
    ended_ms: int | None = None
    dropped: int = 0
    """The number of calls that a watcher missed."""

    def lifeline(self, name: str, role: Role) -> str:
        """The lifeline of that name, which exists from now on."""
        self.roles.setdefault(name, role)
        return name

    def lifeline_of(self, name: str) -> str:
        """The lifeline of a host, a daemon or a caller, as a simulation or a watcher names it."""
        if name.startswith(RM_CALLER):
            return self.lifeline(RM_LIFELINE, Role.RM)
        if name.startswith(("am ", "appattempt_", "container_")):
            return self.lifeline(name.removeprefix("am "), Role.AM)
        if name.startswith("nm-"):
            return self.lifeline(name, Role.NM)
        if name.startswith(("user ", "unknown ")) or ":" not in name:
            return self.lifeline(name, Role.CLIENT)
        self.nodes[name] = name
        return self.lifeline(name, Role.NM)

    def call(self, call: Call) -> Call:
        """Add a call; the reader may go on to fill it in."""
        if len(self.calls) >= CALLS_MAX:
            raise YarnException(f"the run has more than {CALLS_MAX} calls (make a timeline of a shorter run)")
        self.calls.append(call)
        if call.rpc == _NODE_REGISTRATION and isinstance(call.request, dict):
            self.nodes.setdefault(str(call.request["node_id"]), call.source)
        return call

    def change(self, at_ms: int, host: str, change: dict[str, Any]) -> None:
        """Add a StateChanged effect, as JSON."""
        self.changes.append(
            StateChange(at_ms, host, *(str(change[key]) for key in ("kind", "subject", "event", "source", "target")))
        )

    def run(self) -> RecordedRun:
        """The run as far as it was found."""
        calls = sorted(self.calls, key=lambda call: (call.sent_ms, call.number))
        times = [
            *(time for call in calls for time in (call.sent_ms, call.over_ms or call.sent_ms)),
            *(change.at_ms for change in self.changes),
            *(decision.at_ms for decision in self.decisions),
        ]
        if not times:
            raise YarnException(f"{self.title}: there is no call, no state change and no decision in it")
        if self.dropped:
            self.notes.append(f"{self.dropped} calls were dropped while it was recorded.")
        heartbeats = Heartbeats()
        decided = {(one.at_ms, self._place(one.node)) for one in self.decisions}
        until_ms = max(times) if self.ended_ms is None else max(*times, self.ended_ms)
        for call in calls:
            self._complete(call, heartbeats, until_ms, decided)
        return RecordedRun(
            self.title,
            min(times),
            until_ms,
            self._lifelines(),
            tuple(calls),
            tuple(self._placed(change) for change in sorted(self.changes, key=lambda change: change.at_ms)),
            tuple(
                replace(one, node=self._place(one.node))
                for one in sorted(self.decisions, key=lambda decision: decision.at_ms)
            ),
            tuple(sorted(self.faults, key=lambda fault: fault.from_ms)),
            tuple(sorted(self.samples, key=lambda sample: sample.at_ms)),
            self.nodes,
            tuple(self.notes),
        )

    def _place(self, node: str) -> str:
        return self.nodes.get(node, node)

    def _placed(self, change: StateChange) -> StateChange:
        subject = self._place(change.subject)
        applications = applications_in(subject)
        return replace(change, subject=subject, application=applications[0] if applications else "")

    def _lifelines(self) -> tuple[Lifeline, ...]:
        ordered = sorted(self.roles.items(), key=lambda entry: (_ROLES.index(entry[1]), natural(entry[0])))
        titles = Counter[str]()
        found = []
        for name, role in ordered:
            title = _title(name, role)
            titles[title] += 1
            found.append(Lifeline(name, role, f"{title} ({titles[title]})" if titles[title] > 1 else title))
        return tuple(found)

    def _complete(self, call: Call, heartbeats: Heartbeats, until_ms: int, decided: set[tuple[int, str]]) -> None:
        """Fill in what can be said of a call once the whole run is known."""
        is_under_way = call.over_ms is None and call.sent_ms > until_ms - UNDER_WAY_MS
        call.outcome = Outcome.UNDER_WAY if is_under_way else _outcome(call)
        call.is_quiet = call.outcome is Outcome.ANSWERED and heartbeats.is_quiet(call)
        if call.arrived_ms is not None and (call.arrived_ms, call.source) in decided:
            call.is_quiet = False
        found = applications_in(call.source, call.target, call.request, call.reply)
        call.applications = found[:APPLICATIONS_OF_A_CALL_MAX]
        call.arrivals = max(1, call.arrivals)


def _outcome(call: Call) -> Outcome:
    if call.over_ms is not None and not call.error:
        return Outcome.ANSWERED
    if call.over_ms is not None and call.is_refused:
        return Outcome.REFUSED
    if call.over_ms is not None and not call.is_sent:
        return Outcome.UNREACHABLE
    if call.replied_ms is not None:
        return Outcome.REPLY_LOST
    return Outcome.REQUEST_LOST if call.arrived_ms is None else Outcome.UNANSWERED


def natural(name: str) -> list[tuple[int, str]]:
    """A key that sorts nm-2 before nm-10."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name)]


def applications_in(*values: object) -> tuple[str, ...]:
    """The ids of the applications whose ids, attempts or containers are somewhere in `values`, each once."""
    found: dict[str, None] = {}
    waiting = list(values)
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            for match in _ID.finditer(value):
                found[f"application_{match[1]}_{match[2]}"] = None
        elif isinstance(value, dict):
            waiting += [*value.keys(), *value.values()]
        elif isinstance(value, list | tuple):
            waiting += value
    return tuple(found)


def _title(name: str, role: Role) -> str:
    if role is Role.AM and (match := _MASTER.match(name)):
        return f"AM {match[1]}" + (f" #{int(match[2])}" if int(match[2]) != 1 else "")
    return name.upper() if role is Role.RM or re.fullmatch(r"nm-\d+", name) else name
