"""Reconciliation after a restart of the RM: it gets events of the RM and of NMs, and returns queries and ends."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from am.core.events import (
    AllocatedContainer,
    ContainersAllocated,
    ContainersCompleted,
    ContainersFromPreviousAttempts,
    ContainerStarted,
    ContainerStartFailed,
    Event,
    Resynced,
)
from am.core.invariants import CheckedAMRMClientState, CheckedReconciliation
from am.core.reconciliation import (
    CHECKS_PER_EXPIRY,
    MarkLost,
    NodeAnswered,
    NodeUnreachable,
    QueryNode,
    Reconciliation,
    ReconciliationEffect,
    ReconciliationEvent,
    StopOrphan,
)
from tests.am.builders import container, container_id, ended, node_id, reply
from yarn.containers import ContainerStatus
from yarn.ids import NodeId
from yarn.machine import Tick
from yarn.states import ContainerExitStatus, ContainerState

EXPIRY_MS = 4000
INTERVAL_MS = 1000
N1, N2 = node_id("n1"), node_id("n2")
TWO, THREE = container_id(2), container_id(3)


def allocated(*numbers: int, host: str = "n1") -> Event:
    return ContainersAllocated(tuple(AllocatedContainer(container(number, host), None) for number in numbers))


def running(number: int) -> ContainerStatus:
    return ContainerStatus(container_id(number), ContainerState.RUNNING)


def started(*numbers: int, host: str = "n1") -> Reconciliation:
    """A core that knows two running containers."""
    core = CheckedReconciliation(EXPIRY_MS)
    assert core.handle(allocated(*numbers, host=host), 0) == []
    for number in numbers:
        assert core.handle(ContainerStarted(container_id(number)), 0) == []
    assert core.next_deadline_ms() is None
    return core


def given_up(core: Reconciliation, from_ms: int) -> list[ReconciliationEffect]:
    """The effects after n1 was silent for an expiry interval; queries are left out."""
    effects: list[ReconciliationEffect] = []
    for at_ms in range(from_ms, from_ms + EXPIRY_MS + 1, INTERVAL_MS):
        effects += core.handle(Tick(), at_ms)
        effects += core.handle(NodeUnreachable(N1), at_ms)
    return [effect for effect in effects if not isinstance(effect, QueryNode)]


def test_no_node_is_queried_before_a_resync() -> None:
    core = started(2, 3)
    assert core.handle(Tick(), 10_000_000) == []
    assert core.next_deadline_ms() is None


def test_after_a_resync_each_node_gets_one_query_for_all_its_containers() -> None:
    core = started(2, 3)
    core.handle(allocated(4, host="n2"), 0)
    core.handle(ContainerStarted(container_id(4)), 0)
    assert core.handle(Resynced(), 5) == [QueryNode(N1, (TWO, THREE)), QueryNode(N2, (container_id(4),))]
    assert core.handle(Tick(), 60_000) == []
    assert core.next_deadline_ms() is None


def test_a_container_its_node_does_not_have_is_lost_and_a_complete_one_ended_with_its_status() -> None:
    core = started(2, 3)
    core.handle(Resynced(), 5)
    (effect,) = core.handle(NodeAnswered(N1, (TWO, THREE), (ended(3, 7),)), 9)
    assert isinstance(effect, MarkLost)
    assert not effect.release
    lost, failed = effect.statuses
    assert (lost.container_id, lost.exit_status, lost.state) == (
        TWO,
        ContainerExitStatus.ABORTED,
        ContainerState.COMPLETE,
    )
    assert failed == ended(3, 7)
    assert core.next_deadline_ms() is None
    assert core.handle(NodeAnswered(N1, (TWO, THREE), ()), 10) == []


def test_a_running_container_is_queried_again_until_it_ends() -> None:
    """A node may be lost after it has answered and before it has registered with the new RM."""
    core = started(2)
    core.handle(Resynced(), 0)
    assert core.handle(NodeAnswered(N1, (TWO,), (running(2),)), 10) == []
    assert core.next_deadline_ms() == INTERVAL_MS
    assert core.handle(Tick(), INTERVAL_MS - 1) == []
    assert core.handle(Tick(), INTERVAL_MS) == [QueryNode(N1, (TWO,))]
    core.handle(ContainersCompleted((ended(2),)), INTERVAL_MS + 1)
    assert core.handle(NodeAnswered(N1, (TWO,), ()), INTERVAL_MS + 2) == []
    assert core.next_deadline_ms() is None


def test_a_container_whose_start_is_under_way_is_not_queried() -> None:
    core = CheckedReconciliation(EXPIRY_MS)
    core.handle(allocated(2, 3), 0)
    assert core.handle(Resynced(), 5) == []
    assert core.handle(ContainerStarted(TWO), 7) == [QueryNode(N1, (TWO,))]
    core.handle(NodeAnswered(N1, (TWO,), (running(2),)), 9)
    assert core.handle(Tick(), 8000) == [QueryNode(N1, (TWO,))]


@pytest.mark.parametrize("events", [*permutations((ContainerStartFailed(TWO, "no"), Resynced()))])
def test_a_container_whose_start_failed_is_queried_until_it_ends(events: tuple[Event, ...]) -> None:
    """A worker ran although its start counted as failed, and was lost with its node (seed 3417226 with all faults).

    The new RM, which never knew it, did not report the end of the released worker, and its task was never repeated.
    """
    core = CheckedReconciliation(EXPIRY_MS)
    core.handle(allocated(2), 0)
    effects = [effect for event in events for effect in core.handle(event, 5)]
    assert effects == [QueryNode(N1, (TWO,))]
    (effect,) = core.handle(NodeAnswered(N1, (TWO,), ()), 6)
    assert isinstance(effect, MarkLost)
    assert [one.container_id for one in effect.statuses] == [TWO]
    assert core.next_deadline_ms() is None


def test_containers_of_the_new_rm_are_not_queried() -> None:
    core = started(2)
    core.handle(Resynced(), 5)
    core.handle(allocated(3), 6)
    core.handle(ContainerStarted(THREE), 7)
    core.handle(NodeAnswered(N1, (TWO,), (running(2),)), 8)
    assert core.handle(Tick(), 5000) == [QueryNode(N1, (TWO,))]
    core.handle(NodeAnswered(N1, (TWO,), (running(2),)), 5001)
    assert core.handle(Resynced(), 5002) == [QueryNode(N1, (TWO, THREE))], "the new RM has gone too"


def test_containers_of_an_earlier_attempt_are_queried_too() -> None:
    core = CheckedReconciliation(EXPIRY_MS)
    core.handle(ContainersFromPreviousAttempts((container(2),)), 0)
    assert core.handle(Resynced(), 5) == [QueryNode(N1, (TWO,))]


def test_a_node_that_is_silent_for_an_expiry_interval_is_lost_with_its_containers() -> None:
    core = started(2, 3)
    core.handle(Resynced(), 0)
    (effect,) = given_up(core, 0)
    assert isinstance(effect, MarkLost)
    assert effect.release
    assert [(one.container_id, one.exit_status) for one in effect.statuses] == [(TWO, -100), (THREE, -100)]
    assert given_up(core, 10_000) == [], "reported once"


def test_an_answer_ends_the_silence() -> None:
    core = started(2)
    core.handle(Resynced(), 0)
    for at_ms in range(0, EXPIRY_MS, INTERVAL_MS):
        assert core.handle(NodeUnreachable(N1), at_ms) == []
        core.handle(Tick(), at_ms + INTERVAL_MS)
    assert core.handle(NodeAnswered(N1, (TWO,), (running(2),)), EXPIRY_MS) == []
    core.handle(Tick(), EXPIRY_MS + INTERVAL_MS)
    assert core.handle(NodeUnreachable(N1), EXPIRY_MS + INTERVAL_MS) == []


def test_a_resync_ends_the_silence_too() -> None:
    core = started(2)
    core.handle(Resynced(), 0)
    core.handle(NodeUnreachable(N1), 500)
    core.handle(Resynced(), EXPIRY_MS)
    for at_ms in (EXPIRY_MS, EXPIRY_MS + INTERVAL_MS):
        assert core.handle(NodeUnreachable(N1), at_ms) == []
        core.handle(Tick(), at_ms + INTERVAL_MS)


def test_an_am_that_was_stopped_itself_does_not_count_nodes_as_silent() -> None:
    """When the AM continues, it finds that one query was not answered for a long time."""
    core = started(2)
    core.handle(Resynced(), 0)
    assert core.handle(NodeUnreachable(N1), 60_000) == [QueryNode(N1, (TWO,))]
    assert core.handle(NodeAnswered(N1, (TWO,), (running(2),)), 60_010) == []


def test_an_orphan_is_stopped_when_its_node_answers_again() -> None:
    core = started(2, 3)
    core.handle(Resynced(), 0)
    given_up(core, 0)
    assert core.handle(Tick(), 20_000) == [QueryNode(N1, (TWO, THREE))], "it is still queried"
    assert core.handle(NodeAnswered(N1, (TWO, THREE), (running(3),)), 20_001) == [StopOrphan(THREE, N1)]
    assert core.handle(Tick(), 30_000) == [QueryNode(N1, (THREE,))]
    assert core.handle(NodeAnswered(N1, (THREE,), (ended(3, -105),)), 30_001) == []
    assert core.next_deadline_ms() is None


class World:
    """An RM that restarts, two nodes that are lost with their containers, and the AM's state and reconciliation."""

    def __init__(self) -> None:
        self.state = CheckedAMRMClientState()
        self.core = started(2, 3)
        self.reported: list[int] = []
        self.alive = {2: N1, 3: N1, 4: N2, 5: N2}
        self.ended: set[int] = set()
        self.known = set(self.alive)
        """The containers that the running RM knows."""
        self.up = {N1, N2}
        self.now_ms = 0
        self.deliver(allocated(4, 5, host="n2"))
        self.deliver(ContainerStarted(container_id(4)))
        self.deliver(ContainerStartFailed(container_id(5), "no answer, but it was started"))

    def deliver(self, news: ReconciliationEvent) -> None:
        for effect in self.core.handle(news, self.now_ms):
            match effect:
                case QueryNode(node, ids) if node in self.up:
                    runs = tuple(running(one.number) for one in ids if self.alive.get(one.number) == node)
                    self.deliver(NodeAnswered(node, ids, runs))
                case QueryNode(node, _):
                    self.deliver(NodeUnreachable(node))
                case MarkLost(statuses, release):
                    self.learn(self.state.mark_lost(statuses, release=release))
                case StopOrphan():
                    raise AssertionError("a silent node has been lost with its containers")

    def learn(self, events: list[Event]) -> None:
        for event in events:
            if isinstance(event, ContainersCompleted):
                self.reported += [status.container_id.number for status in event.statuses]
            self.deliver(event)

    def lose(self, node: NodeId) -> None:
        self.up.discard(node)
        self.ended |= {number for number, place in self.alive.items() if place == node}
        self.alive = {number: place for number, place in self.alive.items() if place != node}

    def restart(self) -> None:
        self.known = set()
        self.state.handle_not_registered()
        self.deliver(Resynced())

    def register(self) -> None:
        """The nodes register with the RM and report their containers."""
        self.known |= {number for number, place in self.alive.items() if place in self.up}

    def report(self) -> None:
        """The RM reports the ends that it knows."""
        response_id = self.state.next_request(0.0).response_id + 1
        self.learn(
            self.state.handle_reply(
                reply(response_id, completed=tuple(ended(one) for one in sorted(self.known & self.ended)))
            )
        )
        self.known -= self.ended

    def wait(self) -> None:
        self.now_ms += INTERVAL_MS
        self.deliver(Tick())


STEPS = {
    "n1 is lost": lambda world: world.lose(N1),
    "n2 is lost": lambda world: world.lose(N2),
    "n1 is restarted": lambda world: world.up.add(N1),
    "the RM restarts": World.restart,
    "nodes register": World.register,
    "the RM reports ends": World.report,
    "time passes": World.wait,
}


@given(st.lists(st.sampled_from(sorted(STEPS)), max_size=20))
def test_each_end_is_reported_once(steps: list[str]) -> None:
    world = World()
    for step in steps:
        STEPS[step](world)
    for _ in range(2 * CHECKS_PER_EXPIRY):
        world.wait()
    world.register()
    world.report()
    assert sorted(world.reported) == sorted(world.ended)
