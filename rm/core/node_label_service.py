"""ResourceManagerAdministrationProtocol's calls about node labels as the core sees them (AdminService)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rm.core.stored_state import NodeLabelState
from rm.scheduler.model.node_labels import WHOLE_HOST
from yarn.errors import YarnException
from yarn.ids import NodeId
from yarn.nodes import NodeLabel

if TYPE_CHECKING:
    from rm.core.context import RMContext


class NodeLabelService:
    """Labels come and go, and nodes get them: a call takes effect whole, or not at all."""

    def __init__(self, context: RMContext) -> None:
        self._context = context

    def add(self, labels: tuple[NodeLabel, ...]) -> None:
        """New labels of the cluster. Raises YarnException."""
        self._context.scheduler.labels.add(labels)
        self._context.store.change_node_labels()

    def remove(self, names: tuple[str, ...]) -> None:
        """Labels go. Raises YarnException, for one that a queue names too."""
        self._context.scheduler.remove_node_labels(names, self._context.now_ms)
        self._context.store.change_node_labels()

    def replace(self, labels: tuple[tuple[NodeId, tuple[str, ...]], ...], fail_on_unknown_nodes: bool) -> None:
        """Other labels for nodes and whole hosts, which need not be there. Raises YarnException."""
        wanted = dict(labels)
        unknown = self._unknown(wanted) if fail_on_unknown_nodes else []
        if unknown:
            listed = ", ".join(map(str, unknown))
            raise YarnException(f"java.io.IOException: Failed to replace labels as there are unknown nodes:[{listed}]")
        self._context.scheduler.replace_node_labels(wanted, self._context.now_ms)
        self._context.store.change_node_labels()

    def recover(self, state: NodeLabelState) -> None:
        """Make the labels what they were; without node labels what is stored waits (initNodeLabelStore)."""
        scheduler = self._context.scheduler
        if scheduler.labels.enabled:
            scheduler.labels.add(state.labels)
            given = {node_id: (label,) if label else () for node_id, label in state.given}
            scheduler.replace_node_labels(given, self._context.now_ms)

    def _unknown(self, node_ids: Iterable[NodeId]) -> list[NodeId]:
        """Those that are neither nodes, of whatever state, nor hosts of one."""
        known = {*self._context.nodes, *self._context.inactive_nodes}
        known |= {NodeId(node_id.host, WHOLE_HOST) for node_id in known}
        return [node_id for node_id in node_ids if node_id not in known]
