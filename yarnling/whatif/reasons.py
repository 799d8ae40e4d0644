"""Causes of waits, summed up by queue and user: the main reason of a group's waits is the cause that held for
most of their waiting time.

A group is a user's containers, or AMs, in one queue. When samples are taken, the waiting time since the last one is
added to each group, and the oldest request of the groups with the most waiting time without a cause is explained: all
of that time is put down to its cause. A group that has been explained comes again when its waiting time has grown by a
tenth, so a tenth of it may be put down to a wrong cause, and few explanations are made. Pure.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec import Struct

from rm.view import Cause
from yarn.settings.scheduler import ROOT
from yarnling.report.wording import share
from yarnling.whatif.measures import Measure, Scope
from yarnling.whatif.result import WaitReason

GROUPS_EXPLAINED_MAX = 20
"""The most groups that are explained at one time: an explanation looks at all nodes."""
GROWTH_EXPLAINED = 0.1
"""A group is explained again when its waiting time has grown by this fraction."""
_OF_ALL = frozenset({"p50 wait", "p95 wait", "unallocated containers"})
_OF_AMS = frozenset({"p95 AM wait"})
_WORDS = {
    Cause.PARALLEL_LIMIT: "limit of parallel applications",
    Cause.AM_QUEUE_LIMIT: "AM limit of the queue",
    Cause.AM_USER_LIMIT: "AM limit of the user",
    Cause.AFTER_RESTART: "restart of the ResourceManager",
    Cause.NO_NODE: "no running node",
    Cause.LABEL_NOT_ACCESSIBLE: "no access to the label",
    Cause.LABEL_WITHOUT_NODES: "label without nodes",
    Cause.LABEL_WITHOUT_CAPACITY: "label without capacity",
    Cause.RESERVATION: "reserved, but no room yet",
    Cause.NODE_STATE: "nodes out of service",
    Cause.PLACE: "only on certain nodes",
    Cause.BLACKLIST: "blacklisted nodes",
    Cause.TOO_LARGE: "larger than the nodes",
    Cause.QUEUE_MAXIMUM: "maximum of the queue",
    Cause.USER_LIMIT: "user limit",
    Cause.PARTITION_FULL: "partition is full",
    Cause.RESERVED_FOR_OTHERS: "nodes reserved for others",
    Cause.NODE_FULL: "nodes are full",
    Cause.AM_ON_SHARED_LABEL: "no AMs on a shared label",
    Cause.LOCALITY_DELAY: "delay for locality",
    Cause.REFUSED: "refused by the scheduler",
    Cause.OTHERS_FIRST: "others come first",
    Cause.NEXT_HEARTBEAT: "next heartbeat",
}
"""{cause: a few words}, where a sentence does not fit."""


class WaitingGroup(NamedTuple):
    """The containers, or the AMs, of a user in a queue."""

    queue: str
    user: str
    is_am: bool


class MainReason(Struct, frozen=True):
    """The cause of most of the waiting time of a scope, and its share of that. `sentence`: as `explain` said it of the
    group that waited longest for this cause.
    """

    cause: str
    share: float
    sentence: str

    def short(self) -> str:
        """The reason in a few words: "AM limit of the queue (85 %)"."""
        return f"{_WORDS[Cause[self.cause]]} ({share(self.share)})"

    def long(self) -> str:
        """The reason as a sentence: "85 %: queue root.etl is at its limit for AMs..."."""
        return f"{share(self.share)}: {self.sentence.removeprefix('waits because ')}"


class _Waited:
    """Waiting time of one group. `causes` {cause: container-milliseconds}; `sentences` {cause: the last sentence}."""

    def __init__(self) -> None:
        self.unexplained_ms = 0
        self.causes: Counter[str] = Counter()
        self.sentences: dict[str, str] = {}

    @property
    def is_due(self) -> bool:
        return self.unexplained_ms > GROWTH_EXPLAINED * self.causes.total()


class WaitingTime:
    """The waiting time of all groups, while a workload runs."""

    def __init__(self) -> None:
        self._groups: dict[WaitingGroup, _Waited] = {}

    def add(self, group: WaitingGroup, container_ms: int) -> None:
        """Add waiting time of the group, summed over its containers."""
        self._groups.setdefault(group, _Waited()).unexplained_ms += container_ms

    def due(self, waiting: Iterable[WaitingGroup]) -> list[WaitingGroup]:
        """The groups to explain now, of those that are waiting: the most unexplained waiting time first."""
        due = [group for group in waiting if self._groups[group].is_due]
        return heapq.nlargest(GROUPS_EXPLAINED_MAX, due, key=lambda group: self._groups[group].unexplained_ms)

    def explain(self, group: WaitingGroup, cause: str, sentence: str) -> None:
        """Attribute the unexplained waiting time of the group to a cause."""
        waited = self._groups[group]
        waited.causes[cause] += waited.unexplained_ms
        waited.sentences[cause] = sentence
        waited.unexplained_ms = 0

    def reasons(self) -> tuple[WaitReason, ...]:
        """The explained waiting time of each group by cause, in the order in which they came."""
        return tuple(
            WaitReason(*group, cause, container_ms, waited.sentences[cause])
            for group, waited in self._groups.items()
            for cause, container_ms in waited.causes.items()
        )


def main_reason(reasons: Iterable[WaitReason], scope: Scope, *, of_ams: bool = False) -> MainReason | None:
    """The main reason of the waits of a scope; None if none was explained. `of_ams`: only those of AMs."""
    found = [each for each in reasons if _is_of(scope, each) and (each.is_am or not of_ams)]
    causes: Counter[str] = Counter()
    for each in found:
        causes[each.cause] += each.container_ms
    if not causes:
        return None
    [(cause, container_ms)] = causes.most_common(1)
    largest = max((each for each in found if each.cause == cause), key=lambda each: each.container_ms)
    return MainReason(cause, container_ms / causes.total(), largest.sentence)


def reason_of_measure(reasons: Sequence[WaitReason], scope: Scope, measure: Measure) -> MainReason | None:
    """The main reason for the waits that a measure counts; None if it does not measure waits."""
    if measure.name not in _OF_ALL | _OF_AMS:
        return None
    return main_reason(reasons, scope, of_ams=measure.name in _OF_AMS)


def _is_of(scope: Scope, reason: WaitReason) -> bool:
    if scope.kind == "cluster" or scope == Scope("queue", ROOT):
        return True
    if scope.kind == "user":
        return reason.user == scope.name
    return reason.queue == scope.name or reason.queue.startswith(f"{scope.name}.")
