"""Puts together a timeline from what readers find, in whatever order they find it."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from yarn.errors import YarnException
from yarnling.timeline.heartbeats import Heartbeats
from yarnling.timeline.model import (
    Decision,
    Fault,
    HeadroomUse,
    Lifeline,
    Message,
    Outcome,
    QueueUse,
    Role,
    StateChange,
    Timeline,
)

MESSAGES_MAX = 500_000
"""More calls than this are refused: a page of them would be larger than browsers can show."""
APPLICATIONS_OF_A_MESSAGE_MAX = 20
UNDER_WAY_MS = 1000
"""A call without an answer that was sent so shortly before the end of the run is still under way."""
_ID = re.compile(r"(?:appattempt|container(?:_e\d+)?|application)_(\d+)_(\d+)")
_MASTER = re.compile(r"(?:appattempt|container(?:_e\d+)?)_\d+_(\d+)_(\d+)")
_ROLES = list(Role)


@dataclass(slots=True)
class Call:
    """A call while its end is not known. `error`: "" if it has none."""

    source: str
    target: str
    rpc: str
    sent_ms: int
    request: Any = None
    is_sent: bool = False
    arrived_ms: int | None = None
    replied_ms: int | None = None
    over_ms: int | None = None
    reply: Any = None
    error: str = ""
    is_unreachable: bool = False
    is_refused: bool = False
    """The error is the server's answer."""
    arrivals: int = 0
    request_bytes: int | None = None
    reply_bytes: int = 0

    def bytes_sent(self) -> int | None:
        """Of both messages; the request's count once it is sent. None if they are not known."""
        if self.request_bytes is None:
            return None
        return (self.request_bytes if self.is_sent else 0) + self.reply_bytes

    def outcome(self) -> Outcome:
        if self.over_ms is not None and not self.error:
            return Outcome.ANSWERED
        if self.over_ms is not None and self.is_refused:
            return Outcome.REFUSED
        if self.is_unreachable:
            return Outcome.UNREACHABLE
        if self.replied_ms is not None:
            return Outcome.REPLY_LOST
        return Outcome.REQUEST_LOST if self.arrived_ms is None else Outcome.UNANSWERED


@dataclass(slots=True)
class Assembly:
    """Collects one run. `nodes` {id of a node: the name of its lifeline}."""

    title: str
    calls: list[Call] = field(default_factory=list)
    changes: list[StateChange] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    use: list[QueueUse] = field(default_factory=list)
    headrooms: list[HeadroomUse] = field(default_factory=list)
    nodes: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    roles: dict[str, Role] = field(default_factory=dict)
    ended_ms: int | None = None

    def lifeline(self, name: str, role: Role) -> str:
        """The lifeline of that name, which exists from now on."""
        self.roles.setdefault(name, role)
        return name

    def call(self, call: Call) -> Call:
        if len(self.calls) >= MESSAGES_MAX:
            raise YarnException(f"the run has more than {MESSAGES_MAX} calls (make a timeline of a shorter run)")
        self.calls.append(call)
        return call

    def change(self, at_ms: int, host: str, change: dict[str, Any]) -> None:
        """A StateChanged effect, or the change of a recording, as JSON."""
        kind, subject, event, source, target = (
            str(change.get(key, "")) for key in ("kind", "subject", "event", "source", "target")
        )
        subject = self.nodes.get(subject, subject)
        applications = applications_in(subject)
        application = applications[0] if applications else ""
        self.changes.append(StateChange(at_ms, host, kind, subject, event, source, target, application))

    def timeline(self) -> Timeline:
        """The run as far as it was found."""
        calls = sorted(self.calls, key=lambda call: call.sent_ms)
        times = [
            *(time for call in calls for time in (call.sent_ms, call.over_ms or call.sent_ms)),
            *(change.at_ms for change in self.changes),
            *(decision.at_ms for decision in self.decisions),
        ]
        if not times:
            raise YarnException(f"{self.title}: there is no call, no state change and no decision in it")
        heartbeats = Heartbeats()
        decided = {(one.at_ms, self.nodes.get(one.node, one.node)) for one in self.decisions}
        until_ms = max(times) if self.ended_ms is None else max(*times, self.ended_ms)
        return Timeline(
            self.title,
            min(times),
            until_ms,
            self._lifelines(),
            tuple(self._message(call, heartbeats, until_ms, decided) for call in calls),
            tuple(sorted(self.changes, key=lambda change: change.at_ms)),
            tuple(
                replace(one, node=self.nodes.get(one.node, one.node))
                for one in sorted(self.decisions, key=lambda decision: decision.at_ms)
            ),
            tuple(sorted(self.faults, key=lambda fault: fault.from_ms)),
            tuple(sorted(self.use, key=lambda use: use.at_ms)),
            tuple(sorted(self.headrooms, key=lambda headroom: headroom.at_ms)),
            self.nodes,
            tuple(self.notes),
        )

    def _lifelines(self) -> tuple[Lifeline, ...]:
        ordered = sorted(self.roles.items(), key=lambda entry: (_ROLES.index(entry[1]), natural(entry[0])))
        titles = Counter[str]()
        found = []
        for name, role in ordered:
            title = _title(name, role)
            titles[title] += 1
            found.append(Lifeline(name, role, f"{title} ({titles[title]})" if titles[title] > 1 else title))
        return tuple(found)

    def _message(self, call: Call, heartbeats: Heartbeats, until_ms: int, decided: set[tuple[int, str]]) -> Message:
        outcome = call.outcome()
        if call.over_ms is None and call.sent_ms > until_ms - UNDER_WAY_MS:
            outcome = Outcome.UNDER_WAY
        is_quiet = outcome is Outcome.ANSWERED and heartbeats.is_quiet(
            {"from": call.source, "rpc": call.rpc, "request": call.request, "reply": call.reply, "error": None}
        )
        if call.arrived_ms is not None and (call.arrived_ms, call.source) in decided:
            is_quiet = False
        found = applications_in(call.source, call.target, call.request, call.reply)
        return Message(
            call.source,
            call.target,
            call.rpc,
            call.sent_ms,
            call.arrived_ms,
            call.replied_ms,
            call.over_ms,
            outcome,
            call.request,
            call.reply,
            call.error,
            is_quiet,
            max(1, call.arrivals),
            found[:APPLICATIONS_OF_A_MESSAGE_MAX],
            call.bytes_sent(),
        )


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
    return {"rm": "RM", "ResourceManager": "RM"}.get(name, name.upper() if re.fullmatch(r"nm-\d+", name) else name)
