"""EmulatedContainers: launches, signals and ends as events and effects, without a clock."""

from __future__ import annotations

import random

from nm.core.effects import LaunchContainer, ReacquireContainer, Signal, SignalProcess
from nm.core.emulated_containers import (
    STALE_ENDS_MAX,
    EmulatedContainers,
    EmulationEffect,
    EmulationEvent,
    FinishMaster,
    KillMaster,
    ProgramEnded,
    StartMaster,
)
from nm.core.emulation import EmulationStage, EmulationTable, Rule
from nm.core.events import ContainerExited, ContainerLaunched, LaunchCancelled
from tests.nm.nodes import container_id
from yarn.machine import Tick
from yarn.resource import Resource
from yarn.states import ContainerExitStatus

TABLE = EmulationTable(
    (
        Rule("short", stages=(EmulationStage(20),)),
        Rule("fails", stages=(EmulationStage(10, exit_code=3, exit_probability=1.0),)),
        Rule("master", stages=(EmulationStage(50),), registers=True),
        Rule("program", stages=(EmulationStage(None),)),
        Rule("slow", stages=(EmulationStage(100, exit_code=3, exit_probability=1.0),), after_term_ms=30),
        Rule("stubborn", stages=(EmulationStage(100),), after_term_ms=None),
        Rule("slow-master", stages=(EmulationStage(100),), registers=True, after_term_ms=30),
    )
)


class Node:
    def __init__(self) -> None:
        self.containers = EmulatedContainers(TABLE, lambda seed: random.Random(seed).random)
        self.now_ms = 1000

    def take(self, event: EmulationEvent) -> list[EmulationEffect]:
        return self.containers.handle(event, self.now_ms)

    def wait(self) -> tuple[int, list[EmulationEffect]]:
        deadline_ms = self.containers.next_deadline_ms()
        assert deadline_ms is not None, "nothing is planned"
        waited_ms, self.now_ms = deadline_ms - self.now_ms, deadline_ms
        return waited_ms, self.take(Tick())


def launch(number: int, rule: str, count: int = 1) -> LaunchContainer:
    return LaunchContainer(container_id(number), count, "ann", (), {}, {}, "", Resource(100, 1), rule)


def signal(number: int, signal: Signal, count: int = 1) -> SignalProcess:
    return SignalProcess(container_id(number), count, signal)


def launched(number: int) -> ContainerLaunched:
    return ContainerLaunched(container_id(number), 1)


def exited(number: int, code: int) -> ContainerExited:
    return ContainerExited(container_id(number), 1, code)


def test_containers_are_launched_in_the_next_step_and_end_in_the_order_of_their_times() -> None:
    node = Node()
    assert node.take(launch(1, "short")) == []
    assert node.take(launch(2, "fails")) == []
    assert node.wait() == (0, [launched(1), launched(2)])
    assert node.wait() == (10, [exited(2, 3)])
    assert node.wait() == (10, [exited(1, 0)])
    assert node.containers.next_deadline_ms() is None


def test_a_signal_before_the_launch_cancels_it_and_after_it_ends_the_container_once() -> None:
    node = Node()
    node.take(launch(1, "short"))
    node.take(signal(1, Signal.TERM))
    assert node.wait() == (0, [LaunchCancelled(container_id(1), 1)])
    node.take(launch(2, "short"))
    node.wait()
    node.take(signal(2, Signal.TERM))
    node.take(signal(2, Signal.KILL))
    assert node.wait() == (0, [exited(2, 143)])
    assert node.wait() == (20, [])


def test_a_master_whose_stages_are_over_unregisters_and_ends_by_itself() -> None:
    node = Node()
    node.take(launch(1, "master"))
    assert node.wait() == (0, [launched(1), StartMaster(launch(1, "master"))])
    assert node.wait() == (50, [FinishMaster(container_id(1))])
    assert node.take(ProgramEnded(container_id(1), 1, 0)) == [exited(1, 0)]


def test_a_killed_master_is_ended_first() -> None:
    node = Node()
    node.take(launch(1, "master"))
    node.wait()
    node.take(signal(1, Signal.KILL))
    assert node.wait() == (0, [KillMaster(container_id(1)), exited(1, 137)])


def test_a_program_ends_its_container_unless_it_is_that_of_an_earlier_launch() -> None:
    node = Node()
    node.take(launch(1, "program"))
    node.wait()
    assert node.containers.next_deadline_ms() is None
    assert node.take(ProgramEnded(container_id(1), 2, 0)) == []
    assert node.take(ProgramEnded(container_id(1), 1, 7)) == [exited(1, 7)]
    assert node.take(ProgramEnded(container_id(1), 1, 7)) == []


# Containers that take a while to exit after SIGTERM


def running(rule: str) -> Node:
    """A node on which container 1 runs, by that rule, since 1000 ms."""
    node = Node()
    node.take(launch(1, rule))
    node.wait()
    return node


def test_a_container_exits_so_long_after_the_first_sigterm() -> None:
    node = running("slow")
    node.now_ms += 20
    assert node.take(signal(1, Signal.TERM)) == []
    node.now_ms += 10
    assert node.take(signal(1, Signal.TERM)) == []
    assert node.wait() == (20, [exited(1, 143)])
    assert node.wait() == (50, []), "the end of its stages no longer applies"
    assert node.containers.next_deadline_ms() is None


def test_its_stages_may_end_before_that() -> None:
    node = running("slow")
    node.now_ms += 80
    node.take(signal(1, Signal.TERM))
    assert node.wait() == (20, [exited(1, 3)])
    assert node.containers.next_deadline_ms() is None


def test_sigkill_ends_it_meanwhile() -> None:
    node = running("slow")
    node.take(signal(1, Signal.TERM))
    node.now_ms += 10
    node.take(signal(1, Signal.KILL))
    assert node.wait() == (0, [exited(1, 137)])
    assert node.wait() == (20, [])


def test_a_container_that_ignores_sigterm_ends_by_itself_or_by_sigkill() -> None:
    node = running("stubborn")
    node.take(signal(1, Signal.TERM))
    assert node.wait() == (100, [exited(1, 0)])
    node.take(launch(2, "stubborn"))
    node.wait()
    node.take(signal(2, Signal.TERM))
    node.take(signal(2, Signal.KILL))
    assert node.wait() == (0, [exited(2, 137)])


def test_a_master_that_exits_after_sigterm_does_not_unregister() -> None:
    node = running("slow-master")
    node.take(signal(1, Signal.TERM))
    assert node.wait() == (30, [KillMaster(container_id(1)), exited(1, 143)])


def test_ends_that_no_longer_apply_do_not_fill_the_heap() -> None:
    node = Node()
    for number in range(1, 3 * STALE_ENDS_MAX):
        node.take(launch(number, "slow"))
        node.wait()
        node.take(signal(number, Signal.TERM))
        node.take(signal(number, Signal.KILL))
        node.wait()
    assert len(node.containers._ends) <= STALE_ENDS_MAX + 2


def test_a_container_of_an_earlier_node_manager_goes_on_where_it_was() -> None:
    node = Node()
    node.take(ReacquireContainer(launch(1, "short"), 15))
    assert node.wait() == (0, [launched(1)])
    assert node.wait() == (5, [ContainerExited(container_id(1), 1, 0)])


def test_a_container_whose_time_was_over_meanwhile_ends_at_once() -> None:
    node = Node()
    node.take(ReacquireContainer(launch(1, "short"), 500))
    assert node.wait()[1] == [launched(1), ContainerExited(container_id(1), 1, 0)]


def test_an_am_of_an_earlier_node_manager_is_lost() -> None:
    node = Node()
    node.take(ReacquireContainer(launch(1, "master"), 15))
    assert node.wait()[1] == [launched(1), ContainerExited(container_id(1), 1, ContainerExitStatus.LOST)]
    assert not node.containers.has(container_id(1))
