"""The ResourceManager's web services: all routes at yarn.resourcemanager.webapp.address."""

from __future__ import annotations

from collections.abc import Callable

from rm.core.resource_manager import ResourceManagerCore
from rm.shell.admin_service import AdminService
from rm.shell.services import ClientService
from rm.shell.web.service import ReadService
from rm.shell.web.writes import WriteService
from wire.address import Address
from wire.web.access import AccessCheck
from wire.web.application import WebApplication
from wire.web.server import WebServer
from yarn.configuration import Configuration
from yarn.settings import resourcemanager
from yarn.settings.yarnling import LISTEN_BEYOND_LOOPBACK


class ResourceManagerWeb:
    """Serves the core. Changes go through the services that answer RPCs, with the same checks."""

    def __init__(
        self,
        core: ResourceManagerCore,
        conf: Configuration,
        clock: Callable[[], int],
        clients: ClientService,
        admins: AdminService,
    ) -> None:
        address = Address.read(conf, resourcemanager.WEBAPP_ADDRESS)
        rows = [
            *ReadService(core, conf, clock).rows(),
            *WriteService(core, conf, clock, clients, admins).rows(),
        ]
        self._application = WebApplication(rows, AccessCheck(conf, [address.host]))
        self._address = address
        self._server = WebServer(address, beyond_loopback=LISTEN_BEYOND_LOOPBACK.of(conf))

    async def start(self) -> dict[str, str]:
        """Answer requests; {configuration key: address as served}. Raises YarnException if the port is taken."""
        port = await self._server.bind()
        await self._server.start(self._application)
        return {self._address.key: f"{self._address.host}:{port}"}

    async def stop(self) -> None:
        await self._server.stop()
