"""HAServiceProtocol: an administrator asks for, or changes, the state of one of several ResourceManagers."""

from __future__ import annotations

from typing import Any

from wire.codec.fields import members, number, required, text
from wire.codec.message_codec import MessageCodec, empty
from wire.generated import ha_service_protocol_pb2 as pb
from wire.rpc import Proxy, Rpc
from yarn.protocols.ha import HAServiceStatus
from yarn.states import HAServiceState, RequestSource

_STATES = members(HAServiceState)
_SOURCES = members(RequestSource)
TRANSITION_TIMEOUT_S = 60.0
"""The time a change of the state may take: services end, and thousands of applications are recovered."""


def _write_source(source: RequestSource, out: Any) -> None:
    out.reqInfo.reqSource = number(source)


def _read_source(proto: Any) -> RequestSource:
    return _SOURCES[required(proto, "reqInfo").reqSource]


def _write_status(status: HAServiceStatus, out: pb.GetServiceStatusResponseProto) -> None:
    out.state = number(status.state)
    out.readyToBecomeActive = status.ready_to_become_active
    if status.reason:
        out.notReadyReason = status.reason


def _read_status(proto: pb.GetServiceStatusResponseProto) -> HAServiceStatus:
    return HAServiceStatus(_STATES[proto.state], proto.readyToBecomeActive, text(proto, "notReadyReason"))


class HAServiceProtocol(Proxy):
    """Calls to one ResourceManager, active or not (yarn.resourcemanager.admin.address.<rm-id>)."""

    service = "hadoop.common.HAServiceProtocolService"

    monitor_health: Rpc[None, None] = Rpc(
        "monitorHealth", empty(pb.MonitorHealthRequestProto), empty(pb.MonitorHealthResponseProto), reads=True
    )
    transition_to_active: Rpc[RequestSource, None] = Rpc(
        "transitionToActive",
        MessageCodec(pb.TransitionToActiveRequestProto, _write_source, _read_source),
        empty(pb.TransitionToActiveResponseProto),
        timeout_s=TRANSITION_TIMEOUT_S,
    )
    """Raises AccessControlException if automatic failover decides, ServiceFailedException if another RM leads."""
    transition_to_standby: Rpc[RequestSource, None] = Rpc(
        "transitionToStandby",
        MessageCodec(pb.TransitionToStandbyRequestProto, _write_source, _read_source),
        empty(pb.TransitionToStandbyResponseProto),
        timeout_s=TRANSITION_TIMEOUT_S,
    )
    get_service_status: Rpc[None, HAServiceStatus] = Rpc(
        "getServiceStatus",
        empty(pb.GetServiceStatusRequestProto),
        MessageCodec(pb.GetServiceStatusResponseProto, _write_status, _read_status),
        reads=True,
    )
