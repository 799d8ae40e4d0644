"""An ApplicationMaster of one's own for a job of numbered tasks: callbacks that request and start containers.

    def registered(self) -> None:
        for _ in self.missing():
            self.request()

A job is done when each of its tasks is confirmed. A container runs one task; it has done it if it exits with 0. What is
confirmed is kept in a journal outside the AM, which the next attempt gets if an AM fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, TypeVar

from msgspec import Struct

from am.core.actions import Action, Finish, Launch, Leave, ReleaseContainer, RequestContainer, WithdrawRequest
from am.core.events import (
    AllocateFailed,
    ContainersAllocated,
    ContainersCompleted,
    ContainerStarted,
    ContainerStartFailed,
    Event,
    HeartbeatDone,
    Registered,
    ShutdownOrdered,
)
from am.core.requests import ContainerRequest
from yarn.containers import Container, ContainerLaunchContext
from yarn.errors import YarnException
from yarn.ids import ContainerId
from yarn.resource import Resource
from yarn.states import FinalApplicationStatus

ACTIONS_MAX = 10_000
"""The calls that one callback may make, so that a loop without an end is reported."""
EXIT_FAILED = 2
"""The AM's exit code if it gives up."""
TASK_NUMBER = "TASK_NUMBER"
"""The environment variable in which a container finds the number of its task."""


Result = TypeVar("Result")


class MasterMistake(YarnException):
    """A callback of a TaskMaster raised an exception, or made a call that is not possible."""


class Confirm(Struct, frozen=True):
    """Write into the journal that a task is done. `was_known`: the AM knew that it was confirmed before."""

    task: int
    was_known: bool


@dataclass(slots=True)
class MasterDesk:
    """The state behind the calls of a TaskMaster, which only the application that runs it changes.

    `held`: containers that were allocated and neither ended nor were released. `hosts` has released ones, too, until
    they end. `calls`: those of the callback that runs now.
    """

    request: ContainerRequest = ContainerRequest(Resource(128, 1), priority=0)
    launch_context_of: Callable[[int], ContainerLaunchContext] = lambda task: ContainerLaunchContext()
    held: dict[ContainerId, Container] = field(default_factory=dict[ContainerId, Container])
    hosts: dict[ContainerId, str] = field(default_factory=dict[ContainerId, str])
    started: set[ContainerId] = field(default_factory=set[ContainerId])
    calls: list[Action | Confirm] = field(default_factory=list[Action | Confirm])

    def note(self, call: Action | Confirm) -> None:
        """Note a call of a callback. Raises MasterMistake if there are too many."""
        if len(self.calls) == ACTIONS_MAX:
            raise MasterMistake(f"more than {ACTIONS_MAX} calls in one callback: a loop without an end?")
        self.calls.append(call)


class TaskMaster:
    """The base class of an AM of one's own. Override callbacks; they call `request`, `start`, `confirm` and so on.

    `tasks`: the numbers of all tasks, from 1. `confirmed`: those that are confirmed, by this attempt or, when the
    attempt started, by earlier ones.

    Calls take effect after the callback, in their order. A callback must return at once, and may read no clock and no
    file: the same events must lead to the same calls. An exception ends the AM, and the next attempt starts.
    """

    def __init__(self, tasks: int, confirmed: Iterable[int] = ()) -> None:
        self.tasks = tuple(range(1, tasks + 1))
        self.confirmed = set(confirmed)
        self.desk = MasterDesk()

    def registered(self) -> None:
        """The ResourceManager has registered this attempt: the first callback of each attempt."""

    def allocated(self, container: ContainerId) -> None:
        """The ResourceManager gives a container, perhaps one more than requested. Start a task in it or release it."""

    def started(self, container: ContainerId) -> None:
        """The NodeManager has accepted the start of the container."""

    def start_failed(self, container: ContainerId, reason: str) -> None:
        """The NodeManager refused to start the container or did not answer. It stays allocated until it is released."""

    def ended(self, container: ContainerId, exit_status: int, diagnostics: str) -> None:
        """A container has ended, also one that was released, or whose node was lost.

        `exit_status`: 0 if it has done its task; negative if YARN ended it (-100: released, or its node was lost).
        """

    def heartbeat(self, now_ms: int) -> None:
        """A heartbeat to the ResourceManager was answered, and all that it brought was handled."""

    def missing(self) -> list[int]:
        """The tasks that are not confirmed."""
        return [task for task in self.tasks if task not in self.confirmed]

    def host_of(self, container: ContainerId) -> str:
        """The host of a container that was allocated and has not ended; "" for others."""
        return self.desk.hosts.get(container, "")

    def request(self) -> None:
        """Request one more container."""
        self.desk.note(RequestContainer(self.desk.request))

    def withdraw(self) -> None:
        """Withdraw one request; no effect if a container was allocated for it already."""
        self.desk.note(WithdrawRequest(self.desk.request))

    def start(self, container: ContainerId, task: int) -> None:
        """Start a task in a container; `started`, `start_failed` or `ended` follows."""
        self._check_task("start(container, task)", task)
        if container not in self.desk.held:
            raise MasterMistake(f"start({container}, {task}): this container is not held (it has ended, was released)")
        if container in self.desk.started:
            raise MasterMistake(f"start({container}, {task}): this container was started before")
        self.desk.started.add(container)
        self.desk.note(Launch(self.desk.held[container], self.desk.launch_context_of(task)))

    def release(self, container: ContainerId) -> None:
        """Give a container back; what runs in it is stopped. No effect if it has ended."""
        if self.desk.held.pop(container, None) is not None:
            self.desk.note(ReleaseContainer(container))

    def confirm(self, task: int) -> None:
        """Write into the journal that a task is done."""
        self._check_task("confirm(task)", task)
        self.desk.note(Confirm(task, task in self.confirmed))
        self.confirmed.add(task)

    def finish(self) -> None:
        """End the job: it has succeeded. No callback follows."""
        self.desk.note(Finish(FinalApplicationStatus.SUCCEEDED))

    def fail(self, reason: str) -> None:
        """End the job: it has failed. No callback follows."""
        self.desk.note(Finish(FinalApplicationStatus.FAILED, reason, EXIT_FAILED))

    def _check_task(self, call: str, task: object) -> None:
        if not isinstance(task, int):
            raise MasterMistake(f"{call}: a task is a number, not a {type(task).__name__}")
        if not 1 <= task <= len(self.tasks):
            raise MasterMistake(f"{call}: there is no task {task!r} (tasks are 1 to {len(self.tasks)})")


class Journal(Protocol):
    """The journal of a job, as one attempt uses it."""

    def confirmed(self) -> frozenset[int]:
        """The tasks that are confirmed so far."""
        ...

    def confirm(self, task: int, *, was_known: bool) -> None:
        """Write that a task is done."""
        ...

    def finish(self, held: Sequence[ContainerId]) -> None:
        """Write that the AM has ended the job, while it held these containers."""
        ...


class TaskMasterApplication:
    """Runs a TaskMaster as an application (am.core.actions.Application).

    `launch_context_of` makes the launch context of a task's container. Raises MasterMistake if a callback fails, with
    the callback and the line of `source`, the name of the AM's file.
    """

    def __init__(
        self,
        make_master: Callable[[int, frozenset[int]], TaskMaster],
        tasks: int,
        capability: Resource,
        launch_context_of: Callable[[int], ContainerLaunchContext],
        journal: Journal,
        *,
        source: str = "",
    ) -> None:
        self._journal = journal
        self._source = source
        self._master = self._guarded(lambda: make_master(tasks, journal.confirmed()))
        master = self._master
        master.desk.launch_context_of = launch_context_of
        master.desk.request = ContainerRequest(capability, priority=0)
        self._is_over = False

    @property
    def heeds_heartbeats(self) -> bool:
        return True

    def progress(self) -> float:
        return len(self._master.confirmed) / len(self._master.tasks)

    def handle(self, event: Event, now_ms: int) -> list[Action]:
        """Handle one event with the callbacks for it, and return their actions."""
        actions: list[Action] = []
        for callback in self._callbacks(event, now_ms):
            self._guarded(callback)
            for call in self._take_calls():
                if self._is_over:
                    return actions
                if isinstance(call, Confirm):
                    self._journal.confirm(call.task, was_known=call.was_known)
                    continue
                if isinstance(call, Finish):
                    self._journal.finish(sorted(self._master.desk.held))
                actions.append(call)
                self._is_over = isinstance(call, Finish)
        if isinstance(event, ShutdownOrdered | AllocateFailed):
            self._is_over = True
            actions.append(Leave(event.reason if isinstance(event, ShutdownOrdered) else str(event.error)))
        return actions

    def _take_calls(self) -> list[Action | Confirm]:
        desk = self._master.desk
        calls, desk.calls = desk.calls, []
        return calls

    def _callbacks(self, event: Event, now_ms: int) -> Iterable[Callable[[], None]]:
        """The callbacks for an event, each of which must be called before the next is taken."""
        master = self._master
        match event:
            case Registered():
                yield master.registered
            case ContainersAllocated(allocations):
                for container in (allocation.container for allocation in allocations):
                    master.desk.held[container.id] = container
                    master.desk.hosts[container.id] = container.node_id.host
                    yield partial(master.allocated, container.id)
            case ContainersCompleted(statuses):
                for status in statuses:
                    master.desk.held.pop(status.container_id, None)
                    yield partial(master.ended, status.container_id, status.exit_status, status.diagnostics)
                    master.desk.hosts.pop(status.container_id, None)
            case ContainerStarted(container_id):
                if container_id in master.desk.held:
                    yield partial(master.started, container_id)
            case ContainerStartFailed(container_id, diagnostics):
                if container_id in master.desk.held:
                    yield partial(master.start_failed, container_id, diagnostics)
            case HeartbeatDone():
                yield partial(master.heartbeat, now_ms)
            case _:
                pass

    def _guarded(self, call: Callable[[], Result]) -> Result:
        try:
            return call()
        except Exception as error:
            text = error.message if isinstance(error, MasterMistake) else f"{type(error).__name__}: {error}"
            raise MasterMistake(f"{text}{place_in_source(error, self._source)}") from error


def place_in_source(error: BaseException, source: str) -> str:
    """The last line of the file `source` that the error passed, in brackets; "" if it passed none."""
    found, step = "", error.__traceback__
    while step is not None:
        code = step.tb_frame.f_code
        if code.co_filename == source:
            found = f" (line {step.tb_lineno} of {source.rpartition('/')[2]}, in {code.co_name})"
        step = step.tb_next
    return found
