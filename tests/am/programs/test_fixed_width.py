"""N equal containers with the rules of Hadoop's DistributedShell ApplicationMaster (protocol 8.1)."""

from __future__ import annotations

import pytest

from am.core.events import (
    Allocation,
    ContainersAllocated,
    ContainersCompleted,
    ContainersFromPreviousAttempts,
    ContainerStartFailed,
    Event,
    HeartbeatFailed,
    Registered,
    ShutdownOrdered,
)
from am.core.requests import ContainerRequest
from am.programs.core.actions import Action, AskFor, Finish, GiveBack, Launch, Leave, Withdraw
from am.programs.core.fixed_width import FixedWidth, Width
from tests.am.builders import GB, MB_512, container, container_id, ended
from yarn.containers import ContainerLaunchContext, ContainerStatus
from yarn.errors import YarnException
from yarn.resource import Resource
from yarn.states import FinalApplicationStatus

REQUEST = ContainerRequest(MB_512, priority=0)
REGISTERED = Registered(GB, "root.default")
SUCCEEDED = [Finish(FinalApplicationStatus.SUCCEEDED)]


def program(containers: int, size: Resource = MB_512) -> FixedWidth:
    return FixedWidth(Width(containers, size), lambda n: ContainerLaunchContext(commands=(f"echo {n}",)))


def registered(containers: int) -> FixedWidth:
    shell = program(containers)
    shell.handle(REGISTERED, 0)
    return shell


def allocate(shell: FixedWidth, *numbers: int) -> list[Action]:
    return shell.handle(ContainersAllocated(tuple(Allocation(container(n, priority=0), REQUEST) for n in numbers)), 0)


def complete(shell: FixedWidth, *statuses: ContainerStatus) -> list[Action]:
    return shell.handle(ContainersCompleted(statuses), 0)


def test_all_containers_are_asked_for_at_once() -> None:
    assert program(3).handle(REGISTERED, 0) == [AskFor(REQUEST)] * 3


def test_sizes_are_cut_to_the_queues_maximum() -> None:
    actions = program(1, Resource(4096, 8)).handle(Registered(Resource(1024, 2), "root.default"), 0)
    assert actions == [AskFor(ContainerRequest(Resource(1024, 2), priority=0))]


def test_an_exact_size_above_the_queues_maximum_ends_the_application() -> None:
    exact = FixedWidth(Width(1, Resource(4096, 1), exact=True), lambda n: ContainerLaunchContext())
    (finish,) = exact.handle(Registered(Resource(1024, 2), "root.s"), 0)
    assert isinstance(finish, Finish)
    assert (finish.final_status, finish.exit_code) == (FinalApplicationStatus.FAILED, 2)
    assert finish.diagnostics == (
        "containers of <memory:4096, vCores:1> are larger than root.s allows, <memory:1024, vCores:2> (ask for less)"
    )
    fits = FixedWidth(Width(1, MB_512, exact=True), lambda n: ContainerLaunchContext())
    assert fits.handle(REGISTERED, 0) == [AskFor(REQUEST)]


def test_each_container_is_started_with_its_own_number() -> None:
    launches = allocate(registered(2), 2, 3)
    assert [a.launch_context.commands for a in launches if isinstance(a, Launch)] == [("echo 1",), ("echo 2",)]


def test_surplus_containers_are_given_back() -> None:
    shell = registered(1)
    assert isinstance(allocate(shell, 2)[0], Launch)
    assert allocate(shell, 3) == [GiveBack(container_id(3))]
    assert complete(shell, ended(3, -100)) == []


def test_done_when_all_have_completed() -> None:
    shell = registered(2)
    allocate(shell, 2, 3)
    assert complete(shell, ended(2)) == []
    assert shell.progress() == 0.5
    assert complete(shell, ended(3)) == SUCCEEDED


def test_an_aborted_container_is_asked_for_again() -> None:
    """DistributedShell: -100 lowers `allocated` and `requested`; the missing one is asked for again."""
    shell = registered(1)
    allocate(shell, 2)
    assert complete(shell, ended(2, -100)) == [AskFor(REQUEST)]
    allocate(shell, 3)
    assert complete(shell, ended(3)) == SUCCEEDED


@pytest.mark.parametrize("exit_status", [1, 137, -102, -104])
def test_any_other_failure_counts_and_is_not_tried_again(exit_status: int) -> None:
    shell = registered(2)
    allocate(shell, 2, 3)
    assert complete(shell, ended(2, exit_status)) == []
    assert complete(shell, ended(3)) == [
        Finish(
            FinalApplicationStatus.FAILED,
            "Application Failure: desired = 2, completed = 2, allocated = 2, failed = 1",
            exit_code=2,
        )
    ]


def test_a_refused_start_counts_as_failed_once() -> None:
    shell = registered(2)
    allocate(shell, 2, 3)
    assert shell.handle(ContainerStartFailed(container_id(2), "no"), 0) == [GiveBack(container_id(2))]
    assert complete(shell, ended(2, -100)) == []
    assert isinstance(complete(shell, ended(3))[0], Finish)


def test_containers_of_an_earlier_attempt_take_the_place_of_asks() -> None:
    shell = registered(3)
    assert shell.handle(ContainersFromPreviousAttempts((container(2), container(3))), 0) == [Withdraw(REQUEST)] * 2
    allocate(shell, 4)
    assert complete(shell, ended(2), ended(3), ended(4)) == SUCCEEDED


def test_registering_again_asks_for_nothing_new() -> None:
    shell = registered(2)
    assert shell.handle(REGISTERED, 0) == []


@pytest.mark.parametrize("event", [ShutdownOrdered("gone"), HeartbeatFailed(YarnException("gone"))])
def test_without_the_rm_it_leaves_and_handles_nothing_more(event: Event) -> None:
    shell = registered(1)
    assert shell.handle(event, 0) == [Leave("gone")]
    assert allocate(shell, 2) == []
