"""Ended containers on their way to the AM, each told until it is known to have been heard.

A status goes from `just finished` to `sent` when the AM's allocate takes it. The next allocate proves that the reply
arrived: only then may the node forget the container. If the AM dies in between, what was sent goes back among the
just finished, for the next attempt (RMAppAttemptImpl.pullJustFinishedContainers, transferStateFromAttempt).
"""

from __future__ import annotations

from yarn.containers import ContainerStatus
from yarn.ids import ApplicationAttemptId, ContainerId, NodeId

Statuses = dict[NodeId, list[ContainerStatus]]
Heard = list[tuple[NodeId, tuple[ContainerId, ...]]]
"""What nodes may forget: (node, its containers) in the order in which the nodes first had one."""


class FinishedContainers:
    """The ended containers of one attempt, or of a line of attempts that hand them on."""

    __slots__ = ("_just_finished", "_sent")

    def __init__(self) -> None:
        self._just_finished: Statuses = {}
        self._sent: Statuses = {}

    def add(self, node_id: NodeId, status: ContainerStatus) -> None:
        """A container ended."""
        self._just_finished.setdefault(node_id, []).append(status)

    def mark_sent(self, node_id: NodeId, status: ContainerStatus) -> None:
        """A container ended that no AM needs to be told of, such as the AM's own."""
        self._sent.setdefault(node_id, []).append(status)

    def pull(self, attempt_id: ApplicationAttemptId, *, keep_containers: bool) -> tuple[ContainerStatus, ...]:
        """What the AM is to be told now; counts as sent.

        Without `keep_containers` those of earlier attempts are not told, but sent all the same: nodes forget them.
        """
        told = tuple(
            status
            for statuses in self._just_finished.values()
            for status in statuses
            if keep_containers or status.container_id.attempt_id == attempt_id
        )
        for node_id, statuses in self._just_finished.items():
            self._sent.setdefault(node_id, []).extend(statuses)
        self._just_finished.clear()
        return told

    def take_heard(self) -> Heard:
        """What was sent before: the AM has it, its nodes may forget it."""
        return _take(self._sent)

    def take_unsent(self) -> Heard:
        """What no AM will ask for any more: its nodes may forget it too."""
        return _take(self._just_finished)

    def handed_on(self) -> FinishedContainers:
        """The same list for the next attempt, with what was sent but perhaps never heard back among the unsent.

        It stays one list: what the old attempt still hears of belongs to the new one.
        """
        for node_id, statuses in self._sent.items():
            self._just_finished.setdefault(node_id, []).extend(statuses)
        self._sent.clear()
        return self


def _take(statuses: Statuses) -> Heard:
    taken = [(node_id, tuple(status.container_id for status in some)) for node_id, some in statuses.items()]
    statuses.clear()
    return taken
