"""ResourceManagerAdministrationProtocol as the core sees it: queues and priorities, node labels, and lists of hosts.

rm.shell.admin_service checks who calls and reads the files; it sends the events that are handled here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from rm.core.access_control import QueueAcls
from rm.core.context import RMContext
from rm.core.events import (
    AddClusterNodeLabels,
    HostListsRead,
    RefreshClusterMaxPriority,
    RefreshNodes,
    RefreshQueues,
    RemoveClusterNodeLabels,
    ReplaceLabelsOnNodes,
)
from rm.core.lifecycle_events import (
    NodeChanged,
    RMAppNodeUpdate,
    RMNodeDecommission,
    RMNodeGracefulDecommission,
    RMNodeRecommission,
    RMNodeShutdown,
)
from rm.core.placement_rules.mapping import FoundQueue, MappingPlacement
from rm.core.rm_node import RMNode
from rm.core.states import STORED_APP_STATES
from rm.core.stored_state import NodeLabelState
from rm.scheduler.capacity_scheduler import CapacityScheduler
from rm.scheduler.config.configuration import CapacitySchedulerConfiguration
from rm.scheduler.config.queue_configuration import QueueConfiguration
from rm.scheduler.model.node_labels import WHOLE_HOST
from yarn.configuration import Configuration
from yarn.errors import YarnException
from yarn.ids import NodeId
from yarn.settings import scheduler as scheduler_settings
from yarn.states import DecommissionType, NodeState


class QueueAdministration:
    """Takes configurations of queues, placement rules and access lists: whole, or not at all."""

    def __init__(self, context: RMContext, configuration: Configuration) -> None:
        """Raises ConfigurationException for placement rules that are not valid."""
        self._context = context
        self._acls: QueueAcls | None = None
        self._apply(configuration)

    def refresh_queues(self, event: RefreshQueues) -> None:
        """Take queues, placement rules and access lists again. Raises ConfigurationException, with nothing changed."""
        configuration = event.configuration

        def check_rules(settings: CapacitySchedulerConfiguration) -> None:
            MappingPlacement(configuration, ConfiguredQueues(settings.queues))

        self._context.scheduler.reinitialize(configuration, self._context.now_ms, check_rules)
        self._apply(configuration)

    def refresh_cluster_max_priority(self, event: RefreshClusterMaxPriority) -> None:
        """The highest priority that applications may have from now on; those that have a higher one keep it."""
        self._context.settings = replace(self._context.settings, application_priority_max=event.priority)

    def _apply(self, configuration: Configuration) -> None:
        context = self._context
        context.placement = MappingPlacement(configuration, SchedulerQueues(context.scheduler))
        queues = {path: queue.configuration for path, queue in context.scheduler.queues.items()}
        if scheduler_settings.ACL_ENABLE.of(configuration):
            # As with QueueAcls: a queue created on demand has none until a refresh; one that is gone keeps its lists.
            context.priority_acls = {
                **context.priority_acls,
                **{path: queue.priority_acls for path, queue in queues.items() if queue.is_leaf},
            }
        context.queue_acls = self._acls = QueueAcls(configuration, queues, before=self._acls)


class SchedulerQueues:
    """The scheduler's queues as of each call, for the placement rules."""

    def __init__(self, scheduler: CapacityScheduler) -> None:
        self._scheduler = scheduler

    def find(self, name: str) -> FoundQueue | None:
        """By path or unambiguous short name."""
        queue = self._scheduler.queue(name)
        return _found(queue.configuration) if queue is not None else None

    def is_ambiguous(self, name: str) -> bool:
        """True for the short name of several queues."""
        return self._scheduler.is_ambiguous(name)


class ConfiguredQueues:
    """The queues {path: its configuration} of a configuration that is not taken yet, for the placement rules."""

    def __init__(self, queues: Mapping[str, QueueConfiguration]) -> None:
        self._queues = queues
        self._paths: dict[str, list[str]] = {}
        for path, queue in queues.items():
            self._paths.setdefault(queue.name, []).append(path)

    def find(self, name: str) -> FoundQueue | None:
        """By path or unambiguous short name."""
        paths = [name] if name in self._queues else self._paths.get(name, [])
        return _found(self._queues[paths[0]]) if len(paths) == 1 else None

    def is_ambiguous(self, name: str) -> bool:
        """True for the short name of several queues."""
        return name not in self._queues and len(self._paths.get(name, [])) > 1


def _found(queue: QueueConfiguration) -> FoundQueue:
    creates_queues = not queue.is_leaf and (queue.creation.enabled or queue.managed is not None)
    return FoundQueue(queue.path, queue.is_leaf, creates_queues=creates_queues, is_managed=queue.managed is not None)


class NodeLabelService:
    """The cluster's labels, and which nodes have them: a call takes effect whole, or not at all."""

    def __init__(self, context: RMContext) -> None:
        self._context = context

    def add(self, event: AddClusterNodeLabels) -> None:
        """Add labels to the cluster. Raises YarnException."""
        self._context.scheduler.labels.add(event.labels)
        self._store()

    def remove(self, event: RemoveClusterNodeLabels) -> None:
        """Remove labels from the cluster. Raises YarnException, also for one that a queue names."""
        self._context.scheduler.remove_node_labels(event.labels, self._context.now_ms)
        self._store()

    def replace(self, event: ReplaceLabelsOnNodes) -> None:
        """Give nodes and whole hosts other labels; they need not be registered. Raises YarnException."""
        wanted = dict(event.labels)
        unknown = self._unknown(wanted) if event.fail_on_unknown_nodes else []
        if unknown:
            listed = ", ".join(map(str, unknown))
            raise YarnException(f"java.io.IOException: Failed to replace labels as there are unknown nodes:[{listed}]")
        self._context.scheduler.replace_node_labels(wanted, self._context.now_ms)
        self._store()

    def recover(self, state: NodeLabelState) -> None:
        """Restore the labels, unless node labels are off (initNodeLabelStore)."""
        scheduler = self._context.scheduler
        if scheduler.labels.enabled:
            scheduler.labels.add(state.labels)
            given = {node_id: (label,) if label else () for node_id, label in state.given}
            scheduler.replace_node_labels(given, self._context.now_ms)

    def _store(self) -> None:
        labels = self._context.scheduler.labels
        self._context.store.change_node_labels(NodeLabelState(labels.cluster_labels(), labels.given()))

    def _unknown(self, node_ids: Iterable[NodeId]) -> list[NodeId]:
        """Those that are neither nodes, in any state, nor hosts of one."""
        known = {*self._context.nodes, *self._context.inactive_nodes}
        known |= {NodeId(node_id.host, WHOLE_HOST) for node_id in known}
        return [node_id for node_id in node_ids if node_id not in known]


class NodesListManager:
    """Which hosts may have NodeManagers, and which applications learn of a changed node (Hadoop's NodesListManager)."""

    def __init__(self, context: RMContext) -> None:
        self._context = context

    def take_hosts(self, event: HostListsRead) -> None:
        """The lists as of the start."""
        self._context.hosts = event.hosts

    def refresh(self, event: RefreshNodes) -> None:
        """Take the new lists, and have nodes leave or stay accordingly.

        FORCEFUL reads no list: it has all decommissioning nodes leave at once.
        """
        hosts, kind = event.hosts, event.type
        if kind is DecommissionType.FORCEFUL:
            for node in self._leaving():
                self._end(node)
            return
        self._context.hosts = hosts
        nodes = list(self._context.nodes.values())
        for node in nodes:
            if hosts.allows(node.node_id.host) and node.state is NodeState.DECOMMISSIONING:
                self._context.send(RMNodeRecommission(node.node_id))
        for node in nodes:
            if not hosts.allows(node.node_id.host):
                self._exclude(node, kind, hosts.timeout_s(node.node_id.host, event.timeout_s))

    def node_changed(self, event: NodeChanged) -> None:
        """Report a node's change to each application whose outcome is not stored."""
        for app in self._context.apps.values():
            if app.state not in STORED_APP_STATES:
                self._context.send(RMAppNodeUpdate(app.application_id, event.node_id, event.update))

    def _exclude(self, node: RMNode, kind: DecommissionType, timeout_s: int) -> None:
        if kind is DecommissionType.NORMAL:
            self._end(node)
        elif node.state is not NodeState.DECOMMISSIONING or node.decommissioning_timeout_s != timeout_s:
            self._context.send(RMNodeGracefulDecommission(node.node_id, timeout_s))

    def _end(self, node: RMNode) -> None:
        """A node of a host that neither list names is shut down, not decommissioned."""
        untracked = self._context.hosts.is_untracked(node.node_id.host)
        event = RMNodeShutdown if untracked else RMNodeDecommission
        self._context.send(event(node.node_id))

    def _leaving(self) -> list[RMNode]:
        return [node for node in self._context.nodes.values() if node.state is NodeState.DECOMMISSIONING]


def decommissioning_nodes(context: RMContext) -> tuple[NodeId, ...]:
    """The nodes that are DECOMMISSIONING."""
    return tuple(node.node_id for node in context.nodes.values() if node.state is NodeState.DECOMMISSIONING)
