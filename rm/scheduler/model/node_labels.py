"""The cluster's labels, which nodes have them, and how much each partition has (CommonNodeLabelsManager, RMNodeLabels).

A label is assigned to a host, for all its present and future NodeManagers, or to one NodeManager by its port. A node
has at most one label: its own, else its host's. A partition's resources are the sum of its active nodes. They change
here first; the methods return the nodes that the scheduler then has to move between partitions.

As in Hadoop, a NodeManager that joined under its host's label stays listed under it when the host gets another label.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NoReturn

from yarn.containers import ANY
from yarn.errors import YarnException
from yarn.ids import NodeId, node_hash
from yarn.java.hash_order import hash_order, string_hash
from yarn.nodes import NO_LABEL, NodeLabel
from yarn.resource import Resource

WHOLE_HOST = 0
"""The port that means all NodeManagers of a host (CommonNodeLabelsManager.WILDCARD_PORT)."""

NAME_LENGTH_MAX = 255

_NAME = re.compile(r"[0-9a-zA-Z][0-9a-zA-Z\-_]*", re.ASCII)

LabelChanges = Sequence[tuple[NodeId, str]]
"""Active nodes with their present labels, in the order in which the scheduler processes them."""


class _Label:
    """A label. `nodes` {nodes and hosts that were assigned this label, and no other one since}, for reports."""

    __slots__ = ("active_count", "exclusive", "nodes", "resource")

    def __init__(self, none: Resource, *, exclusive: bool) -> None:
        self.exclusive = exclusive
        self.resource = none
        self.active_count = 0
        self.nodes: dict[NodeId, None] = {}


class _LabelledNode:
    """A NodeManager. `label` None: the label of its host applies."""

    __slots__ = ("is_running", "label", "resource")

    def __init__(self, none: Resource) -> None:
        self.label: str | None = None
        self.resource = none
        self.is_running = False


class _Host:
    __slots__ = ("label", "nodes")

    def __init__(self) -> None:
        self.label = NO_LABEL
        self.nodes: dict[NodeId, _LabelledNode] = {}


class NodeLabels:
    """All labels.

    `enabled`: administrators may change them. `_by_port` {node: True if its label was assigned by port}.
    """

    __slots__ = ("_by_port", "_hosts", "_labels", "_none", "_resources", "enabled")

    def __init__(self, none: Resource, *, enabled: bool) -> None:
        self.enabled = enabled
        self._none = none
        self._labels: dict[str, _Label] = {NO_LABEL: _Label(none, exclusive=True)}
        self._resources: dict[str, Resource] = {NO_LABEL: none}
        self._hosts: dict[str, _Host] = {}
        self._by_port: dict[NodeId, bool] = {}

    def resource_of(self, partition: str) -> Resource:
        """The resources of the partition's active nodes; zero for an unknown label."""
        return self._resources.get(partition, self._none)

    def resources(self) -> Mapping[str, Resource]:
        """{partition: the resources of its active nodes}."""
        return dict(self._resources)

    def active_count(self, label: str) -> int:
        """The number of active nodes with the label; 0 for an unknown one."""
        known = self._labels.get(label)
        return known.active_count if known is not None else 0

    def is_shared(self, partition: str) -> bool:
        """True if requests without a label may use idle nodes of the partition, which is then not exclusive."""
        known = self._labels.get(partition)
        return known is not None and not known.exclusive

    @property
    def any_shared(self) -> bool:
        """True if requests without a label may use idle nodes of some partition."""
        return any(not label.exclusive for label in self._labels.values())

    def has(self, label: str) -> bool:
        """True for a label of the cluster, and for NO_LABEL."""
        return label in self._labels

    def cluster_labels(self) -> tuple[NodeLabel, ...]:
        """The cluster's labels, in the order they were added."""
        return tuple(NodeLabel(name, label.exclusive) for name, label in self._labels.items() if name)

    def labels_to_nodes(self, names: Iterable[str] = ()) -> dict[NodeLabel, tuple[NodeId, ...]]:
        """{label: its nodes}, for these labels or all; a whole host has port 0. Labels without nodes are omitted."""
        wanted = dict.fromkeys(names) or self._labels
        found = [(name, self._labels[name]) for name in wanted if name and name in self._labels]
        return {NodeLabel(name, label.exclusive): tuple(label.nodes) for name, label in found if label.nodes}

    def nodes_to_labels(self) -> dict[NodeId, NodeLabel]:
        """{node: its label}, for all nodes and whole hosts (port 0) that have one."""
        found: dict[NodeId, NodeLabel] = {}
        for host_name, host in self._hosts.items():
            given = [(node_id, self.label_of(node_id)) for node_id in host.nodes]
            for node_id, name in (*given, (NodeId(host_name, WHOLE_HOST), host.label)):
                if name:
                    found[node_id] = NodeLabel(name, self._labels[name].exclusive)
        return found

    def given(self) -> tuple[tuple[NodeId, str], ...]:
        """The labels that administrators assigned to whole hosts (port 0) and single nodes; "" = explicitly none.

        Assigning them to a new NodeLabels restores this one, apart from the active nodes.
        """
        found: list[tuple[NodeId, str]] = []
        for host_name, host in self._hosts.items():
            if host.label:
                found.append((NodeId(host_name, WHOLE_HOST), host.label))
            own = [(node_id, node.label) for node_id, node in host.nodes.items() if self._by_port.get(node_id)]
            found += [(node_id, label) for node_id, label in own if label is not None]
        return tuple(found)

    def label_of(self, node_id: NodeId) -> str:
        """The node's own label, else its host's, else NO_LABEL; also for inactive nodes."""
        host = self._hosts.get(node_id.host)
        if host is None:
            return NO_LABEL
        node = host.nodes.get(node_id)
        return node.label if node is not None and node.label is not None else host.label

    def activate(self, node_id: NodeId, resource: Resource) -> LabelChanges:
        """Add an active node with these resources."""
        before = self._running([node_id])
        host = self._host(node_id.host)
        node = host.nodes.setdefault(node_id, _LabelledNode(self._none))
        node.resource, node.is_running = resource, True
        label = self.label_of(node_id)
        if label:
            self._labels[label].nodes[node_id] = None
        return self._rebook(before, self._running([node_id]))

    def deactivate(self, node_id: NodeId) -> LabelChanges:
        """Remove a node from the active ones. A label that was assigned by port is kept for its return."""
        before = self._running([node_id])
        host = self._hosts.get(node_id.host)
        node = host.nodes.get(node_id) if host is not None else None
        if host is not None and node is not None:
            if self._by_port.get(node_id):
                node.is_running, node.resource = False, self._none
            else:
                self._labels[self.label_of(node_id)].nodes.pop(node_id, None)
                del host.nodes[node_id]
        return self._rebook(before, self._running([node_id]))

    def add(self, labels: Iterable[NodeLabel]) -> None:
        """Add labels to the cluster; existing ones stay. Raises YarnException; then none was added."""
        self._check_enabled()
        wanted = [NodeLabel(label.name.strip(), label.exclusive) for label in labels]
        known = self._labels
        differing = [
            label for label in wanted if label.name in known and known[label.name].exclusive != label.exclusive
        ]
        if differing:
            listed = ",".join(map(str, differing))
            _refuse(f"Exclusivity cannot be modified for an existing label with : {listed}")
        for label in wanted:
            _check_name(label.name)
        for label in wanted:
            if label.name not in known:
                known[label.name] = _Label(self._none, exclusive=label.exclusive)
                self._resources[label.name] = self._none

    def remove(self, names: Iterable[str], queue_labels: Mapping[str, Sequence[str]]) -> LabelChanges:
        """Remove labels from the cluster and its nodes. Raises YarnException; then none was removed.

        `queue_labels` {path: labels that the queue may use}: a label named there is in use and cannot be removed; `*`
        does not count. As in Hadoop the changes contain every active node, also those whose label stays.
        """
        wanted = dict.fromkeys(name.strip() for name in names)
        for name in wanted:
            self._check_unused(name, queue_labels)
        self._check_enabled()
        for name in wanted:
            if not name:
                _refuse("Label to be removed is null or empty")
            if name not in self._labels:
                _refuse(f"Node label={name} to be removed doesn't existed in cluster node labels collection.")
        all_hosts = [NodeId(host, WHOLE_HOST) for host in self._hosts]
        before = self._running(all_hosts)
        for host in self._hosts.values():
            host.label = NO_LABEL if host.label in wanted else host.label
            for node in host.nodes.values():
                node.label = NO_LABEL if node.label in wanted else node.label
        for name in wanted:
            del self._labels[name], self._resources[name]
        return self._rebook(before, self._running(all_hosts))

    def replace(self, labels: Mapping[NodeId, Sequence[str]]) -> LabelChanges | None:
        """Replace the labels of nodes (port 0: whole hosts); an empty sequence removes the label.

        Returns None if nothing changes. Raises YarnException; then nothing was changed.
        """
        changed = {node_id: tuple(names) for node_id, names in labels.items() if self._is_new(node_id, tuple(names))}
        if not changed:
            return None
        self._check_enabled()
        wanted = {node_id: tuple(name.strip() for name in names) for node_id, names in sorted(changed.items())}
        for node_id, names in wanted.items():
            self._check_replacement(node_id, names)
        before = self._running(wanted)
        for node_id, names in wanted.items():
            self._give(node_id, names[0] if names else NO_LABEL)
        return self._rebook(before, self._running(wanted))

    def _is_new(self, node_id: NodeId, names: tuple[str, ...]) -> bool:
        """True if a node gets a new label (getModifiedNodeLabelsMappings).

        A node without a label of its own always counts as changed, whatever its host's label is.
        """
        host = self._hosts.get(node_id.host)
        if host is None:
            return True
        if node_id.port == WHOLE_HOST:
            has: str | None = host.label
        else:
            node = host.nodes.get(node_id)
            has = node.label if node is not None else None
        return has is None or names != ((has,) if has else ())

    def _give(self, node_id: NodeId, label: str) -> None:
        host = self._host(node_id.host)
        if node_id.port != WHOLE_HOST:
            node = host.nodes.setdefault(node_id, _LabelledNode(self._none))
            self._list_under(node_id, self.label_of(node_id), label)
            node.label = label
            self._by_port[node_id] = True
            return
        self._list_under(node_id, host.label, label)
        host.label = label
        for found, node in host.nodes.items():
            self._list_under(found, node.label, label)
            node.label = label
            self._by_port[found] = False

    def _list_under(self, node_id: NodeId, old: str | None, new: str) -> None:
        if old:
            self._labels[old].nodes.pop(node_id, None)
        if new:
            self._labels[new].nodes[node_id] = None

    def _host(self, name: str) -> _Host:
        host = self._hosts.get(name)
        if host is None:
            host = self._hosts[name] = _Host()
        return host

    def _running(self, node_ids: Iterable[NodeId]) -> dict[NodeId, tuple[str, Resource]]:
        """{active node: (label, resources)} of these nodes and hosts."""
        found: dict[NodeId, tuple[str, Resource]] = {}
        for wanted in node_ids:
            host = self._hosts.get(wanted.host)
            if host is None:
                continue
            for node_id in list(host.nodes) if wanted.port == WHOLE_HOST else [wanted]:
                node = host.nodes.get(node_id)
                if node is not None and node.is_running:
                    found[node_id] = (self.label_of(node_id), node.resource)
        return found

    def _rebook(
        self, before: dict[NodeId, tuple[str, Resource]], after: dict[NodeId, tuple[str, Resource]]
    ) -> LabelChanges:
        """Subtract nodes from their previous partitions and add them to the new ones (updateResourceMappings)."""
        for sign, nodes in ((-1, before), (1, after)):
            for label, resource in nodes.values():
                known = self._labels.get(label)
                if known is not None:
                    known.active_count += sign
                    self._resources[label] = self._resources[label] + resource * sign
        return [(node_id, after[node_id][0]) for node_id in hash_order(after, node_hash)]

    def _check_enabled(self) -> None:
        if not self.enabled:
            _refuse("Node-label-based scheduling is disabled. Please check yarn.node-labels.enabled")

    def _check_unused(self, name: str, queue_labels: Mapping[str, Sequence[str]]) -> None:
        for path in hash_order(queue_labels, string_hash):
            if name in queue_labels[path] and ANY not in queue_labels[path]:
                _refuse(
                    f"Cannot remove label={name}, because queue={path} is using this label. Please remove label on "
                    "queue before remove the label"
                )

    def _check_replacement(self, node_id: NodeId, names: tuple[str, ...]) -> None:
        if len(names) > 1:
            _refuse(
                f"{len(names)} labels specified on host={node_id.host}, please note that we do not support specifying "
                "multiple labels on a single host for now."
            )
        if not all(self.has(name) for name in names):
            listed = ",".join(names)
            _refuse(
                "Not all labels being replaced contained by known label collections, please check, new "
                f"labels=[{listed}]"
            )


def _check_name(name: str) -> None:
    """Raises YarnException for an invalid label name (NodeLabelUtil.checkAndThrowLabelName)."""
    if not name or len(name) > NAME_LENGTH_MAX:
        _refuse(f"label added is empty or exceeds {NAME_LENGTH_MAX} character(s)")
    if not _NAME.fullmatch(name):
        _refuse(
            "label name should only contains {0-9, a-z, A-Z, -, _} and should not started with {-,_}, now it is= "
            + name
        )


def _refuse(problem: str) -> NoReturn:
    """Hadoop's admin service throws an IOException, which clients receive wrapped in a YarnException."""
    raise YarnException(f"java.io.IOException: {problem}")
