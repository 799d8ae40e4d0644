"""Updates of containers: size and execution type (ContainerUpdateContext).

To increase a container, a TEMPORARY container of the difference is requested, strictly on the container's own node. It
is placed and counted like any other, but not returned to the AM. At the AM's next call the old container takes over its
size, and the temporary container, now of size 0, is released. To decrease a container, a temporary container of size 0
takes over the difference and is released. So usage changes only through placement and release.

An opportunistic container, which is not charged to a queue, is promoted by requesting all of its size. A guaranteed one
is demoted by a temporary container that takes over all of its size. The two also exchange their execution types.

Two faults of Hadoop are kept: the record of an increase that was served is not removed, since it is looked up by the
container's new size; and a temporary container of a decrease is subtracted although it was never counted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from msgspec.structs import replace

from rm.scheduler.capacity.booking import put_requests, restore_requests, take_request
from rm.scheduler.model.application import FiCaSchedulerApp, Place
from rm.scheduler.model.node import SchedulerNode
from rm.scheduler.model.notices import ReleaseTemporary, UpdateContainer
from rm.scheduler.model.requests import NodeType, RequestTerms, SchedulerKey
from rm.scheduler.model.rm_container import FINAL, RMContainer
from rm.scheduler.model.rm_container_events import AcquireUpdatedContainer
from yarn.containers import ANY, Container, UpdateContainerError, UpdateContainerRequest
from yarn.errors import YARNFeatureNotEnabledException
from yarn.ids import ContainerId, container_hash
from yarn.java.hash_order import hash_order
from yarn.protocols.master import UpdatedContainer
from yarn.resource import Resource, componentwise_max
from yarn.states import ContainerUpdateType, ExecutionType

_INCREASE, _DECREASE = ContainerUpdateType.INCREASE_RESOURCE, ContainerUpdateType.DECREASE_RESOURCE
_PROMOTE, _DEMOTE = ContainerUpdateType.PROMOTE_EXECUTION_TYPE, ContainerUpdateType.DEMOTE_EXECUTION_TYPE

OUTSTANDING = "UPDATE_OUTSTANDING_ERROR"
INCORRECT_VERSION = "INCORRECT_CONTAINER_VERSION_ERROR"
INVALID_ID = "INVALID_CONTAINER_ID"
OUTSIDE_RANGE = "RESOURCE_OUTSIDE_ALLOWED_RANGE"


def check_updates(
    updates: Iterable[UpdateContainerRequest],
    *,
    find: Callable[[ContainerId], RMContainer | None],
    normalized: Callable[[Resource], Resource | None],
    may_demote: bool,
) -> tuple[list[UpdateContainerRequest], list[UpdateContainerError]]:
    """(accepted requests with their sizes normalised, errors for the others).

    `find` returns a live container, `normalized` a size or None if it is out of range. A change to the present
    execution type is neither accepted nor an error. The requested execution type decides, not the kind of update that
    the request names. Raises YARNFeatureNotEnabledException for a demotion unless `may_demote`
    (validateAndSplitUpdateResourceRequests).
    """
    accepted: list[UpdateContainerRequest] = []
    errors: list[UpdateContainerError] = []
    outstanding: set[ContainerId] = set()
    for request in updates:
        container = find(request.container_id)
        reason = _mismatch(request, container, outstanding)
        if reason is None and request.type in (_INCREASE, _DECREASE):
            size = normalized(request.capability) if request.capability is not None else None
            if size is None:
                reason = OUTSIDE_RANGE
            else:
                accepted.append(replace(request, capability=size))
        elif reason is None and container is not None:
            accepted += _change_of_type(request, container, may_demote=may_demote)
        if accepted and accepted[-1].container_id == request.container_id:
            outstanding.add(request.container_id)
        if reason is not None:
            version = container.container.version if container is not None else -1
            errors.append(UpdateContainerError(reason, request, version))
    return accepted, errors


def _change_of_type(
    request: UpdateContainerRequest, container: RMContainer, *, may_demote: bool
) -> list[UpdateContainerRequest]:
    if request.execution_type in (None, container.container.execution_type):
        return []
    if request.execution_type is ExecutionType.GUARANTEED:
        return [replace(request, type=ContainerUpdateType.PROMOTE_EXECUTION_TYPE)]
    if not may_demote:
        raise YARNFeatureNotEnabledException(
            f"{request.container_id} cannot be demoted: there are no opportunistic containers "
            "(set yarn.resourcemanager.opportunistic-container-allocation.enabled to true)"
        )
    return [replace(request, type=ContainerUpdateType.DEMOTE_EXECUTION_TYPE)]


def _mismatch(
    request: UpdateContainerRequest, container: RMContainer | None, outstanding: Collection[ContainerId]
) -> str | None:
    if container is None:
        return INVALID_ID
    if request.version != container.container.version:
        return INCORRECT_VERSION
    if request.container_id in outstanding:
        return OUTSTANDING
    return None


def apply_updates(application: FiCaSchedulerApp, updates: Iterable[tuple[UpdateContainerRequest, RMContainer]]) -> None:
    """Apply checked updates; promotions and increases come first. A refused one is reported with the next reply."""
    requests = list(updates)
    for kind in (_PROMOTE, _INCREASE, _DEMOTE, _DECREASE):
        for request, container in requests:
            node = application.leaf.context.nodes.get(container.node_id)
            if request.type is kind and node is not None and not _apply(application, request, container, node):
                application.updates.refused.append(UpdateContainerError(OUTSTANDING, request))


def _apply(
    application: FiCaSchedulerApp, request: UpdateContainerRequest, container: RMContainer, node: SchedulerNode
) -> bool:
    """Apply an update; False if another update of the container is in progress."""
    if request.type is _PROMOTE:
        return _promote(application, container, node)
    if request.type is _DEMOTE:
        return _demote(application, container, node)
    assert request.capability is not None, "checked by check_updates"
    apply = _increase if request.type is _INCREASE else _decrease
    return apply(application, container, request.capability, node)


def _increase(application: FiCaSchedulerApp, container: RMContainer, target: Resource, node: SchedulerNode) -> bool:
    """Request the difference; False if another update of the container is in progress."""
    key, increases = _key_of(container), application.updates.increases
    wanted = increases.get(key)
    if wanted is None:
        wanted = increases[key] = {}
    else:
        _cancel(application, key, node)
    difference = componentwise_max(target, container.resource) - container.resource
    return _request(application, container, wanted, difference, node)


def _promote(application: FiCaSchedulerApp, container: RMContainer, node: SchedulerNode) -> bool:
    """Request all of an opportunistic container's size; False if another update is in progress."""
    key, increases = _key_of(container), application.updates.increases
    if key in increases:
        return False
    wanted = increases[key] = {}
    return _request(application, container, wanted, container.resource, node)


def _request(
    application: FiCaSchedulerApp,
    container: RMContainer,
    wanted: dict[Place, bool],
    difference: Resource,
    node: SchedulerNode,
) -> bool:
    place = (difference.values(), node.node_id)
    wanted.setdefault(place, False)
    if container.id in application.updates.decreases:
        return False
    wanted[place] = True
    if not difference.is_none():
        put_requests(application, _key_of(container), [(terms, 1) for terms in _terms(container, node, difference)])
    return True


def _demote(application: FiCaSchedulerApp, container: RMContainer, node: SchedulerNode) -> bool:
    """Demote the container, which is charged to no queue from the reply to this call on; False as in `_apply`."""
    updates = application.updates
    if container.id in updates.decreases or container.id in updates.increased:
        return False
    updates.decreases[container.id] = container.resource
    temporary = _temporary(application, container)
    opportunistic = ExecutionType.OPPORTUNISTIC
    temporary.container = replace(temporary.container, resource=container.resource, execution_type=opportunistic)
    application.hold(temporary.id, temporary)
    node.allocate_container(temporary)
    updates.demoted[container.id] = temporary
    return True


def _decrease(application: FiCaSchedulerApp, container: RMContainer, target: Resource, node: SchedulerNode) -> bool:
    """Shrink the container with the reply to this call; False if another update is in progress.

    If an increase is pending, Hadoop loses the target size and fails at every call until the container ends.
    """
    updates = application.updates
    if container.id in updates.decreases or container.id in updates.increased:
        return False
    _cancel(application, _key_of(container), node)
    updates.decreases[container.id] = target
    temporary = _temporary(application, container)
    application.leaf.context.containers_miscounted = True
    # As in Hadoop, the attempt holds the shrinking container under the temporary container's id.
    application.hold(temporary.id, container)
    node.allocate_container(temporary)
    updates.decreased[container.id] = temporary
    return True


def _cancel(application: FiCaSchedulerApp, key: SchedulerKey, node: SchedulerNode) -> None:
    """Withdraw what an earlier increase of the container still requests."""
    if application.requests.count(key) > 0:
        take_request(application, NodeType.OFF_SWITCH, node, key)


def _temporary(application: FiCaSchedulerApp, container: RMContainer) -> RMContainer:
    old, context = container.container, application.leaf.context
    return RMContainer(
        replace(old, id=application.next_container_id(), resource=context.none, token=None),
        SchedulerKey(False, old.priority, old.allocation_request_id),
        user=application.user,
        queue=application.leaf.path,
        partition="",
        started_ms=context.now_ms,
        notify=context.notify,
    )


def keep_temporary(application: FiCaSchedulerApp, placed: RMContainer, node: SchedulerNode) -> bool:
    """True if `placed` is a temporary container, which is kept here; False if it is to be returned to the AM."""
    updates = application.updates
    wanted = updates.increases.get(placed.key)
    if wanted is None:
        return False
    if not wanted.get((placed.resource.values(), placed.node_id)):
        restore_requests(application, placed.key, _terms(placed, node, placed.resource))
        updates.to_release.append(placed)
        return True
    assert placed.key.container_id is not None
    existing = application.live_containers.get(placed.key.container_id)
    if existing is None or existing.state in FINAL:
        updates.to_release.append(placed)
    else:
        waiting = updates.promoted if existing.is_opportunistic else updates.increased
        waiting[existing.id] = placed
    return True


def pull_updated(application: FiCaSchedulerApp) -> tuple[UpdatedContainer, ...]:
    """The containers that have changed, increased ones first; their temporary containers are to be released."""
    updates = application.updates
    waiting = (updates.increased, updates.decreased, updates.promoted, updates.demoted)
    if not (updates.to_release or any(waiting)):
        return ()
    updates.increased, updates.decreased, updates.promoted, updates.demoted = {}, {}, {}, {}
    updated: list[UpdatedContainer] = []
    for temporaries, kind in zip(waiting, (_INCREASE, _DECREASE, _PROMOTE, _DEMOTE), strict=True):
        updated += _swap(application, temporaries, kind)
    return tuple(updated)


def pull_refused(application: FiCaSchedulerApp) -> tuple[UpdateContainerError, ...]:
    """The updates that were refused since the last call."""
    refused, application.updates.refused = tuple(application.updates.refused), []
    return refused


def _swap(
    application: FiCaSchedulerApp, temporaries: dict[ContainerId, RMContainer], kind: ContainerUpdateType
) -> list[UpdatedContainer]:
    updated: list[UpdatedContainer] = []
    live, context = application.live_containers, application.leaf.context
    to_release = application.updates.to_release
    for container_id in hash_order(temporaries, container_hash):
        temporary = temporaries[container_id]
        existing = live.get(container_id)
        # Hadoop does not check the temporary container: it returns an increase whose resources were already released.
        if existing is not None and temporary.id in live:
            _exchange(application, temporary, existing, kind)
            _forget(application, temporary.key, existing.container)
            existing.container = replace(existing.container, version=existing.container.version + 1)
            updated.append(UpdatedContainer(kind, existing.container))
            _report(application, existing, kind)
        to_release.append(temporary)
    for temporary in to_release:
        temporary.asks = None
        context.temporaries[temporary.id] = temporary
        context.notify(ReleaseTemporary(temporary.id))
    application.updates.to_release = []
    return updated


def _report(application: FiCaSchedulerApp, changed: RMContainer, kind: ContainerUpdateType) -> None:
    """Send the update to the NM, unless it is an increase, which the AM sends to the NM within limited time."""
    context = application.leaf.context
    if kind is _DECREASE or context.settings.auto_update_containers:
        context.notify(UpdateContainer(changed.node_id, changed.container))
    elif changed.allows(AcquireUpdatedContainer):
        changed.handle(AcquireUpdatedContainer(kind is _INCREASE), context.now_ms)


def _exchange(
    application: FiCaSchedulerApp, temporary: RMContainer, existing: RMContainer, kind: ContainerUpdateType
) -> None:
    """Give the existing container its new size, and the temporary one the size to be released (swapContainer)."""
    if kind is _INCREASE:
        size, rest = existing.resource + temporary.resource, application.leaf.context.none
    elif kind is _DECREASE:
        size = application.updates.decreases[existing.id]
        rest = existing.resource - size
    else:
        size = rest = existing.resource
    before, after = existing.container.execution_type, temporary.container.execution_type
    existing.container = replace(existing.container, resource=size, execution_type=after)
    temporary.container = replace(temporary.container, resource=rest, execution_type=before)


def _forget(application: FiCaSchedulerApp, key: SchedulerKey, changed: Container) -> None:
    """Remove the record of an update (removeFromOutstandingUpdate).

    An increase is looked up by the NEW size, so its record is usually not found.
    """
    updates = application.updates
    wanted = updates.increases.get(key)
    if wanted is not None:
        place = (changed.resource.values(), changed.node_id)
        if wanted.get(place):
            del wanted[place]
        if not wanted:
            del updates.increases[key]
    updates.decreases.pop(changed.id, None)


def _key_of(container: RMContainer) -> SchedulerKey:
    """The key under which an increase of the container is requested."""
    return SchedulerKey(True, container.priority, container.container.allocation_request_id, container.id)


def _terms(container: RMContainer, node: SchedulerNode, size: Resource) -> tuple[RequestTerms, ...]:
    names = (container.node_id.host, node.rack, ANY)
    return tuple(RequestTerms(name, size, False, container.partition) for name in names)
