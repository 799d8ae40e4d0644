"""The core's part of ResourceManagerAdministrationProtocol: queues, priorities, node labels, and host lists.

rm.shell.admin_service checks the caller, reads the files, and sends the events that are handled here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

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
    """Applies a configuration of queues, placement rules and access lists. A refused configuration changes nothing."""

    def __init__(self, context: RMContext, configuration: Configuration) -> None:
        """Raises ConfigurationException for placement rules that are not valid."""
        self._context = context
        self._acls: QueueAcls | None = None
        self._apply(configuration)

    def refresh_queues(self, event: RefreshQueues) -> None:
        """Apply a configuration that was read again. Raises ConfigurationException; then nothing was changed."""
        configuration = event.configuration
        self._context.scheduler.reinitialize(configuration, self._context.now_ms, _check_of_rules(configuration))
        self._apply(configuration)

    def refresh_cluster_max_priority(self, event: RefreshClusterMaxPriority) -> None:
        """Set the highest priority of applications. Applications that already have a higher one keep it."""
        self._context.settings = replace(self._context.settings, application_priority_max=event.priority)

    def _apply(self, configuration: Configuration) -> None:
        context = self._context
        context.placement = MappingPlacement(configuration, SchedulerQueues(context.scheduler))
        queues = {path: queue.configuration for path, queue in context.scheduler.queues.items()}
        if scheduler_settings.ACL_ENABLE.of(configuration):
            # As in QueueAcls, a queue created on demand has no list until a refresh; a deleted queue keeps its lists.
            context.priority_acls = {
                **context.priority_acls,
                **{path: queue.priority_acls for path, queue in queues.items() if queue.is_leaf},
            }
        context.queue_acls = self._acls = QueueAcls(configuration, queues, before=self._acls)


def check_queues(context: RMContext, configuration: Configuration) -> None:
    """Check a configuration like a refresh of the queues, and change nothing. Raises ConfigurationException."""
    context.scheduler.check(configuration, _check_of_rules(configuration))


def _check_of_rules(configuration: Configuration) -> Callable[[CapacitySchedulerConfiguration], None]:
    def check(settings: CapacitySchedulerConfiguration) -> None:
        MappingPlacement(configuration, ConfiguredQueues(settings.queues))

    return check


class SchedulerQueues:
    """The scheduler's present queues, for the placement rules."""

    def __init__(self, scheduler: CapacityScheduler) -> None:
        self._scheduler = scheduler

    def find(self, name: str) -> FoundQueue | None:
        """The queue with that path or unambiguous short name; None if there is none."""
        queue = self._scheduler.queue(name)
        return _found(queue.configuration) if queue is not None else None

    def is_ambiguous(self, name: str) -> bool:
        """True if several queues have this short name."""
        return self._scheduler.is_ambiguous(name)


class ConfiguredQueues:
    """The queues {path: configuration} of a configuration that is not applied yet, for the placement rules."""

    def __init__(self, queues: Mapping[str, QueueConfiguration]) -> None:
        self._queues = queues
        self._paths: dict[str, list[str]] = {}
        for path, queue in queues.items():
            self._paths.setdefault(queue.name, []).append(path)

    def find(self, name: str) -> FoundQueue | None:
        """The queue with that path or unambiguous short name; None if there is none."""
        paths = [name] if name in self._queues else self._paths.get(name, [])
        return _found(self._queues[paths[0]]) if len(paths) == 1 else None

    def is_ambiguous(self, name: str) -> bool:
        """True if several queues have this short name."""
        return name not in self._queues and len(self._paths.get(name, [])) > 1


def _found(queue: QueueConfiguration) -> FoundQueue:
    creates_queues = not queue.is_leaf and (queue.creation.enabled or queue.managed is not None)
    return FoundQueue(queue.path, queue.is_leaf, creates_queues=creates_queues, is_managed=queue.managed is not None)


class NodeLabelService:
    """The labels of the cluster and of its nodes. A call that is refused changes nothing."""

    def __init__(self, context: RMContext) -> None:
        self._context = context

    def add(self, event: AddClusterNodeLabels) -> None:
        """Add labels to the cluster. Raises YarnException."""
        self._context.scheduler.labels.add(event.labels)
        self._store()

    def remove(self, event: RemoveClusterNodeLabels) -> None:
        """Remove labels from the cluster. Raises YarnException, also if a queue's configuration names one of them."""
        self._context.scheduler.remove_node_labels(event.labels, self._context.now_ms)
        self._store()

    def replace(self, event: ReplaceLabelsOnNodes) -> None:
        """Replace the labels of nodes and whole hosts, which need not be registered. Raises YarnException."""
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
        """The ids that are neither a known node, in any state, nor the host of one."""
        known = {*self._context.nodes, *self._context.inactive_nodes}
        known |= {NodeId(node_id.host, WHOLE_HOST) for node_id in known}
        return [node_id for node_id in node_ids if node_id not in known]


class NodesListManager:
    """Decides which hosts may have NodeManagers, and which AMs are notified of a changed node (NodesListManager)."""

    def __init__(self, context: RMContext) -> None:
        self._context = context

    def take_hosts(self, event: HostListsRead) -> None:
        """Set the lists that were read at the start."""
        self._context.hosts = event.hosts

    def refresh(self, event: RefreshNodes) -> None:
        """Apply new lists: decommission, recommission or shut down nodes accordingly.

        A FORCEFUL refresh reads no lists; all decommissioning nodes leave at once.
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
        """Report a node's change to every application whose outcome is not stored yet."""
        for app in self._context.apps.values():
            if app.state not in STORED_APP_STATES:
                self._context.send(RMAppNodeUpdate(app.application_id, event.node_id, event.update))

    def _exclude(self, node: RMNode, kind: DecommissionType, timeout_s: int) -> None:
        if kind is DecommissionType.NORMAL:
            self._end(node)
        elif node.state is not NodeState.DECOMMISSIONING or node.decommissioning_timeout_s != timeout_s:
            self._context.send(RMNodeGracefulDecommission(node.node_id, timeout_s))

    def _end(self, node: RMNode) -> None:
        """Take a node out of use. If neither list names its host, it is shut down instead of decommissioned."""
        untracked = self._context.hosts.is_untracked(node.node_id.host)
        event = RMNodeShutdown if untracked else RMNodeDecommission
        self._context.send(event(node.node_id))

    def _leaving(self) -> list[RMNode]:
        return [node for node in self._context.nodes.values() if node.state is NodeState.DECOMMISSIONING]


def decommissioning_nodes(context: RMContext) -> tuple[NodeId, ...]:
    """The ids of the nodes in state DECOMMISSIONING."""
    return tuple(node.node_id for node in context.nodes.values() if node.state is NodeState.DECOMMISSIONING)
