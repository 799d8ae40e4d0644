"""The door of the scheduler: what the core calls, and what reports and checks may read.

The core calls one method for each of Hadoop's scheduler events and for an AM's allocate; what happened comes back
through `notify`, in order. Everything runs at once, in the caller's step: there is no queue of events in here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from rm.lifecycles.rm_container import RMContainer
from rm.scheduler.notices import Notice
from yarn.applications import ApplicationResourceUsage
from yarn.asks import ResourceRequest, UpdateContainerRequest
from yarn.configuration import Configuration
from yarn.containers import Container, ContainerStatus
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.resource import Resource, ResourceTypes


@dataclass(frozen=True, slots=True)
class Allocation:
    """What an allocate call hands over.

    `containers` became ACQUIRED by this call, in the order of their placement (tokens are the caller's matter);
    `headroom` is what the application could still get; `node_count` the nodes that it may be told of.
    """

    containers: tuple[Container, ...] = field(default=())
    headroom: Resource = Resource(0, 0)
    node_count: int = 0


class CapacityScheduler:
    """Hadoop's CapacityScheduler, driven by heartbeats. All times are ms as the caller counts them."""

    resource_types: ResourceTypes
    minimum_allocation: Resource
    cluster_resource: Resource

    def __init__(
        self, configuration: Configuration, *, cluster_timestamp: int, notify: Callable[[Notice], None]
    ) -> None:
        """Raises ConfigurationException with every fault of the configuration."""
        raise NotImplementedError

    def add_node(self, node_id: NodeId, rack: str, total: Resource, now_ms: int, *, http_address: str = "") -> None:
        """NODE_ADDED: an empty node joins. `http_address` is handed out with its containers."""
        raise NotImplementedError

    def remove_node(self, node_id: NodeId, now_ms: int) -> None:
        """NODE_REMOVED: its containers are killed (-100, "Container released on a *lost* node")."""
        raise NotImplementedError

    def update_node_resource(self, node_id: NodeId, total: Resource, now_ms: int) -> None:
        """NODE_RESOURCE_UPDATE: containers stay; the node's reservation does not."""
        raise NotImplementedError

    def node_update(
        self, node_id: NodeId, launched: Sequence[ContainerId], completed: Sequence[ContainerStatus], now_ms: int
    ) -> None:
        """NODE_UPDATE: notes what the NM reported, then places containers on the node."""
        raise NotImplementedError

    def add_application(self, application_id: ApplicationId, queue: str, user: str, priority: int, now_ms: int) -> None:
        """APP_ADDED: answered with ApplicationAccepted or ApplicationRejected."""
        raise NotImplementedError

    def remove_application(self, application_id: ApplicationId, final_state_name: str) -> None:
        """APP_REMOVED."""
        raise NotImplementedError

    def add_attempt(
        self, attempt_id: ApplicationAttemptId, *, transfer: bool, am_resource: Resource | None, now_ms: int
    ) -> None:
        """APP_ATTEMPT_ADDED: answered with AttemptAdded.

        `transfer`: take over the containers of the last attempt. `am_resource`: the normalised size of the master, for
        the AM limits; None for an unmanaged one.
        """
        raise NotImplementedError

    def remove_attempt(
        self, attempt_id: ApplicationAttemptId, *, keep_containers: bool, final_state_name: str, now_ms: int
    ) -> None:
        """APP_ATTEMPT_REMOVED: its containers are killed, but for running ones if `keep_containers`."""
        raise NotImplementedError

    def check_asks(self, queue: str, asks: Iterable[ResourceRequest]) -> None:
        """Raises InvalidResourceRequestException (or its label kind) for the first ask that cannot be."""
        raise NotImplementedError

    def allocate(
        self,
        attempt_id: ApplicationAttemptId,
        asks: Sequence[ResourceRequest],
        releases: Sequence[ContainerId],
        blacklist_additions: Sequence[str],
        blacklist_removals: Sequence[str],
        updates: Sequence[UpdateContainerRequest],
        now_ms: int,
    ) -> Allocation:
        """An AM's heartbeat: notes releases and asks (normalised here), hands over what was placed since the last."""
        raise NotImplementedError

    def mark_am_container(self, container_id: ContainerId) -> None:
        """The attempt of this container took it for its master."""
        raise NotImplementedError

    def expire_container(self, container_id: ContainerId, now_ms: int) -> None:
        """CONTAINER_EXPIRED: acquired and never launched in time."""
        raise NotImplementedError

    def maximum_allocation(self, queue: str | None = None) -> Resource:
        """The largest container that can be had now, in a queue (a leaf's name or path) or anywhere."""
        raise NotImplementedError

    def normalize_master_request(self, queue: str, capability: Resource) -> Resource:
        """The size of a master as submitted to `queue`, rounded up (RMAppManager). Raises as check_asks."""
        raise NotImplementedError

    def place_application(self, queue: str, user: str) -> str:
        """The queue that the placement rules choose; without rules the name as given."""
        raise NotImplementedError

    def queue_path(self, queue: str) -> str:
        """The full path of a queue named by its path or unambiguous short name; the name as given if there is none."""
        raise NotImplementedError

    def default_priority(self, queue: str) -> int:
        """The queue's default-application-priority; 0 for an unknown queue."""
        raise NotImplementedError

    def reinitialize(self, configuration: Configuration) -> None:
        """refreshQueues: takes the configuration whole, or raises ConfigurationException with every fault."""
        raise NotImplementedError

    def container(self, container_id: ContainerId) -> RMContainer | None:
        """A live or reserved container; None if it is over or unknown."""
        raise NotImplementedError

    def containers_of(self, application_id: ApplicationId) -> Mapping[ContainerId, RMContainer]:
        """The live containers of the application's current attempt, kept ones included."""
        raise NotImplementedError

    @property
    def node_count(self) -> int:
        """Nodes that the scheduler knows."""
        raise NotImplementedError

    def node_usage(self, node_id: NodeId) -> tuple[Resource, int]:
        """(allocated, containers) of a node; nothing for a node that the scheduler does not know."""
        raise NotImplementedError

    def application_usage(self, application_id: ApplicationId) -> ApplicationResourceUsage | None:
        """What the application's current attempt holds and asks for; None if it has none. The core adds the seconds."""
        raise NotImplementedError
