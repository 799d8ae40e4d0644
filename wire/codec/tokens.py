"""Tokens and the identifiers inside them, in Hadoop's messages."""

from __future__ import annotations

from protos import security_pb2, yarn_security_token_pb2
from wire.codec.asks import EXECUTION_TYPES
from wire.codec.fields import members, number, optional_member, required, text
from wire.codec.ids import (
    read_attempt_id,
    read_container_id,
    read_node_id,
    write_attempt_id,
    write_container_id,
    write_node_id,
)
from wire.codec.resources import read_resource, write_resource
from yarn.containers import AMRMTokenIdentifier, ContainerTokenIdentifier, NMTokenIdentifier, Token
from yarn.ids import NodeId
from yarn.states import ContainerType

_CONTAINER_TYPES = members(ContainerType)


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
