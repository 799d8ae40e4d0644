"""ApplicationMasterCore: what reaches the application and Reconciliation, and what becomes of their effects."""

from __future__ import annotations

from am.core.actions import Action, Finish, Launch, Leave
from am.core.application_master import AbandonLaunch, ApplicationMasterCore, MarkedLost
from am.core.events import (
    AllocatedContainer,
    ContainersAllocated,
    ContainersCompleted,
    ContainerStarted,
    ContainerStartFailed,
    Event,
    Resynced,
)
from am.core.reconciliation import MarkLost, NodeAnswered, NodeUnreachable, QueryNode
from tests.am.builders import container, container_id, ended, node_id
from yarn.containers import ContainerLaunchContext
from yarn.machine import Tick
from yarn.states import FinalApplicationStatus

EXPIRY_MS = 4000
N1 = node_id("n1")
TWO = container_id(2)
ALLOCATED = ContainersAllocated((AllocatedContainer(container(2), None),))
LAUNCH = Launch(container(2), ContainerLaunchContext(("true",)))
FINISH = Finish(FinalApplicationStatus.SUCCEEDED)


class Recorded:
    """An application that answers its first event with planned actions, and records all events."""

    def __init__(self, *actions: Action) -> None:
        self.events: list[Event] = []
        self._actions = list(actions)

    def handle(self, event: Event, now_ms: int) -> list[Action]:
        self.events.append(event)
        actions, self._actions = self._actions, []
        return actions

    def progress(self) -> float:
        return 0.0


def core_of(application: Recorded) -> ApplicationMasterCore:
    return ApplicationMasterCore(application, EXPIRY_MS, check_invariants=True)


def test_an_event_reaches_the_application_and_reconciliation() -> None:
    application = Recorded(LAUNCH)
    core = core_of(application)
    assert core.handle(ALLOCATED, 0) == [LAUNCH]
    assert core.handle(ContainerStarted(TWO), 1) == []
    assert core.handle(Resynced(), 2) == [QueryNode(N1, (TWO,))]
    assert application.events == [ALLOCATED, ContainerStarted(TWO), Resynced()]


def test_a_tick_and_the_answers_of_nodes_are_for_reconciliation_alone() -> None:
    application = Recorded()
    core = core_of(application)
    for event in (ALLOCATED, ContainerStarted(TWO), Resynced()):
        core.handle(event, 0)
    core.handle(NodeUnreachable(N1), 10)
    assert core.next_deadline_ms() == 1000
    assert core.handle(Tick(), 1000) == [QueryNode(N1, (TWO,))]
    (lost,) = core.handle(NodeAnswered(N1, (TWO,), ()), 1010)
    assert isinstance(lost, MarkLost)
    assert application.events == [ALLOCATED, ContainerStarted(TWO), Resynced()]


def test_a_container_that_is_given_up_is_queried_further() -> None:
    """The event of MarkLost reaches the application alone: for Reconciliation the container has not ended."""
    application = Recorded()
    core = core_of(application)
    for event in (ALLOCATED, ContainerStarted(TWO), Resynced()):
        core.handle(event, 0)
    completed = ContainersCompleted((ended(2, -100),))
    core.handle(MarkedLost((completed,)), 10)
    assert application.events[-1] == completed
    core.handle(NodeUnreachable(N1), 20)
    assert core.handle(Tick(), 1000) == [QueryNode(N1, (TWO,))]


def test_the_start_of_a_container_that_has_ended_is_abandoned() -> None:
    core = core_of(Recorded(LAUNCH))
    core.handle(ALLOCATED, 0)
    assert core.handle(ContainersCompleted((ended(2),)), 1) == [AbandonLaunch(TWO)]
    assert core.handle(ContainersCompleted((ended(2),)), 2) == [], "once"


def test_a_start_that_is_settled_is_not_abandoned() -> None:
    for settled in (ContainerStarted(TWO), ContainerStartFailed(TWO, "refused")):
        core = core_of(Recorded(LAUNCH))
        core.handle(ALLOCATED, 0)
        core.handle(settled, 1)
        assert core.handle(ContainersCompleted((ended(2),)), 2) == []


def test_the_application_gets_no_event_after_its_last_action() -> None:
    for last in (FINISH, Leave("shut down")):
        application = Recorded(last)
        core = core_of(application)
        assert core.handle(ALLOCATED, 0) == [last]
        assert core.handle(ContainersCompleted((ended(2),)), 1) == []
        assert application.events == [ALLOCATED]
