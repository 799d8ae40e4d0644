"""Each situation in which a request waits, on the page of its application: the words of the core and the command."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from selenium.webdriver.chrome.webdriver import WebDriver
from selenium.webdriver.common.by import By

from rm.shell.inspection_service import InspectionService
from rm.shell.web.control import ControlService
from rm.shell.web.counters import AppCounters
from rm.shell.web.live import LiveService
from rm.shell.web.server import PAGES
from rm.shell.web.service import ReadService
from tests.browser.seen import complaints, texts
from tests.cluster.conftest import eventually
from tests.rm.builders import RM
from tests.wire.web.asgi import NoCheck
from tests.yarnling.cli.test_waiting_situations import SITUATIONS, Situation
from wire.address import Address
from wire.web.application import WebApplication
from wire.web.pages import daemon_page_rows
from wire.web.server import WebServer
from yarn.configuration import Configuration
from yarnling.cluster.blocking import Portal

pytestmark = pytest.mark.browser
HOST = "127.0.0.1"


@pytest.fixture(scope="module")
def portal() -> Iterator[Portal]:
    opened = Portal()
    yield opened
    opened.close()


class Site:
    """The pages of a core whose state does not change."""

    def __init__(self, portal: Portal, rm: RM) -> None:
        self._portal = portal
        self._server = WebServer(Address(HOST, 0), beyond_loopback=False)
        conf, core = Configuration.of({}), rm.core

        def clock() -> int:
            return rm.now_ms

        rows = [
            *ReadService(core, conf, clock, AppCounters(core.context)).rows(),
            *LiveService(core, InspectionService(core, clock)).rows(),
            *ControlService(core.context, conf).rows(),
            *daemon_page_rows("ResourceManager", "rm", "/cluster", PAGES),
        ]
        self._application = WebApplication(rows, NoCheck())  # type: ignore[arg-type]

    def __enter__(self) -> str:
        port = self._portal.call(self._server.bind)
        self._portal.call(self._server.start, self._application)
        return f"http://{HOST}:{port}/cluster"

    def __exit__(self, *_: object) -> None:
        self._portal.call(self._server.stop)


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda situation: situation.scene.__name__.strip("<>"))
def test_a_situation_is_explained_on_the_page(browser: WebDriver, portal: Portal, situation: Situation) -> None:
    rm, app = situation.scene()
    complaints(browser)
    with Site(portal, rm) as origin:
        browser.get(f"{origin}/app/{app}")
        (sentence,) = eventually(lambda: texts(browser, ".waiting .sentence"))
        assert situation.words in sentence
        if situation.more:
            browser.find_element(By.XPATH, "//button[contains(text(), 'What would help?')]").click()
            eventually(lambda: any(situation.more in text for text in texts(browser, "main")))
        browser.get("about:blank")
    assert complaints(browser) == []
