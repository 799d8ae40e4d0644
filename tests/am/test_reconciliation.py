"""What runs after a restart of the RM: events of the RM and of NMs in, questions and ends out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from am.core.ask_book import AskBook
from am.core.events import (
    Allocation,
    ContainersAllocated,
    ContainersCompleted,
    ContainersFromPreviousAttempts,
    ContainerStarted,
    ContainerStartFailed,
    Event,
    Resynced,
)
from am.core.reconciliation import (
    ASKS_AN_EXPIRY,
    AskNode,
    Effect,
    News,
    NodeAnswered,
    NodeSilent,
    Reconciliation,
    StopStray,
    TakeAsEnded,
    Tick,
)
from tests.am.builders import container, container_id, ended, node_id, reply
from yarn.containers import ContainerStatus
from yarn.ids import NodeId
from yarn.states import ContainerExitStatus, ContainerState

EXPIRY_MS = 4000
INTERVAL_MS = 1000
N1, N2 = node_id("n1"), node_id("n2")
TWO, THREE = container_id(2), container_id(3)


def allocated(*numbers: int, host: str = "n1") -> Event:
    return ContainersAllocated(tuple(Allocation(container(number, host), None) for number in numbers))


def running(number: int) -> ContainerStatus:
    return ContainerStatus(container_id(number), ContainerState.RUNNING)


def started(*numbers: int, host: str = "n1") -> Reconciliation:
    """One that knows of these containers, which run."""
    core = Reconciliation(EXPIRY_MS)
    assert core.handle(allocated(*numbers, host=host), 0) == []
    for number in numbers:
        assert core.handle(ContainerStarted(container_id(number)), 0) == []
    assert core.next_deadline_ms() is None
    return core


def given_up(core: Reconciliation, from_ms: int) -> list[Effect]:
    """What comes of n1's silence for an expiry."""
    effects: list[Effect] = []
    for at_ms in range(from_ms, from_ms + EXPIRY_MS + 1, INTERVAL_MS):
        effects += core.handle(Tick(), at_ms)
        effects += core.handle(NodeSilent(N1), at_ms)
    return [effect for effect in effects if not isinstance(effect, AskNode)]


def test_nobody_is_asked_while_the_rm_lives() -> None:
    core = started(2, 3)
    assert core.handle(Tick(), 10_000_000) == []
    assert core.next_deadline_ms() is None


def test_after_a_resync_each_node_is_asked_once_after_all_that_runs_there() -> None:
    core = started(2, 3)
    core.handle(allocated(4, host="n2"), 0)
    core.handle(ContainerStarted(container_id(4)), 0)
    assert core.handle(Resynced(), 5) == [AskNode(N1, (TWO, THREE)), AskNode(N2, (container_id(4),))]
    assert core.handle(Tick(), 60_000) == []
    assert core.next_deadline_ms() is None


def test_what_its_node_does_not_have_was_lost_and_what_is_complete_ended_as_it_says() -> None:
    core = started(2, 3)
    core.handle(Resynced(), 5)
    (effect,) = core.handle(NodeAnswered(N1, (TWO, THREE), (ended(3, 7),)), 9)
    assert isinstance(effect, TakeAsEnded)
    assert not effect.give_back
    lost, failed = effect.statuses
    assert (lost.container_id, lost.exit_status, lost.state) == (
        TWO,
        ContainerExitStatus.ABORTED,
        ContainerState.COMPLETE,
    )
    assert failed == ended(3, 7)
    assert core.next_deadline_ms() is None
    assert core.handle(NodeAnswered(N1, (TWO, THREE), ()), 10) == []


def test_what_runs_is_asked_after_again_until_it_ends() -> None:
    """A node may go after it has answered, and before it has registered with the new RM."""
    core = started(2)
    core.handle(Resynced(), 0)
    assert core.handle(NodeAnswered(N1, (TWO,), (running(2),)), 10) == []
    assert core.next_deadline_ms() == INTERVAL_MS
    assert core.handle(Tick(), INTERVAL_MS - 1) == []
    assert core.handle(Tick(), INTERVAL_MS) == [AskNode(N1, (TWO,))]
    core.handle(ContainersCompleted((ended(2),)), INTERVAL_MS + 1)
    assert core.handle(NodeAnswered(N1, (TWO,), ()), INTERVAL_MS + 2) == []
    assert core.next_deadline_ms() is None


def test_a_start_that_is_under_way_is_left_to_itself_until_it_is_over() -> None:
    core = Reconciliation(EXPIRY_MS)
    core.handle(allocated(2, 3), 0)
    assert core.handle(Resynced(), 5) == []
    assert core.handle(ContainerStarted(TWO), 7) == [AskNode(N1, (TWO,))]
    assert core.handle(ContainerStartFailed(THREE, "no"), 8) == []
    core.handle(NodeAnswered(N1, (TWO,), (running(2),)), 9)
    assert core.handle(Tick(), 8000) == [AskNode(N1, (TWO,))]


def test_what_the_new_rm_gave_is_its_to_tell() -> None:
    core = started(2)
    core.handle(Resynced(), 5)
    core.handle(allocated(3), 6)
    core.handle(ContainerStarted(THREE), 7)
    core.handle(NodeAnswered(N1, (TWO,), (running(2),)), 8)
    assert core.handle(Tick(), 5000) == [AskNode(N1, (TWO,))]
    core.handle(NodeAnswered(N1, (TWO,), (running(2),)), 5001)
    assert core.handle(Resynced(), 5002) == [AskNode(N1, (TWO, THREE))], "until it has gone too"


def test_containers_of_an_earlier_attempt_are_asked_after_too() -> None:
    core = Reconciliation(EXPIRY_MS)
    core.handle(ContainersFromPreviousAttempts((container(2),)), 0)
    assert core.handle(Resynced(), 5) == [AskNode(N1, (TWO,))]


def test_a_node_that_is_silent_for_an_expiry_is_lost_with_all_it_had() -> None:
    core = started(2, 3)
    core.handle(Resynced(), 0)
    (effect,) = given_up(core, 0)
    assert isinstance(effect, TakeAsEnded)
    assert effect.give_back
    assert [(one.container_id, one.exit_status) for one in effect.statuses] == [(TWO, -100), (THREE, -100)]
    assert given_up(core, 10_000) == [], "told once"


def test_an_answer_ends_the_silence() -> None:
    core = started(2)
    core.handle(Resynced(), 0)
    for at_ms in range(0, EXPIRY_MS, INTERVAL_MS):
        assert core.handle(NodeSilent(N1), at_ms) == []
        core.handle(Tick(), at_ms + INTERVAL_MS)
    assert core.handle(NodeAnswered(N1, (TWO,), (running(2),)), EXPIRY_MS - 1) == []
    core.handle(Tick(), EXPIRY_MS + INTERVAL_MS)
    assert core.handle(NodeSilent(N1), EXPIRY_MS + INTERVAL_MS) == []


def test_a_resync_ends_the_silence_too() -> None:
    core = started(2)
    core.handle(Resynced(), 0)
    core.handle(NodeSilent(N1), 500)
    core.handle(Resynced(), EXPIRY_MS)
    for at_ms in (EXPIRY_MS, EXPIRY_MS + INTERVAL_MS):
        assert core.handle(NodeSilent(N1), at_ms) == []
        core.handle(Tick(), at_ms + INTERVAL_MS)


def test_a_master_that_was_stopped_itself_takes_nobody_for_silent() -> None:
    """It wakes up to one question that is long unanswered."""
    core = started(2)
    core.handle(Resynced(), 0)
    assert core.handle(NodeSilent(N1), 60_000) == [AskNode(N1, (TWO,))]
    assert core.handle(NodeAnswered(N1, (TWO,), (running(2),)), 60_010) == []


def test_what_was_given_up_is_stopped_when_its_node_answers_again() -> None:
    core = started(2, 3)
    core.handle(Resynced(), 0)
    given_up(core, 0)
    assert core.handle(Tick(), 20_000) == [AskNode(N1, (TWO, THREE))], "it is asked on"
    assert core.handle(NodeAnswered(N1, (TWO, THREE), (running(3),)), 20_001) == [StopStray(THREE, N1)]
    assert core.handle(Tick(), 30_000) == [AskNode(N1, (THREE,))]
    assert core.handle(NodeAnswered(N1, (THREE,), (ended(3, -105),)), 30_001) == []
    assert core.next_deadline_ms() is None


class World:
    """An RM that restarts, two nodes that die with what they run, and an AM's side: its book and its questions."""

    def __init__(self) -> None:
        self.book = AskBook()
        self.core = started(2, 3)
        self.told: list[int] = []
        self.alive = {2: N1, 3: N1, 4: N2, 5: N2}
        self.ended: set[int] = set()
        self.known = set(self.alive)
        """To the RM that runs."""
        self.up = {N1, N2}
        self.now_ms = 0
        self.hear(allocated(4, 5, host="n2"))
        for number in (4, 5):
            self.hear(ContainerStarted(container_id(number)))

    def hear(self, news: News) -> None:
        for effect in self.core.handle(news, self.now_ms):
            match effect:
                case AskNode(node, ids) if node in self.up:
                    runs = tuple(running(one.number) for one in ids if self.alive.get(one.number) == node)
                    self.hear(NodeAnswered(node, ids, runs))
                case AskNode(node, _):
                    self.hear(NodeSilent(node))
                case TakeAsEnded(statuses, give_back):
                    self.learn(self.book.take_as_ended(statuses, give_back=give_back))
                case StopStray():
                    raise AssertionError("a node that is silent here has gone with all it had")

    def learn(self, events: list[Event]) -> None:
        for event in events:
            if isinstance(event, ContainersCompleted):
                self.told += [status.container_id.number for status in event.statuses]
            self.hear(event)

    def die(self, node: NodeId) -> None:
        self.up.discard(node)
        self.ended |= {number for number, place in self.alive.items() if place == node}
        self.alive = {number: place for number, place in self.alive.items() if place != node}

    def restart(self) -> None:
        self.known = set()
        self.book.handle_not_registered()
        self.hear(Resynced())

    def register(self) -> None:
        """The nodes that are there tell the RM what they have."""
        self.known |= {number for number, place in self.alive.items() if place in self.up}

    def tell(self) -> None:
        """The RM tells the ends that it knows of."""
        self.book.next_request(0.0)
        self.learn(
            self.book.handle_reply(reply(completed=tuple(ended(one) for one in sorted(self.known & self.ended))))
        )
        self.known -= self.ended

    def wait(self) -> None:
        self.now_ms += INTERVAL_MS
        self.hear(Tick())


STEPS = {
    "n1 dies": lambda world: world.die(N1),
    "n2 dies": lambda world: world.die(N2),
    "n1 is another one": lambda world: world.up.add(N1),
    "the RM restarts": World.restart,
    "nodes register": World.register,
    "the RM tells": World.tell,
    "time": World.wait,
}


@given(st.lists(st.sampled_from(sorted(STEPS)), max_size=20))
def test_each_end_is_told_once_whoever_dies_when(steps: list[str]) -> None:
    world = World()
    for step in steps:
        STEPS[step](world)
    for _ in range(2 * ASKS_AN_EXPIRY):
        world.wait()
    world.register()
    world.tell()
    assert sorted(world.told) == sorted(world.ended)
