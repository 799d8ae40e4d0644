"""What a container runs: commands, environment, local resources, the terms of starting again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from protos import yarn_protos_pb2 as pb
from wire.codec.fields import member, members, name_of, number, optional_text, refuse_too_many, required, text, texts
from wire.codec.urls import read_url, write_url
from yarn.containers import ContainerLaunchContext, ContainerRetryContext, LocalResource
from yarn.errors import InvalidArgumentException
from yarn.states import ApplicationAccessType, ContainerRetryPolicy, LocalResourceType, LocalResourceVisibility

LAUNCH_CONTEXT_BYTES_MAX = 1 << 20
"""A whole launch context: every application kept in the RM holds one (the denial of service of YARN-8972)."""
ENTRIES_MAX = 10_000
"""Variables, files or commands of one container."""

_TYPES = members(LocalResourceType)
_VISIBILITIES = members(LocalResourceVisibility)
_POLICIES = members(ContainerRetryPolicy)
_ACCESS_TYPES = members(ApplicationAccessType)


def write_launch_context(context: ContainerLaunchContext, out: pb.ContainerLaunchContextProto) -> None:
    out.SetInParent()
    for link, resource in context.local_resources.items():
        write_local_resource(resource, out.localResources.add(key=link).value)
    if context.tokens:
        out.tokens = context.tokens
    for service, data in context.service_data.items():
        out.service_data.add(key=service, value=data)
    for name, value in context.environment.items():
        out.environment.add(key=name, value=value)
    out.command.extend(context.commands)
    if context.retry != ContainerRetryContext():
        write_retry(context.retry, out.container_retry_context)
    write_acls(context.application_acls, out.application_ACLs)


def read_launch_context(proto: pb.ContainerLaunchContextProto) -> ContainerLaunchContext:
    size = proto.ByteSize()
    if size > LAUNCH_CONTEXT_BYTES_MAX:
        raise InvalidArgumentException(
            f"ContainerLaunchContextProto has {size} bytes, at most {LAUNCH_CONTEXT_BYTES_MAX} are taken "
            f"(put long data into a local resource)"
        )
    for field in ("localResources", "service_data", "environment", "command", "application_ACLs"):
        refuse_too_many(proto, field, ENTRIES_MAX)
    return ContainerLaunchContext(
        texts(proto, "command"),
        {text(entry, "key"): text(entry, "value") for entry in proto.environment},
        {text(entry, "key"): read_local_resource(required(entry, "value")) for entry in proto.localResources},
        proto.tokens,
        {text(entry, "key"): entry.value for entry in proto.service_data},
        read_retry(proto.container_retry_context),
        read_acls(proto.application_ACLs),
    )


def write_acls(acls: Mapping[ApplicationAccessType, str], out: Any) -> None:
    """Append them to `out`, a repeated field of ApplicationACLMapProto."""
    for access, acl in acls.items():
        out.add(accessType=number(access), acl=acl)


def read_acls(entries: Iterable[pb.ApplicationACLMapProto]) -> dict[ApplicationAccessType, str]:
    """The last entry of a kind counts."""
    return {member(_ACCESS_TYPES, entry, "accessType"): text(entry, "acl") for entry in entries}


def write_local_resource(resource: LocalResource, out: pb.LocalResourceProto) -> None:
    write_url(resource.url, out.resource)
    out.size = resource.size_bytes
    out.timestamp = resource.timestamp_ms
    out.type = number(resource.type)
    out.visibility = number(resource.visibility)
    if resource.pattern is not None:
        out.pattern = resource.pattern


def read_local_resource(proto: pb.LocalResourceProto) -> LocalResource:
    """Type and visibility must be there, as ContainerManagerImpl wants them; size and time read as 0."""
    if proto.size < 0:
        raise InvalidArgumentException(f"{name_of(proto, 'size')} is {proto.size}, must not be negative")
    return LocalResource(
        read_url(required(proto, "resource")),
        proto.size,
        proto.timestamp,
        member(_TYPES, proto, "type"),
        member(_VISIBILITIES, proto, "visibility"),
        optional_text(proto, "pattern"),
    )


def write_retry(retry: ContainerRetryContext, out: pb.ContainerRetryContextProto) -> None:
    out.retry_policy = number(retry.policy)
    out.error_codes.extend(sorted(retry.error_codes))
    out.max_retries = retry.max_retries
    out.retry_interval = retry.retry_interval_ms
    out.failures_validity_interval = retry.failures_validity_interval_ms


def read_retry(proto: pb.ContainerRetryContextProto) -> ContainerRetryContext:
    return ContainerRetryContext(
        _POLICIES[proto.retry_policy],
        frozenset(proto.error_codes),
        proto.max_retries,
        proto.retry_interval,
        proto.failures_validity_interval,
    )
