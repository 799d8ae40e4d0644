"""The moments of a run: the few points in time that a reader looks for among thousands of events.

    finder = MomentFinder(str)
    finder.found(at_ms, changes=..., decisions=..., lost=..., done=...)     the moments in what happened then

All views of a run take them from here: stepping as the run goes on, timelines and plots of a recorded run
(`moments_of`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from itertools import groupby
from typing import TypeAlias

from msgspec import Struct

from yarnling.run.records import LOST, Call, Decision, RecordedFault, RecordedRun, StateChange, What

MOMENTS_MAX = 1000
"""The number of moments of a run that are found; a list of more helps nobody."""
NAMED_MAX = 3
"""The number of containers that a moment names; the others are counted."""
SILENCE_MS = 10_000
"""A lost message is a moment if its sender has lost none for so long: senders try again, and lose those, too."""
REASON_MAX = 300


class MomentKind(Enum):
    """The topic of a moment."""

    SUBMITTED = "submitted"
    PLACED = "placed"
    """The first container of an application."""
    REFUSED = "refused"
    """The first refusal of a container to an application."""
    RESERVED = "reserved"
    PREEMPTED = "preempted"
    """Requested or carried out, of all containers at that time."""
    LOST = "lost"
    """A node, an attempt, or the first of several messages."""
    DONE = "done"
    """An action on the cluster: a fault, or what a scene or a user did."""


DECISIONS = frozenset({MomentKind.PLACED, MomentKind.REFUSED, MomentKind.RESERVED, MomentKind.PREEMPTED})
"""The kinds that are decisions of the scheduler."""
Found: TypeAlias = Call | StateChange | Decision | RecordedFault


class Moment(Struct, frozen=True):
    """A moment. `text`: what happened, in a few words. `record`: the first record that it is about."""

    at_ms: int
    kind: MomentKind
    text: str
    record: Found


class MomentFinder:
    """Finds the moments among records that come in the order of their time.

    `name`: puts the id of an application, container or node, or the name of a lifeline, as readers call it.
    """

    def __init__(self, name: Callable[[str], str]) -> None:
        self._name = name
        self._seen: set[tuple[MomentKind, str]] = set()
        self._lost_ms: dict[str, int] = {}
        self.count = 0

    def found(
        self,
        at_ms: int,
        *,
        changes: Iterable[StateChange] = (),
        decisions: Sequence[Decision] = (),
        lost: Iterable[Call] = (),
        done: Iterable[RecordedFault] = (),
    ) -> Iterator[Moment]:
        """The moments in what happened at that time. `lost`: calls that ended without a reply."""
        texts = (*self._done(done), *self._changes(changes), *self._decisions(decisions), *self._lost(at_ms, lost))
        for kind, text, record in texts:
            if self.count < MOMENTS_MAX:
                self.count += 1
                yield Moment(at_ms, kind, text, record)

    def _is_first(self, kind: MomentKind, of: str) -> bool:
        key = kind, of
        is_first = key not in self._seen
        self._seen.add(key)
        return is_first

    def _done(self, done: Iterable[RecordedFault]) -> Iterator[tuple[MomentKind, str, Found]]:
        for fault in done:
            where = ", ".join(map(self._name, fault.hosts)) or self._name(fault.target)
            yield MomentKind.DONE, f"{self._name(fault.kind)}{': ' if where else ''}{where}", fault

    def _changes(self, changes: Iterable[StateChange]) -> Iterator[tuple[MomentKind, str, Found]]:
        for one in changes:
            match one.kind, one.source, one.target:
                case "RMApp", "NEW", "NEW_SAVING" | "SUBMITTED":
                    yield MomentKind.SUBMITTED, f"{self._name(one.subject)} is submitted", one
                case "RMNode", _, "LOST":
                    yield MomentKind.LOST, f"node {self._name(one.subject)} is lost", one
                case "RMAppAttempt", _, "FAILED":
                    yield MomentKind.LOST, f"{self._name(one.subject)} has failed", one
                case _:
                    pass

    def _decisions(self, decisions: Sequence[Decision]) -> Iterator[tuple[MomentKind, str, Found]]:
        name = self._name
        for one in decisions:
            where = f" on {name(one.node)}" if one.node else ""
            match one.what:
                case What.ALLOCATED if self._is_first(MomentKind.PLACED, one.application):
                    text = f"first container of {name(one.application)}: {name(one.container)}{where}"
                    yield MomentKind.PLACED, text, one
                case What.REFUSED if self._is_first(MomentKind.REFUSED, one.application):
                    text = f"first refusal of {name(one.application)}{where}: {one.reason[:REASON_MAX]}"
                    yield MomentKind.REFUSED, text, one
                case What.RESERVED:
                    yield MomentKind.RESERVED, f"{name(one.container)} is reserved{where}", one
                case _:
                    pass
        yield from self._preemptions([one for one in decisions if one.what is What.PREEMPTED])

    def _preemptions(self, decisions: Sequence[Decision]) -> Iterator[tuple[MomentKind, str, Found]]:
        """Make one moment of all containers with the same reason."""
        reasons: dict[str, list[Decision]] = {}
        for one in decisions:
            reasons.setdefault(one.reason, []).append(one)
        for reason, same in reasons.items():
            names = [self._name(one.container) for one in same]
            more = f" and {len(names) - NAMED_MAX} more" if len(names) > NAMED_MAX else ""
            text = f"preemption of {', '.join(names[:NAMED_MAX])}{more} {reason[:REASON_MAX]}"
            yield MomentKind.PREEMPTED, text, same[0]

    def _lost(self, at_ms: int, lost: Iterable[Call]) -> Iterator[tuple[MomentKind, str, Found]]:
        for one in lost:
            before_ms = self._lost_ms.get(one.source)
            self._lost_ms[one.source] = at_ms
            if before_ms is None or at_ms - before_ms >= SILENCE_MS:
                yield MomentKind.LOST, f"{one.rpc} of {self._name(one.source)} gets no reply", one


def opening(moments: Iterable[Moment]) -> Moment | None:
    """The moment at which a view opens: the first decision of the scheduler; without one the first moment, if any."""
    first = None
    for moment in moments:
        if moment.kind in DECISIONS:
            return moment
        first = first or moment
    return first


def opening_at_fault(moments: Iterable[Moment]) -> Moment | None:
    """The first fault or other action on the cluster; without one the moment at which any view opens."""
    found = list(moments)
    return next((moment for moment in found if moment.kind is MomentKind.DONE), opening(found))


def moments_of(run: RecordedRun, name: Callable[[str], str]) -> tuple[Moment, ...]:
    """The moments of a whole run, in order, on the clock of the run."""
    finder = MomentFinder(name)
    lost = [one for one in run.calls if one.outcome in LOST]
    records: list[tuple[int, Found]] = [(one.from_ms, one) for one in run.faults]
    records += [(one.at_ms, one) for one in run.changes]
    records += [(one.at_ms, one) for one in run.decisions]
    records += [(one.sent_ms, one) for one in lost]
    records.sort(key=lambda timed: timed[0])
    found: list[Moment] = []
    for at_ms, group in groupby(records, key=lambda timed: timed[0]):
        at_once = [record for _, record in group]
        found += finder.found(
            at_ms,
            changes=[one for one in at_once if isinstance(one, StateChange)],
            decisions=[one for one in at_once if isinstance(one, Decision)],
            lost=[one for one in at_once if isinstance(one, Call)],
            done=[one for one in at_once if isinstance(one, RecordedFault)],
        )
    return tuple(found)
