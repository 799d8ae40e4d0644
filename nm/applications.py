"""One application on a node: its containers here, and what is done at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nm.diagnostics import APPLICATION_OVER, application_finished
from nm.effects import DeleteApplicationFiles, DeleteApplicationLogs, Effect
from nm.lifecycles.application import APPLICATION_LIFECYCLE, STOPPED, NMApplicationEvent, NMApplicationState
from nm.lifecycles.container import Kill, NMContainerEvent
from yarn.ids import ApplicationId, ContainerId
from yarn.lifecycle import Machine
from yarn.states import ContainerExitStatus

if TYPE_CHECKING:
    from nm.containers import NMContainer
    from nm.context import NodeContext


class NMApplication:
    """In the node's applications from its first accepted container until its logs are seen to.

    `containers` are those that are not DONE, in the order they came.
    """

    def __init__(self, application_id: ApplicationId, user: str, context: NodeContext) -> None:
        self.id = application_id
        self.user = user
        self.containers: dict[ContainerId, NMContainer] = {}
        self.machine: Machine[NMApplicationState, NMApplicationEvent] = Machine(APPLICATION_LIFECYCLE)
        self._context = context

    def __str__(self) -> str:
        return str(self.id)

    @property
    def is_stopped(self) -> bool:
        """True once its end was ordered: nothing of it is started here any more."""
        return self.machine.state in STOPPED

    # What the transitions do

    def post(self, event: NMApplicationEvent, detail: object = None) -> None:
        self._context.to_application(self.id, event, detail)

    def add(self, container: NMContainer) -> None:
        self.containers[container.id] = container

    def remove(self, container_id: ContainerId) -> None:
        self.containers.pop(container_id, None)

    def init_containers(self) -> None:
        for container in self.containers.values():
            self.init_container(container)

    def init_container(self, container: NMContainer) -> None:
        container.post(NMContainerEvent.INIT_CONTAINER)

    def refuse_container(self, container: NMContainer) -> None:
        kill = Kill(ContainerExitStatus.KILLED_AFTER_APP_COMPLETION, APPLICATION_OVER)
        container.post(NMContainerEvent.KILL_CONTAINER, kill)

    def kill_containers(self, reason: str) -> None:
        kill = Kill(ContainerExitStatus.KILLED_AFTER_APP_COMPLETION, application_finished(reason))
        for container in self.containers.values():
            container.post(NMContainerEvent.KILL_CONTAINER, kill)

    def clean_up(self) -> None:
        """Give up the application's directories and its part of the cache."""
        self._context.resources.forget_application(self.id)
        self._context.delete_later(DeleteApplicationFiles(self.id, self.user))
        self.post(NMApplicationEvent.APPLICATION_RESOURCES_CLEANEDUP)

    def finish_logs(self) -> None:
        """Have the logs deleted when they have been kept long enough (NonAggregatingLogHandler)."""
        delete: Effect = DeleteApplicationLogs(self.id)
        self._context.outbox.after(self._context.settings.log_retain_ms, lambda: self._context.outbox.emit(delete))
        self.post(NMApplicationEvent.APPLICATION_LOG_HANDLING_FINISHED)

    def forget(self) -> None:
        self._context.applications.pop(self.id, None)
