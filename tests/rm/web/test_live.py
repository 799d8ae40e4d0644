"""The services for pages that follow a cluster: changes, nodes with containers, waiting applications."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
from pathlib import Path
from typing import Any

import pytest

from rm.shell.inspection_service import InspectionService
from rm.shell.web import live
from rm.shell.web.live import LiveService
from tests.rm.builders import done
from tests.rm.served_cluster import Cluster, serving
from tests.rm.test_verdicts_of_nodes import reserved
from tests.rm.web import scene
from tests.rm.web.http import Reply
from tests.rm.web.http import ask as fetch
from tests.rm.web.test_acls import ACLS
from tests.rm.web.test_writes import WEB, served, submit
from tests.wire.web.asgi import NoCheck, ask
from wire.web.application import WebApplication

BASE = "/ws/yarnling/v1"


@pytest.fixture
def played() -> scene.Scene:
    return scene.play()


@pytest.fixture
def application(played: scene.Scene) -> WebApplication:
    core = played.rm.core
    rows = LiveService(core, InspectionService(core, lambda: played.rm.now_ms)).rows()
    return WebApplication(rows, NoCheck())  # type: ignore[arg-type]


async def get(application: WebApplication, path: str) -> Any:
    reply = await ask(application, BASE + path)
    assert reply.status == 200, reply.text
    return reply.json


async def test_a_node_has_its_containers_with_their_applications(
    application: WebApplication, played: scene.Scene
) -> None:
    found = await get(application, "/nodes")
    nodes = found["nodes"]
    assert (found["count"], found["largest_mb"]) == (2, max(node["total"]["memory-mb"] for node in nodes))
    assert {node["id"].partition(":")[0] for node in nodes} == {scene.NODE_1, scene.NODE_2}
    for node in nodes:
        used = sum(container["resource"]["memory-mb"] for container in node["containers"])
        assert node["allocated"]["memory-mb"] == used
        assert node["total"] == {"memory-mb": 2048, "vcores": 4}
    apps = {container["app"]: container for node in nodes for container in node["containers"]}
    assert set(apps) == {str(played.running), str(played.managed)}
    am = apps[str(played.managed)]
    assert (am["isAm"], am["queue"], am["user"]) == (True, "root.default", "alice")


async def test_a_reservation_is_on_its_node() -> None:
    rm, holder, _ = reserved()
    rows = LiveService(rm.core, InspectionService(rm.core, lambda: rm.now_ms)).rows()
    nodes = (await get(WebApplication(rows, NoCheck()), "/nodes"))["nodes"]  # type: ignore[arg-type]
    kept = {node["id"].partition(":")[0]: node["reserved"] for node in nodes}
    assert kept["n2"] is None
    assert (kept["n1"]["app"], kept["n1"]["state"]) == (str(holder), "RESERVED")
    assert kept["n1"]["resource"]["memory-mb"] == 3072


async def test_waiting_applications_are_explained(application: WebApplication, played: scene.Scene) -> None:
    (waiting,) = (await get(application, "/waiting"))["waiting"]
    assert waiting["application_id"] == str(played.running)
    alone = await get(application, f"/apps/{played.running}/explain")
    assert alone["verdicts"][0]["sentence"] == waiting["verdicts"][0]["sentence"]
    assert alone["verdicts"][0]["changes"] == []
    tried = await get(application, f"/apps/{played.running}/explain?what-if=true")
    assert tried["verdicts"][0]["changes"]


async def test_an_unknown_application_is_404(application: WebApplication) -> None:
    assert (await ask(application, f"{BASE}/apps/application_1_0001/explain")).status == 404


async def test_a_container_is_explained() -> None:
    rm, _, _ = reserved()
    rows = LiveService(rm.core, InspectionService(rm.core, lambda: rm.now_ms)).rows()
    application = WebApplication(rows, NoCheck())  # type: ignore[arg-type]
    node = next(node for node in (await get(application, "/nodes"))["nodes"] if node["reserved"] is not None)
    kept = await get(application, f"/containers/{node['reserved']['id']}/explain")
    assert (kept["state"], kept["placed_ms"], kept["queue"]) == ("RESERVED", None, "root.default")
    assert kept["sentences"][1] == "it waits for free capacity there: 1024 MB free, 3072 needed"
    running = await get(application, f"/containers/{node['containers'][0]['id']}/explain")
    assert running["locality"] == "OFF_SWITCH"
    unknown = node["reserved"]["id"][:-6] + "999999"
    for name, status in ((unknown, 404), ("container_1_0001_01_000001", 404), ("app1", 400)):
        assert (await ask(application, f"{BASE}/containers/{name}/explain")).status == status


async def test_an_applications_reserved_and_ended_containers_are_listed() -> None:
    rm, app, _ = reserved()
    rows = LiveService(rm.core, InspectionService(rm.core, lambda: rm.now_ms)).rows()
    application = WebApplication(rows, NoCheck())  # type: ignore[arg-type]
    kept = (await get(application, f"/apps/{app}/containers"))["reserved"]
    assert [(one["state"], one["node"], one["endedMs"]) for one in kept] == [("RESERVED", "n1:45454", None)]
    first, second = list(rm.nodes["n1"].running)[:2]
    rm.beat("n1", [done(first)])
    rm.now_ms += 1000
    rm.beat("n1", [done(second)])
    owner = first.application_id
    ended = (await get(application, f"/apps/{owner}/containers"))["ended"]
    assert [one["id"] for one in ended] == [str(second), str(first)]
    assert {(one["state"], one["exitStatus"], one["isPreempted"]) for one in ended} == {("COMPLETED", 0, False)}
    assert ended[0]["endedMs"] - ended[1]["endedMs"] == 1000


async def test_strangers_see_that_a_container_is_there_and_not_whose(tmp_path: Path) -> None:
    async with serving(served(tmp_path, **ACLS)) as cluster:
        node = await cluster.node()
        app = await submit(cluster)
        while not (containers := (await _nodes(cluster, "alice"))[0]["containers"]):
            await node.beat()
        assert containers[0]["app"] == app
        (hidden,) = (await _nodes(cluster, "bob"))[0]["containers"]
        assert set(hidden) == {"resource", "state"}
        for path in ("explain", "containers"):
            assert (await of(cluster, f"/apps/{app}/{path}?user.name=bob")).status == 403
        of_container = await of(cluster, f"/containers/{containers[0]['id']}/explain?user.name=bob")
        assert of_container.status == 403


async def _nodes(cluster: Cluster, user: str) -> Any:
    return (await of(cluster, f"/nodes?user.name={user}")).json["nodes"]


async def of(cluster: Cluster, path: str, **headers: str) -> Reply:
    return await fetch(cluster.addresses[WEB], BASE + path, headers=headers)


async def test_a_page_hears_of_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "CHANGES_INTERVAL_S", 0.01)
    async with serving(served(tmp_path)) as cluster:
        connection, stream = await opened(cluster)
        with connection, stream:
            assert stream.getheader("content-type", "").startswith("text/event-stream")
            first = await event(stream)
            await submit(cluster)
            assert await event(stream) > first


async def test_streams_are_limited_and_one_that_is_closed_makes_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "STREAMS_MAX", 1)
    async with serving(served(tmp_path)) as cluster:
        connection, stream = await opened(cluster)
        with connection, stream:
            await event(stream)
            assert (await of(cluster, "/changes", Accept="text/event-stream")).status == 503
        await until_status(cluster, 200)


async def test_a_stream_ends_so_that_a_browser_opens_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "STREAM_S", 0.0)
    async with serving(served(tmp_path)) as cluster:
        assert (await of(cluster, "/changes", Accept="text/event-stream")).body == b""


async def until_status(cluster: Cluster, status: int) -> None:
    """Ask again and again until the answer has this status."""
    async with asyncio.timeout(60):
        while True:
            connection, stream = await opened(cluster)
            with connection, stream:
                if stream.status == status:
                    return


async def opened(
    cluster: Cluster,
) -> tuple[contextlib.closing[http.client.HTTPConnection], http.client.HTTPResponse]:
    connection = http.client.HTTPConnection(cluster.addresses[WEB], timeout=60)
    await asyncio.to_thread(connection.request, "GET", f"{BASE}/changes", headers={"Accept": "text/event-stream"})
    return contextlib.closing(connection), await asyncio.to_thread(connection.getresponse)


async def event(stream: http.client.HTTPResponse) -> int:
    """The number of the next event."""
    lines = [await asyncio.to_thread(stream.readline) for _ in range(3)]
    assert (lines[0], lines[2]) == (b"event: changed\n", b"\n")
    return int(lines[1].removeprefix(b"data: "))


async def test_a_page_gets_only_the_nodes_that_it_draws(tmp_path: Path) -> None:
    async with serving(served(tmp_path)) as cluster:
        nodes = [str((await cluster.node(f"127.0.0.{last}")).node_id) for last in (2, 3, 4)]
        whole = (await of(cluster, "/nodes")).json
        for query, listed, count in (
            ("limit=1", nodes[:1], 3),
            ("limit=9&state=RUNNING", nodes, 3),
            ("state=UNHEALTHY", [], 0),
            (f"node={nodes[1]}&limit=9", nodes[1:2], 1),
        ):
            found = (await of(cluster, f"/nodes?{query}")).json
            assert ([node["id"] for node in found["nodes"]], found["count"]) == (listed, count)
            assert all(node in whole["nodes"] for node in found["nodes"])
        for limit in ("-1", "", "9" * 30):
            assert (await of(cluster, f"/nodes?limit={limit}")).status == 400
