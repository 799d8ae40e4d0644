"""Ids, resources and utilization, which nearly every other message contains.

All parts of an id are required: an id without its application is refused.
"""

from __future__ import annotations

from wire.codec.fields import int32, int64, name_of, refuse_too_many, required, text
from wire.generated import yarn_protos_pb2 as pb
from yarn.errors import InvalidArgumentException
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.nodes import ResourceUtilization
from yarn.resource import MEMORY_MB, VCORES, Resource

RESOURCE_TYPES_MAX = 64
"""The maximum of resource types in one message: clusters have two to a dozen."""


def write_application_id(app_id: ApplicationId, out: pb.ApplicationIdProto) -> None:
    out.id = app_id.id
    out.cluster_timestamp = app_id.cluster_timestamp


def read_application_id(proto: pb.ApplicationIdProto) -> ApplicationId:
    if not proto.HasField("id"):
        raise InvalidArgumentException(f"{name_of(proto, 'id')} is missing")
    return ApplicationId(proto.cluster_timestamp, proto.id)


def write_attempt_id(attempt_id: ApplicationAttemptId, out: pb.ApplicationAttemptIdProto) -> None:
    out.attemptId = attempt_id.attempt
    application = out.application_id
    application.id = attempt_id.application_id.id
    application.cluster_timestamp = attempt_id.application_id.cluster_timestamp


def read_attempt_id(proto: pb.ApplicationAttemptIdProto) -> ApplicationAttemptId:
    return ApplicationAttemptId(read_application_id(required(proto, "application_id")), proto.attemptId)


def write_container_id(container_id: ContainerId, out: pb.ContainerIdProto) -> None:
    out.id = container_id.number
    write_attempt_id(container_id.attempt_id, out.app_attempt_id)


def read_container_id(proto: pb.ContainerIdProto) -> ContainerId:
    return ContainerId(read_attempt_id(required(proto, "app_attempt_id")), proto.id)


def write_node_id(node_id: NodeId, out: pb.NodeIdProto) -> None:
    out.host = node_id.host
    out.port = node_id.port


def read_node_id(proto: pb.NodeIdProto) -> NodeId:
    host = text(proto, "host")
    if not host:
        raise InvalidArgumentException(f"{name_of(proto, 'host')} is missing")
    if not 0 <= proto.port <= 65535:
        raise InvalidArgumentException(f"{name_of(proto, 'port')} is {proto.port}, must be 0 to 65535")
    return NodeId(host, proto.port)


def write_resource(resource: Resource, out: pb.ResourceProto) -> None:
    out.memory = resource.memory_mb
    out.virtual_cores = int32(resource.vcores)
    for name, amount in resource.extra:
        out.resource_value_map.add(key=name, value=amount)


def write_sum(resource: Resource, out: pb.ResourceProto) -> None:
    """Write a sum; numbers that do not fit are written as the largest number."""
    extra = tuple((name, int64(amount)) for name, amount in resource.extra)
    write_resource(Resource(int64(resource.memory_mb), resource.vcores, extra), out)


def read_resource(proto: pb.ResourceProto) -> Resource:
    """A resource.

    If the map repeats memory or vcores, the fields memory and virtual_cores count, as in ResourcePBImpl.
    """
    if not proto.resource_value_map:
        return Resource(proto.memory, proto.virtual_cores)
    refuse_too_many(proto, "resource_value_map", RESOURCE_TYPES_MAX)
    extra = {}
    for entry in proto.resource_value_map:
        name = text(entry, "key")
        if name in (MEMORY_MB, VCORES):
            continue
        if entry.units:
            raise InvalidArgumentException(
                f"resource {name!r} has the units {text(entry, 'units')!r}, but units are not supported (send no units)"
            )
        extra[name] = entry.value
    return Resource(proto.memory, proto.virtual_cores, tuple(extra.items()))


def write_utilization(use: ResourceUtilization, out: pb.ResourceUtilizationProto) -> None:
    out.pmem = int32(use.physical_memory_mb)
    out.vmem = int32(use.virtual_memory_mb)
    out.cpu = use.cpu


def read_utilization(proto: pb.ResourceUtilizationProto) -> ResourceUtilization:
    return ResourceUtilization(proto.pmem, proto.vmem, proto.cpu)
