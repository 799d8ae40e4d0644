"""Ids. In each the parts must be there: an id without its application is none."""

from __future__ import annotations

from protos import yarn_protos_pb2 as pb
from wire.codec.fields import name_of, required, text
from yarn.errors import InvalidArgumentException
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId


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
