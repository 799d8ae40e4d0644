"""Amounts of resources, wanted and used."""

from __future__ import annotations

from protos import yarn_protos_pb2 as pb
from wire.codec.fields import int32, int64, refuse_too_many, text
from yarn.errors import InvalidArgumentException
from yarn.nodes import ResourceUtilization
from yarn.resource import MEMORY_MB, VCORES, Resource

RESOURCE_TYPES_MAX = 64
"""Types in one amount: clusters have two to a dozen."""


def write_resource(resource: Resource, out: pb.ResourceProto) -> None:
    out.memory = resource.memory_mb
    out.virtual_cores = int32(resource.vcores)
    for name, amount in resource.extra:
        out.resource_value_map.add(key=name, value=amount)


def write_sum(resource: Resource, out: pb.ResourceProto) -> None:
    """What was added up, with what does not fit told as the largest number."""
    extra = tuple((name, int64(amount)) for name, amount in resource.extra)
    write_resource(Resource(int64(resource.memory_mb), resource.vcores, extra), out)


def read_resource(proto: pb.ResourceProto) -> Resource:
    """memory and virtual_cores count also where the map repeats them, as in ResourcePBImpl."""
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
                f"resource {name!r} comes in units {text(entry, 'units')!r}, it is counted without (send no units)"
            )
        extra[name] = entry.value
    return Resource(proto.memory, proto.virtual_cores, tuple(extra.items()))


def write_utilization(use: ResourceUtilization, out: pb.ResourceUtilizationProto) -> None:
    out.pmem = int32(use.physical_memory_mb)
    out.vmem = int32(use.virtual_memory_mb)
    out.cpu = use.cpu


def read_utilization(proto: pb.ResourceUtilizationProto) -> ResourceUtilization:
    return ResourceUtilization(proto.pmem, proto.vmem, proto.cpu)
