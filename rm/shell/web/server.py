"""The ResourceManager's web services: all routes at yarn.resourcemanager.webapp.address."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from rm.core.history.cluster_history import ClusterHistory
from rm.core.resource_manager import ResourceManagerCore
from rm.scheduler.model.health import SchedulerHealth
from rm.shell.admin_service import AdminService
from rm.shell.history_sampler import HistorySampler
from rm.shell.inspection_service import InspectionService
from rm.shell.mutable_configuration import MutableConfiguration
from rm.shell.predictions import Predictions
from rm.shell.services import ClientService
from rm.shell.web.beans import ResourceManagerBeans
from rm.shell.web.cluster import NO_ELECTOR
from rm.shell.web.configuration import ConfigurationService
from rm.shell.web.control import ControlService
from rm.shell.web.counters import AppCounters
from rm.shell.web.history import HistoryService
from rm.shell.web.live import LiveService
from rm.shell.web.predict import PredictService
from rm.shell.web.scheduler_conf import SchedulerConfService
from rm.shell.web.service import ReadService
from rm.shell.web.writes import WriteService
from wire.address import Address
from wire.web.access import AccessCheck
from wire.web.application import TextAnswer, WebApplication, WebRoute
from wire.web.pages import daemon_page_rows
from wire.web.request import WebRequest
from wire.web.server import WebServer
from wire.web.site import ANYTHING, site_rows
from yarn.configuration import Configuration
from yarn.machine import StateChanged
from yarn.settings import resourcemanager
from yarn.settings.yarnling import LISTEN_BEYOND_LOOPBACK, OPEN_TO_LOCAL_USERS

TITLE = "ResourceManager"
PAGE = "/cluster"
"""Where Hadoop has its web pages."""
PAGES = tuple(
    f"{PAGE}{path}"
    for path in (
        "",
        "/cluster",
        "/about",
        "/scheduler",
        "/nodes",
        "/nodes/{state}",
        "/nodelabels",
        "/apps",
        "/apps/{state}",
        "/app/{id}",
        "/appattempt/{id}",
        "/container/{id}",
        "/waiting",
        "/history",
        "/configuration",
    )
)
"""The paths of the pages, those that Hadoop has under the same name."""


class ResourceManagerWeb:
    """Serves the core. Changes go through the services that answer RPCs, with the same checks."""

    def __init__(
        self,
        core: ResourceManagerCore,
        conf: Configuration,
        clock: Callable[[], int],
        clients: ClientService,
        admins: AdminService,
        inspections: InspectionService,
        mutable: MutableConfiguration | None = None,
        elector: str = NO_ELECTOR,
    ) -> None:
        address = Address.read(conf, resourcemanager.WEBAPP_ADDRESS)
        scheduler = core.scheduler.context
        scheduler.health = SchedulerHealth(scheduler.none)
        self._counters = AppCounters(core.context)
        self._live = LiveService(core, inspections)
        inspections.history = history = ClusterHistory(core.context)
        self._sampler = HistorySampler(history, clock)
        self._sampling: asyncio.Task[None] | None = None
        beans = ResourceManagerBeans(core.context, self._counters, clock, core.context.settings.web_address)
        self._predictions = Predictions(conf)
        rest = [
            *ReadService(core, conf, clock, self._counters, elector).rows(),
            *WriteService(core, conf, clock, clients, admins).rows(),
            *SchedulerConfService(core, conf, admins, mutable).rows(),
            *self._live.rows(),
            *HistoryService(core, history, inspections, clock).rows(),
            *ConfigurationService(conf).rows(),
            *ControlService(core.context, conf).rows(),
            *PredictService(core, admins, self._predictions).rows(),
        ]
        rows = [
            *rest,
            *daemon_page_rows(TITLE, "rm", PAGE, PAGES, cluster=resourcemanager.CLUSTER_ID.maybe_of(conf) or ""),
            *site_rows(TITLE, PAGE, f"{PAGE}/paths", rest, beans),
            WebRoute("GET", "/isActive", _is_active, ANYTHING),
        ]
        self._application = WebApplication(rows, AccessCheck(conf, [address.host]))
        self._address = address
        self._server = WebServer(
            address, beyond_loopback=LISTEN_BEYOND_LOOPBACK.of(conf), admits_all_users=OPEN_TO_LOCAL_USERS.of(conf)
        )

    def state_changed(self, change: StateChanged) -> None:
        """Count a transition."""
        self._counters.note(change)
        self._live.note(change)

    @property
    def application(self) -> WebApplication:
        """The services without the server."""
        return self._application

    async def start(self) -> dict[str, str]:
        """Answer requests; {configuration key: address as served}. Raises YarnException if the port is taken."""
        port = await self._server.bind()
        await self._server.start(self._application)
        self.start_sampling()
        return {self._address.key: f"{self._address.host}:{port}"}

    def start_sampling(self) -> None:
        """Sample the cluster's history until `stop`; `start` does so, too."""
        self._sampling = asyncio.get_running_loop().create_task(self._sampler.run_forever())

    async def stop(self) -> None:
        if self._sampling is not None:
            self._sampling.cancel()
        await self._predictions.close()
        await self._server.stop()


async def _is_active(request: WebRequest) -> TextAnswer:
    return TextAnswer("I am Active!")
