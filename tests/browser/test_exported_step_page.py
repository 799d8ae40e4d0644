"""The page of stepping in a file, in a browser without a network: its keys, its moments, a fork, two widths."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webdriver import WebDriver

from tests.browser.test_step_page import position, press, resize, text
from tests.cluster.conftest import eventually
from yarnling.lessons.chapters import preemption
from yarnling.stepping.session import Session
from yarnling.stepping.sources import Scene
from yarnling.stepping.web.exported import exported_page

pytestmark = pytest.mark.browser
HOSTILE = "</script><img src=x onerror=alert(1)>"
OFFLINE = {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = Scene(preemption.LESSON)
    source.title = HOSTILE
    path = tmp_path_factory.mktemp("page") / "page.html"
    path.write_text(exported_page(source, (), Session.go_to_opening, lambda _: None), encoding="utf-8")
    return path


@pytest.fixture
def page(browser: WebDriver, file: Path) -> Iterator[WebDriver]:
    browser.get_log("browser")
    browser.execute_cdp_cmd("Network.enable", {})
    browser.execute_cdp_cmd("Network.emulateNetworkConditions", OFFLINE)
    resize(browser, 1400)
    browser.get(file.as_uri())
    eventually(lambda: "step " in text(browser, ".state"))
    yield browser
    browser.execute_cdp_cmd("Network.emulateNetworkConditions", {**OFFLINE, "offline": False})
    assert browser.get_log("browser") == []


def test_it_opens_at_the_first_decision_and_goes_forwards_and_backwards(page: WebDriver) -> None:
    assert text(page, "h1") == HOSTILE
    assert "allocates ann-am (1024 MB) on n1" in text(page, ".lines .placed")
    first = position(page)
    press(page, "n")
    eventually(lambda: position(page) == first + 1)
    press(page, "bbbb")
    eventually(lambda: position(page) == first - 3)
    press(page, "2")
    eventually(lambda: text(page, ".now h2").startswith("nodeHeartbeat from NM n2"))
    page.find_element(By.CSS_SELECTOR, "form.time input").send_keys("16\n")
    eventually(lambda: "15." in text(page, ".now .when"))
    assert "ann-c16" in text(page, ".node .names")
    press_home_and_end(page)


def press_home_and_end(page: WebDriver) -> None:
    press(page, "\ue010")
    eventually(lambda: position(page) > 300)
    press(page, "n")
    eventually(lambda: text(page, ".said") == "the page ends here; the run goes on")
    press(page, "\ue011")
    eventually(lambda: position(page) == 0)
    assert "The ResourceManager is down." in text(page, ".error")


def test_its_moments_lead_to_their_steps(page: WebDriver) -> None:
    page.find_elements(By.CSS_SELECTOR, ".moments .trail button")[3].click()
    eventually(lambda: "wants ann-c16 back" in text(page, ".lines .preempted"))
    press(page, "m")
    eventually(lambda: "kills ann-c16" in text(page, ".lines .preempted"))


def test_a_fork_goes_on_beside_the_run(page: WebDriver) -> None:
    first = position(page)
    page.find_element(By.XPATH, "//button[contains(., 'n2 dies, with all its containers')]").click()
    eventually(lambda: text(page, ".now h2") == "kill n2")
    assert "process down" in text(page, ".node .bad")
    assert position(page) == first + 1
    press(page, "h")
    eventually(lambda: text(page, ".now h2").startswith("nodeHeartbeat from NM n1"))
    page.find_element(By.XPATH, "//button[contains(., 'Back to the run')]").click()
    eventually(lambda: not page.find_elements(By.CSS_SELECTOR, ".node .bad"))
    assert f"--at {position(page)}" in text(page, "footer")


@pytest.mark.parametrize("width", [1400, 400])
def test_it_fits_its_window(page: WebDriver, width: int) -> None:
    resize(page, width)
    press(page, "h")
    eventually(lambda: text(page, ".now h2").startswith("nodeHeartbeat"))
    assert not page.execute_script("return document.documentElement.scrollWidth > innerWidth")
