"""Containers: what they run, their tokens, and how they are allocated and reported.

The address of a local resource is text, such as `file:/data/words.txt`. Its path is sent as Hadoop's Path prints it,
not percent-encoded, so blanks, `%` and `#` stand for themselves. `file:///x` is read as `file:/x`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from wire.codec.basic import (
    read_attempt_id,
    read_container_id,
    read_node_id,
    read_resource,
    write_attempt_id,
    write_container_id,
    write_node_id,
    write_resource,
)
from wire.codec.fields import (
    member,
    members,
    name_of,
    number,
    optional_member,
    optional_text,
    refuse_too_many,
    required,
    text,
    texts,
)
from wire.codec.requests import EXECUTION_TYPES
from wire.generated import security_pb2, yarn_security_token_pb2
from wire.generated import yarn_protos_pb2 as pb
from wire.generated import yarn_server_common_service_protos_pb2 as tracker_pb
from wire.generated import yarn_service_protos_pb2 as service_pb
from yarn.containers import (
    AMRMTokenIdentifier,
    Container,
    ContainerLaunchContext,
    ContainerRetryContext,
    ContainerStatus,
    ContainerTokenIdentifier,
    LocalResource,
    NMContainerStatus,
    NMTokenIdentifier,
    ServiceData,
    Token,
)
from yarn.errors import InvalidArgumentException
from yarn.ids import NodeId
from yarn.protocols.container_management import (
    SignalContainerRequest,
)
from yarn.states import (
    ApplicationAccessType,
    ContainerRetryPolicy,
    ContainerState,
    ContainerSubState,
    ContainerType,
    LocalResourceType,
    LocalResourceVisibility,
    SignalContainerCommand,
)

_HOST = "HOST"
_STATES = members(ContainerState)
_SUB_STATES = members(ContainerSubState)
_CONTAINER_TYPES = members(ContainerType)
_COMMANDS = members(SignalContainerCommand)
LAUNCH_CONTEXT_LENGTH_MAX = 1 << 20
"""The maximum size of a launch context in bytes: the RM keeps one for every application (see YARN-8972)."""
ENTRIES_MAX = 10_000
"""The maximum of variables, of files or of commands of one container."""
_TYPES = members(LocalResourceType)
_VISIBILITIES = members(LocalResourceVisibility)
_POLICIES = members(ContainerRetryPolicy)
_ACCESS_TYPES = members(ApplicationAccessType)
_URL = re.compile(
    r"(?:(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):)?"
    r"(?://(?:(?P<user>[^/@]*)@)?(?P<host>\[[^\]/]*\]|[^/:]*)(?::(?P<port>\d{1,5}))?)?"
    r"(?P<file>.*)",
    re.DOTALL,
)


def write_container(container: Container, out: pb.ContainerProto) -> None:
    write_container_id(container.id, out.id)
    write_node_id(container.node_id, out.nodeId)
    out.node_http_address = container.node_http_address
    write_resource(container.resource, out.resource)
    out.priority.priority = container.priority
    if container.token is not None:
        write_token(container.token, out.container_token)
    out.execution_type = number(container.execution_type)
    out.allocation_request_id = container.allocation_request_id
    out.version = container.version


def read_container(proto: pb.ContainerProto) -> Container:
    return Container(
        read_container_id(required(proto, "id")),
        read_node_id(required(proto, "nodeId")),
        text(proto, "node_http_address"),
        read_resource(required(proto, "resource")),
        proto.priority.priority,
        read_token(proto.container_token) if proto.HasField("container_token") else None,
        EXECUTION_TYPES[proto.execution_type],
        proto.allocation_request_id,
        proto.version,
    )


def write_container_status(status: ContainerStatus, out: pb.ContainerStatusProto) -> None:
    write_container_id(status.container_id, out.container_id)
    out.state = number(status.state)
    out.exit_status = status.exit_status
    out.diagnostics = status.diagnostics
    if status.capability is not None:
        write_resource(status.capability, out.capability)
    out.executionType = number(status.execution_type)
    if status.sub_state is not None:
        out.container_sub_state = number(status.sub_state)
    if status.host:
        # Hadoop's IPS is a list; each node here has one address, which is its host's name too.
        out.container_attributes.add(key="IPS", value=status.host)
        out.container_attributes.add(key=_HOST, value=status.host)


def read_container_status(proto: pb.ContainerStatusProto) -> ContainerStatus:
    return ContainerStatus(
        read_container_id(required(proto, "container_id")),
        member(_STATES, proto, "state"),
        proto.exit_status,
        text(proto, "diagnostics"),
        read_resource(proto.capability) if proto.HasField("capability") else None,
        EXECUTION_TYPES[proto.executionType],
        optional_member(_SUB_STATES, proto, "container_sub_state"),
        next((text(attribute, "value") for attribute in proto.container_attributes if attribute.key == _HOST), ""),
    )


def write_nm_container_status(status: NMContainerStatus, out: tracker_pb.NMContainerStatusProto) -> None:
    write_container_id(status.container_id, out.container_id)
    out.container_state = number(status.state)
    write_resource(status.resource, out.resource)
    out.priority.priority = status.priority
    out.container_exit_status = status.exit_status
    out.diagnostics = status.diagnostics
    out.creation_time = status.creation_time_ms
    out.version = status.version
    out.nodeLabelExpression = status.node_label_expression
    out.executionType = number(status.execution_type)
    out.allocation_request_id = status.allocation_request_id


def read_nm_container_status(proto: tracker_pb.NMContainerStatusProto) -> NMContainerStatus:
    return NMContainerStatus(
        read_container_id(required(proto, "container_id")),
        member(_STATES, proto, "container_state"),
        read_resource(required(proto, "resource")),
        proto.priority.priority,
        proto.container_exit_status,
        text(proto, "diagnostics"),
        proto.creation_time,
        proto.version,
        text(proto, "nodeLabelExpression"),
        EXECUTION_TYPES[proto.executionType],
        proto.allocation_request_id,
    )


def write_token(token: Token, out: security_pb2.TokenProto) -> None:
    out.identifier = token.identifier
    out.password = token.password
    out.kind = token.kind
    out.service = token.service


def read_token(proto: security_pb2.TokenProto) -> Token:
    return Token(proto.identifier, proto.password, text(proto, "kind"), text(proto, "service"))


def write_amrm_identifier(identifier: AMRMTokenIdentifier) -> bytes:
    out = yarn_security_token_pb2.AMRMTokenIdentifierProto(keyId=identifier.master_key_id)
    write_attempt_id(identifier.attempt_id, out.appAttemptId)
    return out.SerializeToString(deterministic=True)


def read_amrm_identifier(data: bytes) -> AMRMTokenIdentifier:
    proto = yarn_security_token_pb2.AMRMTokenIdentifierProto.FromString(data)
    return AMRMTokenIdentifier(read_attempt_id(required(proto, "appAttemptId")), proto.keyId)


def write_nm_identifier(identifier: NMTokenIdentifier) -> bytes:
    out = yarn_security_token_pb2.NMTokenIdentifierProto(appSubmitter=identifier.user, keyId=identifier.master_key_id)
    write_attempt_id(identifier.attempt_id, out.appAttemptId)
    write_node_id(identifier.node_id, out.nodeId)
    return out.SerializeToString(deterministic=True)


def read_nm_identifier(data: bytes) -> NMTokenIdentifier:
    proto = yarn_security_token_pb2.NMTokenIdentifierProto.FromString(data)
    return NMTokenIdentifier(
        read_attempt_id(required(proto, "appAttemptId")),
        read_node_id(required(proto, "nodeId")),
        text(proto, "appSubmitter"),
        proto.keyId,
    )


def write_container_identifier(identifier: ContainerTokenIdentifier) -> bytes:
    out = yarn_security_token_pb2.ContainerTokenIdentifierProto(
        nmHostAddr=str(identifier.node_id),
        appSubmitter=identifier.user,
        expiryTimeStamp=identifier.expiry_ms,
        masterKeyId=identifier.master_key_id,
        rmIdentifier=identifier.rm_identifier,
        creationTime=identifier.creation_time_ms,
        nodeLabelExpression=identifier.node_label_expression,
        containerType=number(identifier.container_type),
        executionType=number(identifier.execution_type),
        version=identifier.version,
        allocation_request_id=identifier.allocation_request_id,
    )
    write_container_id(identifier.container_id, out.containerId)
    write_resource(identifier.resource, out.resource)
    out.priority.priority = identifier.priority
    return out.SerializeToString(deterministic=True)


def read_container_identifier(data: bytes) -> ContainerTokenIdentifier:
    proto = yarn_security_token_pb2.ContainerTokenIdentifierProto.FromString(data)
    return ContainerTokenIdentifier(
        read_container_id(required(proto, "containerId")),
        NodeId.parse(text(proto, "nmHostAddr")),
        text(proto, "appSubmitter"),
        read_resource(required(proto, "resource")),
        expiry_ms=proto.expiryTimeStamp,
        master_key_id=proto.masterKeyId,
        rm_identifier=proto.rmIdentifier,
        priority=proto.priority.priority,
        creation_time_ms=proto.creationTime,
        container_type=optional_member(_CONTAINER_TYPES, proto, "containerType") or ContainerType.TASK,
        execution_type=EXECUTION_TYPES[proto.executionType],
        version=proto.version,
        allocation_request_id=proto.allocation_request_id,
        node_label_expression=text(proto, "nodeLabelExpression"),
    )


def write_signal(request: SignalContainerRequest, out: service_pb.SignalContainerRequestProto) -> None:
    write_container_id(request.container_id, out.container_id)
    out.command = number(request.command)


def read_signal(proto: service_pb.SignalContainerRequestProto) -> SignalContainerRequest:
    container_id = read_container_id(required(proto, "container_id"))
    return SignalContainerRequest(container_id, member(_COMMANDS, proto, "command"))


def write_launch_context(context: ContainerLaunchContext, out: pb.ContainerLaunchContextProto) -> None:
    out.SetInParent()
    for link, resource in context.local_resources.items():
        _write_local_resource(resource, out.localResources.add(key=link).value)
    if context.tokens:
        out.tokens = context.tokens
    for service, data in context.service_data.items():
        out.service_data.add(key=service, value=data.data)
    for name, value in context.environment.items():
        out.environment.add(key=name, value=value)
    out.command.extend(context.commands)
    if context.retry != ContainerRetryContext():
        _write_retry(context.retry, out.container_retry_context)
    write_acls(context.application_acls, out.application_ACLs)


def read_launch_context(proto: pb.ContainerLaunchContextProto) -> ContainerLaunchContext:
    size = proto.ByteSize()
    if size > LAUNCH_CONTEXT_LENGTH_MAX:
        raise InvalidArgumentException(
            f"ContainerLaunchContextProto has {size} bytes, at most {LAUNCH_CONTEXT_LENGTH_MAX} are accepted "
            f"(put long data into a local resource)"
        )
    for field in ("localResources", "service_data", "environment", "command", "application_ACLs"):
        refuse_too_many(proto, field, ENTRIES_MAX)
    return ContainerLaunchContext(
        texts(proto, "command"),
        {text(entry, "key"): text(entry, "value") for entry in proto.environment},
        {text(entry, "key"): _read_local_resource(required(entry, "value")) for entry in proto.localResources},
        proto.tokens,
        {text(entry, "key"): ServiceData(entry.value) for entry in proto.service_data},
        _read_retry(proto.container_retry_context),
        read_acls(proto.application_ACLs),
    )


def write_acls(acls: Mapping[ApplicationAccessType, str], out: Any) -> None:
    """Append the access lists to `out`, a repeated field of ApplicationACLMapProto."""
    for access, acl in acls.items():
        out.add(accessType=number(access), acl=acl)


def read_acls(entries: Iterable[pb.ApplicationACLMapProto]) -> dict[ApplicationAccessType, str]:
    """The access lists by kind; if a message has several of one kind, the last one counts."""
    return {member(_ACCESS_TYPES, entry, "accessType"): text(entry, "acl") for entry in entries}


def _write_local_resource(resource: LocalResource, out: pb.LocalResourceProto) -> None:
    write_url(resource.url, out.resource)
    out.size = resource.size_bytes
    out.timestamp = resource.timestamp_ms
    out.type = number(resource.type)
    out.visibility = number(resource.visibility)
    if resource.pattern is not None:
        out.pattern = resource.pattern


def _read_local_resource(proto: pb.LocalResourceProto) -> LocalResource:
    """A local resource. Type and visibility are required, as in ContainerManagerImpl; size and time default to 0."""
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


def _write_retry(retry: ContainerRetryContext, out: pb.ContainerRetryContextProto) -> None:
    out.retry_policy = number(retry.policy)
    out.error_codes.extend(sorted(retry.error_codes))
    out.max_retries = retry.max_retries
    out.retry_interval = retry.retry_interval_ms
    out.failures_validity_interval = retry.failures_validity_interval_ms


def _read_retry(proto: pb.ContainerRetryContextProto) -> ContainerRetryContext:
    return ContainerRetryContext(
        _POLICIES[proto.retry_policy],
        frozenset(proto.error_codes),
        proto.max_retries,
        proto.retry_interval,
        proto.failures_validity_interval,
    )


def write_url(url: str, out: pb.URLProto) -> None:
    match = _URL.fullmatch(url)
    assert match is not None, "the last part of the pattern matches any text"
    if match["scheme"]:
        out.scheme = match["scheme"]
    if match["user"]:
        out.userInfo = match["user"]
    if match["host"]:
        out.host = match["host"]
    out.port = int(match["port"]) if match["port"] else -1
    out.file = match["file"]


def read_url(proto: pb.URLProto) -> str:
    file = text(proto, "file")
    if not file:
        raise InvalidArgumentException(f"{name_of(proto, 'file')} is missing (the path of a local resource)")
    scheme, host, user = text(proto, "scheme"), text(proto, "host"), text(proto, "userInfo")
    if "/" in host or "/" in user:
        raise InvalidArgumentException(f"{name_of(proto, 'host')} {host!r} is not a host")
    if not host:
        return f"{scheme}:{file}" if scheme else file
    place = (f"{user}@" if user else "") + host + (f":{proto.port}" if proto.port > 0 else "")
    return f"{scheme}://{place}{file}"
