"""An application that a test drives: its AM starts each container that it gets, and does what the test orders."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from am.core.actions import Action, Finish, Launch, ReleaseContainer
from am.core.application import ApplicationCore
from am.core.events import (
    AllocateFailed,
    ContainersAllocated,
    ContainersCompleted,
    Event,
    HeartbeatDone,
    PreemptionAsked,
    Registered,
)
from am.core.requests import ContainerRequest
from yarn.containers import ContainerLaunchContext
from yarn.ids import ApplicationId, ContainerId
from yarn.resource import NONE, Resource

TASK_RULE = "task"
"""The rule, and the command, of the containers of tasks."""


@dataclass(eq=False)
class DrivenApplication:
    """The knowledge of the test about an application. `received`, `exits`: as its AM has heard.

    `failure`: why the ResourceManager has refused a call of the AM.

    `asked_back`: the containers that the ResourceManager has wanted back. `orders`: what the AM is to do when it next
    can. `requests`: what each container was requested for. `lasts_ms`: how long the tasks of a priority run; the others
    run until they are stopped.
    """

    name: str
    application_id: ApplicationId | None = None
    refusal: str = ""
    is_registered: bool = False
    failure: str = ""
    headroom: Resource = NONE
    received: list[str] = field(default_factory=list)
    exits: dict[str, int] = field(default_factory=dict)
    asked_back: list[str] = field(default_factory=list)
    orders: list[Action] = field(default_factory=list)
    lasts_ms: dict[int, int] = field(default_factory=dict)
    requests: dict[ContainerId, ContainerRequest] = field(default_factory=dict)


class DrivenCore(ApplicationCore[Event, Action]):
    """The AM's program: starts each container that it gets, and does what the test orders."""

    def __init__(self, application: DrivenApplication, name_of: Callable[[ContainerId], str]) -> None:
        super().__init__(check_invariants=True)
        self._application = application
        self._name_of = name_of
        on = self._dispatcher.on
        on(Registered, self._registered)
        on(ContainersAllocated, self._launch)
        on(ContainersCompleted, self._completed)
        on(PreemptionAsked, self._asked_back)
        on(HeartbeatDone, self._heartbeat)

    def handle(self, event: Event, now_ms: int) -> list[Action]:
        if isinstance(event, AllocateFailed):
            self._application.failure = str(event.error)
        return super().handle(event, now_ms)

    def progress(self) -> float:
        return 0.5

    def _registered(self, _: Registered) -> None:
        self._application.is_registered = True
        self._carry_out_orders()

    def _heartbeat(self, event: HeartbeatDone) -> None:
        # A wake-up by the test knows no nodes.
        if event.cluster_nodes:
            self._application.headroom = event.headroom
        self._carry_out_orders()

    def _carry_out_orders(self) -> None:
        orders, self._application.orders = self._application.orders, []
        for order in orders:
            if isinstance(order, Finish):
                self._end(order)
            else:
                self._dispatcher.emit(order)

    def _launch(self, event: ContainersAllocated) -> None:
        for allocation in event.allocations:
            container = allocation.container
            if allocation.request is None:
                self._dispatcher.emit(ReleaseContainer(container.id))
                continue
            self._application.received.append(self._name_of(container.id))
            self._application.requests[container.id] = allocation.request
            self._dispatcher.emit(Launch(container, ContainerLaunchContext((TASK_RULE,))))

    def _completed(self, event: ContainersCompleted) -> None:
        for status in event.statuses:
            self._application.exits[self._name_of(status.container_id)] = status.exit_status

    def _asked_back(self, event: PreemptionAsked) -> None:
        preemption = event.preemption
        for container_id in (*preemption.strict, *preemption.negotiable):
            if (name := self._name_of(container_id)) not in self._application.asked_back:
                self._application.asked_back.append(name)
