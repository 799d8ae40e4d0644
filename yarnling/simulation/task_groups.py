"""The application of a simulated workload: it runs groups of tasks, each task once, in containers of its own.

A group is requested once the groups that it comes after have ended. A task whose container is lost or preempted is
requested again and runs from its start. A later attempt of the AM goes on with the tasks that have not ended, as
map-reduce's does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from am.core.actions import Action, Finish, Launch, ReleaseContainer, RequestContainer
from am.core.application import ApplicationCore
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
from yarn.containers import Container, ContainerLaunchContext
from yarn.ids import ContainerId
from yarn.resource import Resource, ResourceTypes, componentwise_min
from yarn.states import ContainerExitStatus, FinalApplicationStatus
from yarnling.workload.model import TaskGroup

TASK_RULE = "task"
"""The rule, and the command, of the containers of tasks."""
_LAUNCH_CONTEXT = ContainerLaunchContext((TASK_RULE,))


class PlannedTask(NamedTuple):
    """A task: its group and its position in it."""

    group: int
    number: int


class TaskWatch(Protocol):
    """Learns what the application requests and gets."""

    def requested(self, group: int, count: int) -> None:
        """Note that the AM requested `count` more containers of the group."""

    def allocated(self, group: int, container: Container) -> None:
        """Note that a container of the group was allocated and starts now."""

    def surplus(self) -> None:
        """Note a container that is released at once, because no task waits for it any more."""

    def ended(self, container_id: ContainerId, exit_status: int) -> None:
        """Note that the ResourceManager has reported the end of a task's container."""


class UnplacedTasks:
    """The tasks of a group without a container: those that lost theirs, the last one first, then the others in order.

    They take little memory, however many there are: all groups of a workload exist from the start.
    """

    __slots__ = ("_count", "_lost", "_next")

    def __init__(self, count: int) -> None:
        self._count = count
        self._next = 0
        self._lost: list[int] = []

    def __len__(self) -> int:
        return self._count - self._next + len(self._lost)

    def take(self) -> int:
        """Remove the first task; returns its number. There must be one."""
        if self._lost:
            return self._lost.pop()
        self._next += 1
        return self._next - 1

    def put_back(self, number: int) -> None:
        """Put a task that was taken before all others."""
        self._lost.append(number)


class TaskProgress:
    """The tasks of one application, across the attempts of its AM. `running`: by container. `total`: of all groups.

    `keys`: by which the ResourceManager keeps the requests of each group. `left`: how many tasks have not ended.
    `over`: so many groups, from the first one on, have ended. `start_ms`: what each task takes to start.
    """

    def __init__(self, groups: Sequence[TaskGroup], start_ms: Callable[[PlannedTask], int] = lambda _: 0) -> None:
        self.groups = groups
        self._start_ms = start_ms
        self.keys = request_keys(groups)
        self.waiting = [UnplacedTasks(len(group.durations_ms)) for group in groups]
        self.running: dict[ContainerId, PlannedTask] = {}
        self.total = self.left = sum(map(len, self.waiting))
        self.over = 0
        self._left_of = [len(waiting) for waiting in self.waiting]
        self._note_over()

    def duration_ms(self, container_id: ContainerId) -> int | None:
        """The time the task of this container runs; None if its AM has ended, and it is about to be stopped.

        A task that does nothing still takes a moment to start and to end.
        """
        task = self.running.get(container_id)
        return (
            None if task is None else max(1, self._start_ms(task) + self.groups[task.group].durations_ms[task.number])
        )

    def take(self, container_id: ContainerId, group: int) -> bool:
        """Give the container the next waiting task of the group; False if none waits."""
        if not self.waiting[group]:
            return False
        self.running[container_id] = PlannedTask(group, self.waiting[group].take())
        return True

    def end(self, container_id: ContainerId) -> None:
        """End the task of this container."""
        self.left -= 1
        self._left_of[self.running.pop(container_id).group] -= 1
        if not self.running:
            # An empty dict keeps the room of its former entries; this releases it.
            self.running.clear()
        self._note_over()

    def lose(self, container_id: ContainerId) -> int:
        """Put the task of this container back at the head of its group; returns the group."""
        task = self.running.pop(container_id)
        self.waiting[task.group].put_back(task.number)
        return task.group

    def lose_all(self) -> None:
        """Put the running tasks back for a new attempt; the last one's containers have ended or are being stopped."""
        for container_id in reversed(tuple(self.running)):
            self.lose(container_id)

    def _note_over(self) -> None:
        while self.over < len(self._left_of) and not self._left_of[self.over]:
            self.over += 1


def request_keys(groups: Sequence[TaskGroup]) -> list[RequestKey]:
    """The key of the requests of each group. Groups share one if they differ only in their hosts, as maps do.

    Those of one priority that differ in size or label get different allocation request ids: a key has one size.
    """
    ids: dict[int, dict[tuple[Resource, str], int]] = {}
    keys: list[RequestKey] = []
    for group in groups:
        of_priority = ids.setdefault(group.priority, {})
        keys.append(RequestKey(group.priority, of_priority.setdefault((group.resource, group.label), len(of_priority))))
    return keys


class TaskGroupsCore(ApplicationCore[Event, Action]):
    """An attempt of the application. It finishes when all tasks have ended, and not before `ends_ms`.

    `wake_at` is called with a time at which it must get a HeartbeatDone; it heeds no others.
    """

    def __init__(
        self,
        progress: TaskProgress,
        watch: TaskWatch,
        wake_at: Callable[[int], None],
        *,
        ends_ms: int = 0,
        check_invariants: bool = False,
    ) -> None:
        super().__init__(check_invariants=check_invariants)
        self._tasks = progress
        self._watch = watch
        self._wake_at = wake_at
        self._ends_ms = ends_ms
        self._requests: list[ContainerRequest | None] = [None] * len(progress.groups)
        self._groups_of: dict[ContainerRequest, list[int]] = {}
        self._opens_ms: dict[int, int | None] = dict.fromkeys(range(len(progress.groups)))
        self._maximum: Resource | None = None
        self._dispatcher.on(Registered, self._registered)
        self._dispatcher.on(ContainersAllocated, self._launch_all)
        self._dispatcher.on(ContainersCompleted, self._count_completed)
        self._dispatcher.on(ContainerStartFailed, self._start_failed)
        self._dispatcher.on(HeartbeatDone, lambda _: self._proceed())

    def progress(self) -> float:
        return 1 - self._tasks.left / self._tasks.total if self._tasks.total else 1.0

    @property
    def heeds_heartbeats(self) -> bool:
        return False

    def _registered(self, event: Registered) -> None:
        self._maximum = event.maximum_capability
        self._proceed()

    def _proceed(self) -> None:
        """Request the groups whose time has come; finish if nothing is left."""
        for group, opens_ms in list(self._opens_ms.items()):
            if opens_ms is None:
                opens_ms = self._opens_ms[group] = self._opening_ms(group)
                if opens_ms is not None and opens_ms > self.now_ms:
                    self._wake_at(opens_ms)
            if opens_ms is not None and opens_ms <= self.now_ms:
                del self._opens_ms[group]
                self._request(group, len(self._tasks.waiting[group]))
        if self._opens_ms or self._tasks.left:
            return
        if self.now_ms >= self._ends_ms:
            self._end(Finish(FinalApplicationStatus.SUCCEEDED))
        else:
            self._wake_at(self._ends_ms)

    def _opening_ms(self, group: int) -> int | None:
        """The time at which to request the group; None while it waits for others."""
        wanted = self._tasks.groups[group]
        if wanted.after is None or wanted.after < self._tasks.over:
            return self.now_ms + wanted.delay_ms
        return None

    def _request(self, group: int, count: int) -> None:
        request = self._requests[group]
        if request is None:
            request = self._requests[group] = self._request_of(group)
            self._groups_of.setdefault(request, []).append(group)
        for _ in range(count):
            self._dispatcher.emit(RequestContainer(request))
        if count:
            self._watch.requested(group, count)

    def _request_of(self, group: int) -> ContainerRequest:
        """The request of a task: its size at most the queue's maximum, and no hosts if it has a label."""
        wanted, key, maximum = self._tasks.groups[group], self._tasks.keys[group], self._maximum
        assert maximum is not None, "groups are requested after the registration"
        types = ResourceTypes(tuple(name for name, _ in maximum.extra))
        return ContainerRequest(
            componentwise_min(types.complete(wanted.resource), maximum),
            key.priority,
            nodes=() if wanted.label else wanted.hosts,
            label=wanted.label or None,
            allocation_request_id=key.allocation_request_id,
        )

    def _launch_all(self, event: ContainersAllocated) -> None:
        for allocation in event.allocations:
            self._dispatcher.emit(self._launch(allocation))

    def _launch(self, allocation: AllocatedContainer) -> Launch | ReleaseContainer:
        container, request = allocation.container, allocation.request
        groups = () if request is None else self._groups_of.get(request, ())
        for group in groups:
            if self._tasks.take(container.id, group):
                self._watch.allocated(group, container)
                return Launch(container, _LAUNCH_CONTEXT)
        self._watch.surplus()
        return ReleaseContainer(container.id)

    def _start_failed(self, event: ContainerStartFailed) -> None:
        if event.container_id in self._tasks.running:
            self._dispatcher.emit(ReleaseContainer(event.container_id))
            self._lose(event.container_id, ContainerExitStatus.ABORTED)

    def _count_completed(self, event: ContainersCompleted) -> None:
        over = self._tasks.over
        for status in event.statuses:
            if status.container_id not in self._tasks.running:
                continue
            if status.exit_status == ContainerExitStatus.SUCCESS:
                self._tasks.end(status.container_id)
                self._watch.ended(status.container_id, status.exit_status)
            else:
                self._lose(status.container_id, status.exit_status)
        if self._tasks.over != over:
            self._proceed()

    def _lose(self, container_id: ContainerId, exit_status: int) -> None:
        """Request another container for the task."""
        self._watch.ended(container_id, exit_status)
        self._request(self._tasks.lose(container_id), 1)
