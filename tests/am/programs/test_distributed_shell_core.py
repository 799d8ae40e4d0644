"""The core of the distributed shell follows the rules of Hadoop's DistributedShell ApplicationMaster."""

from __future__ import annotations

import pytest

from am.core.actions import Action, Finish, Launch, Leave, ReleaseContainer, RequestContainer, WithdrawRequest
from am.core.events import (
    AllocatedContainer,
    AllocateFailed,
    ContainersAllocated,
    ContainersCompleted,
    ContainersFromPreviousAttempts,
    ContainerStartFailed,
    Event,
    Registered,
    ShutdownOrdered,
)
from am.core.requests import ContainerRequest
from am.programs.distributed_shell.core import DistributedShellCore, Width
from tests.am.builders import GB, MB_512, container, container_id, ended
from yarn.containers import ContainerLaunchContext, ContainerStatus
from yarn.errors import YarnException
from yarn.resource import Resource
from yarn.states import FinalApplicationStatus

REQUEST = ContainerRequest(MB_512, priority=0)
REGISTERED = Registered(GB, "root.default")
SUCCEEDED = [Finish(FinalApplicationStatus.SUCCEEDED)]


def unregistered(containers: int, size: Resource = MB_512, *, exact: bool = False) -> DistributedShellCore:
    width = Width(containers, size, exact=exact)
    return DistributedShellCore(width, lambda n: ContainerLaunchContext(commands=(f"echo {n}",)), check_invariants=True)


def registered(containers: int) -> DistributedShellCore:
    shell = unregistered(containers)
    shell.handle(REGISTERED, 0)
    return shell


def allocate(shell: DistributedShellCore, *numbers: int) -> list[Action]:
    return shell.handle(
        ContainersAllocated(tuple(AllocatedContainer(container(n, priority=0), REQUEST) for n in numbers)), 0
    )


def complete(shell: DistributedShellCore, *statuses: ContainerStatus) -> list[Action]:
    return shell.handle(ContainersCompleted(statuses), 0)


def test_all_containers_are_requested_at_once() -> None:
    assert unregistered(3).handle(REGISTERED, 0) == [RequestContainer(REQUEST)] * 3


def test_sizes_are_cut_to_the_queues_maximum() -> None:
    actions = unregistered(1, Resource(4096, 8)).handle(Registered(Resource(1024, 2), "root.default"), 0)
    assert actions == [RequestContainer(ContainerRequest(Resource(1024, 2), priority=0))]


def test_an_exact_size_above_the_queues_maximum_fails_the_application() -> None:
    exact = unregistered(1, Resource(4096, 1), exact=True)
    (finish,) = exact.handle(Registered(Resource(1024, 2), "root.s"), 0)
    assert isinstance(finish, Finish)
    assert (finish.final_status, finish.exit_code) == (FinalApplicationStatus.FAILED, 2)
    assert finish.diagnostics == (
        "containers of <memory:4096, vCores:1> are larger than root.s allows, <memory:1024, vCores:2> (request less)"
    )
    fits = unregistered(1, exact=True)
    assert fits.handle(REGISTERED, 0) == [RequestContainer(REQUEST)]


def test_each_container_is_started_with_its_own_number() -> None:
    launches = allocate(registered(2), 2, 3)
    assert [a.launch_context.commands for a in launches if isinstance(a, Launch)] == [("echo 1",), ("echo 2",)]


def test_surplus_containers_are_released() -> None:
    shell = registered(1)
    assert isinstance(allocate(shell, 2)[0], Launch)
    assert allocate(shell, 3) == [ReleaseContainer(container_id(3))]
    assert complete(shell, ended(3, -100)) == []


def test_it_finishes_when_all_have_completed() -> None:
    shell = registered(2)
    allocate(shell, 2, 3)
    assert complete(shell, ended(2)) == []
    assert shell.progress() == 0.5
    assert complete(shell, ended(3)) == SUCCEEDED


def test_an_aborted_container_is_requested_again() -> None:
    """As in DistributedShell, -100 lowers `allocated` and `requested`, and the missing container is requested again."""
    shell = registered(1)
    allocate(shell, 2)
    assert complete(shell, ended(2, -100)) == [RequestContainer(REQUEST)]
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
    assert shell.handle(ContainerStartFailed(container_id(2), "no"), 0) == [ReleaseContainer(container_id(2))]
    assert complete(shell, ended(2, -100)) == []
    assert isinstance(complete(shell, ended(3))[0], Finish)


def test_containers_of_an_earlier_attempt_replace_requests() -> None:
    shell = registered(3)
    assert (
        shell.handle(ContainersFromPreviousAttempts((container(2), container(3))), 0) == [WithdrawRequest(REQUEST)] * 2
    )
    allocate(shell, 4)
    assert complete(shell, ended(2), ended(3), ended(4)) == SUCCEEDED


def test_containers_of_an_earlier_attempt_that_come_too_late_are_released() -> None:
    """A simulated run found it: the RM restarted, and a node reported its container after three others had started."""
    shell = registered(2)
    allocate(shell, 4, 5)
    assert shell.handle(ContainersFromPreviousAttempts((container(2),)), 0) == [ReleaseContainer(container_id(2))]
    assert complete(shell, ended(2)) == []
    assert complete(shell, ended(4), ended(5)) == SUCCEEDED


def test_a_repeated_registration_requests_nothing() -> None:
    shell = registered(2)
    assert shell.handle(REGISTERED, 0) == []


@pytest.mark.parametrize("event", [ShutdownOrdered("gone"), AllocateFailed(YarnException("gone"))])
def test_without_the_rm_it_exits_and_handles_nothing_more(event: Event) -> None:
    shell = registered(1)
    assert shell.handle(event, 0) == [Leave("gone")]
    assert allocate(shell, 2) == []
