"""What a change of a container must be before it is taken on (RMServerUtils.validateAndSplitUpdateResourceRequests)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from msgspec.structs import replace

from rm.scheduler.model.rm_container import RMContainer
from yarn.asks import UpdateContainerError, UpdateContainerRequest
from yarn.errors import YARNFeatureNotEnabledException
from yarn.ids import ContainerId
from yarn.resource import Resource
from yarn.states import ContainerUpdateType, ExecutionType

OUTSTANDING = "UPDATE_OUTSTANDING_ERROR"
INCORRECT_VERSION = "INCORRECT_CONTAINER_VERSION_ERROR"
INVALID_ID = "INVALID_CONTAINER_ID"
OUTSIDE_RANGE = "RESOURCE_OUTSIDE_ALLOWED_RANGE"

_OF_SIZE = (ContainerUpdateType.INCREASE_RESOURCE, ContainerUpdateType.DECREASE_RESOURCE)


def check_updates(
    updates: Iterable[UpdateContainerRequest],
    *,
    find: Callable[[ContainerId], RMContainer | None],
    normalized: Callable[[Resource], Resource | None],
    may_demote: bool,
) -> tuple[list[UpdateContainerRequest], list[UpdateContainerError]]:
    """The requests that may go on, with their sizes normalised, and why the others may not.

    `find` gives a live container; `normalized` a size, None for one out of range. A change of the execution type to
    what it is already is neither; what it is to be decides, whatever the request calls it. Raises
    YARNFeatureNotEnabledException for a demotion unless `may_demote` (validateAndSplitUpdateResourceRequests).
    """
    accepted: list[UpdateContainerRequest] = []
    errors: list[UpdateContainerError] = []
    outstanding: set[ContainerId] = set()
    for request in updates:
        container = find(request.container_id)
        reason = _mismatch(request, container, outstanding)
        if reason is None and request.type in _OF_SIZE:
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
