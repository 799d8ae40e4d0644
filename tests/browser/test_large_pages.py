"""The live pages of a cluster with 500 queues and 200 nodes of long names: folded, searched, sorted; its history."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from selenium.webdriver.chrome.webdriver import WebDriver
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import Select

from tests.browser.core_site import CoreSite
from tests.browser.large_cluster import BUSY_LEAVES, DEPARTMENTS, NODES, LargeCluster, department, host, leaf
from tests.browser.seen import complaints, texts
from tests.cluster.conftest import eventually
from yarnling.cluster.blocking import Portal

pytestmark = pytest.mark.browser
NAME = "nightly-<b>batch</b>"
PATHS = ("", "/scheduler", "/nodes", "/apps", "/waiting", "/history", f"/nodes?node={host(3)}:45454", "/app/{app}")


class Pages:
    """The pages of the large cluster in one tab."""

    def __init__(self, browser: WebDriver, origin: str, large: LargeCluster) -> None:
        self.browser, self.origin, self.large = browser, origin, large

    def open(self, path: str = "", width: int = 1400) -> None:
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.browser.get(self.origin + path.format(app=self.large.apps[2]))
        eventually(lambda: self.all("main h2, main .error"))
        assert not self.all("main .error"), texts(self.browser, "main")

    def all(self, selector: str) -> list[WebElement]:
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def names(self) -> list[str]:
        """The whole names of the queues in the tree, from top to bottom."""
        script = (
            "return [...document.querySelectorAll('.queues td.name')].map("
            "(cell) => cell.querySelector('abbr')?.title ?? cell.textContent.replace(/[▾▸]/, '').trim())"
        )
        found: list[str] = self.browser.execute_script(script)
        return found

    def height(self) -> int:
        return int(self.browser.execute_script("return document.documentElement.scrollHeight"))

    def overflows(self) -> bool:
        script = "return document.documentElement.scrollWidth > document.documentElement.clientWidth"
        return bool(self.browser.execute_script(script))

    def click(self, selector: str, text: str = "") -> None:
        """Click the first element that has the text; the page may be drawn again meanwhile."""
        script = (
            "const found = [...document.querySelectorAll(arguments[0])].find("
            "(one) => (one.getAttribute('aria-label') ?? one.textContent).includes(arguments[1]));"
            "found?.click(); return Boolean(found);"
        )
        assert self.browser.execute_script(script, selector, text), f"{selector} with {text!r}"

    def type(self, selector: str, text: str) -> None:
        (field,) = self.all(selector)
        field.clear()
        field.send_keys(text)


@pytest.fixture(scope="module")
def shown(browser: WebDriver, portal: Portal) -> Iterator[Pages]:
    large = LargeCluster()
    with CoreSite(portal, large.rm, large.history, cluster=NAME) as origin:
        yield Pages(browser, origin, large)
        browser.get("about:blank")


@pytest.fixture
def pages(shown: Pages) -> Iterator[Pages]:
    """The pages, as a reader sees them first; the test fails if the console has a complaint."""
    shown.open("/configuration")
    shown.browser.execute_script("sessionStorage.clear()")
    complaints(shown.browser)
    yield shown
    assert complaints(shown.browser) == []


@pytest.mark.parametrize("width", [1400, 400])
@pytest.mark.parametrize("path", PATHS)
def test_every_page_fits_its_window_has_the_clusters_name_and_ends(pages: Pages, path: str, width: int) -> None:
    pages.open(path, width)
    assert not pages.overflows()
    assert pages.all("header h1")[0].text.startswith(NAME)
    assert pages.browser.title.endswith(NAME)
    assert pages.height() < (4_000 if width == 1400 else 9_000)


def test_parents_that_wait_are_open_and_first_and_idle_queues_take_one_line(pages: Pages) -> None:
    pages.open("/scheduler")
    names = pages.names()
    assert names[0] == "root"
    first_department, first_team = names[1:3]
    assert first_team.startswith("team-")
    assert "pending" in texts(pages.browser, ".queues .figures")[2]
    assert sum(name.startswith("team-") for name in names) < BUSY_LEAVES
    assert {name for name in names if "department" in name} == {department(number) for number in range(DEPARTMENTS)}
    assert "22 idle queues" in " ".join(texts(pages.browser, ".queues tr.idle"))

    pages.click("button.fold", f"fold root.{first_department}")
    eventually(lambda: pages.names()[2] != first_team)
    pages.open("/scheduler")
    assert pages.names()[2] != first_team  # it stays folded
    pages.click("button.fold", f"unfold root.{first_department}")
    eventually(lambda: pages.names()[2] == first_team)
    pages.click("button.fold", f"unfold the idle queues of root.{first_department}")
    assert len(eventually(lambda: pages.all(".idlelist li"))) >= 21


def test_all_can_be_folded_and_unfolded(pages: Pages) -> None:
    pages.open("/scheduler")
    pages.click("form.filter button", "Fold all")
    eventually(lambda: len(pages.names()) == 1 + DEPARTMENTS)
    pages.click("form.filter button", "Unfold all")
    eventually(lambda: len(pages.names()) == 1 + DEPARTMENTS + BUSY_LEAVES)


def test_a_search_finds_idle_queues_with_what_is_above_them_and_is_part_of_the_address(pages: Pages) -> None:
    pages.open("/scheduler")
    pages.type("input[name=search]", "department-07-europe-and-middle-east.team-responsible-for-nightly")
    eventually(lambda: len(pages.names()) == 1 + 1 + 24)
    assert pages.names()[:2] == ["root", department(7)]
    assert "search=department-07" in pages.browser.current_url
    pages.open(f"/scheduler?search={leaf(23)}")
    assert pages.names() == ["root", *leaf(23).split(".")[1:]]
    pages.open("/scheduler?search=nothing-like-this")
    assert "No queue matches" in texts(pages.browser, "main")[0]


def test_queues_are_sorted_as_the_reader_wants(pages: Pages) -> None:
    pages.open("/scheduler")
    departments = sorted(department(number) for number in range(DEPARTMENTS))

    def order() -> list[str]:
        return [name for name in pages.names() if "department" in name]

    assert order() != departments
    Select(pages.all("select[name=sort]")[0]).select_by_value("name")
    eventually(lambda: order() == departments)
    assert "sort=name" in pages.browser.current_url


def test_long_names_are_shortened_where_they_do_not_differ(pages: Pages) -> None:
    pages.open("/scheduler")
    shorts = [text for text in texts(pages.browser, ".queues td.name abbr") if "team" not in text]
    assert len(shorts) == len(set(shorts)) == DEPARTMENTS
    assert all("…" in short and len(short) <= 34 for short in shorts)
    assert any("…07" in short or "07…" in short for short in shorts)
    script = (
        "const [names, most, done] = arguments;"
        "import('/static/lib/names.js').then((module) => done([...module.shortened(names, most).values()]))"
    )
    shorten = pages.browser.execute_async_script
    assert shorten(script, ["team-recommendations-a-batch-queue", "team-recommendations-b-batch-queue"], 20) == [
        "team-r…a-batch-queue",
        "team-r…b-batch-queue",
    ]
    assert shorten(script, ["short", "alone-and-much-too-long"], 15) == ["alone-a…oo-long", "short"]
    alike = ["x" * 20 + f"{number}" + "y" * 20 for number in range(3)]
    assert len(set(shorten(script, alike, 9))) == 3  # rather whole than two alike


def test_the_state_of_applications_comes_first_and_stays_in_sight(pages: Pages) -> None:
    pages.open("/apps", 400)
    assert texts(pages.browser, "table.applications th")[0] == "State"
    assert texts(pages.browser, "table.applications tbody td")[0] == "RUNNING"
    script = (
        "const box = document.querySelector('.scroll'); box.scrollLeft = 5000;"
        "return [box.scrollLeft, document.querySelector('tbody td').getBoundingClientRect().left]"
    )
    scrolled, left = pages.browser.execute_script(script)
    assert scrolled > 0
    assert 0 <= left < 20


def test_a_heat_map_has_all_nodes_and_the_list_those_that_are_wanted(pages: Pages) -> None:
    pages.open("/nodes")
    assert len(pages.all(".heatmap .cell")) == NODES
    assert len(pages.all(".node")) == 40
    pages.click("main a", "Draw all")
    eventually(lambda: len(pages.all(".node")) == NODES)
    pages.open("/nodes")
    pages.type("input[name=search]", "worker-07")
    eventually(lambda: len(pages.all(".node")) == 10)
    assert len(pages.all(".heatmap .cell:not(.pale)")) == 10
    Select(pages.all("select[name=sort]")[0]).select_by_value("used")
    eventually(lambda: "sort=used" in pages.browser.current_url)
    (full,) = pages.browser.execute_script("return [document.querySelector('.node svg').getAttribute('aria-label')]")
    assert full.startswith("worker-07")
    pages.click(".heatmap .cell", host(7))
    eventually(lambda: f"{host(7)}:45454" in texts(pages.browser, "main h2"))
    assert "used" in (pages.all("figure.panel svg")[0].get_attribute("aria-label") or "")


def test_history_is_drawn_for_the_cluster_and_for_a_queue_with_the_decisions(pages: Pages) -> None:
    pages.open()
    labels = [curve.get_attribute("aria-label") or "" for curve in pages.all("figure.panel svg")]
    for label, begin in zip(
        labels, ("memory: at most", "applications that wait: at most", "the oldest request waited"), strict=False
    ):
        assert label.startswith(begin)
    assert len(pages.all(".queues .past svg")) == 13
    pages.click("main a", "History and decisions")
    eventually(lambda: "Decisions" in texts(pages.browser, "main h2"))
    assert "placed" in texts(pages.browser, "table td:nth-child(2)")
    pages.type("input[name=queue]", leaf(3))
    pages.click("form.filter button", "Show")
    eventually(lambda: f"queue={leaf(3)}" in pages.browser.current_url)
    eventually(lambda: "0 preempted" in " ".join(texts(pages.browser, "figure.panel")))
    Select(pages.all("select[name=minutes]")[0]).select_by_value("1440")
    eventually(lambda: "minutes=1440" in pages.browser.current_url)
    assert eventually(lambda: pages.all("figure.panel path.line"))


def test_an_application_says_why_it_waited_before(pages: Pages) -> None:
    pages.open("/app/{app}")
    rows = eventually(lambda: texts(pages.browser, "table.past tbody tr"))
    assert any("waits because" in row for row in rows)


def test_decisions_can_be_told_apart_on_a_narrow_page(pages: Pages) -> None:
    pages.open("/history", 400)
    eventually(lambda: pages.all(".decisions a"))
    rights = "[...document.querySelectorAll('.decisions a')].map((one) => one.getBoundingClientRect().right)"
    assert pages.browser.execute_script(f"return Math.max(...{rights})") <= 400
