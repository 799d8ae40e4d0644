"""The RM's service for operators: it checks who calls, reads files anew and turns a call into an event."""

from __future__ import annotations

from collections.abc import Callable

from rm.events import RefreshQueues, UpdateNodeResource
from rm.shell import ResourceManagerShell
from wire.caller import Caller
from wire.protocols.admin import NodeResources
from yarn.configuration import Configuration
from yarn.errors import YARNFeatureNotEnabledException


class AdminService:
    """ResourceManagerAdministrationProtocol (Hadoop's AdminService). `reload` reads the configuration files anew."""

    def __init__(self, shell: ResourceManagerShell, reload: Callable[[], Configuration] | None) -> None:
        self._shell = shell
        self._reload = reload

    async def refresh_queues(self, caller: Caller[None], request: None) -> None:
        if self._reload is None:
            raise YARNFeatureNotEnabledException(
                "this ResourceManager was started without configuration files that it could read anew"
            )
        conf = self._reload()
        await self._shell.ask(lambda call: RefreshQueues(call, conf))

    async def update_node_resource(self, caller: Caller[None], request: NodeResources) -> None:
        await self._shell.ask(lambda call: UpdateNodeResource(call, request))
