"""Polls of a ResourceManager: what is asked, what is written, and what a peer that misbehaves may cost."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.rm.web import scene
from tests.rm.web.test_golden import served
from tests.yarnling.recorder.fake_cluster import START_MS, Clock, FakeCluster, app, lines_in, node, recorder_of
from wire.local_peer import Peer
from wire.web.access import PEER
from yarnling.recorder import rest_client
from yarnling.recorder.rest_client import Access, RestClient, Unanswered
from yarnling.workload.recording_lines import (
    AppsSeen,
    ConfSeen,
    ContainersSeen,
    FieldsMissing,
    ManagerSeen,
    NodesSeen,
    PollFailed,
    QueuesSeen,
    RecordingBegan,
    SchedulerSeen,
)

GOLDEN = json.loads((Path(scene.__file__).parent / "golden" / "rm.json").read_text())
BODIES = {entry["request"].removeprefix("GET "): entry for entry in GOLDEN}


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


@pytest.fixture
def clock() -> Clock:
    return Clock()


def of(kind: type[Any], directory: Path) -> list[Any]:
    return [line for line in lines_in(directory) if isinstance(line, kind)]


async def polls(recorder: Any, clock: Clock, count: int) -> None:
    for _ in range(count):
        await recorder.poll()
        clock.now_ms += 15_000


def golden(request: httpx.Request) -> httpx.Response:
    """Hadoop's answer to the request that is nearest to a recorded one."""
    path = request.url.path
    if path.endswith("/cluster/apps"):
        states = request.url.params["states"]
        path += "?states=FINISHED" if "FINISHED" in states else ""
    entry = BODIES.get(path, {"status": 404, "body": "{}"})
    return httpx.Response(entry["status"], content=entry["body"])


async def test_hadoops_own_answers_are_recorded(cluster: FakeCluster, clock: Clock, tmp_path: Path) -> None:
    for path in ("/info", "/metrics", "/apps", "/nodes", "/scheduler"):
        cluster.answers[path] = golden
    await polls(recorder_of(cluster, tmp_path, clock), clock, 1)
    (manager,) = of(ManagerSeen, tmp_path)
    assert manager.release == "3.4.1"
    seen = of(AppsSeen, tmp_path)[0].apps
    running = next(entry for entry in seen.values() if entry["state"] == "RUNNING")
    assert {"user", "queue", "startedTime", "launchTime", "allocatedMB", "runningContainers"} <= running.keys()
    assert all(entry["memorySeconds"] >= 0 for entry in seen.values())
    assert "vcoreSeconds" not in running
    (nodes,) = of(NodesSeen, tmp_path)
    assert [each["amounts"] for each in nodes.nodes.values()] == [{"memory-mb": 2048, "vcores": 4}] * 2
    (queues,) = of(QueuesSeen, tmp_path)
    assert {"root", "root.dev", "root.dev.b"} <= queues.queues.keys()
    assert len(of(SchedulerSeen, tmp_path)) == 1
    assert of(FieldsMissing, tmp_path) == []


async def test_yarnlings_own_resource_manager_is_recorded(clock: Clock, tmp_path: Path) -> None:
    """Over the web services themselves; only the sockets are missing."""
    played = scene.play()
    application = served(played.rm.core, lambda: played.rm.now_ms)
    await polls(recorder_of(httpx.ASGITransport(_with_peer(application)), tmp_path, clock), clock, 2)
    problems = [line.problem for line in of(PollFailed, tmp_path)]
    assert all("/conf: HTTP 404" in problem for problem in problems)
    states = {entry["state"] for line in of(AppsSeen, tmp_path) for entry in line.apps.values()}
    assert {"RUNNING", "ACCEPTED"} <= states
    assert of(FieldsMissing, tmp_path) == []
    assert of(NodesSeen, tmp_path)


def _with_peer(application: Any) -> Any:
    """The application with a caller at the other end of its socket, as the server has it."""

    async def called(scope: dict[str, Any], receive: Any, send: Any) -> None:
        headers = [(name, b"localhost:8088" if name == b"host" else value) for name, value in scope["headers"]]
        with socket.socket() as end:
            await application({**scope, "headers": headers, "state": {PEER: Peer(end)}}, receive, send)

    return called


async def test_a_poll_has_few_requests_however_many_applications(
    cluster: FakeCluster, clock: Clock, tmp_path: Path
) -> None:
    cluster.live = [app(number) for number in range(2000)]
    recorder = recorder_of(cluster, tmp_path, clock)
    await polls(recorder, clock, 10)
    assert recorder.figures.requests_most == 9
    assert len(cluster.requests) <= 10 * 7 + 3 + 1


async def test_only_changes_are_written(cluster: FakeCluster, clock: Clock, tmp_path: Path) -> None:
    cluster.live = [app(1, runningContainers=1), app(2, runningContainers=1)]
    recorder = recorder_of(cluster, tmp_path, clock)
    await polls(recorder, clock, 2)
    cluster.live = [app(1, runningContainers=1, allocatedMB=9216, memorySeconds=9999)]
    cluster.ended = [app(2, state="FINISHED", finishedTime=START_MS + 9, memorySeconds=777)]
    await polls(recorder, clock, 2)
    first, *later = of(AppsSeen, tmp_path)
    assert set(first.apps) == {"application_1_0001", "application_1_0002"}
    assert [line.apps for line in later if not line.gone] == [
        {"application_1_0002": {**later[-1].apps.get("application_1_0002", {})}}
    ]
    assert later[0].apps == {"application_1_0001": {"allocatedMB": 9216, "memorySeconds": 9999, "elapsedTime": 1000}}
    assert later[0].gone == ["application_1_0002"]
    assert later[1].apps["application_1_0002"]["memorySeconds"] == 777
    assert len(of(SchedulerSeen, tmp_path)) == len(of(NodesSeen, tmp_path)) == 1


async def test_what_was_used_is_written_if_what_is_held_does_not_explain_it(
    cluster: FakeCluster, clock: Clock, tmp_path: Path
) -> None:
    """5 GB for 15 s are 75 GB-seconds; in the last of these polls 10 are missing: one has ended and another begun."""
    recorder = recorder_of(cluster, tmp_path, clock)
    for elapsed_ms, used_gb_s in ((15_000, 75), (30_000, 150), (45_000, 215)):
        cluster.live = [app(1, memorySeconds=used_gb_s * 1024, elapsedTime=elapsed_ms)]
        await polls(recorder, clock, 1)
    first, later = (line.apps["application_1_0001"] for line in of(AppsSeen, tmp_path))
    assert (first["memorySeconds"], first["elapsedTime"]) == (75 * 1024, 15_000)
    assert later == {"memorySeconds": 215 * 1024, "elapsedTime": 45_000}


async def test_applications_that_ended_meanwhile_are_asked_for(
    cluster: FakeCluster, clock: Clock, tmp_path: Path
) -> None:
    """Also after polls that failed, and after another recorder has begun where this one ended."""
    recorder = recorder_of(cluster, tmp_path, clock, since_ms=START_MS - 600_000)
    await polls(recorder, clock, 1)
    cluster.answers["/info"] = httpx.Response(503)
    await polls(recorder, clock, 3)
    del cluster.answers["/info"]
    await polls(recorder, clock, 1)
    asked = [request.url.params.get("finishedTimeBegin") for request in cluster.requests]
    assert [int(each) for each in asked if each] == [START_MS - 660_000, START_MS - 60_000]


async def test_containers_are_listed_in_turn(cluster: FakeCluster, clock: Clock, tmp_path: Path) -> None:
    cluster.live = [app(number, allocatedMB=5120 + number) for number in range(1, 6)]
    row = {"allocatedMB": "2048", "allocatedVCores": "1", "priority": "20", "startedTime": f"{START_MS}"}
    for number in range(1, 6):
        path = f"/apps/application_1_{number:04}/appattempts/appattempt_1_{number:04}_000001/containers"
        cluster.answers[path] = {"container": {"containerId": f"container_e17_1_{number:04}_01_000002", **row}}
    await polls(recorder_of(cluster, tmp_path, clock), clock, 3)
    seen = of(ContainersSeen, tmp_path)
    assert [int(line.app[-1]) for line in seen] == [5, 4, 3, 2, 1, 5]
    assert seen[0].containers == [(2, 2048, 1, 20, START_MS)]


async def test_a_change_of_the_queues_is_noted(cluster: FakeCluster, clock: Clock, tmp_path: Path) -> None:
    recorder = recorder_of(cluster, tmp_path, clock)
    await polls(recorder, clock, 4)
    queue = {"queueName": "root", "usedCapacity": 5.0, "numContainers": 3}
    cluster.answers["/scheduler"] = {"scheduler": {"schedulerInfo": {"type": "capacityScheduler", **queue}}}
    await polls(recorder, clock, 4)
    assert (len(of(SchedulerSeen, tmp_path)), recorder.observer.changed_queues) == (1, 0)
    cluster.answers["/scheduler"] = {"scheduler": {"schedulerInfo": {"capacity": 40.0, **queue}}}
    await polls(recorder, clock, 4)
    assert (len(of(SchedulerSeen, tmp_path)), recorder.observer.changed_queues) == (2, 1)


async def test_each_day_has_a_file_that_can_be_read_alone(cluster: FakeCluster, clock: Clock, tmp_path: Path) -> None:
    cluster.live = [app(1)]
    clock.now_ms = 1_795_046_390_000
    await polls(recorder_of(cluster, tmp_path, clock), clock, 3)
    names = sorted(path.name for path in tmp_path.glob("*.gz"))
    assert names == ["2026-11-18.jsonl.gz", "2026-11-19.jsonl.gz"]
    for name in names:
        kinds = [type(line) for line in lines_in(tmp_path / name)]
        assert kinds[0] is RecordingBegan
        assert {ManagerSeen, AppsSeen, NodesSeen, SchedulerSeen} <= set(kinds)


async def test_a_restart_of_the_resource_manager_is_noted_and_its_configuration_asked_for(
    cluster: FakeCluster, clock: Clock, tmp_path: Path
) -> None:
    recorder = recorder_of(cluster, tmp_path, clock)
    await polls(recorder, clock, 2)
    cluster.started_ms = 2
    cluster.answers["/conf"] = {"properties": [{"key": "yarn.scheduler.x", "value": "1", "resource": "yarn-site.xml"}]}
    await polls(recorder, clock, 1)
    assert [line.started_ms for line in of(ManagerSeen, tmp_path)] == [1, 2]
    assert [line.properties for line in of(ConfSeen, tmp_path)] == [{"yarn.scheduler.x": "1"}]
    assert recorder.figures.restarts == 1


async def test_secrets_and_defaults_of_the_configuration_are_left_out(
    cluster: FakeCluster, clock: Clock, tmp_path: Path
) -> None:
    keys = {
        "yarn.scheduler.minimum-allocation-mb": "yarn-site.xml",
        "yarn.scheduler.maximum-allocation-mb": "yarn-default.xml",
        "yarn.resourcemanager.keytab": "yarn-site.xml",
        "yarn.resourcemanager.zk-auth-password": "yarn-site.xml",
        "fs.s3a.secret.key": "core-site.xml",
    }
    cluster.answers["/conf"] = {
        "properties": [{"key": key, "value": "7", "resource": source} for key, source in keys.items()]
    }
    await polls(recorder_of(cluster, tmp_path, clock), clock, 1)
    assert [line.properties for line in of(ConfSeen, tmp_path)] == [{"yarn.scheduler.minimum-allocation-mb": "7"}]


async def test_nodes_that_join_and_leave_are_noted(cluster: FakeCluster, clock: Clock, tmp_path: Path) -> None:
    recorder = recorder_of(cluster, tmp_path, clock)
    await polls(recorder, clock, 1)
    cluster.answers["/nodes"] = {"nodes": {"node": [node("n1", state="LOST"), node("n2", nodeLabels=["gpu"])]}}
    await polls(recorder, clock, 1)
    cluster.answers["/nodes"] = {"nodes": {"node": node("n2", nodeLabels=["gpu"])}}
    await polls(recorder, clock, 1)
    _, second, third = of(NodesSeen, tmp_path)
    assert second.nodes["n1:1"] == {"state": "LOST"}
    assert second.nodes["n2:1"]["label"] == "gpu"
    assert (third.nodes, third.gone) == ({}, ["n1:1"])


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (httpx.Response(500, content=b"no"), "HTTP 500"),
        (httpx.Response(401), "HTTP 401 (give a header with --authorization-file)"),
        (httpx.Response(200, content=b"<html>log in</html>"), "not JSON: '<html>log in</html>'"),
        (httpx.Response(200, content=b'{"nodes": {"node": ['), "not JSON"),
        (httpx.Response(200, content=b"[1]"), "not JSON"),
        (httpx.Response(200, content=b'{"a":' * 100_000), "not JSON"),
        (httpx.Response(200, content=b"\xff\xfe"), "not JSON"),
        (httpx.Response(307, headers={"Location": "http://rm:8088/ws/v1/cluster/nodes"}), "redirects"),
        (httpx.Response(200, content=b"x" * 2000), "larger than"),
    ],
)
async def test_an_unusable_answer_costs_this_answer_only(
    cluster: FakeCluster,
    clock: Clock,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    answer: httpx.Response,
    problem: str,
) -> None:
    if problem == "larger than":
        monkeypatch.setattr(rest_client, "ANSWER_BYTES_MAX", 1000)
    cluster.live = [app(1, runningContainers=1)]
    cluster.answers["/nodes"] = answer
    recorder = recorder_of(cluster, tmp_path, clock)
    await polls(recorder, clock, 1)
    (failed,) = of(PollFailed, tmp_path)
    assert problem in failed.problem
    assert of(AppsSeen, tmp_path)
    del cluster.answers["/nodes"]
    await polls(recorder, clock, 1)
    assert of(NodesSeen, tmp_path)
    assert (recorder.figures.failed, recorder.figures.problem) == (1, "")


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"apps": None, "nodes": None, "scheduler": None, "clusterMetrics": None, "clusterInfo": None},
        {"apps": {"app": "x"}, "nodes": {"node": [1, None, []]}, "clusterMetrics": [], "properties": [{}, 7]},
        {"apps": {"app": [{"id": 7}, {"id": "a", "state": [], "allocatedMB": "x", "priority": 1e300, "user": {}}]}},
        {"nodes": {"node": {"id": "n", "totalResource": {"memory": "x"}, "nodeLabels": {"a": 1}}}},
        {"scheduler": {"schedulerInfo": {"queues": {"queue": [{"queueName": 3}, {"queueName": "a", "queues": 5}]}}}},
        {"container": [{"containerId": "x", "allocatedMB": 5}, {"containerId": "container_1_1_01_2"}, 3]},
    ],
)
async def test_answers_of_other_shapes_do_no_harm(
    cluster: FakeCluster, clock: Clock, tmp_path: Path, answer: dict[str, Any]
) -> None:
    for path in ("/info", "/metrics", "/apps", "/nodes", "/scheduler", "/conf"):
        cluster.answers[path] = answer
    recorder = recorder_of(cluster, tmp_path, clock)
    await polls(recorder, clock, 2)
    assert recorder.figures.polls == 2
    assert lines_in(tmp_path)


async def test_percentages_that_are_not_numbers_of_json(cluster: FakeCluster, clock: Clock, tmp_path: Path) -> None:
    text = '{"scheduler": {"schedulerInfo": {"queueName": "root NaN", "usedCapacity": INF, "absoluteCapacity": -INF}}}'
    cluster.answers["/scheduler"] = httpx.Response(200, content=text)
    await polls(recorder_of(cluster, tmp_path, clock), clock, 1)
    (seen,) = of(SchedulerSeen, tmp_path)
    assert json.loads(bytes(seen.answer))["scheduler"]["schedulerInfo"]["queueName"] == "root NaN"


async def test_an_answer_that_never_ends_has_a_deadline(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    async def endless(request: httpx.Request) -> httpx.Response:
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr(rest_client, "ANSWER_S", 0.01)
    client = RestClient(Access(addresses=("http://rm",)), httpx.MockTransport(endless))
    with pytest.raises(Unanswered, match=r"no answer within 0\.01 s"):
        await client.get("/ws/v1/cluster/info")


async def test_the_standby_is_asked_when_the_active_one_fails(
    cluster: FakeCluster, clock: Clock, tmp_path: Path
) -> None:
    def of_host(request: httpx.Request) -> dict[str, Any]:
        if request.url.host == "rm1":
            raise httpx.ConnectError("refused")
        return {"clusterInfo": {"startedOn": 1, "haState": "ACTIVE"}}

    cluster.answers["/info"] = of_host
    recorder = recorder_of(cluster, tmp_path, clock, addresses=("http://rm1:8088", "http://rm2:8088/"))
    await polls(recorder, clock, 2)
    assert "refused" in of(PollFailed, tmp_path)[0].problem
    assert of(ManagerSeen, tmp_path)


async def test_what_an_application_waits_for_is_noted(cluster: FakeCluster, clock: Clock, tmp_path: Path) -> None:
    """The sum over partitions, and only when it changes. Jersey writes one partition as an object in some releases."""
    partitions = [{"partitionName": name, "pending": {"memory": 2048, "vCores": 2}} for name in ("", "gpu")]
    recorder = recorder_of(cluster, tmp_path, clock)
    for usage in (partitions, partitions, partitions[0], None):
        info = None if usage is None else {"resourceUsagesByPartition": usage}
        cluster.live = [app(1, resourceInfo=info)]
        await polls(recorder, clock, 1)
    changes = [fields for line in of(AppsSeen, tmp_path) for fields in line.apps.values()]
    assert [fields.get("pendingMB") for fields in changes] == [4096, 2048]
    assert "resourceInfo" not in cluster.requests[-1].url.params.get("deSelects", "")


async def test_a_standby_among_several_is_not_recorded(cluster: FakeCluster, clock: Clock, tmp_path: Path) -> None:
    cluster.answers["/info"] = lambda request: {
        "clusterInfo": {"startedOn": 1, "haState": "STANDBY" if request.url.host == "rm1" else "ACTIVE"}
    }
    recorder = recorder_of(cluster, tmp_path, clock, addresses=("http://rm1", "http://rm2"))
    await polls(recorder, clock, 2)
    assert "http://rm1 is the standby" in of(PollFailed, tmp_path)[0].problem
    assert {request.url.host for request in cluster.requests if request.url.path.endswith("/nodes")} == {"rm2"}


async def test_a_release_that_knows_other_fields_to_leave_out(
    cluster: FakeCluster, clock: Clock, tmp_path: Path
) -> None:
    def picky(request: httpx.Request) -> httpx.Response:
        is_known = request.url.params.get("deSelects") == "resourceRequests"
        body = json.dumps({"apps": {"app": []}}) if is_known else "{}"
        return httpx.Response(200 if is_known else 400, content=body)

    cluster.answers["/apps"] = picky
    await polls(recorder_of(cluster, tmp_path, clock), clock, 2)
    assert of(PollFailed, tmp_path) == []
    assert cluster.paths.count("/apps") == 5


async def test_fields_that_a_release_lacks_are_named_once(cluster: FakeCluster, clock: Clock, tmp_path: Path) -> None:
    old = app(1, runningContainers=1)
    del old["launchTime"]
    cluster.live = [old]
    del (total := node("n1"))["totalResource"]
    cluster.answers["/nodes"] = {"nodes": {"node": [total | {"usedMemoryMB": 1024, "availMemoryMB": 3072}]}}
    recorder = recorder_of(cluster, tmp_path, clock)
    await polls(recorder, clock, 3)
    assert sum("apps.launchTime" in line.fields for line in of(FieldsMissing, tmp_path)) == 1
    assert "apps.launchTime" in recorder.observer.missing
    assert of(NodesSeen, tmp_path)[0].nodes["n1:1"]["amounts"] == {"memory-mb": 4096}


async def test_the_header_and_the_user_are_sent_and_the_header_stays_with_its_host(
    cluster: FakeCluster, clock: Clock, tmp_path: Path
) -> None:
    elsewhere = {"Location": "http://other:8088/ws/v1/cluster/elsewhere"}
    cluster.answers["/nodes"] = httpx.Response(307, headers=elsewhere)
    recorder = recorder_of(cluster, tmp_path, clock, authorization="Bearer abc", user="ann")
    await polls(recorder, clock, 1)
    by_path = dict(zip(cluster.paths, cluster.requests, strict=True))
    assert by_path["/info"].headers["Authorization"] == "Bearer abc"
    assert by_path["/info"].url.params["user.name"] == "ann"
    assert "Authorization" not in by_path["/elsewhere"].headers
    assert b"abc" not in b"".join(path.read_bytes() for path in tmp_path.glob("*.gz"))


async def test_a_run_polls_at_its_interval_until_its_end(cluster: FakeCluster, clock: Clock, tmp_path: Path) -> None:
    recorder = recorder_of(cluster, tmp_path, clock)
    times: list[int] = []
    await recorder.run(45_000, clock.sleep, lambda: times.append(clock.now_ms - START_MS))
    assert times == [0, 15_000, 30_000, 45_000]


async def test_a_slow_poll_is_not_followed_by_those_that_it_missed(
    cluster: FakeCluster, clock: Clock, tmp_path: Path
) -> None:
    def slow(request: httpx.Request) -> dict[str, Any]:
        clock.now_ms += 20_000
        return {"nodes": {"node": []}}

    cluster.answers["/nodes"] = slow
    recorder = recorder_of(cluster, tmp_path, clock)
    times: list[int] = []
    await recorder.run(60_000, clock.sleep, lambda: times.append(clock.now_ms - START_MS))
    assert times == [20_000, 50_000, 80_000]
