"""The page of stepping in a browser: its keys and buttons, a fork, two widths, and that it reports no error."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webdriver import WebDriver

from tests.cluster.conftest import eventually
from yarnling.lessons.chapters import preemption
from yarnling.stepping.controls import Controls
from yarnling.stepping.sources import Scene
from yarnling.stepping.web.server import serving

pytestmark = pytest.mark.browser


@pytest.fixture
def address(browser: WebDriver) -> Iterator[str]:
    """The page's server in a thread with an event loop of its own."""
    controls = Controls(Scene(preemption.LESSON))
    controls.do("opening")
    controls.do("time", "8")
    loop, found, is_over = asyncio.new_event_loop(), list[str](), asyncio.Event()

    async def serve() -> None:
        async with serving(controls, 0) as url:
            found.append(url)
            await is_over.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    eventually(lambda: bool(found))
    yield found[0]
    loop.call_soon_threadsafe(is_over.set)
    thread.join(60)
    loop.close()
    controls.close()


@pytest.fixture
def page(browser: WebDriver, address: str) -> Iterator[WebDriver]:
    browser.get_log("browser")
    resize(browser, 1400)
    browser.get(address)
    eventually(lambda: "step " in text(browser, ".state"))
    yield browser
    assert browser.get_log("browser") == []


def resize(page: WebDriver, width: int) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def text(page: WebDriver, selector: str) -> str:
    return " ".join(element.text for element in page.find_elements(By.CSS_SELECTOR, selector))


def press(page: WebDriver, keys: str) -> None:
    page.find_element(By.TAG_NAME, "body").send_keys(keys)


def position(page: WebDriver) -> int:
    return int(text(page, ".state").split()[1].rstrip(","))


def test_keys_and_buttons_move_through_the_run(page: WebDriver) -> None:
    first, title = position(page), text(page, ".now h2")
    press(page, "n")
    eventually(lambda: position(page) == first + 1)
    press(page, "b")
    eventually(lambda: position(page) == first)
    assert text(page, ".now h2") == title
    press(page, "h")
    eventually(lambda: text(page, ".now h2").startswith("nodeHeartbeat from NM n"))
    page.find_element(By.XPATH, "//button[contains(., 'Next change')]").click()
    eventually(lambda: bool(page.find_elements(By.CSS_SELECTOR, ".lines .state, .lines .placed, .lines .released")))
    assert "ann-c2" in text(page, ".node .names")


def test_the_list_of_steps_leads_to_each_of_them(page: WebDriver) -> None:
    button = page.find_elements(By.CSS_SELECTOR, ".trail button")[2]
    number = int(button.text.split()[0])
    assert number != position(page)
    button.click()
    eventually(lambda: position(page) == number)


def test_the_list_of_moments_leads_to_each_of_them(page: WebDriver) -> None:
    moments = page.find_elements(By.CSS_SELECTOR, ".moments .trail button")
    assert "preemption of ann-c16 requested" in moments[3].text
    moments[3].click()
    eventually(lambda: "preemption: wants ann-c16 back" in text(page, ".lines .preempted"))
    press(page, "m")
    eventually(lambda: "preemption: kills ann-c16" in text(page, ".lines .preempted"))
    press(page, "M")
    eventually(lambda: "wants ann-c16 back" in text(page, ".lines .preempted"))
    assert "ann-c16 requested" in text(page, ".moments [aria-current=step]")


def test_a_fork_is_made_with_the_keyboard_alone(page: WebDriver) -> None:
    press(page, "k")
    eventually(lambda: page.switch_to.active_element.get_attribute("name") == "argument")
    page.switch_to.active_element.send_keys("n2", Keys.ENTER)
    eventually(lambda: text(page, ".now h2") == "kill n2")
    assert "process down" in text(page, ".node .bad")
    assert page.switch_to.active_element.tag_name == "body"
    press(page, "f")
    page.switch_to.active_element.send_keys("kill n9", Keys.ENTER)
    eventually(lambda: "there is no node n9" in text(page, ".said"))
    assert len(page.find_elements(By.CSS_SELECTOR, ".state option")) == 2
    complaints = page.get_log("browser")
    assert ["400 (Bad Request)" in entry["message"] for entry in complaints] == [True]


def test_a_run_is_played_and_paused(page: WebDriver) -> None:
    first = position(page)
    press(page, "p")
    eventually(lambda: position(page) >= first + 2)
    assert text(page, "button.play").startswith("Pause")
    press(page, "p")
    eventually(lambda: text(page, "button.play").startswith("Play"))


@pytest.mark.parametrize("width", [1400, 400])
def test_the_page_fits_its_window(page: WebDriver, width: int) -> None:
    resize(page, width)
    press(page, "h")
    eventually(lambda: text(page, ".now h2").startswith("nodeHeartbeat"))
    assert not page.execute_script("return document.documentElement.scrollWidth > innerWidth")
