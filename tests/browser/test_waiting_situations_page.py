"""Each situation in which a request waits, on the page of its application: the words of the core and the command."""

from __future__ import annotations

import pytest
from selenium.webdriver.chrome.webdriver import WebDriver
from selenium.webdriver.common.by import By

from tests.browser.core_site import CoreSite
from tests.browser.seen import complaints, texts
from tests.cluster.conftest import eventually
from tests.yarnling.cli.test_waiting_situations import SITUATIONS, Situation
from yarnling.cluster.blocking import Portal

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda situation: situation.scene.__name__.strip("<>"))
def test_a_situation_is_explained_on_the_page(browser: WebDriver, portal: Portal, situation: Situation) -> None:
    rm, app = situation.scene()
    complaints(browser)
    with CoreSite(portal, rm) as origin:
        browser.get(f"{origin}/app/{app}")
        (sentence,) = eventually(lambda: texts(browser, ".waiting .sentence"))
        assert situation.words in sentence
        if situation.more:
            browser.find_element(By.XPATH, "//button[contains(text(), 'What would help?')]").click()
            eventually(lambda: any(situation.more in text for text in texts(browser, "main")))
        browser.get("about:blank")
    assert complaints(browser) == []
