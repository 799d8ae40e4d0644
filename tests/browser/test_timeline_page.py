"""The page of a timeline in a browser: what it shows, its keyboard, its filters, and that it reports no error."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webdriver import WebDriver

from yarnling.report.space_time_page import TextSection, html_of
from yarnling.run.builder import RunBuilder
from yarnling.run.records import Call, Decision, RecordedFault, Role, What

pytestmark = pytest.mark.browser
HOSTILE = "<img src=x onerror=alert(1)></script>"


def write_page(path: Path) -> None:
    """Three heartbeats, of which one is without news and one is lost."""
    builder = RunBuilder(HOSTILE)
    node, rm = builder.lifeline("nm-1", Role.NM), builder.lifeline("rm", Role.RM)
    for number in range(3):
        at_ms = 1000 * number
        request = {"node_id": HOSTILE, "containers": []}
        call = builder.call(Call(node, rm, "nodeHeartbeat", at_ms, request))
        call.over_ms = at_ms + 2
        if number < 2:
            call.arrived_ms = call.replied_ms = at_ms + 1
            call.reply = {"action": "NORMAL"}
        else:
            call.error = f"lost {HOSTILE}"
    builder.change(1, rm, {"kind": "RMNode", "subject": "nm-1", "event": "E", "source": "NEW", "target": "RUNNING"})
    path.write_text(html_of(builder.run()), encoding="utf-8")


@pytest.fixture
def page(browser: WebDriver, tmp_path: Path) -> Iterator[WebDriver]:
    path = tmp_path / "page.html"
    write_page(path)
    browser.get_log("browser")
    browser.get(path.as_uri())
    yield browser
    assert browser.get_log("browser") == []


def details(page: WebDriver) -> str:
    return page.find_element(By.ID, "details").text


def test_the_keyboard_selects_what_happened_in_order(page: WebDriver) -> None:
    diagram = page.find_element(By.ID, "scroller")
    diagram.send_keys(Keys.ARROW_DOWN)
    assert "nm-1 \u2192 rm" in details(page)
    assert "answered 0.002 s" in details(page)
    diagram.send_keys(Keys.ARROW_DOWN)
    assert "NEW \u2192 RUNNING" in details(page)
    diagram.send_keys("n")
    assert "request lost" in details(page)
    assert HOSTILE in details(page), "texts of the run are shown as they are"
    diagram.send_keys(Keys.ESCAPE)
    assert details(page) == ""


def test_heartbeats_without_news_are_hidden_until_wanted(page: WebDriver) -> None:
    summary = page.find_element(By.ID, "summary")
    assert "shown: 2 calls" in summary.text
    assert "1 heartbeat without news is hidden" in summary.text
    page.find_element(By.ID, "quiet").click()
    assert "shown: 3 calls" in summary.text
    field = page.find_element(By.ID, "from")
    field.send_keys("1.5", Keys.TAB)
    assert "shown: 1 call, 0" in summary.text


def test_all_times_can_be_drawn_to_one_scale(page: WebDriver) -> None:
    page.find_element(By.ID, "true-time").click()
    apart = page.execute_script("return shown.items.map((item) => item.first / view.scale)")
    assert apart == [0, 1, 2000]


def test_a_page_opens_at_the_first_decision_and_goes_to_each_moment(browser: WebDriver, tmp_path: Path) -> None:
    builder = RunBuilder("many")
    builder.lifeline("nm-1", Role.NM)
    change = {"kind": "RMContainer", "subject": "c", "event": "E", "source": "NEW", "target": "RUNNING"}
    for number in range(200):
        builder.change(100 * number, builder.lifeline("rm", Role.RM), change)
    for number in (100, 180):
        container = f"container_1700000000000_000{number // 90}_01_000001"
        application = f"application_1700000000000_000{number // 90}"
        builder.decisions.append(Decision(100 * number + 1, What.ALLOCATED, application, "nm-1", container, HOSTILE))
    path = tmp_path / "page.html"
    path.write_text(html_of(builder.run()), encoding="utf-8")
    browser.get_log("browser")
    browser.get(path.as_uri())
    below, height = browser.execute_script("return [placeOf(10001) * unit() - view.top, view.height]")
    assert 0 < below < height
    assert browser.execute_script("return view.top") > height
    assert details(browser) == "", "nothing covers the diagram"
    browser.find_element(By.ID, "moments").click()
    moments = browser.find_elements(By.CSS_SELECTOR, "#moments button")
    assert [one.text for one in moments] == [
        "10.001 s placed first container of app 0001: c0001_000001 on NM-1",
        "18.001 s placed first container of app 0002: c0002_000001 on NM-1",
    ]
    moments[1].click()
    assert "allocated c0002_000001 on NM-1" in details(browser)
    browser.find_element(By.ID, "scroller").send_keys("m")
    assert "allocated c0001_000001 on NM-1" in details(browser)
    assert browser.get_log("browser") == []


def test_a_narrow_page_shows_the_words_whole_and_the_decision_in_sight(browser: WebDriver, tmp_path: Path) -> None:
    builder = RunBuilder("many")
    for number in range(6):
        builder.lifeline(f"container_1700000000000_0001_{number + 1:02}_000001", Role.AM)
        builder.lifeline(f"nm-{number + 1}", Role.NM)
    container = "container_1700000000000_0001_01_000001"
    builder.decisions.append(Decision(1, What.ALLOCATED, "application_1700000000000_0001", "nm-1", container, "root"))
    terms = tuple((f"term {number}", "a definition of some words " * 5) for number in range(12))
    path = tmp_path / "page.html"
    path.write_text(html_of(builder.run(), [TextSection("Words", (), rows=terms, is_open=True)]), encoding="utf-8")
    size = {"width": 400, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(path.as_uri())
    place = "return [view.columns[RM] - scroller.scrollLeft, document.querySelector('main').clientHeight]"
    across, height = browser.execute_script(place)
    assert 74 < across < 300
    assert height >= 700
    about = "const about = document.getElementById('about'); return [about.scrollWidth, about.scrollHeight, innerWidth]"
    width, needed, window = browser.execute_script(about)
    assert width <= window
    assert browser.execute_script("return document.getElementById('about').clientHeight") == needed
    assert not browser.execute_script("return document.documentElement.scrollWidth > innerWidth")


def test_texts_have_room_below_states_and_for_the_names_of_faults(browser: WebDriver, tmp_path: Path) -> None:
    builder = RunBuilder("run")
    node, rm = builder.lifeline("nm-1", Role.NM), builder.lifeline("rm", Role.RM)
    for at_ms in (0, 10, 20):
        builder.change(
            at_ms, rm, {"kind": "RMNode", "subject": "nm-1", "event": "E", "source": "NEW", "target": "RUNNING"}
        )
    builder.call(Call(node, rm, "nodeHeartbeat", 30, {"node_id": "nm-1", "containers": []}))
    builder.faults.append(RecordedFault("partition-node", 15, 25, ("nm-1",)))
    path = tmp_path / "room.html"
    path.write_text(html_of(builder.run()), encoding="utf-8")
    browser.get(path.as_uri())
    assert browser.execute_script("return shown.places") == [0, 1, 3, 4.5]
