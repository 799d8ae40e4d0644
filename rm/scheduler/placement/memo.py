"""Optimisations: placement work that is skipped because its outcome is known. The rules do not depend on them.

Five kinds of work are skipped, without changing any decision (tests/rm/scheduler/test_straightforward.py):

- Node visits that would again do nothing. `SchedulerContext.change_count` counts every change that could affect a
  visit; if it stays the same during a visit, the visit placed nothing and changed nothing.
- Visits of nodes with room, if all queues of their partition are satisfied or at their limits. Then none of the checks
  of a visit looks at the node itself (`SchedulerContext.node_check_count`), so one visit that did nothing stands for
  all (tests/rm/scheduler/test_known_visits.py). Only a simulation leaves out these visits, because each would note why
  it was refused, for explanations.
- Offers of a node to a leaf that would again do nothing. `CSQueue.change_count` counts every change that could affect
  an offer to the leaf. Not counted are changes of another leaf that concern only that leaf: its applications have
  changed their requests, or an offer to it has counted an opportunity or stored a limit. An offer also depends on
  what the parent has available for its children, which is compared.
- Applications without requests and reservations, usually most of a leaf. An iteration that skipped one removes it from
  the list of those to check until its requests change. Skipping it has one side effect, a lookup of its user's limit,
  so the first application of each user stays on the list. And the leaf's limit is checked for each application up to
  the first one without a reservation, so while anything is reserved in the leaf, that one is checked, too.
- Checks of the user limit for further applications of a user that this iteration has refused.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter

from rm.scheduler.capacity.limits import is_captured
from rm.scheduler.model.application import FiCaSchedulerApp
from rm.scheduler.model.application_order import Entry, FifoOrderingPolicy, OrderListener, entry_key, take_out
from rm.scheduler.model.context import RESPECT, SchedulerContext, SchedulingMode
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.node import SchedulerNode
from rm.scheduler.model.queue import CSQueue
from rm.scheduler.model.users import CachedUserLimit
from yarn.ids import ApplicationId, NodeId
from yarn.resource import Resource

_application_of: Callable[[Entry], FiCaSchedulerApp] = itemgetter(1)


class VisitMemo:
    """The nodes on which a visit would do nothing, and the leaves to which an offer of a node would do nothing.

    `_settled` {node: the change count at which a visit did nothing}. `_refused` {(node, whether partitions are
    respected): refused offers}. `_refusing` {partition: the change count at which a visit did nothing that would have
    done nothing on any other node}.
    """

    __slots__ = ("_context", "_refused", "_refusing", "_settled")

    def __init__(self, context: SchedulerContext) -> None:
        self._context = context
        self._settled: dict[NodeId, int] = {}
        self._refused: dict[tuple[NodeId, bool], RefusedOffers] = {}
        self._refusing: dict[str, int] = {}

    def is_settled(self, node: SchedulerNode) -> bool:
        """True if a visit of the node would do nothing, because nothing has changed since the last such visit."""
        return self._settled.get(node.node_id) == self._context.change_count

    def settle(self, node: SchedulerNode) -> None:
        """Record that a visit did nothing. Entries of removed nodes are dropped with all others."""
        if len(self._settled) > self._context.node_count:
            self._settled.clear()
        self._settled[node.node_id] = self._context.change_count

    def refuses_all(self, partition: str) -> bool:
        """True if a visit of any node of the partition that has room and no reservation would do nothing.

        So it is if all queues are satisfied or at their limits: then no check looks at the node.
        """
        return self._refusing.get(partition) == self._context.change_count

    def refuse_all(self, partition: str) -> None:
        """Record that a visit did nothing, and that no check depended on its node."""
        self._refusing[partition] = self._context.change_count

    def refused(self, node: SchedulerNode, mode: SchedulingMode) -> RefusedOffers:
        """The refused offers of the node. Those of removed nodes are dropped with all others."""
        key = (node.node_id, mode is RESPECT)
        refused = self._refused.get(key)
        if refused is None:
            if len(self._refused) > 2 * self._context.node_count:
                self._refused.clear()
            refused = self._refused[key] = RefusedOffers()
        refused.drop_older_than(self._context.shared_change_count)
        return refused


class RefusedOffers:
    """The leaves to which an offer of one node, in one mode, did nothing.

    `_refused` {leaf: its change count at the offer, what was available to it and its siblings, and whether a check
    depended on the node}. `_shared_count`: the number of changes that concern all leaves, before these offers.
    """

    __slots__ = ("_refused", "_shared_count")

    def __init__(self) -> None:
        self._refused: dict[CSQueue, tuple[int, Resource, bool]] = {}
        self._shared_count = 0

    def drop_older_than(self, shared_count: int) -> None:
        """Drop the offers if something has changed for all leaves since then: they would be kept for nothing."""
        if self._shared_count != shared_count:
            self._shared_count = shared_count
            self._refused.clear()

    def include(self, queue: CSQueue, available: Resource) -> bool:
        """True if the queue is a leaf that would refuse the node again, without any other effect."""
        refused = self._refused.get(queue)
        return refused is not None and refused[0] == queue.change_count and refused[1] == available

    def depends_on_node(self, queue: CSQueue) -> bool:
        """True if a queue that is included might accept another node."""
        return self._refused[queue][2]

    def add(self, leaf: LeafQueue, available: Resource, *, depends_on_node: bool) -> None:
        """Note that the leaf has refused the node, and that the offer changed nothing."""
        self._refused[leaf] = (leaf.change_count, available, depends_on_node)


class RefusedUsers:
    """The users that one iteration over a leaf's applications has refused because they are above their limits."""

    __slots__ = ("_by_name", "_leaf")

    def __init__(self, leaf: LeafQueue) -> None:
        self._leaf = leaf
        self._by_name: dict[str, CachedUserLimit] = {}

    def add(self, application: FiCaSchedulerApp, cached: CachedUserLimit) -> None:
        """Note that the application was refused because of its user's limit."""
        self._by_name[application.user] = cached

    def include(self, application: FiCaSchedulerApp, reserved: Resource) -> bool:
        """True if this application, with this much reserved, would be refused too, without any other effect."""
        cached = self._by_name.get(application.user)
        return cached is not None and cached.has_failed_with(reserved) and is_captured(self._leaf, application)


class DemandIndex(OrderListener):
    """The applications of one leaf that an iteration has to check, kept in step with the leaf's order.

    `_resting` {application: its entry} are the others. `_of_user` {user: the user's entries}. `only_limits`: listed
    applications that request and reserve nothing, a set that keeps its order; only their users' limits are checked.
    """

    __slots__ = ("_of_user", "_resting", "listed", "only_limits")

    def __init__(self, order: FifoOrderingPolicy) -> None:
        self.listed: list[Entry] = []
        self.only_limits: dict[ApplicationId, None] = {}
        self._of_user: dict[str, list[Entry]] = {}
        self._resting: dict[ApplicationId, Entry] = {}
        for entry in order.entries:
            self.added(entry)

    def with_one(self, entry: Entry | None) -> list[Entry]:
        """The applications to check and this one, in order."""
        if entry is None or entry[1].attempt_id.application_id not in self._resting:
            return self.listed
        listed = list(self.listed)
        insort(listed, entry, key=entry_key)
        return listed

    def rest(self, entry: Entry) -> None:
        """Skip an application that requests and reserves nothing; the first one of a user only for its limit."""
        application = entry[1]
        application_id = application.attempt_id.application_id
        if self._of_user[application.user][0][1] is application:
            self.only_limits[application_id] = None
        elif application_id not in self._resting:
            take_out(self.listed, entry)
            self._resting[application_id] = entry

    def added(self, entry: Entry) -> None:
        insort(self.listed, entry, key=entry_key)
        of_user = self._of_user.setdefault(entry[1].user, [])
        for _, first in of_user[:1]:
            # It may no longer be the first.
            self.requests_changed(first.attempt_id.application_id)
        insort(of_user, entry, key=entry_key)

    def removed(self, entry: Entry) -> None:
        """Remove an application; the user's next application may now be the first one."""
        application = entry[1]
        application_id = application.attempt_id.application_id
        self.only_limits.pop(application_id, None)
        resting = self._resting.get(application_id)
        if resting is not None and resting[1] is application:
            del self._resting[application_id]
        else:
            take_out(self.listed, entry)
        of_user = self._of_user[application.user]
        take_out(of_user, entry)
        if of_user:
            self.requests_changed(of_user[0][1].attempt_id.application_id)
        else:
            del self._of_user[application.user]

    def requests_changed(self, application_id: ApplicationId) -> None:
        """Check the application again."""
        self.only_limits.pop(application_id, None)
        entry = self._resting.pop(application_id, None)
        if entry is not None:
            insort(self.listed, entry, key=entry_key)

    def user_renewed(self, user: str) -> None:
        """Check all of the user's applications again."""
        for _, application in self._of_user.get(user, ()):
            self.requests_changed(application.attempt_id.application_id)


def with_demand(leaf: LeafQueue, partition: str) -> Iterator[FiCaSchedulerApp]:
    """Yield `leaf.active.offers(partition)` without resting applications. Call `rest` only after the iteration."""
    order = leaf.active
    if not order.is_same_for_all_partitions:
        # Each partition would need its own first application of each user.
        return order.offers(partition)
    order.prepare()
    index = order.listener
    if not isinstance(index, DemandIndex):
        index = order.listener = DemandIndex(order)
    if leaf.usage.default.reserved.is_none():
        return map(_application_of, index.listed)
    return map(_application_of, index.with_one(next(filter(_has_no_reservation, order.entries), None)))


def rest(leaf: LeafQueue, applications: Iterable[FiCaSchedulerApp]) -> None:
    """Skip these applications from now on: an iteration skipped them, and they request and reserve nothing."""
    index = leaf.active.listener
    if isinstance(index, DemandIndex):
        for application in applications:
            index.rest(leaf.active.entry_of(application))


def only_for_limits(leaf: LeafQueue) -> dict[ApplicationId, None]:
    """The applications of `with_demand` that request and reserve nothing: an offer to them would do nothing."""
    index = leaf.active.listener
    return index.only_limits if isinstance(index, DemandIndex) else {}


def _has_no_reservation(entry: Entry) -> bool:
    return entry[1].usage.default.reserved.is_none()
