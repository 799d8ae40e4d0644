"""The requests that faults have an AM make: other sizes of its containers, and hosts to avoid.

Programs of plans make no such requests themselves. Larger sizes reach NodeManagers as with NMClient.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from am.core.am_rm_client_state import AMRMClientState
from am.core.application_master import ApplicationMasterEvent
from am.core.events import (
    ContainersAllocated,
    ContainersCompleted,
    ContainersFromPreviousAttempts,
    ContainersUpdated,
)
from wire.protocols.container_management import ContainerManagementProtocol
from yarn.containers import Container, UpdateContainerRequest
from yarn.ids import ContainerId, NodeId
from yarn.protocols.master import UpdatedContainer
from yarn.resource import Resource
from yarn.states import ContainerUpdateType


class MasterRequests:
    """Requests that faults make in the name of an AM.

    `state`: the AM's client, whose next heartbeat has the requests. `node_call`: a call to a NodeManager.
    """

    def __init__(self, state: AMRMClientState, node_call: Callable[[NodeId], partial[None]]) -> None:
        self._state = state
        self._node_call = node_call
        self._containers: dict[ContainerId, Container] = {}

    def handle(self, event: ApplicationMasterEvent) -> None:
        """Take note of the containers in an event, and tell NodeManagers of those that the RM has made larger."""
        match event:
            case ContainersAllocated(allocations):
                self._keep(allocation.container for allocation in allocations)
            case ContainersFromPreviousAttempts(containers):
                self._keep(containers)
            case ContainersUpdated(updated):
                self._keep(each.container for each in updated)
                self._pass_on(updated)
            case ContainersCompleted(statuses):
                for status in statuses:
                    self._containers.pop(status.container_id, None)
            case _:
                pass

    def size_of(self, container_id: ContainerId) -> Resource | None:
        """The size of a container of the AM; None for any other container."""
        container = self._containers.get(container_id)
        return None if container is None else container.resource

    def resize(self, container_id: ContainerId, size: Resource) -> None:
        """Request another size of a container, unless it has ended."""
        container = self._containers.get(container_id)
        if container is None or container.resource == size:
            return
        is_larger = container.resource.fits_in(size)
        kind = ContainerUpdateType.INCREASE_RESOURCE if is_larger else ContainerUpdateType.DECREASE_RESOURCE
        self._state.update(UpdateContainerRequest(container_id, container.version, kind, size))

    def change_blacklist(self, additions: tuple[str, ...] = (), removals: tuple[str, ...] = ()) -> None:
        """Add hosts to the blacklist, or remove them from it."""
        self._state.change_blacklist(additions, removals)

    @property
    def blacklist(self) -> frozenset[str] | None:
        """The hosts that the AM avoids; None while a change is on its way to the RM."""
        return frozenset(self._state.blacklist) if self._state.has_nothing_to_send else None

    def _keep(self, containers: Iterable[Container]) -> None:
        self._containers.update((container.id, container) for container in containers)

    def _pass_on(self, updated: Iterable[UpdatedContainer]) -> None:
        """Send increases to NodeManagers; if a call fails, the RM reverts the increase. It sends decreases itself."""
        for each in updated:
            token, node_id = each.container.token, each.container.node_id
            if each.type is ContainerUpdateType.INCREASE_RESOURCE and token is not None:
                self._node_call(node_id)(ContainerManagementProtocol.update_container, (token,), lambda _: None)
