"""Measures the web pages: how soon `yarnling up` answers the first one, and how soon Chromium has drawn one.

The median of ten each. The first is from the start of the command; the second from the request for a page until its
heading is drawn from the answers of the REST API. Chromium is needed for the second: figures without it are left out.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

RUNS = 10
PORT = 18_088
TIMEOUT_S = 60.0
PAGE = f"http://127.0.0.1:{PORT}/cluster"
COMMAND = (sys.executable, "-m", "yarnling")
UP = ("up", "--nodes", "2", "--detach", "-D", f"yarn.resourcemanager.webapp.address=127.0.0.1:{PORT}")


def measure(progress: Callable[[str], None]) -> dict[str, float]:
    """{"first_page_s", "ready_s", "drawn_ms": medians, "least_" and "most_"}."""
    first, ready = list[float](), list[float]()
    for number in range(RUNS):
        progress(f"cluster {number + 1} of {RUNS}")
        with _cluster() as (first_s, ready_s):
            first.append(first_s)
            ready.append(ready_s)
    figures = _summary("first_page_s", first) | _summary("ready_s", ready)
    if shutil.which("chromium") and shutil.which("chromedriver"):
        progress("Chromium")
        with _cluster():
            figures |= _summary("drawn_ms", _drawn_ms())
    return figures


def _summary(name: str, values: list[float]) -> dict[str, float]:
    named = {name: statistics.median(values), f"least_{name}": min(values), f"most_{name}": max(values)}
    return {key: round(value, 2) for key, value in named.items()}


@contextlib.contextmanager
def _cluster() -> Iterator[tuple[float, float]]:
    """A cluster, with the seconds until its first page was answered and until the command had returned."""
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "XDG_RUNTIME_DIR": home, "PYTHONPATH": str(Path(__file__).parents[1])}
        started_s = time.monotonic()
        starting = subprocess.Popen(
            [*COMMAND, *UP], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            while not _is_answered():
                if time.monotonic() - started_s > TIMEOUT_S or starting.poll() not in (None, 0):
                    raise RuntimeError("the cluster did not answer")
                time.sleep(0.005)
            first_s = time.monotonic() - started_s
            starting.wait(TIMEOUT_S)
            yield first_s, time.monotonic() - started_s
        finally:
            subprocess.run(
                [*COMMAND, "down"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
            )


def _is_answered() -> bool:
    try:
        with urllib.request.urlopen(PAGE, timeout=5) as answer:
            return bool(answer.read())
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False


def _drawn_ms() -> list[float]:
    """Milliseconds from the start of the navigation until the heading of the page is there, each without a cache."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu"):
        options.add_argument(argument)
    browser = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver") or ""))
    found = list[float]()
    try:
        for _ in range(RUNS + 1):
            browser.execute_cdp_cmd("Network.setCacheDisabled", {"cacheDisabled": True})
            browser.get(PAGE)
            found.append(float(json.loads(str(browser.execute_async_script(_DRAWN)))))
    finally:
        browser.quit()
    return found[1:]


_DRAWN = """
const done = arguments[0];
const look = () => document.querySelector("main h2") ? done(String(performance.now())) : setTimeout(look, 1);
look();
"""
