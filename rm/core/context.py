"""RMContext: the state of one ResourceManager (Hadoop's RMContext)."""

from __future__ import annotations

from collections import deque

from rm.core.access_control import ApplicationAcls, QueueAcls
from rm.core.applications import RMApp, RMAppAttempt
from rm.core.host_lists import HostLists
from rm.core.placement_rules.mapping import MappingPlacement
from rm.core.rm_node import RMNode
from rm.core.service_context import RMServiceContext
from rm.core.settings import RMSettings
from rm.scheduler.config.acls import PriorityAcl
from yarn.errors import ApplicationNotFoundException
from yarn.ids import ApplicationAttemptId, ApplicationId, NodeId
from yarn.protocols.master import ResourceTypeInfo
from yarn.resource import MEMORY_MB, VCORES


class RMContext(RMServiceContext):
    """The state of one ResourceManager, for services and reports.

    `apps` are in the order of submission, `completed_apps` in the order in which they ended. A node is either in
    `nodes`, if it is in use, or in `inactive_nodes`. `priority_acls` {leaf's path: who may use which priorities}, as of
    the last refresh.
    """

    placement: MappingPlacement
    queue_acls: QueueAcls
    application_acls: ApplicationAcls

    def __init__(self, settings: RMSettings, *, cluster_timestamp: int, strict: bool) -> None:
        super().__init__(settings, cluster_timestamp=cluster_timestamp, strict=strict)
        self.apps: dict[ApplicationId, RMApp] = {}
        self.completed_apps: deque[ApplicationId] = deque()
        self.nodes: dict[NodeId, RMNode] = {}
        self.inactive_nodes: dict[NodeId, RMNode] = {}
        self.hosts = HostLists()
        self.priority_acls: dict[str, tuple[PriorityAcl, ...]] = {}

    def find_app(self, application_id: ApplicationId) -> RMApp:
        """The application; raises ApplicationNotFoundException for an unknown one."""
        app = self.apps.get(application_id)
        if app is None:
            raise ApplicationNotFoundException(
                f"Application with id '{application_id}' doesn't exist in RM. "
                "Please check that the job submission was successful."
            )
        return app

    def attempt(self, attempt_id: ApplicationAttemptId) -> RMAppAttempt | None:
        """The attempt; None for an unknown one."""
        app = self.apps.get(attempt_id.application_id)
        return None if app is None else app.attempts.get(attempt_id)

    def node(self, node_id: NodeId) -> RMNode | None:
        """The node, in use or not; None for an unknown one."""
        return self.nodes.get(node_id) or self.inactive_nodes.get(node_id)

    def resource_types(self) -> tuple[ResourceTypeInfo, ...]:
        """The resource types of the cluster: memory and vcores, then the configured ones in order."""
        extra = (ResourceTypeInfo(name) for name in self.scheduler.resource_types.extra_names)
        return (ResourceTypeInfo(MEMORY_MB, "Mi"), ResourceTypeInfo(VCORES), *extra)
