"""The progress of an application's nodes with aggregating its logs (RMAppLogAggregation)."""

from __future__ import annotations

from yarn.ids import NodeId
from yarn.states import LogAggregationStatus as Status

_OVER = frozenset({Status.SUCCEEDED, Status.FAILED})


class AppLogAggregation:
    """The statuses of one application. They are kept until all of its nodes are done, then only the outcome is.

    Hadoop also keeps nodes' diagnostics for its web pages.
    """

    def __init__(self, *, enabled: bool, timeout_ms: int) -> None:
        self._enabled = enabled
        self._timeout_ms = timeout_ms
        self._outcome: Status | None = None
        self._nodes: dict[NodeId, Status] = {}

    def add_node(self, node_id: NodeId) -> None:
        """Note that the application has a container on the node."""
        if self._enabled and self._outcome is None:
            self._nodes.setdefault(node_id, Status.NOT_START)

    def report(self, node_id: NodeId, status: Status, *, is_over: bool) -> None:
        """Note a node's status; `is_over`: the application is in a final state."""
        if not self._enabled or self._outcome is not None:
            return
        known = self._nodes.get(node_id)
        if status is not Status.RUNNING or known is not Status.RUNNING_WITH_FAILURE:
            self._nodes[node_id] = status
        if is_over and status in _OVER:
            self._maybe_finish()

    def status(self, *, is_over: bool, finish_ms: int, now_ms: int) -> Status:
        """The status of the application; a node that reports nothing for long after the end counts as timed out."""
        if not self._enabled:
            return Status.DISABLED
        if self._outcome is not None:
            return self._outcome
        if not self._nodes:
            return Status.NOT_START
        if is_over and now_ms > finish_ms + self._timeout_ms:
            self._nodes = {
                node_id: status if status in _OVER else Status.TIME_OUT for node_id, status in self._nodes.items()
            }
        return (self._maybe_finish() if is_over else None) or self._progress()

    def _maybe_finish(self) -> Status | None:
        """The outcome, once all nodes are done; None before."""
        found = set(self._nodes.values())
        if found <= {*_OVER, Status.TIME_OUT}:
            worst = (Status.FAILED, Status.TIME_OUT, Status.SUCCEEDED)
            self._outcome = next(status for status in worst if status in found)
            self._nodes.clear()
        return self._outcome

    def _progress(self) -> Status:
        found = set(self._nodes.values())
        if found == {Status.NOT_START}:
            return Status.NOT_START
        return Status.RUNNING_WITH_FAILURE if Status.RUNNING_WITH_FAILURE in found else Status.RUNNING
