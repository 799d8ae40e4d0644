"""ApplicationMasterProtocol: an AM to the RM."""

from __future__ import annotations

from typing import Any, Protocol

from protos import yarn_service_protos_pb2 as pb
from wire.caller import Caller
from wire.codec.master import (
    read_allocate,
    read_allocated,
    read_finish,
    read_register,
    read_registered,
    write_allocate,
    write_allocated,
    write_finish,
    write_register,
    write_registered,
)
from wire.rpc import Form, Rpc
from yarn.containers import AMRMTokenIdentifier
from yarn.protocols.master import (
    AllocateRequest,
    AllocateResponse,
    FinishApplicationMasterRequest,
    FinishApplicationMasterResponse,
    RegisterApplicationMasterRequest,
    RegisterApplicationMasterResponse,
)

SERVICE = "hadoop.yarn.ApplicationMasterProtocolService"


class ApplicationMasterHandler(Protocol):
    """What answers masters; which attempt calls is in `caller.verified`, never in the request."""

    async def register_application_master(
        self, caller: Caller[AMRMTokenIdentifier], request: RegisterApplicationMasterRequest
    ) -> RegisterApplicationMasterResponse: ...
    async def allocate(self, caller: Caller[AMRMTokenIdentifier], request: AllocateRequest) -> AllocateResponse: ...
    async def finish_application_master(
        self, caller: Caller[AMRMTokenIdentifier], request: FinishApplicationMasterRequest
    ) -> FinishApplicationMasterResponse: ...


def _write_finished(reply: FinishApplicationMasterResponse, out: pb.FinishApplicationMasterResponseProto) -> None:
    out.isUnregistered = reply.is_unregistered


REGISTER_APPLICATION_MASTER: Rpc[RegisterApplicationMasterRequest, RegisterApplicationMasterResponse] = Rpc(
    SERVICE,
    "registerApplicationMaster",
    "register_application_master",
    Form(pb.RegisterApplicationMasterRequestProto, write_register, read_register),
    Form(pb.RegisterApplicationMasterResponseProto, write_registered, read_registered),
)
ALLOCATE: Rpc[AllocateRequest, AllocateResponse] = Rpc(
    SERVICE,
    "allocate",
    "allocate",
    Form(pb.AllocateRequestProto, write_allocate, read_allocate),
    Form(pb.AllocateResponseProto, write_allocated, read_allocated),
)
FINISH_APPLICATION_MASTER: Rpc[FinishApplicationMasterRequest, FinishApplicationMasterResponse] = Rpc(
    SERVICE,
    "finishApplicationMaster",
    "finish_application_master",
    Form(pb.FinishApplicationMasterRequestProto, write_finish, read_finish),
    Form(
        pb.FinishApplicationMasterResponseProto,
        _write_finished,
        lambda proto: FinishApplicationMasterResponse(proto.isUnregistered),
    ),
)

RPCS: tuple[Rpc[Any, Any], ...] = (REGISTER_APPLICATION_MASTER, ALLOCATE, FINISH_APPLICATION_MASTER)
