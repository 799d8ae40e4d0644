"""Make the pictures of README.md from runs of yarnling: two screenshots of its pages, and a space-time diagram.

The pages are drawn by Chromium (Debian's packages chromium and chromium-driver). Look at each picture before it is
committed: nothing checks whether it still shows what the README says.
"""

from __future__ import annotations

import argparse
import base64
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from selenium.webdriver.chrome.webdriver import WebDriver  # noqa: E402

from tests.browser.chromium import chromium  # noqa: E402
from yarn.settings.resourcemanager import WEBAPP_ADDRESS  # noqa: E402
from yarnling import Job, LocalCluster  # noqa: E402

PICTURES = ROOT / "docs" / "pictures"
WIDTH, HEIGHT, SCALE = 940, 1000, 1.5
"""The size of the window; a picture has SCALE times as many dots in each direction."""
MARGIN = 8
PATIENCE_S = 60
QUEUES = {
    "yarn.yarnling.web.enabled": "true",
    "yarn.scheduler.capacity.root.queues": "etl,adhoc,default",
    "yarn.scheduler.capacity.root.etl.capacity": "60",
    "yarn.scheduler.capacity.root.adhoc.capacity": "30",
    "yarn.scheduler.capacity.root.adhoc.maximum-capacity": "40",
    "yarn.scheduler.capacity.root.default.capacity": "10",
    "yarn.scheduler.capacity.maximum-am-resource-percent": "0.5",
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/pictures", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="PICTURE", help=f"only these, of: {', '.join(MAKERS)}")
    names = parser.parse_args().names or list(MAKERS)
    if unknown := [name for name in names if name not in MAKERS]:
        parser.error(f"no picture called {', '.join(unknown)}; there are {', '.join(MAKERS)}")
    PICTURES.mkdir(exist_ok=True)
    for name in names:
        with tempfile.TemporaryDirectory() as directory:
            print(MAKERS[name](Path(directory)).relative_to(ROOT))
    return 0


def waiting(_: Path) -> Path:
    """The page of a cluster on which an application waits although memory is free."""
    with LocalCluster(4, memory_mb=8192, fast=True, settings=QUEUES) as cluster:
        cluster.submit(Job("sleep 600", containers=12, memory_mb=1024, queue="etl"), user="ann")
        job = cluster.submit(Job("sleep 600", containers=30, memory_mb=1024, queue="adhoc"), user="bob")
        cluster.wait_containers(job.application_id, 10)
        with chromium() as browser:
            open_page(browser, f"http://{cluster.addresses[WEBAPP_ADDRESS.key]}/cluster", "maximum")
            return take(browser, "waiting", "main h2:nth-of-type(2)", ".waiting")


def comparison(directory: Path) -> Path:
    """The first chart of the comparison in README.md."""
    example = ROOT / "examples" / "what-if" / "move-capacity"
    inputs = ("--workload", example / "workload.yaml", "--nodes", example / "nodes.yaml")
    yarnling("simulate", "compare", example / "before", example / "after", *inputs, "-o", directory)
    with chromium() as browser:
        open_page(browser, (directory / "compare.html").as_uri(), "deadlines")
        return take(browser, "comparison", "figure.wide", "figure.wide")


def timeline(directory: Path) -> Path:
    """How an ApplicationMaster gets containers, and starts them."""
    trace, picture = directory / "trace.jsonl", PICTURES / "timeline.svg"
    yarnling("simulate", "kill-node", "--seed", 1, "--trace", trace)
    hosts = [word for host in ("rm", "nm-*", "*_0005_*") for word in ("--host", host)]
    yarnling("timeline", trace, "--svg", picture, "--app", "0005", *hosts, "--from", 2.3, "--to", 2.37)
    return picture


MAKERS: dict[str, Callable[[Path], Path]] = {"waiting": waiting, "comparison": comparison, "timeline": timeline}


def yarnling(*arguments: object) -> None:
    subprocess.run([sys.executable, "-m", "yarnling", *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)


def open_page(browser: WebDriver, address: str, text: str) -> None:
    """Open a page in the window's size, and wait until it shows the text."""
    size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": SCALE, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    light = [{"name": "prefers-color-scheme", "value": "light"}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": light})
    browser.get(address)
    deadline = time.monotonic() + PATIENCE_S
    while text not in browser.execute_script("return document.body.innerText"):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{address} does not show {text!r}")
        time.sleep(0.1)


def take(browser: WebDriver, name: str, first: str, last: str) -> Path:
    """A picture of the page from the top of element `first` to the bottom of `last`, both as CSS selectors."""
    script = (
        "const box = document.querySelector(arguments[0]).getBoundingClientRect(); return box[arguments[1]] + scrollY"
    )
    top = browser.execute_script(script, first, "top") - MARGIN
    bottom = browser.execute_script(script, last, "bottom") + MARGIN
    clip = {"x": 0, "y": top, "width": WIDTH, "height": bottom - top, "scale": 1}
    taken = browser.execute_cdp_cmd("Page.captureScreenshot", {"clip": clip, "captureBeyondViewport": True})
    path = PICTURES / f"{name}.png"
    path.write_bytes(base64.b64decode(taken["data"]))
    return path


if __name__ == "__main__":
    sys.exit(main())
