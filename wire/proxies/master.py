"""ApplicationMasterProtocol, as a master calls it."""

from __future__ import annotations

from wire.protocols import master
from wire.proxy import Proxy
from yarn.protocols.master import (
    AllocateRequest,
    AllocateResponse,
    FinishApplicationMasterRequest,
    FinishApplicationMasterResponse,
    RegisterApplicationMasterRequest,
    RegisterApplicationMasterResponse,
)


class ApplicationMasterProxy(Proxy):
    """A master's way to the RM (yarn.resourcemanager.scheduler.address); it shows its AMRM token."""

    async def register_application_master(
        self, request: RegisterApplicationMasterRequest
    ) -> RegisterApplicationMasterResponse:
        return await self.call(master.REGISTER_APPLICATION_MASTER, request)

    async def allocate(self, request: AllocateRequest) -> AllocateResponse:
        """After CallOutcomeUnknown send the same request again: the RM knows it by its response id."""
        return await self.call(master.ALLOCATE, request)

    async def finish_application_master(
        self, request: FinishApplicationMasterRequest
    ) -> FinishApplicationMasterResponse:
        """Call again until it says that the master is unregistered."""
        return await self.call(master.FINISH_APPLICATION_MASTER, request)
