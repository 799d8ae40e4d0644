"""Makes applications of a workload from containers that were observed: their sizes, starts and ends.

Logs and recordings of several kinds have these; each reader fills `ObservedApplication` and nothing more. None of them
says when an AM requested a container, so that is concluded here: the containers of a phase are requested at once, and a
phase begins where the application held nothing but its AM for a moment. An AM needs that moment, because it learns of
the last end by one call and requests more by the next; a container that is placed sooner had been requested before, and
waited for the room. A reduce that was requested with the maps and waited longer looks the same as one that was
requested after them. MapReduce has two phases at most.

A worked example: containers run from 10 to 50 s, 12 to 70 s and 71 to 90 s. The third began when the others had ended,
so it is a second group, with `after: 0`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from msgspec import Struct

from yarn.resource import Resource
from yarnling.workload.evidence import Basis, EvidenceAccount
from yarnling.workload.limits import TIME_MS_MAX
from yarnling.workload.model import AM_RESOURCE, TaskGroup, Workload, WorkloadApplication
from yarnling.workload.start_times import REAL_AM_START, StartTime, median_ms
from yarnling.workload.submissions import in_order

TWO_PHASES = frozenset({"MAPREDUCE"})
NEVER_MS = 1 << 60
REACTION_MS = 1000
"""The least time from the end of an application's last container to the placement of one that it requested then.

It is the interval at which AMRMClient and MapReduce's AM call.
"""
RECORDED_ABOUT = "sizes, starts and ends of containers"
AM_ABOUT = "AMs"
REQUESTED_AT_ONCE = (
    "The containers of an application are requested at once, anywhere, and again when all earlier ones have ended: it "
    "is not recorded when its AM requested them."
)


class ObservedContainer(Struct, frozen=True, gc=False):
    """A container that ran, without AMs. Times in ms, of one clock.

    `placed_ms`: when it was allocated; `start_ms`: when its AM had it. `basis`, `about`: of its size and times.
    `priority`: of its request; None: not known. `slack_ms`: by so much its times may be wrong. `after_ms`: a time by
    which it had not been requested, `asked_ms`: when it was, about; 0: not known.
    """

    placed_ms: int
    start_ms: int
    end_ms: int
    resource: Resource
    label: str = ""
    basis: Basis = Basis.RECORDED
    about: str = RECORDED_ABOUT
    priority: int | None = None
    slack_ms: int = 0
    after_ms: int = 0
    asked_ms: int = 0

    @property
    def mb_ms(self) -> int:
        return self.resource.memory_mb * max(self.end_ms - self.start_ms, 0)


class ObservedApplication(Struct, kw_only=True):
    """An application that ran. `am`: its AM's container, of the first attempt; None if it has none or is not known.
    `am_start_ms`: what the AM took to start, from its container's allocation to its registration; None: not known,
    and taken as those of other clusters. `ready_ms`: the times between which it registered; None: not known.
    """

    name: str
    submit_ms: int
    user: str
    queue: str
    kind: str = "YARN"
    priority: int = 0
    label: str = ""
    am: ObservedContainer | None = None
    am_start_ms: int | None = None
    ready_ms: tuple[int, int] | None = None
    containers: Sequence[ObservedContainer] = ()

    def record(self, base_ms: int, account: EvidenceAccount) -> WorkloadApplication:
        """The application with times since `base_ms`. Adds its memory to the account."""
        am = self.am
        start: StartTime = REAL_AM_START if self.am_start_ms is None else _bounded(self.am_start_ms)
        am_ms = 0 if am is None else max(am.end_ms - am.placed_ms, 0)
        if am is not None:
            about = AM_ABOUT if am.about == RECORDED_ABOUT else am.about
            account.add(am.basis, about, am.resource.memory_mb * am_ms)
        for container in self.containers:
            account.add(container.basis, container.about, container.mb_ms)
        groups = tuple(self._groups())
        return WorkloadApplication(
            self.name,
            max(self.submit_ms - base_ms, 0),
            self.user,
            self.queue,
            groups,
            am.resource if am else AM_RESOURCE,
            self.kind,
            max(self.priority, 0),
            self.label,
            am_lasts_ms=0 if groups else _bounded(am_ms - median_ms(start)),
            am_start_ms=start,
        )

    def _groups(self) -> Iterator[TaskGroup]:
        """The groups, those of each phase by the time of their request, their size and label, in the order of their
        first container.
        """
        count = 0
        opens_ms, open_by_ms = (0, NEVER_MS) if self.ready_ms is None else (sum(self.ready_ms) // 2, self.ready_ms[1])
        for phase in phases(self):
            durations: dict[tuple[int, Resource, str], list[int]] = {}
            for delay_ms, wave in _waves(phase, opens_ms, open_by_ms):
                for each in wave:
                    lasted_ms = max(_bounded(each.end_ms - each.start_ms), 1)
                    durations.setdefault((delay_ms, each.resource, each.label), []).append(lasted_ms)
            after = count - 1 if count else None
            for (delay_ms, resource, label), lasted in durations.items():
                yield TaskGroup(resource, tuple(lasted), after=after, label=label, delay_ms=delay_ms)
            count += len(durations)
            opens_ms = max(opens_ms, *(each.end_ms for each in phase))
            open_by_ms = opens_ms + max(each.slack_ms for each in phase)


def observed_workload(observed: Sequence[ObservedApplication], assumptions: Iterable[str]) -> Workload:
    """The workload of at least one application, the first one submitted at 0, with the evidence of its memory."""
    account = EvidenceAccount()
    base_ms = min(each.submit_ms for each in observed)
    records = in_order([each.record(base_ms, account) for each in observed])
    return Workload(records, tuple(assumptions), account.evidence())


def phases(application: ObservedApplication) -> list[list[ObservedContainer]]:
    """The containers in the order of their placement, cut where a new phase begins."""
    most = 2 if application.kind.upper() in TWO_PHASES else len(application.containers)
    found: list[list[ObservedContainer]] = []
    ended_ms, priorities = 0, set[int | None]()
    for each in sorted(application.containers, key=lambda container: container.placed_ms):
        if not found or (len(found) < most and _begins_phase(each, found[-1][-1], ended_ms, priorities)):
            found.append([])
        found[-1].append(each)
        priorities.add(each.priority)
        ended_ms = max(ended_ms, each.end_ms)
    return found


def _waves(
    phase: Sequence[ObservedContainer], opens_ms: int, open_by_ms: int
) -> Iterator[tuple[int, list[ObservedContainer]]]:
    """(How much later than their phase began they were requested, the containers), of those that were surely requested
    later than REACTION_MS after `open_by_ms`, and of all others.
    """
    waves: dict[int, list[ObservedContainer]] = {}
    for each in phase:
        is_late = each.after_ms >= open_by_ms + REACTION_MS
        waves.setdefault(each.after_ms if is_late else 0, []).append(each)
    for after_ms, wave in waves.items():
        asked_ms = min(each.asked_ms for each in wave) if after_ms else 0
        yield _bounded(asked_ms - opens_ms) if asked_ms else 0, wave


def _begins_phase(
    each: ObservedContainer, before: ObservedContainer, ended_ms: int, priorities: Collection[int | None]
) -> bool:
    """True if all earlier containers had ended for REACTION_MS; or may have ended, and this one was surely requested
    after the one before it was placed, or is the first of its priority.
    """
    if each.placed_ms >= ended_ms + REACTION_MS:
        return True
    is_new = each.priority is not None and None not in priorities and each.priority not in priorities
    return each.placed_ms + each.slack_ms >= ended_ms and (is_new or each.after_ms >= before.placed_ms)


def _bounded(duration_ms: int) -> int:
    return min(max(duration_ms, 0), TIME_MS_MAX)
