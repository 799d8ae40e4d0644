"""What the objects of a node share: the outbox, the caches, one another by id (Hadoop's NMContext)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from nm.effects import Effect, StateChanged, Warn
from nm.emulation.table import ContainerFacts
from nm.lifecycles.application import NMApplicationEvent
from nm.lifecycles.container import NMContainerEvent
from nm.outbox import Outbox
from nm.resource_cache import ResourceCaches
from nm.settings import CoreSettings
from yarn.containers import ContainerLaunchContext, ContainerTokenIdentifier
from yarn.ids import ApplicationId, ContainerId
from yarn.states import ContainerType

if TYPE_CHECKING:
    from nm.applications import NMApplication
    from nm.containers import NMContainer


class NodeContext:
    """The state of a node below its conversation with the RM.

    `containers` holds each container from its accepted start until the RM has seen its end, `applications` each
    application until its logs are seen to; both in the order they came. `on_container_done` is called once for each
    container, when it is DONE.
    """

    def __init__(self, settings: CoreSettings) -> None:
        self.settings = settings
        self.outbox = Outbox()
        self.containers: dict[ContainerId, NMContainer] = {}
        self.applications: dict[ApplicationId, NMApplication] = {}
        self.resources = ResourceCaches(self, settings.cache_target_bytes)
        self.on_container_done: Callable[[NMContainer], None] = lambda _: None

    def emulation_of(self, token: ContainerTokenIdentifier, launch: ContainerLaunchContext) -> str:
        """The name of the rule by which a container is emulated, empty if it is to be run as a process."""
        table = self.settings.emulation
        if table is None:
            return ""
        facts = ContainerFacts(
            token.container_type is ContainerType.APPLICATION_MASTER,
            token.user,
            " ".join(launch.commands),
            launch.environment,
            token.priority,
            token.resource,
            str(token.node_id),
        )
        rule = table.rule_for(facts)
        return "" if rule is None else rule.name

    def to_container(self, container_id: ContainerId, event: NMContainerEvent, detail: object = None) -> None:
        """Post an event to a container; a warning if the node does not have it when its turn comes."""
        self.outbox.post(lambda: self._tell_container(container_id, event, detail))

    def to_application(self, application_id: ApplicationId, event: NMApplicationEvent, detail: object = None) -> None:
        """Post an event to an application; a warning if the node does not have it when its turn comes."""
        self.outbox.post(lambda: self._tell_application(application_id, event, detail))

    def delete_later(self, deletion: Effect) -> None:
        """Emit a deletion after the debug delay, never if that is negative (DeletionService)."""
        delay_ms = self.settings.deletion_delay_ms
        if delay_ms == 0:
            self.outbox.emit(deletion)
        elif delay_ms > 0:
            self.outbox.after(delay_ms, lambda: self.outbox.emit(deletion))

    def _tell_container(self, container_id: ContainerId, event: NMContainerEvent, detail: object) -> None:
        container = self.containers.get(container_id)
        if container is None:
            self.outbox.emit(Warn(f"Event {event.name} sent to absent container {container_id}"))
            return
        source = container.machine.state
        target = container.machine.handle(container, event, detail, self.outbox.now_ms)
        if source is not target:
            self.outbox.emit(
                StateChanged("NMContainer", str(container_id), event.name, source.name, target.name),
            )

    def _tell_application(self, application_id: ApplicationId, event: NMApplicationEvent, detail: object) -> None:
        application = self.applications.get(application_id)
        if application is None:
            self.outbox.emit(Warn(f"Event {event.name} sent to absent application {application_id}"))
            return
        source = application.machine.state
        target = application.machine.handle(application, event, detail, self.outbox.now_ms)
        if source is not target:
            self.outbox.emit(
                StateChanged("NMApplication", str(application_id), event.name, source.name, target.name),
            )
