"""The page of stepping in a file: what is in it, its forks and its bounds."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import to_builtins

from yarn.errors import YarnException
from yarnling.lessons.catalogue import find_lesson
from yarnling.lessons.chapters import preemption
from yarnling.stepping.session import Session
from yarnling.stepping.sources import Scene
from yarnling.stepping.web import exported
from yarnling.stepping.web.exported import FORK_STEPS_MAX, FORKS_MAX, QUIET_STEPS, exported_page
from yarnling.stepping.web.objects import step_object

HOSTILE = "</script><img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def page() -> str:
    source = Scene(preemption.LESSON)
    source.title = HOSTILE
    return exported_page(source, (), Session.go_to_opening, lambda _: None)


@pytest.fixture(scope="module")
def data(page: str) -> dict[str, Any]:
    packed = re.search(r'<script type="application/gzip" id="run">([A-Za-z0-9+/=]+)</script>', page)
    assert packed is not None
    decoded: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(packed[1])))
    return decoded


@pytest.fixture
def session() -> Iterator[Session]:
    opened = Session(Scene(preemption.LESSON))
    yield opened
    opened.close()


def view(data: dict[str, Any], number: int) -> dict[str, Any]:
    rm, *lists = data["objects"][number]
    parts = [[data["objects"][one] for one in data["objects"][each]] for each in lists]
    return dict(zip(("rm", "queues", "nodes", "applications"), (rm, *parts), strict=True))


def test_the_page_has_each_step_and_the_cluster_after_it(data: dict[str, Any], session: Session) -> None:
    run = data["branches"][0]
    assert len(run["views"]) == len(run["steps"]) + 1
    session.go_to(len(run["steps"]))
    for position in (0, 20, 175, 300, len(run["steps"])):
        session.go_to(position)
        shown = to_builtins(session.view())
        shown.pop("at_ms")
        assert view(data, run["views"][position]) == json.loads(json.dumps(shown))
        if position:
            assert session.step is not None
            assert data["objects"][run["steps"][position - 1]] == step_object(session.step)


def test_the_page_ends_soon_after_the_last_change(data: dict[str, Any], session: Session) -> None:
    session.look_ahead()
    last = max(step.number for step in session.steps if step.is_change)
    assert len(data["branches"][0]["steps"]) == last + QUIET_STEPS
    assert not data["branches"][0]["isComplete"]


def test_forks_are_the_same_runs_as_elsewhere(data: dict[str, Any]) -> None:
    assert [(fork["step"], fork["text"]) for fork in data["forks"]] == [
        (20, "kill n1"),
        (20, "kill n2"),
        (20, "kill rm"),
        (175, "kill n1"),
    ]
    assert len(data["forks"]) <= FORKS_MAX
    for fork in data["forks"]:
        branch = data["branches"][fork["branch"]]
        assert branch["from"] == fork["step"]
        assert branch["command"].endswith(f"--change '{fork['step']}: {fork['text']}'")
        assert data["objects"][branch["steps"][0]]["title"] == fork["text"]
        assert len(branch["views"]) == len(branch["steps"]) <= FORK_STEPS_MAX
    assert view(data, data["branches"][2]["views"][0])["nodes"][1]["process"] == "down"


def test_the_page_loads_nothing_and_quotes_everything(page: str) -> None:
    assert HOSTILE not in page
    assert "<title>&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;</title>" in page
    assert "default-src 'none'; script-src 'unsafe-inline' data:; style-src 'unsafe-inline'" in page
    assert not re.search(r'(?:src|href)="(?!#)', page)
    assert "/static/" not in page
    modules = json.loads(re.search(r'<script type="importmap">(.*?)</script>', page)[1])["imports"]  # type: ignore[index]
    texts = {name: base64.b64decode(url.partition(",")[2]).decode() for name, url in modules.items()}
    assert "DecompressionStream" in texts["yarnling/step/source.js"]
    assert all(f'"{name}"' in page or any(f'from "{name}"' in text for text in texts.values()) for name in texts)


def test_a_page_that_would_be_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exported, "PAGE_BYTES_MAX", 10_000)
    with pytest.raises(YarnException, match="at most 0 are written: step through a smaller run"):
        exported_page(Scene(find_lesson("register")), (), Session.go_to_opening, lambda _: None)
