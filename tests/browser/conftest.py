"""A headless Chromium, and a cluster whose pages it shows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from selenium.webdriver.chrome.webdriver import WebDriver

from tests.browser.chromium import ChromiumMissing, chromium
from tests.cluster.conftest import QUICK
from yarnling.cluster.blocking import BlockingCluster, Portal
from yarnling.cluster.local_cluster import LocalCluster

SETTINGS = {
    **QUICK,
    "yarn.yarnling.web.enabled": "true",
    "yarn.scheduler.capacity.root.queues": "etl,adhoc",
    "yarn.scheduler.capacity.root.etl.capacity": "60",
    "yarn.scheduler.capacity.root.adhoc.capacity": "40",
    "yarn.scheduler.capacity.root.adhoc.maximum-capacity": "40",
}


@pytest.fixture(scope="session")
def browser() -> Iterator[WebDriver]:
    """Tests are skipped where Chromium is missing."""
    try:
        with chromium() as running:
            yield running
    except ChromiumMissing as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def cluster(browser: WebDriver) -> Iterator[BlockingCluster]:
    """Two nodes of 4 GB and two queues. It starts only if there is a browser."""
    with LocalCluster(2, memory_mb=4096, vcores=8, fast=True, settings=SETTINGS) as running:
        yield running


@pytest.fixture(scope="module")
def portal() -> Iterator[Portal]:
    """An event loop for servers of this process."""
    opened = Portal()
    yield opened
    opened.close()
