"""The history of a run: what the runner observed, and what the containers recorded about themselves. Pure records.

Times are in seconds since boot (CLOCK_BOOTTIME), because shell scripts can also read this clock and nobody can set it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from msgspec import Struct

from am.programs.custom.journal import JournalEntry
from am.programs.gang.core import Member
from yarn.ids import ApplicationId, ContainerId
from yarn.states import FINAL_APPLICATION_STATES, FinalApplicationStatus, NodeState, YarnApplicationState
from yarnling.faults.kinds import FaultScope
from yarnling.faults.plan import WorkProgram
from yarnling.faults.schedule import FaultInjection

SILENT = "SILENT"
"""The state of a ResourceManager that does not answer."""
FINAL_STATES = frozenset(state.name for state in FINAL_APPLICATION_STATES)
"""The names of the states in which an application has ended."""
SEEN_S = 0.5
"""A poll finds a change at most this much later than it happened."""
ORDER_S = 1.0
"""In this time an order of the ResourceManager has certainly reached its node: several heartbeats."""
RECONNECTED_S = 2.0
"""So long after a fault a call that it held back has certainly reached its node: clients connect again every second."""


class SubmittedApplication(Struct, frozen=True):
    """An application that was submitted during the run.

    `acknowledged_s` is None if the client never received the acknowledgement. `refusal` is the reason of a refusal, or
    "".
    """

    application_id: ApplicationId
    program: WorkProgram
    user: str
    tasks: int
    submitted_s: float
    acknowledged_s: float | None = None
    refusal: str = ""
    may_fail: bool = False
    keep_containers: bool = False


class ProcessRole(Enum):
    """The role of a process in its application, as the process records it."""

    MASTER = "master"
    CONTAINER = "container"
    TASK = "task"


class ProcessSpan(Struct, frozen=True):
    """The lifetime of one process of a container, as the process recorded it.

    `last_s` is the time of its last record. `status` is its exit status, None if it was killed. `node` is the number of
    its node. `task` is the number of the task, for tasks that a worker runs. `member` is what the AM of a gang gave it.
    """

    container_id: ContainerId
    role: ProcessRole
    pid: int
    node: int
    start_s: float
    last_s: float
    status: int | None = None
    task: int = 0
    member: Member | None = None

    @property
    def application_id(self) -> ApplicationId:
        return self.container_id.application_id

    @property
    def attempt(self) -> int:
        return self.container_id.attempt_id.attempt


class InjectedFault(Struct, frozen=True):
    """A fault that was injected, or could not be. `recovered_s` is None if the fault has no end.

    `target` describes the target in words. `problem` says why the fault could not be injected. `skipped`: the fault was
    optional and had no target.
    """

    injection: FaultInjection
    start_s: float
    recovered_s: float | None = None
    target: str = ""
    problem: str = ""
    skipped: bool = False

    def hides_node(self, node: int) -> bool:
        """True if the ResourceManager could not stop containers on the node while this fault lasted."""
        kind = self.injection.kind
        return kind.hides_node and (kind.scope is FaultScope.RM or node in self.injection.nodes)

    def delays_starts(self, node: int) -> bool:
        """True if calls that start containers on the node may have arrived only when this fault was over."""
        return self.injection.kind.delays_starts and node in self.injection.nodes

    def decommissions(self, node: int) -> bool:
        """True if nothing restarted the NodeManager of the node while this fault lasted."""
        return self.injection.kind.decommissions and node in self.injection.nodes

    def isolates_master(self, master: ProcessSpan) -> bool:
        """True if the ApplicationMaster could not receive replies from the ResourceManager while this fault lasted."""
        is_target = master.node in self.injection.nodes or self.target == str(master.container_id)
        return self.injection.kind.isolates_master and is_target


class ObservedChange(Struct, frozen=True):
    """A poll found `subject` (a node's name, an application's id, or "rm") in a new state or attempt."""

    at_s: float
    subject: str
    state: str
    attempt: int = 0


class ReportedEnd(Struct, frozen=True):
    """The end of an application, as the ResourceManager reports it at the end. `state` is None if it is unknown there.

    `right` says for a word count whether its counts are correct.
    """

    state: YarnApplicationState | None
    final_status: FinalApplicationStatus = FinalApplicationStatus.UNDEFINED
    attempt: int = 0
    diagnostics: str = ""
    right: bool | None = None


@dataclass(slots=True)
class History:
    """Everything that happened in a run.

    `problem` says why the run shows nothing about the product, for example because the cluster did not start. `lag_s`
    is the longest delay with which this program woke up; the cluster's processes probably had similar delays.
    `not_recovered`, `not_drained`, `left` and `crashed` have a line for each finding. `journals` are those of custom
    programs.
    """

    submissions: list[SubmittedApplication] = field(default_factory=list)
    spans: list[ProcessSpan] = field(default_factory=list)
    injected: list[InjectedFault] = field(default_factory=list)
    changes: list[ObservedChange] = field(default_factory=list)
    outcomes: dict[ApplicationId, ReportedEnd] = field(default_factory=dict)
    journals: dict[ApplicationId, list[JournalEntry]] = field(default_factory=dict)
    started_s: float = 0.0
    recovered_s: float = 0.0
    drained_s: float = 0.0
    ended_s: float = 0.0
    not_recovered: list[str] = field(default_factory=list)
    not_drained: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    crashed: list[str] = field(default_factory=list)
    lag_s: float = 0.0
    problem: str = ""

    def spans_of(self, application_id: ApplicationId, *roles: ProcessRole) -> list[ProcessSpan]:
        """The processes of an application by start time; if `roles` are given, only processes in these roles."""
        wanted = [
            span for span in self.spans if span.application_id == application_id and (not roles or span.role in roles)
        ]
        return sorted(wanted, key=lambda span: span.start_s)

    def hidden(self, node: int) -> list[tuple[float, float]]:
        """The periods (from, to) in which the ResourceManager was down or could not reach the node, in order."""
        return sorted(self._hidden_by(one, node) for one in self.injected if not one.skipped and one.hides_node(node))

    def _hidden_by(self, fault: InjectedFault, node: int) -> tuple[float, float]:
        """The period of the fault, and on until the NodeManager is restarted: not while the node is decommissioned."""
        from_s, to_s = self._span(fault)
        if not fault.injection.kind.restarts_node:
            return from_s, to_s
        leaving = [self._span(one) for one in self.injected if not one.skipped and one.decommissions(node)]
        return from_s, max([to_s, *(back_s for leaves_s, back_s in leaving if leaves_s <= to_s)])

    def unstoppable(self, span: ProcessSpan) -> list[tuple[float, float]]:
        """The periods (from, to) in which the ResourceManager could not have the process ended, in order.

        The node was hidden from it (`hidden`), or UNHEALTHY when it started the container: a call that was held back
        came after the order to end the container, and what an UNHEALTHY node reports is ignored. So it is in Hadoop.
        Or a fault held that call back until just before the process started: then there was nothing to end yet.
        """
        return sorted([*self.hidden(span.node), *self._unhealthy_at_start(span), *self._delayed_start(span)])

    def isolated(self, master: ProcessSpan) -> list[tuple[float, float]]:
        """The periods (from, to) in which the AM received no replies, or could not be ended, in order."""
        isolated = [self._span(one) for one in self.injected if not one.skipped and one.isolates_master(master)]
        return sorted([*isolated, *self.unstoppable(master)])

    def forgets_end_of(self, span: ProcessSpan, *, before_s: float = math.inf) -> bool:
        """True if the ResourceManager ended the container with its node, and was down before it could tell the node.

        It ended it before `before_s`. The next ResourceManager does not know of that end: the node registers with the
        container, which is recovered and runs until its application ends, beside the one that the AM got in its place.
        So it is in Hadoop.
        """
        return any(
            ended_s < before_s and self._forgets_order(span, ended_s, told_s)
            for ended_s, told_s in self._ends_with_node(span)
        )

    def forgets_release_of(self, span: ProcessSpan, released_s: float) -> bool:
        """True if the AM released the container before it started, and the ResourceManager was down before it noticed.

        A fault held back the call that starts it, so the node knew of nothing to end. The next ResourceManager recovers
        the container, and the AM does not release it again: its release was confirmed. So it is in Hadoop
        (AbstractYarnScheduler.recoverContainersOnNode, AMRMClientImpl.pendingRelease).
        """
        return released_s < span.start_s and self._forgets_order(span, released_s, span.start_s)

    def _forgets_order(self, span: ProcessSpan, ended_s: float, told_s: float) -> bool:
        """True if the ResourceManager was down after `ended_s`, and before its order of `told_s` reached the node."""
        reached_s = window_end(told_s, ORDER_S, self.hidden(span.node))
        return any(one.state == SILENT and ended_s <= one.at_s <= reached_s for one in self.changes_of("rm"))

    def unplaced_nodes(self) -> list[str]:
        """The nodes that may be RUNNING and get no containers until their NodeManagers are restarted.

        They were recommissioned while they were UNHEALTHY. The scheduler had removed such a node, and is only told its
        size (RMNodeImpl.RecommissionNodeTransition).
        """
        found = (
            f"nm-{node}"
            for fault in self.injected
            if fault.injection.kind.decommissions and not fault.skipped
            for node in fault.injection.nodes
            if any(from_s <= fault.start_s < to_s for from_s, to_s in self._in_state(node, NodeState.UNHEALTHY))
        )
        return list(dict.fromkeys(found))

    def without_master(self, application_id: ApplicationId) -> list[tuple[float, float]]:
        """The periods (from, to) between its ApplicationMasters, and after the last one, in order.

        If a node with an AM ends after the AM has given up containers of a node that does not answer, only the
        ResourceManager can stop them: when it ends the attempt, which may take until the AM expires.
        """
        masters = self.spans_of(application_id, ProcessRole.MASTER)
        starts_s = [*(master.start_s for master in masters[1:]), self.ended_s]
        return [(one.last_s, to_s) for one, to_s in zip(masters, starts_s, strict=False) if one.last_s < to_s]

    def ignores_start(self, application_id: ApplicationId, node: int) -> bool:
        """True if the node was UNHEALTHY when it started its last container of an application that had ended.

        The ResourceManager ignores what such a node reports, so it does not order again to end the application. So does
        RMNodeImpl.StatusUpdateWhenUnHealthyTransition.
        """
        spans = [span for span in self.spans_of(application_id) if span.node == node]
        ends_s = [change.at_s for change in self.changes_of(str(application_id)) if change.state in FINAL_STATES]
        last = spans[-1:]
        return any(end_s <= span.start_s and self._unhealthy_at_start(span) for span in last for end_s in ends_s)

    def is_forgotten(self, one: SubmittedApplication) -> bool:
        """True if the ResourceManager lost its state after it had acknowledged the application."""
        ended_s = [self.end_of(loss) for loss in self._losses()]
        return any(one.acknowledged_s is not None and one.acknowledged_s <= loss_s for loss_s in ended_s)

    def times_resubmitted(self, one: SubmittedApplication) -> int:
        """The times that the ResourceManager lost its state while the client had no answer and went on submitting.

        The next one, which knows of no application, accepts the same id again, as Hadoop's does.
        """
        until_s = self.ended_s if one.acknowledged_s is None else one.acknowledged_s
        return sum(one.submitted_s <= loss.start_s <= until_s for loss in self._losses())

    def _losses(self) -> list[InjectedFault]:
        """The faults in which the ResourceManager lost its state."""
        return [fault for fault in self.injected if fault.injection.kind.forgets and not fault.skipped]

    def _unhealthy_at_start(self, span: ProcessSpan) -> list[tuple[float, float]]:
        """The UNHEALTHY period (from, to) of the node in which it started the process; empty if there is none."""
        unhealthy = self._in_state(span.node, NodeState.UNHEALTHY)
        return [(from_s, to_s) for from_s, to_s in unhealthy if from_s - SEEN_S <= span.start_s <= to_s]

    def _delayed_start(self, span: ProcessSpan) -> Iterator[tuple[float, float]]:
        """The periods (from, to) of faults that may have held back the call that started the process."""
        for fault in self.injected:
            from_s, to_s = self._span(fault)
            if fault.delays_starts(span.node) and not fault.skipped and to_s <= span.start_s <= to_s + RECONNECTED_S:
                yield from_s, to_s

    def _in_state(self, node: int, state: NodeState) -> Iterator[tuple[float, float]]:
        """The periods (from, to) in which the ResourceManager was seen to have the node in this state, in order."""
        changes = list(self.changes_of(f"nm-{node}"))
        ends_s = [*(one.at_s for one in changes[1:]), self.ended_s]
        return ((one.at_s, to_s) for one, to_s in zip(changes, ends_s, strict=False) if one.state == state.name)

    def _ends_with_node(self, span: ProcessSpan) -> Iterator[tuple[float, float]]:
        """The times at which the RM ended the container with its UNHEALTHY or LOST node, and told the node.

        The next heartbeats of an UNHEALTHY node get the order, and of a LOST node the first ones after it has returned.
        A node in such a state gets no containers: one that it starts then was ended before, and the call to start it
        was held back.
        """
        for state in (NodeState.UNHEALTHY, NodeState.LOST):
            for from_s, to_s in self._in_state(span.node, state):
                is_told_at_once = state is NodeState.UNHEALTHY and span.start_s <= from_s
                if span.start_s <= to_s:
                    yield from_s, from_s if is_told_at_once else to_s

    def changes_of(self, subject: str) -> Iterator[ObservedChange]:
        return (change for change in self.changes if change.subject == subject)

    def end_of(self, fault: InjectedFault) -> float:
        """The time when a fault ended, at the latest the end of the run."""
        return self.ended_s if fault.recovered_s is None else fault.recovered_s

    def _span(self, fault: InjectedFault) -> tuple[float, float]:
        return fault.start_s, self.end_of(fault)


def window_end(from_s: float, lasts_s: float, stopped: Iterable[tuple[float, float]]) -> float:
    """The end of a window of `lasts_s` from `from_s` on, which restarts after each of the periods that overlaps it."""
    end_s = from_s + lasts_s
    for stops_s, goes_on_s in stopped:
        if stops_s <= end_s and goes_on_s >= from_s:
            end_s = max(end_s, goes_on_s + lasts_s)
    return end_s
