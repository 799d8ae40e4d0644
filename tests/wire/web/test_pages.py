"""The files of the web pages as they are served: what they load, and what browsers are allowed to load for them."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from tests.wire.web.asgi import NoCheck, Reply, ask
from wire.web.application import WebApplication
from wire.web.pages import STATIC, daemon_page_rows

PATHS = ("/page", "/page/{id}")
LOADED = re.compile(r"""(?:from|import|src=|href=) ?"(/static/[^"]+)\"""")
ELSEWHERE = re.compile(r"https?://(?!www\.w3\.org/)[a-z]")


@pytest.fixture(params=["rm", "nm"])
def application(request: pytest.FixtureRequest) -> WebApplication:
    return WebApplication(daemon_page_rows("Daemon", request.param, "/home", PATHS), NoCheck())  # type: ignore[arg-type]


async def served(application: WebApplication, path: str) -> Reply:
    reply = await ask(application, path)
    assert reply.status == 200, path
    return reply


async def test_a_page_and_all_that_it_loads_is_served(application: WebApplication) -> None:
    waiting, seen = ["/page"], set[str]()
    while waiting:
        path = waiting.pop()
        seen.add(path)
        reply = await served(application, path)
        waiting += [loaded for loaded in LOADED.findall(reply.text) if loaded not in seen]
    assert "<title>Daemon</title>" in (await served(application, "/page")).text
    assert 'href="/home/paths"' in (await served(application, "/page")).text
    assert {f"{STATIC}/style.css", f"{STATIC}/vendor/lit-html.js", f"{STATIC}/lib/site.js"} <= seen
    assert (await served(application, f"{STATIC}/style.css")).headers["content-type"].startswith("text/css")
    assert (await served(application, f"{STATIC}/lib/site.js")).headers["content-type"].startswith("text/javascript")


async def test_a_page_may_load_and_run_nothing_from_elsewhere(application: WebApplication) -> None:
    policy = (await served(application, "/page/7")).headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy


async def test_no_other_file_of_the_package_is_served(application: WebApplication) -> None:
    for path in ("/static/../pages.py", "/static/vendor/README.md", "/static/daemon.html", "/static/"):
        assert (await ask(application, path)).status == 404, path


def test_files_name_no_address_elsewhere() -> None:
    root = files("wire.web") / "assets"
    for folder in (root, root / "lib", root / "rm", root / "nm"):
        for entry in folder.iterdir():
            if entry.is_file():
                assert not ELSEWHERE.search(entry.read_text()), entry.name
