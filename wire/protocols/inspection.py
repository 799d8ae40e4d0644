"""InspectionProtocol, yarnling's own: whoever wants to know why, to the RM. Served beside ApplicationClientProtocol."""

from __future__ import annotations

from typing import Any, Protocol

from protos import yarnling_pb2 as pb
from wire.caller import Caller
from wire.codec.fields import required
from wire.codec.ids import read_application_id, write_application_id
from wire.codec.inspection import read_explanation, write_explanation
from wire.rpc import Form, Rpc
from yarn.ids import ApplicationId
from yarn.protocols.inspection import Explanation

SERVICE = "yarnling.InspectionProtocolService"


class InspectionHandler(Protocol):
    """What answers; `caller.user` is who asks."""

    async def explain(self, caller: Caller[None], request: ApplicationId) -> Explanation: ...


EXPLAIN: Rpc[ApplicationId, Explanation] = Rpc(
    SERVICE,
    "explain",
    "explain",
    Form(
        pb.ExplainRequestProto,
        lambda app_id, out: write_application_id(app_id, out.application_id),
        lambda proto: read_application_id(required(proto, "application_id")),
    ),
    Form(pb.ExplanationProto, write_explanation, read_explanation),
    reads=True,
    bulky=True,
)

RPCS: tuple[Rpc[Any, Any], ...] = (EXPLAIN,)
