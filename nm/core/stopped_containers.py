"""The containers that a node remembers after their end (NodeStatusUpdaterImpl.recentlyStoppedContainers).

A container is remembered for a time, and then on as long as its application runs. So a long application may have many
thousands of them; those whose time is over are kept by application, and no heartbeat goes through them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from yarn.ids import ApplicationId, ContainerId


class StoppedContainers:
    """The remembered containers. `kept_ms`: the least time for which each is remembered."""

    def __init__(self, kept_ms: int) -> None:
        self._kept_ms = kept_ms
        self._of: dict[ApplicationId, set[ContainerId]] = {}
        self._due_ms: deque[tuple[int, ContainerId]] = deque()
        self._overdue: dict[ApplicationId, list[ContainerId]] = {}

    def __contains__(self, container_id: ContainerId) -> bool:
        return container_id in self._of.get(container_id.application_id, ())

    def add(self, container_id: ContainerId, now_ms: int) -> None:
        """Remember a container; adding it twice is a no-op. `now_ms` is never less than in the last call."""
        known = self._of.setdefault(container_id.application_id, set())
        if container_id not in known:
            known.add(container_id)
            self._due_ms.append((now_ms + self._kept_ms, container_id))

    def expire(self, now_ms: int, is_stopped: Callable[[ApplicationId], bool]) -> None:
        """Forget the containers whose time is over and whose applications are stopped."""
        while self._due_ms and self._due_ms[0][0] < now_ms:
            _, container_id = self._due_ms.popleft()
            self._overdue.setdefault(container_id.application_id, []).append(container_id)
        for application_id in [one for one in self._overdue if is_stopped(one)]:
            known = self._of[application_id]
            known.difference_update(self._overdue.pop(application_id))
            if not known:
                del self._of[application_id]
