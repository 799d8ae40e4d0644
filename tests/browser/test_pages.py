"""The web pages in Chromium: what they show of a cluster, by which names, and that nothing is refused or fails."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from selenium.webdriver.chrome.webdriver import WebDriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from tests.browser.seen import complaints, text_of
from tests.cluster.conftest import eventually
from yarn.ids import ApplicationId
from yarn.settings.resourcemanager import WEBAPP_ADDRESS
from yarnling import Job
from yarnling.cluster.blocking import BlockingCluster

pytestmark = [pytest.mark.cluster, pytest.mark.browser]
WIDTHS = (1400, 400)
PAGES = ("", "/scheduler", "/nodes", "/apps", "/waiting", "/configuration")


class Page:
    """A tab. Paths are those of the ResourceManager."""

    def __init__(self, browser: WebDriver, cluster: BlockingCluster) -> None:
        self._browser = browser
        self._origin = f"http://{cluster.addresses[WEBAPP_ADDRESS.key]}"

    def open(self, path: str, width: int = 1400) -> None:
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self._browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self._browser.get(self._origin + path)
        self.one("main h2, main .error")

    def one(self, selector: str, text: str = "") -> WebElement:
        """The first element that matches and contains the text, as soon as there is one."""

        def found() -> WebElement | None:
            return next((element for element in self.all(selector) if text in text_of(element)), None)

        element = eventually(found)
        assert element is not None
        return element

    def all(self, selector: str) -> list[WebElement]:
        return self._browser.find_elements(By.CSS_SELECTOR, selector)

    def text(self) -> str:
        return text_of(self.one("main"))

    @property
    def path(self) -> str:
        return self._browser.current_url.removeprefix(self._origin)

    def overflows(self) -> bool:
        script = "return document.documentElement.scrollWidth > document.documentElement.clientWidth"
        return bool(self._browser.execute_script(script))

    def complaints(self) -> list[str]:
        """Messages of the console since the last call: failures, and what the policy has refused."""
        return complaints(self._browser)


@pytest.fixture
def page(browser: WebDriver, cluster: BlockingCluster) -> Iterator[Page]:
    """A tab; its test fails if the console has a complaint."""
    shown = Page(browser, cluster)
    shown.complaints()
    yield shown
    assert shown.complaints() == []


@pytest.fixture(scope="module")
def waiting(cluster: BlockingCluster) -> ApplicationId:
    """An application in queue adhoc that has more requests than the queue's maximum allows."""
    job = Job("sleep 3600", containers=8, memory_mb=512, queue="adhoc")
    app_id = cluster.submit(job, user="ann").application_id
    eventually(lambda: sum(node.used.memory_mb for node in cluster.client.nodes()) >= 1024)
    return app_id


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("path", PAGES)
def test_every_page_fits_its_window(page: Page, waiting: ApplicationId, path: str, width: int) -> None:
    page.open(f"/cluster{path}", width)
    assert not page.all("main .error"), page.text()
    assert not page.overflows()


def test_the_overview_counts_nodes_and_says_what_waits(page: Page, waiting: ApplicationId) -> None:
    page.open("/cluster")
    assert page.one("dl.tiles div", "Nodes").text.startswith("Nodes\n2")
    assert "at its maximum" in page.one(".sentence").text
    bar = page.one("table.queues tr:nth-child(3) svg, table.queues tr:nth-child(2) svg")
    assert (bar.get_attribute("aria-label") or "").startswith("root.")


def test_an_application_is_explained_and_its_containers_lead_to_their_logs(page: Page, waiting: ApplicationId) -> None:
    page.open(f"/cluster/app/{waiting}")
    page.one("button", "What would help?").click()
    assert "maximum-capacity" in page.one(".changes li").text
    page.one("table td a", "logs").click()
    page.one("h2", "container_")
    page.one("ul.legend a", "launch_container.sh").click()
    page.one("h3", "launch_container.sh")
    assert "exec" in page.one("pre", "exec").text


def test_a_containers_page_says_why_it_is_there(page: Page, waiting: ApplicationId) -> None:
    """From the application's page and from the node's, which also lead back."""
    page.open(f"/cluster/app/{waiting}")
    page.one("table td a", "_000001").click()
    assert "was placed on" in page.one(".sentence", "after its request").text
    page.one(".facts a", ":").click()
    page.one("h3", "container")
    page.one("table td a", "container_").click()
    page.one(".sentence", "after its request")
    page.one(".facts a", "application_").click()
    page.one("h2", str(waiting))


def test_nodes_are_drawn_with_their_containers(page: Page, waiting: ApplicationId) -> None:
    page.open("/cluster/nodes")
    page.one(".legend a", str(waiting))
    labels = [bar.get_attribute("aria-label") or "" for bar in page.all(".node svg")]
    assert len(labels) == 2
    assert all("of 4 GB in" in label for label in labels)


def test_a_page_follows_the_cluster(page: Page, cluster: BlockingCluster, waiting: ApplicationId) -> None:
    page.open("/cluster/apps")
    app_id = cluster.submit(Job("true", name="seen-at-once", queue="etl"), user="bob").application_id
    page.one("table a", str(app_id))


def test_many_tabs_can_be_open(page: Page, browser: WebDriver, waiting: ApplicationId) -> None:
    """A browser keeps six connections to a server; the streams of hidden pages must not use them up."""
    first, tabs = browser.current_window_handle, []
    try:
        for _ in range(8):
            browser.switch_to.new_window("tab")
            tabs.append(browser.current_window_handle)
            page.open(f"/cluster/app/{waiting}")
            assert str(waiting) in page.text()
    finally:
        for tab in tabs:
            browser.switch_to.window(tab)
            browser.close()
        browser.switch_to.window(first)


def test_filters_are_part_of_the_address(page: Page, waiting: ApplicationId) -> None:
    page.open("/cluster/apps?user=nobody")
    assert "No application matches" in page.text()
    page.open("/cluster/apps")
    user = page.one("input[name=user]")
    user.send_keys("ann", Keys.ENTER)
    eventually(lambda: "user=ann" in page.path)
    page.one("table a", str(waiting))


def test_keys_alone_lead_from_page_to_page(page: Page, browser: WebDriver) -> None:
    page.open("/cluster")
    link = page.one("nav a", "Queues")
    link.send_keys(Keys.ENTER)
    page.one("main h2", "Queues")
    assert page.path == "/cluster/scheduler"
    assert browser.switch_to.active_element.get_attribute("id") == "main"
    browser.back()
    page.one("main h2", "Cluster")


def test_hadoops_links_lead_to_the_application(page: Page, waiting: ApplicationId) -> None:
    number = str(waiting).removeprefix("application_")
    page.open(f"/cluster/appattempt/appattempt_{number}_000001")
    page.one("h2", str(waiting))
    page.open(f"/cluster/container/container_{number}_01_000001")
    page.one("dl.facts a", str(waiting))


def test_the_configuration_names_where_a_key_was_set(page: Page) -> None:
    page.open("/cluster/configuration?key=root.adhoc.maximum-capacity")
    assert "40" in page.one("table").text


def test_text_of_users_is_shown_astext_of(page: Page, cluster: BlockingCluster) -> None:
    name = "<img src=x onerror=alert(1)>"
    cluster.submit(Job("true", name=name, queue="etl"), user="bob")
    page.open("/cluster/apps?user=bob")
    page.one("table td", name)
