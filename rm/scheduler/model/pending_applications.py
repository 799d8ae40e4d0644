"""The applications of a leaf that wait for activation, grouped so that an activation pass checks few of them.

Hadoop's pass checks all waiting applications whenever one is submitted or ends: 50 million checks for 10,000
submissions. The result for an application depends only on the partition and size of its AM and on its user. AM usage
only grows during a pass, so once an application is refused, all later ones of the same kind would be refused too:

    waiting, oldest first      1 GB ann    1 GB ann    1 GB bob    2 GB ann    1 GB bob
    the queue's limit refuses the first (1 GB): no other of 1 GB is checked; 2 GB ann is checked and refused

A pass checks the applications that it activates, plus one refused application per size and per user of a size. The
reason for one that was not checked is found when it is asked for: it may be the queue's limit, which Hadoop checks
first, although an earlier one of the same kind was within that limit, because of what was activated between them.

Rejected alternative: walk the whole list and skip refused kinds; then a submission still costs time in proportion to
the number of waiting applications.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from rm.scheduler.model.application import FiCaSchedulerApp
from rm.scheduler.model.application_order import FifoOrderingPolicy, OrderKey
from rm.scheduler.model.refusals import Reason, Refusal
from yarn.resource import Resource
from yarn.resource_calculator import ResourceCalculator

Size: TypeAlias = tuple[str, Resource]
"""The partition of an AM, and the amount that it counts towards the AM limit there."""

Waiting: TypeAlias = tuple[OrderKey, FiCaSchedulerApp]
"""An application with its sort key, which is unique."""


class RefusedInPass(NamedTuple):
    """A pass refused the application at `key`, and with it all later ones of the same kind."""

    in_pass: int
    key: OrderKey
    refusal: Refusal


class ActivatedInPass(NamedTuple):
    """After the activation of the application at `key`, the AMs of its partition use `am_used` of `am_limit`."""

    key: OrderKey
    am_used: Resource
    am_limit: Resource


class _UserGroup:
    """The waiting applications of one size and one user, oldest first."""

    __slots__ = ("refused", "waiting")

    def __init__(self) -> None:
        self.waiting: list[Waiting] = []
        self.refused: RefusedInPass | None = None


class _SizeGroup:
    """The waiting applications of one size, by user. `heads`: sorted (key of a user's first application, user)."""

    __slots__ = ("heads", "refused", "users")

    def __init__(self) -> None:
        self.users: dict[str, _UserGroup] = {}
        self.heads: list[tuple[OrderKey, str]] = []
        self.refused: RefusedInPass | None = None

    def add(self, key: OrderKey, application: FiCaSchedulerApp) -> None:
        group = self.users.setdefault(application.user, _UserGroup())
        self._drop_head(application.user, group)
        insort(group.waiting, (key, application), key=_key)
        insort(self.heads, (group.waiting[0][0], application.user))

    def remove(self, key: OrderKey, application: FiCaSchedulerApp) -> None:
        group = self.users[application.user]
        self._drop_head(application.user, group)
        del group.waiting[bisect_left(group.waiting, key, key=_key)]
        if group.waiting:
            insort(self.heads, (group.waiting[0][0], application.user))
        else:
            del self.users[application.user]

    def _drop_head(self, user: str, group: _UserGroup) -> None:
        if group.waiting:
            del self.heads[bisect_left(self.heads, (group.waiting[0][0], user))]


class PendingApplications:
    """The applications that wait for activation, in the order of activation; `candidates` makes a pass over them.

    `_activated` {partition: the activations of the last pass, in order}. `_reasons` {application: why it waits}: those
    that were added or reordered since the last pass; the next pass replaces them.
    """

    __slots__ = ("_activated", "_calculator", "_keys", "_order", "_passes", "_reasons", "_sizes")

    def __init__(self, calculator: ResourceCalculator) -> None:
        self._calculator = calculator
        self._activated: dict[str, list[ActivatedInPass]] = {}
        self._reasons: dict[FiCaSchedulerApp, Refusal | None] = {}
        self._order = FifoOrderingPolicy(recovering_first=True)
        self._sizes: dict[Size, _SizeGroup] = {}
        self._keys: dict[FiCaSchedulerApp, tuple[OrderKey, Size]] = {}
        self._passes = 0

    def __len__(self) -> int:
        return len(self._order)

    def __iter__(self) -> Iterator[FiCaSchedulerApp]:
        return iter(self._order)

    def __contains__(self, application: object) -> bool:
        return application in self._order

    def add(self, application: FiCaSchedulerApp) -> None:
        """Insert an application by its current key; adding twice is a no-op."""
        if application not in self._order:
            self._order.add(application)
            self._group(application, self._order.key_of(application))
            self._reasons[application] = Refusal(Reason.AM_NO_CLUSTER, application.started_ms)

    def remove(self, application: FiCaSchedulerApp) -> bool:
        """Remove an application; False if it does not wait."""
        if not self._order.remove(application):
            return False
        self._ungroup(application)
        self._reasons.pop(application, None)
        return True

    def activated(self, application: FiCaSchedulerApp, am_used: Resource, am_limit: Resource) -> None:
        """Remove a candidate that was activated; the AMs of its partition use `am_used` of `am_limit` now."""
        key, (partition, _) = self._keys[application]
        self._activated.setdefault(partition, []).append(ActivatedInPass(key, am_used, am_limit))
        self.remove(application)

    def change_priority(self, application: FiCaSchedulerApp, priority: int) -> None:
        """Reorder an application by `priority`; the refusal of the last pass is kept until the next one."""
        refusal = self.refusal_of(application)
        self.remove(application)
        application.priority = priority
        self.add(application)
        self._reasons[application] = refusal

    def size_changed(self, application: FiCaSchedulerApp) -> None:
        """Reorder an application whose AM has another partition now; a no-op if it does not wait."""
        if application in self._order:
            self._reasons[application] = self.refusal_of(application)
            self._group(application, self._ungroup(application))

    def refusal_of(self, application: FiCaSchedulerApp) -> Refusal | None:
        """Why the last pass did not activate an application; None if it does not wait.

        The numbers may be those of an earlier application that was refused for the same reason.
        """
        if application not in self._order:
            return None
        if application in self._reasons:
            return self._reasons[application]
        key, size = self._keys[application]
        by_size = self._sizes[size]
        refused = by_size.refused
        if refused is not None and self._is_refused(refused) and key >= refused.key:
            return refused.refusal
        by_user = by_size.users[application.user].refused
        assert by_user is not None, f"the last pass did not judge {application}"
        return self._refusal_by_queue(key, size, by_user.refusal.at_ms) or by_user.refusal

    def _refusal_by_queue(self, key: OrderKey, size: Size, at_ms: int) -> Refusal | None:
        """The refusal by the queue's limit, if earlier activations of the pass left too little of it."""
        partition, amount = size
        activated = self._activated.get(partition, [])
        count = bisect_left(activated, key, key=_key_of_activated)
        if not count:
            return None
        last = activated[count - 1]
        if_started = amount + last.am_used
        if self._calculator.fits_in(if_started, last.am_limit):
            return None
        return Refusal(Reason.AM_QUEUE_LIMIT, at_ms, None, if_started, last.am_limit)

    def candidates(self) -> Iterator[FiCaSchedulerApp]:
        """An activation pass: the applications to check, in order.

        The caller activates or refuses each application before it takes the next one.
        """
        self._passes += 1
        self._activated.clear()
        self._reasons.clear()
        # A sorted list is a valid heap, so `heads` needs no heapify.
        sizes = [(group, list(group.heads)) for group in self._sizes.values()]
        heads = [(users[0][0], index) for index, (_, users) in enumerate(sizes)]
        heapq.heapify(heads)
        while heads:
            _, index = heapq.heappop(heads)
            by_size, users = sizes[index]
            _, user = heapq.heappop(users)
            by_user = by_size.users[user]
            yield by_user.waiting[0][1]
            if self._is_refused(by_size.refused):
                continue
            if by_user.waiting and not self._is_refused(by_user.refused):
                heapq.heappush(users, (by_user.waiting[0][0], user))
            if users:
                heapq.heappush(heads, (users[0][0], index))

    def refuse_size(self, application: FiCaSchedulerApp, refusal: Refusal) -> None:
        """Note that the queue's limit refuses this candidate; the pass then skips later ones of its size."""
        key, size = self._keys[application]
        self._sizes[size].refused = RefusedInPass(self._passes, key, refusal)

    def refuse_user(self, application: FiCaSchedulerApp, refusal: Refusal) -> None:
        """Note that the user's limit refuses this candidate; the pass then skips later ones of its size and user."""
        key, size = self._keys[application]
        self._sizes[size].users[application.user].refused = RefusedInPass(self._passes, key, refusal)

    def _is_refused(self, refused: RefusedInPass | None) -> bool:
        return refused is not None and refused.in_pass == self._passes

    def _group(self, application: FiCaSchedulerApp, key: OrderKey) -> None:
        size = (application.am_partition, application.am_used(application.am_partition))
        self._keys[application] = (key, size)
        self._sizes.setdefault(size, _SizeGroup()).add(key, application)

    def _ungroup(self, application: FiCaSchedulerApp) -> OrderKey:
        key, size = self._keys.pop(application)
        group = self._sizes[size]
        group.remove(key, application)
        if not group.users:
            del self._sizes[size]
        return key


def _key(waiting: Waiting) -> OrderKey:
    return waiting[0]


def _key_of_activated(activated: ActivatedInPass) -> OrderKey:
    return activated.key
