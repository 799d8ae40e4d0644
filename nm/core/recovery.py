"""Rebuilds a node from the state that an earlier NodeManager has stored (ContainerManagerImpl.recover).

    stored as       what the container does
    REQUESTED       starts from the beginning; DONE if its AM has stopped it meanwhile
    LAUNCHED        its process is watched again; it is ended if its AM has stopped it
    COMPLETED       DONE, with its exit status, so that its end is reported

All of this happens in one step, so no call finds a container half recovered. Hadoop's NodeManager takes several, and
answers stopContainers with NMNotYetReadyException meanwhile.
"""

from __future__ import annotations

from nm.core.application import ApplicationContainerInit, InitApplication, NMApplication
from nm.core.container import NMContainer
from nm.core.container_service import ContainerService
from nm.core.context import NodeContext
from nm.core.effects import InitAuxiliaryService
from nm.core.status_updater import NodeStatusUpdater
from nm.core.stored_state import RecoveredApplication, RecoveredContainer, RecoveredNode
from yarn.ids import ApplicationId
from yarn.machine import Warn


class NodeRecovery:
    """Adds recovered applications and containers to a node that has none yet."""

    def __init__(
        self,
        context: NodeContext,
        status: NodeStatusUpdater,
        service: ContainerService,
        applications: dict[ApplicationId, NMApplication],
    ) -> None:
        self._context = context
        self._status = status
        self._service = service
        self._applications = applications

    def recover(self, state: RecoveredNode) -> None:
        """Rebuild the node: copies of files first, then applications, then containers."""
        self._context.resources.recover(state.resources)
        for application in state.applications:
            self._recover_application(application)
        for container in state.containers:
            self._recover_container(container)
        self._service.recover_used_tokens(state.used_tokens)
        for application_id, due_ms in state.log_deletions:
            self._context.delete_logs_at(application_id, due_ms)

    def _recover_application(self, stored: RecoveredApplication) -> None:
        application_id, context = stored.application_id, self._context
        self._applications[application_id] = NMApplication(application_id, stored.user, context, stored.acls)
        for service, _ in context.settings.auxiliary_services:
            if service in stored.services:
                data = stored.services[service].data
                context.dispatcher.emit(InitAuxiliaryService(service, application_id, stored.user, data))
        context.dispatcher.send(InitApplication(application_id))

    def _recover_container(self, stored: RecoveredContainer) -> None:
        container_id, context = stored.token.container_id, self._context
        if container_id.application_id not in self._applications:
            context.dispatcher.emit(Warn(f"{container_id} has no corresponding application!"))
            context.recorder.container_dropped(container_id)
            return
        self._status.add(NMContainer(stored.token, stored.launch_context, context, stored.progress))
        context.dispatcher.send(ApplicationContainerInit(container_id))
