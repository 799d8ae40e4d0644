"""Random records, made from the types of a dataclass's fields.

Each value comes from a `random.Random`, so that a seed is a whole record: hypothesis draws the seed. Drawing each field
by hypothesis was tried and took a hundred times as long.

What the types do not say is given here by field name: ranges of the wire's numbers, addresses as they are printed.
"""

from __future__ import annotations

import struct
import types
import typing
from collections.abc import Callable
from enum import Enum
from functools import cache
from random import Random
from typing import Any

from msgspec import structs

from wire.protocols.admin import ResourceManagerAdministrationProtocol
from wire.protocols.client import ApplicationClientProtocol
from wire.protocols.container_management import ContainerManagementProtocol
from wire.protocols.inspection import InspectionProtocol
from wire.protocols.master import ApplicationMasterProtocol
from wire.protocols.pack import PackTrackerProtocol
from wire.protocols.tracker import ResourceTracker
from wire.rpc import Proxy, Rpc
from yarn.containers import LocalResource, ResourceRequest
from yarn.errors import ApplicationNotFoundException, InvalidToken, YarnException
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.nodes import NodeReport
from yarn.protocols.master import NMToken
from yarn.queues import QueueInfo
from yarn.resource import INT32_MAX, INT64_MAX, Resource
from yarn.states import NodeState

ENTRIES_MAX = 3
"""Entries of a random collection: what goes wrong with several goes wrong with three."""

PROTOCOLS: tuple[type[Proxy], ...] = (
    ApplicationClientProtocol,
    InspectionProtocol,
    ApplicationMasterProtocol,
    ResourceTracker,
    PackTrackerProtocol,
    ResourceManagerAdministrationProtocol,
    ContainerManagementProtocol,
)

_LONG_ENDINGS = ("_ms", "_seconds", "_bytes", "allocation_request_id", "rm_identifier", "_s", "limit")
_SHORT_NAMES = frozenset({"over_commit_timeout_ms", "retry_interval_ms", "timeout_s", "decommissioning_timeout_s"})
_LONG_STARTS = ("apps_", "available_", "allocated_", "pending_", "active_")
_LETTERS = "abzAZ09 _-./:*é€𝄞\n\"'$"


def record_types(rpc: Rpc[Any, Any]) -> tuple[Any, Any]:
    """The types of the records of its request and its reply, as the row's annotation has them."""
    protocol = next(protocol for protocol in PROTOCOLS if rpc in protocol.rpcs)
    request, reply = typing.get_args(typing.get_type_hints(protocol)[rpc.method])
    return request, reply


def random_value(rng: Random, hint: Any, name: str = "") -> Any:
    """A random value of a type as it is written in a field called `name`."""
    make = _MAKERS.get(hint)
    if make is not None:
        return make(rng)
    if hint is int:
        return integer(rng, INT64_MAX if _is_long(name) else INT32_MAX)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return random_value(rng, rng.choice(arguments), name)
    if origin is tuple and arguments[-1] is Ellipsis:
        # A queue has queues: fewer than one on average, so that trees end.
        count = rng.choice([0, 0, 0, 1, 2]) if arguments[0] is QueueInfo else rng.randint(0, ENTRIES_MAX)
        return tuple(random_value(rng, arguments[0]) for _ in range(count))
    if origin is tuple:
        return tuple(random_value(rng, part) for part in arguments)
    if origin is frozenset:
        return frozenset(random_value(rng, arguments[0]) for _ in range(rng.randint(0, ENTRIES_MAX)))
    if origin is dict:
        count = rng.randint(0, ENTRIES_MAX)
        return {random_value(rng, arguments[0]): random_value(rng, arguments[1]) for _ in range(count)}
    if isinstance(hint, type) and issubclass(hint, Enum):
        return rng.choice(list(hint))
    return random_record(rng, hint)


def random_record(rng: Random, kind: type[Any]) -> Any:
    """A random record of a dataclass."""
    record = kind(**{name: random_value(rng, hint, name) for name, hint in _fields(kind)})
    adjust = _ADJUSTMENTS.get(kind)
    return record if adjust is None else adjust(rng, record)


def integer(rng: Random, largest: int, smallest: int | None = None) -> int:
    """A number of the whole range, its ends and 0 more often than by chance."""
    least = -largest - 1 if smallest is None else smallest
    return rng.choice([least, largest, max(0, least), max(1, least), rng.randint(least, largest)])


def text(rng: Random) -> str:
    return "".join(rng.choice(_LETTERS) for _ in range(rng.choice([0, 1, 8])))


@cache
def _fields(kind: type[Any]) -> tuple[tuple[str, Any], ...]:
    hints = typing.get_type_hints(kind)
    return tuple((name, hints[name]) for name in kind.__struct_fields__)


def _is_long(name: str) -> bool:
    if name in _SHORT_NAMES:
        return False
    return name.endswith(_LONG_ENDINGS) or name.startswith(_LONG_STARTS)


def _float32(rng: Random) -> float:
    value: float = struct.unpack("f", struct.pack("f", rng.choice([0.0, 1.0, -1.0, rng.uniform(-10, 10)])))[0]
    return value


def _application_id(rng: Random) -> ApplicationId:
    return ApplicationId(integer(rng, INT64_MAX, 0), integer(rng, INT32_MAX, 0))


def _attempt_id(rng: Random) -> ApplicationAttemptId:
    return ApplicationAttemptId(_application_id(rng), integer(rng, INT32_MAX, -1))


def _container_id(rng: Random) -> ContainerId:
    return ContainerId(_attempt_id(rng), integer(rng, INT64_MAX, 0))


def _node_id(rng: Random) -> NodeId:
    return NodeId(rng.choice(["h", "127.0.0.2", "node-1.example"]), integer(rng, 65535, 0))


def _resource(rng: Random) -> Resource:
    names = rng.sample(["yarn.io/gpu", "ssd", "é"], rng.choice([0, 0, 1, 2]))
    extra = tuple((name, integer(rng, INT64_MAX)) for name in names)
    return Resource(integer(rng, INT64_MAX), integer(rng, INT32_MAX), extra)


def _exception(rng: Random) -> YarnException:
    return rng.choice([YarnException, ApplicationNotFoundException, InvalidToken])(text(rng) or "no")


_MAKERS: dict[Any, Callable[[Random], Any]] = {
    ApplicationId: _application_id,
    ApplicationAttemptId: _attempt_id,
    ContainerId: _container_id,
    NodeId: _node_id,
    Resource: _resource,
    YarnException: _exception,
    bool: lambda rng: rng.random() < 0.5,
    float: _float32,
    str: text,
    bytes: lambda rng: rng.randbytes(rng.choice([0, 1, 8])),
    types.NoneType: lambda rng: None,
}


def _adjust_local_resource(rng: Random, resource: LocalResource) -> LocalResource:
    path = "/" + text(rng).lstrip("/")
    place = rng.choice(["file:", "hdfs://nn", "hdfs://10.0.0.1:8020", "hdfs://u@host:1", ""])
    return structs.replace(resource, url=place + path, size_bytes=resource.size_bytes & INT64_MAX)


def _adjust_node_report(rng: Random, report: NodeReport) -> NodeReport:
    """On the wire a node is healthy unless its state says otherwise."""
    health = structs.replace(report.health, healthy=report.state is not NodeState.UNHEALTHY)
    return structs.replace(report, health=health)


def _adjust_queue(rng: Random, queue: QueueInfo) -> QueueInfo:
    """On the wire the used share of the cluster is worked out of two others; a partition has one label of its own."""
    partitions = tuple(
        structs.replace(partition, label=f"label{number}") for number, partition in enumerate(queue.partitions)
    )
    absolute_used_capacity = queue.current_capacity * queue.absolute_capacity
    return structs.replace(queue, absolute_used_capacity=absolute_used_capacity, partitions=partitions)


def _adjust_nm_token(rng: Random, token: NMToken) -> NMToken:
    """Only inside the RM there is a node's token that is not signed yet."""
    if token.token is not None:
        return token
    adjusted: NMToken = random_record(rng, NMToken)
    return adjusted


def _adjust_ask(rng: Random, ask: ResourceRequest) -> ResourceRequest:
    return structs.replace(ask, resource_name=rng.choice(["*", "/r1", "h1"]))


_ADJUSTMENTS: dict[type[Any], Callable[[Random, Any], Any]] = {
    LocalResource: _adjust_local_resource,
    NodeReport: _adjust_node_report,
    QueueInfo: _adjust_queue,
    NMToken: _adjust_nm_token,
    ResourceRequest: _adjust_ask,
}
