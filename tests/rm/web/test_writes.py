"""Changes by REST, as Hadoop's ResourceManager answered them, on a ResourceManager that is served."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from rm.shell.admin_service import AdminService
from tests.rm.served_cluster import Cluster, configuration, serving
from tests.rm.web.comparison import MASKED, differences, pairs
from tests.rm.web.http import Reply, ask
from yarn.configuration import Configuration
from yarn.protocols.admin import NodeResources, ResourceOption
from yarn.resource import Resource

RECORDED = json.loads((Path(__file__).parent / "golden" / "rm-writes.json").read_text())
WEB = "yarn.resourcemanager.webapp.address"
FORCE_LOWER_CASE = "yarn.resourcemanager.application-tag-based-placement.force-lowercase"
QUEUES = {
    "yarn.scheduler.capacity.root.queues": "default,dev,stopped",
    "yarn.scheduler.capacity.root.default.capacity": "50",
    "yarn.scheduler.capacity.root.dev.capacity": "40",
    "yarn.scheduler.capacity.root.dev.queues": "a",
    "yarn.scheduler.capacity.root.dev.a.capacity": "100",
    "yarn.scheduler.capacity.root.stopped.capacity": "10",
    "yarn.scheduler.capacity.root.stopped.state": "STOPPED",
    "yarn.scheduler.minimum-allocation-mb": "128",
    "yarn.scheduler.maximum-allocation-mb": "1024",
    "yarn.scheduler.maximum-allocation-vcores": "4",
}


def served(tmp_path: Path, **overrides: str) -> Configuration:
    values = {"yarn.yarnling.web.enabled": "true", WEB: "127.0.0.1:0", **QUEUES, **overrides}
    return configuration(tmp_path).overridden(values, "test")


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with serving(served(tmp_path)) as running:
        yield running


async def send(cluster: Cluster, method: str, path: str, body: object = None, **headers: str) -> Reply:
    return await ask(cluster.addresses[WEB], f"/ws/v1/cluster{path}", method=method, body=body, headers=headers)


async def new_application(cluster: Cluster) -> str:
    reply = await send(cluster, "POST", "/apps/new-application?user.name=alice")
    return str(reply.json["application-id"])


async def submit(cluster: Cluster, user: str = "alice", **fields: object) -> str:
    app = await new_application(cluster)
    body = {
        "application-id": app,
        "application-name": "by-rest",
        "am-container-spec": {"commands": {"command": "sleep 60"}},
        "resource": {"memory": 128, "vCores": 1},
        **fields,
    }
    reply = await send(cluster, "POST", f"/apps?user.name={user}", body)
    assert reply.status == 202, reply.text
    return app


SCENE = [
    entry
    for entry in RECORDED
    # Applications and containers of the recording that this cluster does not have.
    if not any(number in entry["request"] for number in ("_0056", "_0058", "_0059", "localhost:45455"))
    and "scheduler/logs" not in entry["request"]
    and not entry["request"].startswith("DELETE")
]
DIFFERENT = {
    "/ws/v1/cluster/apps?user.name=alice": frozenset({"message"}),
}
"""{path: fields that are worded by another parser}."""


async def test_the_recorded_changes_have_hadoops_answers_one_after_the_other(cluster: Cluster) -> None:
    names: dict[str, str] = {}
    for entry in SCENE:
        method, path = entry["request"].split(" ", 1)
        sent = entry["sent"]
        for theirs, ours in names.items():
            path, sent = path.replace(theirs, ours), None if sent is None else sent.replace(theirs, ours)
        headers = {} if entry["sentType"] is None else {"Content-Type": entry["sentType"]}
        if entry["contentType"].startswith("application/xml"):
            headers["Accept"] = "application/xml"
        reply = await ask(cluster.addresses[WEB], path, method=method, body=sent, headers=headers)
        if "new-application" in path:
            names[json.loads(entry["body"])["application-id"]] = reply.json["application-id"]
        _compare(entry, reply, names)


def _compare(entry: dict[str, Any], reply: Reply, names: dict[str, str]) -> None:
    theirs = entry["body"]
    for name, ours in names.items():
        theirs = theirs.replace(name, ours)
    where = f"{entry['request']} {entry['sent']}"
    assert reply.status == entry["status"], f"{where}: {reply.text}"
    assert ("location" in reply.headers) == ("location" in entry), where
    if not theirs.startswith("{"):
        assert reply.text == theirs, where
        return
    parsed = pairs(reply.text)
    if reply.status == 400 and "UnmarshalException" in theirs:
        assert "UnmarshalException" in reply.text
        return
    if "/apps/application" in entry["request"] and entry["request"].startswith("GET") and '"app":' in theirs:
        # The recording had nodes, on which the AM was started: here its request still waits.
        known = {name for name, _ in dict(pairs(theirs))["app"]}
        assert {name for name, _ in dict(parsed)["app"]} - {"resourceRequests"} <= known
        return
    masked = MASKED | {"maximum-resource-capability", "value"}
    assert differences(pairs(theirs), parsed, masked=masked) == [], where


@pytest.mark.parametrize(("overrides", "shown"), [({}, "blue,red"), ({FORCE_LOWER_CASE: "false"}, "Red,blue")])
async def test_the_tags_of_a_submission_are_in_lower_case_unless_configured(
    tmp_path: Path, overrides: dict[str, str], shown: str
) -> None:
    """ApplicationSubmissionContextPBImpl.setApplicationTags, which Hadoop's ResourceManager calls for REST alone."""
    async with serving(served(tmp_path, **overrides)) as cluster:
        app = await submit(cluster, **{"application-tags": {"tag": ["Red", "blue"]}})
        reply = await send(cluster, "GET", f"/apps/{app}?user.name=alice")
        assert reply.json["app"]["applicationTags"] == shown
        for tags, found in (("Red", True), ("red", not overrides), ("BLUE", not overrides)):
            reply = await send(cluster, "GET", f"/apps?user.name=alice&applicationTags={tags}")
            assert bool(reply.json["apps"]) is found, tags


@pytest.mark.parametrize(
    ("given", "timeout_ms"), [({}, 0), ({"overCommitTimeout": -1}, -1), ({"overCommitTimeout": 5}, 5)]
)
async def test_a_node_gets_a_new_size_and_a_timeout(
    cluster: Cluster, given: dict[str, int], timeout_ms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In Hadoop, ResourceOptionInfo has 0 if the timeout is left out."""
    sent: list[NodeResources] = []

    async def update(service: object, caller: object, request: NodeResources) -> None:
        sent.append(request)

    monkeypatch.setattr(AdminService, "update_node_resource", update)
    node = (await cluster.node()).node_id
    body = {"resource": {"memory": 2048, "vCores": 4}, **given}
    reply = await send(cluster, "POST", f"/nodes/{node}/resource?user.name=alice", body)
    assert reply.status == 200
    assert sent == [((node, ResourceOption(Resource(2048, 4), timeout_ms)),)]
