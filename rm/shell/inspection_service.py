"""The RM's side of yarnling's own InspectionProtocol: queries of the scheduler, none of which is an event."""

from __future__ import annotations

from collections.abc import Callable

from rm.core.reports.explanations import explanation
from rm.core.resource_manager import ResourceManagerCore
from rm.shell.services import reader_of
from wire.caller import Caller
from wire.protocols.inspection import InspectionProtocol
from wire.rpc import handles
from yarn.ids import ApplicationId
from yarn.protocols.inspection import Explanation


class InspectionService:
    """Answers beside ClientService, on the clients' address. `clock`: the core's."""

    def __init__(self, core: ResourceManagerCore, clock: Callable[[], int]) -> None:
        self._core = core
        self._clock = clock

    @handles(InspectionProtocol.explain)
    async def explain(self, caller: Caller[None], request: ApplicationId) -> Explanation:
        return explanation(self._core.context, request, self._clock(), reader_of(caller))
