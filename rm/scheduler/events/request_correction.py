"""Subtracts containers that an AM has not fetched yet from its new requests (autoCorrectContainerAllocation).

An AM that repeats a request does not know what was placed meanwhile, so it would get those containers twice. Hadoop
3.5.0 can correct its requests: an AM that requests 4 containers while 3 wait to be fetched gets 1 more, and one that
requests 2 loses one of the 3. Requests for a host or a rack count like those for any node. If several kinds of
containers are surplus, Hadoop ends them in the order of a hash map, here in the order of the requests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from msgspec.structs import replace

from rm.scheduler.model.application import FiCaSchedulerApp
from rm.scheduler.model.rm_container import RMContainer
from yarn.containers import ResourceRequest
from yarn.resource import Resource
from yarn.states import ExecutionType

_Kind: TypeAlias = tuple[int, int, Resource]
"""Priority, request id and size: the containers of a kind are alike to Hadoop."""


def correct_requests(
    attempt: FiCaSchedulerApp, requests: Sequence[ResourceRequest], end: Callable[[RMContainer], None]
) -> list[ResourceRequest]:
    """The requests, less what waits to be fetched; calls `end` for each container that is now surplus."""
    waiting: dict[_Kind, list[RMContainer]] = {}
    for container in attempt.newly_allocated.values():
        key, size = container.key, container.container.resource
        waiting.setdefault((key.priority, key.allocation_request_id, size), []).append(container)
    corrected: list[ResourceRequest] = []
    surplus: dict[_Kind, int] = {}
    for request in requests:
        kind = (request.priority, request.allocation_request_id, request.capability)
        placed = len(waiting.get(kind, ())) if request.execution_type is ExecutionType.GUARANTEED else 0
        if placed > request.count:
            surplus[kind] = placed - request.count
        corrected.append(replace(request, count=max(0, request.count - placed)) if placed else request)
    for kind, count in surplus.items():
        for container in waiting[kind][:count]:
            end(container)
    return corrected
