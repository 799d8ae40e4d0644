"""The application of a simulated workload, core alone: what it requests, launches, repeats, and when it finishes."""

from __future__ import annotations

from am.core.actions import Action, Finish, Launch, ReleaseContainer, RequestContainer
from am.core.events import (
    AllocatedContainer,
    ContainersAllocated,
    ContainersCompleted,
    ContainerStartFailed,
    Event,
    HeartbeatDone,
    Registered,
)
from am.core.requests import ContainerRequest, RequestKey
from yarn.containers import Container, ContainerStatus
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.resource import NONE, Resource
from yarn.states import ContainerExitStatus, ContainerState
from yarnling.simulation.task_groups import TaskGroupsCore, TaskProgress, request_keys
from yarnling.workload.model import TaskGroup

GB = Resource(1024, 1)
MAXIMUM = Resource(8192, 8)


class Watch:
    """Notes what is reported to it."""

    def __init__(self) -> None:
        self.requests: list[tuple[int, int]] = []
        self.ends: list[int] = []
        self.surplus_count = 0

    def requested(self, group: int, count: int) -> None:
        self.requests.append((group, count))

    def allocated(self, group: int, container: Container) -> None:
        pass

    def surplus(self) -> None:
        self.surplus_count += 1

    def ended(self, container_id: ContainerId, exit_status: int) -> None:
        self.ends.append(exit_status)


class Driver:
    """An application with its core, to which tests send events. `wakes`: the times at which it wants to be woken."""

    def __init__(self, *groups: TaskGroup, ends_ms: int = 0) -> None:
        self.progress, self.watch, self.wakes = TaskProgress(groups), Watch(), list[int]()
        self.now_ms = 0
        self.ends_ms = ends_ms
        self._containers = 0
        self.attempt(1)

    def attempt(self, number: int) -> None:
        attempt_id = ApplicationAttemptId(ApplicationId(1, 1), number)
        self.attempt_id = attempt_id
        self.core = TaskGroupsCore(
            self.progress, self.watch, self.wakes.append, ends_ms=self.ends_ms, check_invariants=True
        )

    def send(self, event: Event) -> list[Action]:
        return list(self.core.handle(event, self.now_ms))

    def register(self) -> list[Action]:
        return self.send(Registered(MAXIMUM, "root.default"))

    def allocate(self, request: ContainerRequest, host: str = "h1") -> tuple[ContainerId, list[Action]]:
        self._containers += 1
        container_id = ContainerId(self.attempt_id, self._containers)
        container = Container(container_id, NodeId(host, 1), "", request.capability, request.priority)
        return container_id, self.send(ContainersAllocated((AllocatedContainer(container, request),)))

    def end(self, container_id: ContainerId, exit_status: int = 0) -> list[Action]:
        status = ContainerStatus(container_id, ContainerState.COMPLETE, exit_status, "")
        return self.send(ContainersCompleted((status,)))


def requests_of(actions: list[Action]) -> list[ContainerRequest]:
    return [action.request for action in actions if isinstance(action, RequestContainer)]


def test_it_finishes_when_all_tasks_have_ended() -> None:
    driver = Driver(TaskGroup(GB, (10, 20)))
    requests = requests_of(driver.register())
    assert len(requests) == 2
    first, launched = driver.allocate(requests[0])
    assert isinstance(launched[0], Launch)
    assert driver.progress.duration_ms(first) == 10
    second, _ = driver.allocate(requests[1])
    assert driver.progress.duration_ms(second) == 20
    assert driver.end(first) == []
    (finish,) = driver.end(second)
    assert isinstance(finish, Finish)


def test_a_container_too_many_is_released() -> None:
    driver = Driver(TaskGroup(GB, (10,)))
    (request,) = requests_of(driver.register())
    driver.allocate(request)
    _, (released,) = driver.allocate(request)
    assert isinstance(released, ReleaseContainer)


def test_a_preempted_task_is_requested_again_and_runs_from_its_start() -> None:
    driver = Driver(TaskGroup(GB, (10, 20)))
    requests = requests_of(driver.register())
    first, _ = driver.allocate(requests[0])
    again = requests_of(driver.end(first, ContainerExitStatus.PREEMPTED))
    assert again == [requests[0]]
    second, _ = driver.allocate(again[0])
    assert driver.progress.duration_ms(second) == 10
    assert driver.watch.ends == [ContainerExitStatus.PREEMPTED]
    assert driver.watch.requests == [(0, 2), (0, 1)]


def test_a_container_that_does_not_start_is_released_and_requested_again() -> None:
    driver = Driver(TaskGroup(GB, (10,)))
    (request,) = requests_of(driver.register())
    container_id, _ = driver.allocate(request)
    released, again = driver.send(ContainerStartFailed(container_id, "refused"))
    assert released == ReleaseContainer(container_id)
    assert again == RequestContainer(request)


def test_a_group_waits_for_all_groups_up_to_another_one_and_for_its_delay() -> None:
    driver = Driver(TaskGroup(GB, (1,)), TaskGroup(GB, (1,)), TaskGroup(GB, (1,), after=1, delay_ms=500))
    requests = requests_of(driver.register())
    assert len(requests) == 2
    ids = [driver.allocate(request)[0] for request in requests]
    driver.now_ms = 1000
    assert driver.end(ids[1]) == []
    assert driver.end(ids[0]) == []
    assert driver.wakes == [1500]
    driver.now_ms = 1500
    assert len(requests_of(driver.send(HeartbeatDone(NONE, 1)))) == 1


def test_it_lasts_until_its_end() -> None:
    driver = Driver(ends_ms=2000)
    assert driver.register() == []
    assert driver.wakes == [2000]
    driver.now_ms = 2000
    (finish,) = driver.send(HeartbeatDone(NONE, 1))
    assert isinstance(finish, Finish)


def test_a_later_attempt_goes_on_with_the_tasks_that_are_left() -> None:
    driver = Driver(TaskGroup(GB, (10, 20, 30)))
    requests = requests_of(driver.register())
    ended, _ = driver.allocate(requests[0])
    driver.allocate(requests[1])
    driver.end(ended)
    driver.progress.lose_all()
    driver.attempt(2)
    requests = requests_of(driver.register())
    assert len(requests) == 2
    container_id, _ = driver.allocate(requests[0])
    assert driver.progress.duration_ms(container_id) == 20


def test_requests_share_a_key_unless_their_sizes_or_labels_differ() -> None:
    groups = (
        TaskGroup(GB, (1,), hosts=("h1",)),
        TaskGroup(GB, (1,), hosts=("h2",)),
        TaskGroup(Resource(2048, 1), (1,)),
        TaskGroup(GB, (1,), label="gpu"),
        TaskGroup(GB, (1,), priority=10),
    )
    assert request_keys(groups) == [RequestKey(20, 0), RequestKey(20, 0), *(RequestKey(20, n) for n in (1, 2)), (10, 0)]


def test_containers_go_to_the_group_whose_hosts_were_wanted() -> None:
    driver = Driver(TaskGroup(GB, (10,), hosts=("h1",)), TaskGroup(GB, (20,), hosts=("h2",)))
    first, second = requests_of(driver.register())
    assert (first.nodes, second.nodes) == (("h1",), ("h2",))
    container_id, _ = driver.allocate(second, "h2")
    assert driver.progress.duration_ms(container_id) == 20


def test_a_size_above_the_maximum_is_cut() -> None:
    (request,) = requests_of(Driver(TaskGroup(Resource(99_999, 1), (1,))).register())
    assert request.capability == Resource(8192, 1)
