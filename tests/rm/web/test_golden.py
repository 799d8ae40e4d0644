"""The REST answers that Hadoop's own ResourceManager gave in the same state."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rm.core.resource_manager import ResourceManagerCore
from rm.shell.web.counters import AppCounters
from rm.shell.web.scheduler_conf import SchedulerConfService
from rm.shell.web.service import ReadService
from tests.rm.web import scene
from tests.rm.web.comparison import MASKED, OF_HISTORY, differences, pairs, renamed, xml_pairs
from tests.wire.web.asgi import NoCheck, Reply, ask
from wire.web.application import WebApplication
from yarn.configuration import Configuration

GOLDEN = Path(__file__).parent / "golden"
JSON = json.loads((GOLDEN / "rm.json").read_text())
XML = json.loads((GOLDEN / "rm-xml.json").read_text())
LISTS = ("/ws/v1/cluster/apps?", "/ws/v1/cluster/apps ")
UNEQUAL = {
    "/ws/v1/cluster/scheduler": OF_HISTORY,
    "/ws/v1/cluster/metrics": frozenset(
        {"appsSubmitted", "appsCompleted", "appsFailed", "appsKilled", "rmSchedulerBusyPercent"}
        | {"utilizedVirtualCores", "utilizedMBPercent", "utilizedVirtualCoresPercent"}
    ),
    "/ws/v1/cluster/scheduler-overview": frozenset({"schedulerBusy"}),
    "/ws/v1/cluster/appstatistics": frozenset({"count"}),
    "/ws/v1/cluster": frozenset({"id"}),
}
"""{path: fields whose values have reasons of their own}."""


@pytest.fixture(scope="module")
def played() -> scene.Scene:
    return scene.play()


@pytest.fixture(scope="module")
def application(played: scene.Scene) -> WebApplication:
    return served(played.rm.core, lambda: played.rm.now_ms)


def served(core: ResourceManagerCore, clock: Any) -> WebApplication:
    conf = Configuration.of(scene.SETTINGS)
    of_file = SchedulerConfService(core, conf, None, None)  # type: ignore[arg-type]
    rows = [*ReadService(core, conf, clock, AppCounters(core.context)).rows(), *of_file.rows()]
    return WebApplication(rows, NoCheck())  # type: ignore[arg-type]


def recorded(entries: list[dict[str, Any]]) -> list[Any]:
    return [pytest.param(entry, id=entry["request"]) for entry in entries]


def masked_for(path: str) -> frozenset[str]:
    bare = path.partition("?")[0]
    return MASKED | UNEQUAL.get(bare.removesuffix("/info").rstrip("/") or bare, frozenset())


async def asked(application: WebApplication, played: scene.Scene, entry: dict[str, Any], **headers: str) -> Reply:
    path = renamed(entry["request"].split()[1], played.names)
    return await ask(application, path, headers=headers)


@pytest.mark.parametrize(
    "entry", recorded([entry for entry in JSON if "/apps?" not in entry["request"] or entry["status"] != 200])
)
async def test_an_answer_in_json_is_hadoops(
    application: WebApplication, played: scene.Scene, entry: dict[str, Any]
) -> None:
    reply = await asked(application, played, entry)
    assert (reply.status, reply.headers["content-type"]) == (entry["status"], entry["contentType"])
    if entry["contentType"].startswith("application/json") and not entry["request"].endswith("/cluster/apps"):
        theirs = renamed(entry["body"], played.names)
        if theirs.startswith("{"):
            masked = masked_for(entry["request"].split()[1])
            assert differences(pairs(theirs), pairs(reply.text), masked=masked) == []
        else:
            assert reply.text == theirs


@pytest.mark.parametrize(
    "entry",
    recorded(
        [
            entry
            for entry in JSON
            if entry["request"].startswith("GET /ws/v1/cluster/apps")
            and entry["status"] == 200
            and ("apps?" in entry["request"] or entry["request"].endswith("/apps"))
        ]
    ),
)
async def test_a_list_of_applications_has_hadoops_elements(
    application: WebApplication, played: scene.Scene, entry: dict[str, Any]
) -> None:
    """The recording has more applications: those of both are compared."""
    reply = await asked(application, played, entry)
    theirs, ours = (by_id(text) for text in (renamed(entry["body"], played.names), reply.text))
    assert reply.status == 200
    assert theirs.keys() & ours.keys() or not ours or "limit" in entry["request"]
    for name in theirs.keys() & ours.keys():
        assert differences(theirs[name], ours[name]) == []


@pytest.mark.parametrize("entry", recorded(XML))
async def test_an_answer_for_another_accept_header_is_hadoops(
    application: WebApplication, played: scene.Scene, entry: dict[str, Any]
) -> None:
    accept = entry["request"].partition("Accept: ")[2]
    headers = {} if accept == "None" else {"accept": accept}
    reply = await asked(application, played, entry, **headers)
    assert reply.status == entry["status"]
    if entry["contentType"] is None or "iso-8859-1" in entry["contentType"]:
        return
    assert reply.headers["content-type"] == entry["contentType"]
    theirs, masked = renamed(entry["body"], played.names), masked_for(entry["request"].split()[1])
    if theirs.startswith("<?xml"):
        assert reply.text.startswith(theirs[:55])
        if not entry["request"].split()[1].endswith("/apps"):
            assert differences(xml_pairs(theirs), xml_pairs(reply.text), masked=masked) == []


def by_id(text: str) -> dict[str, Any]:
    listed = dict(dict(pairs(text))["apps"]).get("app", [])
    return {dict(app)["id"]: app for app in listed}
