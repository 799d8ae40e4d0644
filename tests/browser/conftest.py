"""A headless Chromium, and a cluster whose pages it shows."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.chrome.webdriver import WebDriver

from tests.cluster.conftest import QUICK
from yarnling.cluster.blocking import BlockingCluster
from yarnling.cluster.local_cluster import LocalCluster

ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)
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
    """Chromium from Debian's packages; tests are skipped where it is missing."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("needs Chromium and ChromeDriver (Debian's packages chromium and chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for argument in ARGUMENTS:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    running = webdriver.Chrome(options=options, service=Service(driver))
    try:
        yield running
    finally:
        running.quit()


@pytest.fixture(scope="module")
def cluster(browser: WebDriver) -> Iterator[BlockingCluster]:
    """Two nodes of 4 GB and two queues. It starts only if there is a browser."""
    with LocalCluster(2, memory_mb=4096, vcores=8, fast=True, settings=SETTINGS) as running:
        yield running
