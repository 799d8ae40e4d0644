"""Our own protocol of looking into the scheduler, as a client calls it."""

from __future__ import annotations

from wire.protocols import inspection
from wire.proxy import Proxy
from yarn.ids import ApplicationId
from yarn.protocols.inspection import Explanation


class InspectionProxy(Proxy):
    """A way into the RM's scheduler (yarn.resourcemanager.address, where clients call)."""

    async def explain(self, application_id: ApplicationId) -> Explanation:
        """Why the application has not got what it asks for."""
        return await self.call(inspection.EXPLAIN, application_id)
