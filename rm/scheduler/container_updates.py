"""Changes of an attempt's containers: how a container grows and shrinks (ContainerUpdateContext).

A container grows by asking, strictly on its node, for a TEMPORARY container of the difference. It is placed and
counted like any other but not handed out: at the next pull the old container takes over its size, and the temporary
one, of no size any more, is released. A container shrinks by the opposite: a temporary container of no size takes
over the difference and is released with it. So usage changes only through the ways by which all usage changes.
An opportunistic container, for which nothing counts, is promoted by asking for all of its size, and a guaranteed one
demoted by a temporary container that takes over all of it: they exchange their execution types with the rest.

What Hadoop forgets is kept forgotten: the mark of an increase that has been served stays, since it is looked up by
the container's new size, and a temporary container of a decrease was never counted but is counted off.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from rm.scheduler.model.asks import AskTerms, NodeType, SchedulerKey
from rm.scheduler.model.node import SchedulerNode
from rm.scheduler.model.notices import ReleaseTemporary, UpdateContainer
from rm.scheduler.model.rm_container import FINAL, AcquireUpdatedContainer, RMContainer
from rm.scheduler.update_checks import OUTSTANDING
from yarn.asks import ANY, UpdateContainerError, UpdateContainerRequest
from yarn.containers import Container
from yarn.ids import ContainerId, NodeId
from yarn.java.hash_order import container_hash, hash_order
from yarn.protocols.master import UpdatedContainer
from yarn.resource import Resource, componentwise_max
from yarn.states import ContainerUpdateType, ExecutionType

if TYPE_CHECKING:
    from rm.scheduler.context import SchedulerContext
    from rm.scheduler.model.application import FiCaSchedulerApp


_INCREASE, _DECREASE = ContainerUpdateType.INCREASE_RESOURCE, ContainerUpdateType.DECREASE_RESOURCE
_PROMOTE, _DEMOTE = ContainerUpdateType.PROMOTE_EXECUTION_TYPE, ContainerUpdateType.DEMOTE_EXECUTION_TYPE

_Size = tuple[int, ...]


class ContainerUpdates:
    """One attempt's changes under way.

    `_increases` {key: {(difference, node): wanted}}; `_decreases` {container: its size to be}. `_increased`,
    `_decreased`, `_promoted` and `_demoted` {container: its temporary one} wait for the pull; `_to_release` are
    temporary ones that serve nobody.
    """

    __slots__ = (
        "_application",
        "_context",
        "_decreased",
        "_decreases",
        "_demoted",
        "_increased",
        "_increases",
        "_promoted",
        "_refused",
        "_to_release",
    )

    def __init__(self, application: FiCaSchedulerApp, context: SchedulerContext) -> None:
        self._application = application
        self._context = context
        self._increases: dict[SchedulerKey, dict[tuple[_Size, NodeId], bool]] = {}
        self._decreases: dict[ContainerId, Resource] = {}
        self._increased: dict[ContainerId, RMContainer] = {}
        self._decreased: dict[ContainerId, RMContainer] = {}
        self._promoted: dict[ContainerId, RMContainer] = {}
        self._demoted: dict[ContainerId, RMContainer] = {}
        self._to_release: list[RMContainer] = []
        self._refused: list[UpdateContainerError] = []

    # What the AM asks for

    def increase(self, container: RMContainer, target: Resource, node: SchedulerNode) -> bool:
        """Ask for the difference; False if the container is about to shrink."""
        key = _key_of(container)
        wanted = self._increases.get(key)
        if wanted is None:
            wanted = self._increases[key] = {}
        else:
            self._cancel(key, node)
        difference = componentwise_max(target, container.resource) - container.resource
        return self._ask(container, key, wanted, difference, node)

    def promote(self, container: RMContainer, node: SchedulerNode) -> bool:
        """Ask for all of an opportunistic one's size; False if it is about to change already."""
        key = _key_of(container)
        if key in self._increases:
            return False
        wanted = self._increases[key] = {}
        return self._ask(container, key, wanted, container.resource, node)

    def demote(self, container: RMContainer, node: SchedulerNode) -> bool:
        """Have it count for nothing at the next pull; False if it is about to change already."""
        if container.id in self._decreases or container.id in self._increased:
            return False
        self._decreases[container.id] = container.resource
        temporary = self._temporary(container)
        opportunistic = ExecutionType.OPPORTUNISTIC
        temporary.container = replace(temporary.container, resource=container.resource, execution_type=opportunistic)
        self._application.hold(temporary.id, temporary)
        node.allocate_container(temporary)
        self._demoted[container.id] = temporary
        return True

    def _ask(
        self,
        container: RMContainer,
        key: SchedulerKey,
        wanted: dict[tuple[_Size, NodeId], bool],
        difference: Resource,
        node: SchedulerNode,
    ) -> bool:
        place = (difference.values(), node.node_id)
        wanted.setdefault(place, False)
        if container.id in self._decreases:
            return False
        wanted[place] = True
        if not difference.is_none():
            rows = [(terms, 1) for terms in _terms(container, node, difference)]
            self._application.asks.put(key, rows)
        return True

    def decrease(self, container: RMContainer, target: Resource, node: SchedulerNode) -> bool:
        """Have it shrink at the next pull; False if it is about to shrink or to grow already.

        Of one about to grow Hadoop loses the size to shrink to, and fails at every pull until the container ends.
        """
        if container.id in self._decreases or container.id in self._increased:
            return False
        self._cancel(_key_of(container), node)
        self._decreases[container.id] = target
        temporary = self._temporary(container)
        # Minor oddity of Hadoop's: under the temporary container's id the attempt holds the one that shrinks.
        self._application.hold(temporary.id, container)
        node.allocate_container(temporary)
        self._decreased[container.id] = temporary
        return True

    def _cancel(self, key: SchedulerKey, node: SchedulerNode) -> None:
        """Take back what an earlier increase of the container still asks for."""
        asks = self._application.asks
        if asks.count(key) > 0:
            asks.allocate(NodeType.OFF_SWITCH, node.name, node.rack, key)

    def _temporary(self, container: RMContainer) -> RMContainer:
        old = container.container
        return RMContainer(
            replace(old, id=self._application.next_container_id(), resource=self._context.none, token=None),
            SchedulerKey(False, old.priority, old.allocation_request_id),
            user=self._application.user,
            queue=self._application.leaf.path,
            partition="",
            started_ms=self._context.now_ms,
            notify=self._context.notify,
        )

    def refuse(self, request: UpdateContainerRequest) -> None:
        """Another change of the container is under way; the AM is told with its next reply."""
        self._refused.append(UpdateContainerError(OUTSTANDING, request))

    def pull_refused(self) -> tuple[UpdateContainerError, ...]:
        """What was refused since the last pull."""
        refused, self._refused = tuple(self._refused), []
        return refused

    # What was placed

    def take(self, placed: RMContainer, node: SchedulerNode) -> bool:
        """True if `placed` is a temporary container, which is kept here; False for one that is to be handed out."""
        wanted = self._increases.get(placed.key)
        if wanted is None:
            return False
        if not wanted.get((placed.resource.values(), placed.node_id)):
            self._application.asks.restore(placed.key, _terms(placed, node, placed.resource))
            self._to_release.append(placed)
            return True
        assert placed.key.container_id is not None
        existing = self._application.live_containers.get(placed.key.container_id)
        if existing is None or existing.state in FINAL:
            self._to_release.append(placed)
        else:
            waiting = self._promoted if existing.is_opportunistic else self._increased
            waiting[existing.id] = placed
        return True

    # The pull

    def pull(self) -> tuple[UpdatedContainer, ...]:
        """The containers that have changed, increased ones first; their temporary ones are on their way out."""
        waiting = (self._increased, self._decreased, self._promoted, self._demoted)
        if not (self._to_release or any(waiting)):
            return ()
        self._increased, self._decreased, self._promoted, self._demoted = {}, {}, {}, {}
        updated: list[UpdatedContainer] = []
        for temporaries, kind in zip(waiting, (_INCREASE, _DECREASE, _PROMOTE, _DEMOTE), strict=True):
            updated += self._swap(temporaries, kind)
        return tuple(updated)

    def _swap(
        self, temporaries: dict[ContainerId, RMContainer], kind: ContainerUpdateType
    ) -> Iterable[UpdatedContainer]:
        updated = []
        live = self._application.live_containers
        for container_id in hash_order(temporaries, container_hash):
            temporary = temporaries[container_id]
            existing = live.get(container_id)
            # Hadoop does not look for the temporary one: it hands out an increase whose room was given back.
            if existing is not None and temporary.id in live:
                self._exchange(temporary, existing, kind)
                self._forget(temporary.key, existing.container)
                existing.container = replace(existing.container, version=existing.container.version + 1)
                updated.append(UpdatedContainer(kind, existing.container))
                self._tell(existing, kind)
            self._to_release.append(temporary)
        for temporary in self._to_release:
            temporary.asks = None
            self._context.notify(ReleaseTemporary(temporary))
        self._to_release = []
        return updated

    def _tell(self, changed: RMContainer, kind: ContainerUpdateType) -> None:
        """Its NM hears of it from us, unless that is the AM's to do, which has so long for an increase."""
        if kind is _DECREASE or self._context.settings.auto_update_containers:
            self._context.notify(UpdateContainer(changed.node_id, changed.container))
        elif changed.allows(AcquireUpdatedContainer):
            is_increase = kind is _INCREASE
            changed.handle(AcquireUpdatedContainer(is_increase), self._context.now_ms)

    def _exchange(self, temporary: RMContainer, existing: RMContainer, kind: ContainerUpdateType) -> None:
        """The existing one gets its new size, the temporary one what is to be released (swapContainer)."""
        if kind is _INCREASE:
            size, rest = existing.resource + temporary.resource, self._context.none
        elif kind is _DECREASE:
            size = self._decreases[existing.id]
            rest = existing.resource - size
        else:
            size = rest = existing.resource
        before, after = existing.container.execution_type, temporary.container.execution_type
        existing.container = replace(existing.container, resource=size, execution_type=after)
        temporary.container = replace(temporary.container, resource=rest, execution_type=before)

    def _forget(self, key: SchedulerKey, changed: Container) -> None:
        """removeFromOutstandingUpdate: an increase is looked for by the NEW size, so it mostly stays."""
        wanted = self._increases.get(key)
        if wanted is not None:
            place = (changed.resource.values(), changed.node_id)
            if wanted.get(place):
                del wanted[place]
            if not wanted:
                del self._increases[key]
        self._decreases.pop(changed.id, None)


def apply_updates(attempt: FiCaSchedulerApp, updates: Iterable[tuple[UpdateContainerRequest, RMContainer]]) -> None:
    """Take checked requests on, with their sizes normalised; increases come first. What is refused waits to be told."""
    requests = list(updates)
    for kind in (_PROMOTE, _INCREASE, _DEMOTE, _DECREASE):
        for request, container in requests:
            node = attempt.leaf.context.nodes.get(container.node_id)
            if request.type is kind and node is not None and not _take_on(attempt.updates, request, container, node):
                attempt.updates.refuse(request)


def _take_on(
    updates: ContainerUpdates, request: UpdateContainerRequest, container: RMContainer, node: SchedulerNode
) -> bool:
    if request.type is _PROMOTE:
        return updates.promote(container, node)
    if request.type is _DEMOTE:
        return updates.demote(container, node)
    assert request.capability is not None, "check_updates has seen to it"
    take = updates.increase if request.type is _INCREASE else updates.decrease
    return take(container, request.capability, node)


def _key_of(container: RMContainer) -> SchedulerKey:
    """Where an increase of the container is asked for."""
    return SchedulerKey(True, container.priority, container.container.allocation_request_id, container.id)


def _terms(container: RMContainer, node: SchedulerNode, size: Resource) -> tuple[AskTerms, ...]:
    names = (container.node_id.host, node.rack, ANY)
    return tuple(AskTerms(name, size, False, container.partition) for name in names)
