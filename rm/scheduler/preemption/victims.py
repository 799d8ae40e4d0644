"""The containers that a round has chosen, with why and for whom; and what of a leaf is still to be had.

Orders follow Hadoop's hash maps, in which it keeps them by attempt and container.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum

from msgspec import Struct

from rm.scheduler.model.rm_container import RMContainer
from yarn.ids import ApplicationAttemptId, ContainerId
from yarn.java.hash_order import attempt_hash, container_hash, hash_order


class PreemptionReason(Enum):
    """Which selector chose a victim, and so what for."""

    GUARANTEE = "its queue is above what it should have"
    BALANCE = "queues above their guarantees are balanced"
    RESERVATION = "a reservation on its node waits for the room"
    QUEUE_PRIORITY = "a reservation of a queue of higher priority waits for the room"
    INTRA_QUEUE = "another application of its queue comes first"


class Victim(Struct, frozen=True):
    """`serves`: the path of the queue that is to have the room."""

    container: RMContainer
    reason: PreemptionReason
    serves: str


class Victims:
    """Victims by the attempt that their container was placed for, each once."""

    __slots__ = ("_by_attempt",)

    def __init__(self) -> None:
        self._by_attempt: dict[ApplicationAttemptId, dict[ContainerId, Victim]] = {}

    def __contains__(self, container: RMContainer) -> bool:
        return container.id in self._by_attempt.get(container.attempt_id, ())

    def __iter__(self) -> Iterator[Victim]:
        """As Hadoop's HashMap of HashSets gives them."""
        for attempt_id in hash_order(self._by_attempt, attempt_hash):
            chosen = self._by_attempt[attempt_id]
            for container_id in hash_order(chosen, container_hash):
                yield chosen[container_id]

    def of_attempt(self, attempt_id: ApplicationAttemptId) -> Iterable[Victim]:
        """Those of one attempt."""
        return self._by_attempt.get(attempt_id, {}).values()

    def add(self, victim: Victim) -> None:
        container = victim.container
        self._by_attempt.setdefault(container.attempt_id, {})[container.id] = victim
