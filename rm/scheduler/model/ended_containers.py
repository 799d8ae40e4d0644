"""The containers that ended last, for explanations."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator

from rm.scheduler.model.rm_container import RMContainer
from yarn.ids import ApplicationId, ContainerId

ENDED_MAX = 2000
"""The number of ended containers that are kept: about 3 MB."""


class EndedContainers:
    """The last ENDED_MAX containers that ended, with the time of their end. They do not change any more."""

    __slots__ = ("_by_id",)

    def __init__(self) -> None:
        # Taking the oldest one out of a dict would search through the places of those taken out before.
        self._by_id: OrderedDict[ContainerId, tuple[RMContainer, int]] = OrderedDict()

    def add(self, container: RMContainer, ended_ms: int) -> None:
        """Keep a container, and forget the one that ended first if there are too many."""
        by_id = self._by_id
        if len(by_id) >= ENDED_MAX:
            by_id.popitem(last=False)
        by_id[container.id] = (container, ended_ms)

    def find(self, container_id: ContainerId) -> tuple[RMContainer, int] | None:
        """The container and when it ended; None if it has not ended, or too long ago."""
        return self._by_id.get(container_id)

    def of(self, application_id: ApplicationId) -> Iterator[tuple[RMContainer, int]]:
        """Yield the application's containers, each with the time of its end, the last one first."""
        return (ended for ended in self.last_first() if ended[0].id.application_id == application_id)

    def last_first(self) -> Iterator[tuple[RMContainer, int]]:
        """Yield each container with the time of its end, the last one first."""
        return reversed(self._by_id.values())

    def __len__(self) -> int:
        return len(self._by_id)

    def __deepcopy__(self, _: object) -> EndedContainers:
        """A copy of the scheduler starts without them: nothing that it tries depends on them."""
        return EndedContainers()
