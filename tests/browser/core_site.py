"""The pages of a core that a test drives by hand, served in this process: no daemon and no cluster is started."""

from __future__ import annotations

from rm.core.history.cluster_history import ClusterHistory
from rm.shell.inspection_service import InspectionService
from rm.shell.web.configuration import ConfigurationService
from rm.shell.web.control import ControlService
from rm.shell.web.counters import AppCounters
from rm.shell.web.history import HistoryService
from rm.shell.web.live import LiveService
from rm.shell.web.server import PAGES
from rm.shell.web.service import ReadService
from tests.rm.builders import RM
from tests.wire.web.asgi import NoCheck
from wire.address import Address
from wire.web.application import WebApplication
from wire.web.pages import daemon_page_rows
from wire.web.server import WebServer
from yarn.configuration import Configuration
from yarnling.cluster.blocking import Portal

HOST = "127.0.0.1"


class CoreSite:
    """The pages of a core, at the address that the context gives. `history` is sampled by the test."""

    def __init__(self, portal: Portal, rm: RM, history: ClusterHistory | None = None, *, cluster: str = "") -> None:
        self._portal = portal
        self._server = WebServer(Address(HOST, 0), beyond_loopback=False)
        conf, core = Configuration.of({}), rm.core
        kept = history or ClusterHistory(core.context)

        def clock() -> int:
            return rm.now_ms

        inspections = InspectionService(core, clock)
        inspections.history = kept
        kept.sample(clock())
        rows = [
            *ReadService(core, conf, clock, AppCounters(core.context)).rows(),
            *LiveService(core, inspections).rows(),
            *HistoryService(core, kept, inspections, clock).rows(),
            *ConfigurationService(conf).rows(),
            *ControlService(core.context, conf).rows(),
            *daemon_page_rows("ResourceManager", "rm", "/cluster", PAGES, cluster=cluster),
        ]
        self._application = WebApplication(rows, NoCheck())  # type: ignore[arg-type]

    def __enter__(self) -> str:
        port = self._portal.call(self._server.bind)
        self._portal.call(self._server.start, self._application)
        return f"http://{HOST}:{port}/cluster"

    def __exit__(self, *_: object) -> None:
        self._portal.call(self._server.stop)
