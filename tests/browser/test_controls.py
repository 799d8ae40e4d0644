"""The buttons of nodes in a cluster of `yarnling up --network-faults` do what the commands of the same names do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver.chrome.webdriver import WebDriver
from selenium.webdriver.common.by import By

from tests.browser.seen import texts
from tests.cluster.conftest import DEFINITIONS, Yarnling, environment, eventually, yarnling
from wire.files.hadoop_xml import load_configuration
from yarn.settings.resourcemanager import WEBAPP_ADDRESS

__all__ = ["environment", "yarnling"]
pytestmark = [pytest.mark.cluster, pytest.mark.browser]


@pytest.fixture(scope="module")
def nodes_page(browser: WebDriver, yarnling: Yarnling) -> Iterator[str]:
    """The address of the page; two nodes."""
    arguments = ("--nodes", "2", "--memory", "1024", "--fast", "--network-faults", "--detach", "--json")
    started = yarnling("up", *arguments, *DEFINITIONS)
    assert started.returncode == 0, started.stderr
    address = load_configuration(Path(json.loads(started.stdout)["conf_dir"])).get(WEBAPP_ADDRESS.key)
    yield f"http://{address}/cluster/nodes"
    yarnling("down")


def test_a_node_is_partitioned_and_healed(browser: WebDriver, nodes_page: str, yarnling: Yarnling) -> None:
    browser.get(nodes_page)
    node_id = eventually(lambda: browser.find_elements(By.CSS_SELECTOR, ".node a")[:1])[0].text
    _press(browser, "partition")
    assert "is cut off from all other processes" in _said(browser, "cut off")
    lost = eventually(lambda: [row for row in texts(browser, "tr") if "LOST" in row], 30.0)
    assert node_id in lost[0]
    assert "LOST, partitioned" in yarnling("status").stdout
    again = yarnling("partition-node", node_id)
    assert (again.returncode, "is already partitioned (heal-node" in again.stderr) == (1, True), again.stderr
    _press(browser, "heal", within="tr")
    assert "is connected again" in _said(browser, "connected again")
    eventually(lambda: len(browser.find_elements(By.CSS_SELECTOR, ".node")) == 2, 60.0)
    healed = yarnling("heal-node", node_id)
    assert "is not partitioned (partition-node" in healed.stderr
    assert "partitioned" not in yarnling("status").stdout


def _press(browser: WebDriver, verb: str, within: str = ".node") -> None:
    """Open the menu of the first such row and press a button."""

    def press() -> bool:
        for summary in browser.find_elements(By.CSS_SELECTOR, f"{within} details.controls summary")[:1]:
            summary.click()
            browser.find_element(By.CSS_SELECTOR, f"{within} details.controls button[data-verb={verb}]").click()
            return True
        return False

    assert eventually(press)


def _said(browser: WebDriver, text: str) -> str:
    return eventually(lambda: next((one for one in texts(browser, "p[role=status]") if text in one), ""))
