"""What happened in a run, as the runner observed it and as the containers recorded it themselves. Pure records.

Times are in seconds since boot (CLOCK_BOOTTIME): a shell script can read that clock too, and nothing sets it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from msgspec import Struct

from yarn.ids import ApplicationId, ContainerId
from yarn.states import FinalApplicationStatus, YarnApplicationState
from yarnling.chaos.plan import Scope, WorkProgram
from yarnling.chaos.schedule import FaultInjection


class SubmittedApplication(Struct, frozen=True):
    """`acknowledged_s`: None if the client never received the acknowledgement; `refusal`: why it was refused, or ""."""

    application_id: ApplicationId
    program: WorkProgram
    user: str
    tasks: int
    submitted_s: float
    acknowledged_s: float | None = None
    refusal: str = ""
    may_fail: bool = False
    keep_containers: bool = False


class Role(Enum):
    """What a process is to its application, as it records itself."""

    MASTER = "master"
    CONTAINER = "container"
    TASK = "task"


class ProcessSpan(Struct, frozen=True):
    """From when to when a process of a container ran, by its own record.

    `last_s`: when it last recorded itself as alive; `status`: its exit status, None if it was killed. `node`: the
    number of its node. `task`: the number of the task, for tasks that a worker runs.
    """

    container_id: ContainerId
    role: Role
    pid: int
    node: int
    start_s: float
    last_s: float
    status: int | None = None
    task: int = 0

    @property
    def application_id(self) -> ApplicationId:
        return self.container_id.application_id

    @property
    def attempt(self) -> int:
        return self.container_id.attempt_id.attempt


class InjectedFault(Struct, frozen=True):
    """A fault that was injected, or could not be. `recovered_s`: None if it has no end. `target`: for people.

    `problem`: why it could not be injected; `skipped`: it was optional and there was no target.
    """

    injection: FaultInjection
    start_s: float
    recovered_s: float | None = None
    target: str = ""
    problem: str = ""
    skipped: bool = False

    def hides_node(self, node: int) -> bool:
        """Whether the ResourceManager could not get containers on that node stopped."""
        kind = self.injection.kind
        return kind.hides_node and (kind.scope is Scope.RM or node in self.injection.nodes)

    def isolates_master(self, master: ProcessSpan) -> bool:
        """Whether that ApplicationMaster could not receive replies from the ResourceManager."""
        is_target = master.node in self.injection.nodes or self.target == str(master.container_id)
        return self.injection.kind.isolates_master and is_target


class Change(Struct, frozen=True):
    """A poll found `subject` (a node's name, an application's id, or "rm") in a new state or attempt."""

    at_s: float
    subject: str
    state: str
    attempt: int = 0


class Outcome(Struct, frozen=True):
    """How an application ended, as the ResourceManager reports it at the end. `state`: None if it is unknown there.

    `right`: for a word count, whether its counts are correct.
    """

    state: YarnApplicationState | None
    final_status: FinalApplicationStatus = FinalApplicationStatus.UNDEFINED
    attempt: int = 0
    diagnostics: str = ""
    right: bool | None = None


@dataclass(slots=True)
class History:
    """All of a run. `problem`: why the run says nothing about the product, for example a cluster that did not start.

    `lag_s`: the longest delay with which this program woke up; the cluster's processes will have had similar delays.
    `not_recovered`, `not_drained`, `left`, `crashed`: a line for each thing that should not be.
    """

    submissions: list[SubmittedApplication] = field(default_factory=list)
    spans: list[ProcessSpan] = field(default_factory=list)
    injected: list[InjectedFault] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    outcomes: dict[ApplicationId, Outcome] = field(default_factory=dict)
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

    def spans_of(self, application_id: ApplicationId, *roles: Role) -> list[ProcessSpan]:
        """The processes of an application (in these roles, if any are given), by start time."""
        wanted = [
            span for span in self.spans if span.application_id == application_id and (not roles or span.role in roles)
        ]
        return sorted(wanted, key=lambda span: span.start_s)

    def hidden(self, node: int) -> list[tuple[float, float]]:
        """When the ResourceManager was down or could not reach the node: (from, to), in order."""
        return sorted(self._span(one) for one in self.injected if not one.skipped and one.hides_node(node))

    def isolated(self, master: ProcessSpan) -> list[tuple[float, float]]:
        """When the AM received no replies from the ResourceManager, or its node was hidden: (from, to), in order."""
        isolated = [self._span(one) for one in self.injected if not one.skipped and one.isolates_master(master)]
        return sorted([*isolated, *self.hidden(master.node)])

    def changes_of(self, subject: str) -> Iterator[Change]:
        return (change for change in self.changes if change.subject == subject)

    def end_of(self, fault: InjectedFault) -> float:
        """When a fault ended: with the run, if not before."""
        return self.ended_s if fault.recovered_s is None else fault.recovered_s

    def _span(self, fault: InjectedFault) -> tuple[float, float]:
        return fault.start_s, self.end_of(fault)
