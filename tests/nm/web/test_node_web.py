"""A NodeManager's web services with a real container, compared with the answers of Hadoop's."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.nm.lone_node import LoneNode, lone_node
from tests.rm.web.comparison import MASKED, differences, pairs
from tests.rm.web.http import Reply, ask
from yarn.containers import ContainerLaunchContext
from yarn.ids import ContainerId

ENABLED = {"yarn.yarnling.web.enabled": "true", "yarn.nodemanager.webapp.address": "127.0.0.1:0"}
LOUD = ContainerLaunchContext(("trap '' QUIT; echo hello 1><LOG_DIR>/stdout; sleep 900",))
HELLO = b"hello\n"
RECORDED = {entry["request"]: entry for entry in json.loads((Path(__file__).parent / "golden.json").read_text())}
THEIRS = "container_1795222023200_0058_01_000001"
OTHERS = ("/apps", "/apps?state=RUNNING", "/containers")
"""Lists in which the recording has more than one element."""
OF_NODE = frozenset(
    {
        "containerLogFiles",
        "containerLogInfo",
        "containerLogsLink",
        "id",
        "lastNodeUpdateTime",
        "nmStartupTime",
        "nodeHostName",
        "nodeId",
        "nodeManagerBuildVersion",
        "nodeManagerVersionBuiltOn",
        "totalMemoryNeededMB",
        "totalPmemAllocatedContainersMB",
        "totalVCoresAllocatedContainers",
        "totalVmemAllocatedContainersMB",
        "user",
        "vmemCheckEnabled",
        "containerids",
    }
)


async def get(node: LoneNode, path: str, **headers: str) -> Reply:
    address = f"127.0.0.1:{node.node.facts.http_port}"
    return await ask(address, path, headers=headers)


async def started(node: LoneNode) -> ContainerId:
    container_id = await node.start(LOUD)
    await node.running(container_id)
    await node.rm.wait_for((node.logs_of(container_id) / "stdout").exists)
    await node.rm.wait_for(lambda: (node.logs_of(container_id) / "stdout").read_bytes() == HELLO)
    return container_id


def masked() -> frozenset[str]:
    return MASKED | OF_NODE


async def test_a_node_answers_as_hadoops_does(tmp_path: Path) -> None:
    async with lone_node(tmp_path, ENABLED) as node:
        container_id = await started(node)
        assert node.node.facts.http_port != 0
        for request, entry in RECORDED.items():
            path = request.split()[1].replace(THEIRS, str(container_id))
            path = path.replace(THEIRS[10:28], str(container_id)[10:28])
            if "_0056" in path or path.endswith(OTHERS):
                continue
            headers = {"Accept": "application/xml"} if "xml" in request else {"Accept": "application/json"}
            await _compare(entry, await get(node, path, **headers), str(container_id))


async def _compare(entry: dict[str, Any], reply: Reply, container: str) -> None:
    where = entry["request"]
    assert reply.status == entry["status"], f"{where}: {reply.text}"
    kind = entry["contentType"]
    assert reply.headers["content-type"].split(";")[0] == kind.split(";")[0], where
    theirs = entry["body"].replace(THEIRS, container)
    if theirs.startswith("{"):
        assert differences(pairs(theirs), pairs(reply.text), masked=masked()) == [], where


async def test_a_log_has_hadoops_head_and_tail_and_may_be_cut_at_either_end(tmp_path: Path) -> None:
    async with lone_node(tmp_path, ENABLED) as node:
        container_id = await started(node)
        base = f"/ws/v1/node/containers/{container_id}/logs/stdout"
        whole = (await get(node, base)).text
        lines = whole.split("\n")
        first = f"Container: {container_id} on {node.node.node_id}"
        assert lines[:4] == [first, "LogAggregationType: LOCAL", "=" * len(first), "LogType:stdout"]
        assert lines[5:7] == [f"LogLength:{len(HELLO)}", "LogContents:"]
        assert "hello\nEnd of LogType:stdout.This log file belongs to a running container" in whole
        assert "LogContents:\nhelEnd of LogType" in (await get(node, f"{base}?size=3")).text
        assert "LogContents:\nlo\nEnd of LogType" in (await get(node, f"{base}?size=-3")).text
        older = await get(node, f"/ws/v1/node/containerlogs/{container_id}/stdout?format=octet-stream")
        assert older.headers["content-type"] == "application/octet-stream; charset=utf-8"
        assert (await get(node, f"{base}?format=nosuch")).status == 400
        assert (await get(node, f"{base}?size=x")).status == 400


@pytest.mark.parametrize("name", ["link", "nosuch", "..%2fsecret", "%2e%2e", "directory"])
async def test_only_regular_files_of_the_container_are_sent(tmp_path: Path, name: str) -> None:
    async with lone_node(tmp_path, ENABLED) as node:
        container_id = await started(node)
        logs = node.logs_of(container_id)
        (logs.parent / "secret").write_text("secret")
        os.symlink(logs.parent / "secret", logs / "link")
        (logs / "directory").mkdir()
        reply = await get(node, f"/ws/v1/node/containers/{container_id}/logs/{name}")
        assert reply.status == 404
        assert "secret" not in reply.text
        listed = (await get(node, f"/ws/v1/node/containers/{container_id}/logs")).json["containerLogsInfo"]
        assert "link" not in {file["fileName"] for file in listed["containerLogInfo"]}


async def test_beans_count_the_nodes_containers(tmp_path: Path) -> None:
    async with lone_node(tmp_path, ENABLED) as node:
        await started(node)
        await node.run(ContainerLaunchContext(("exit 3",)))
        query = "/jmx?qry=Hadoop:service=NodeManager,name=NodeManagerMetrics"
        (bean,) = (await get(node, query)).json["beans"]
        counted = {name: bean[f"Containers{name}"] for name in ("Launched", "Running", "Failed", "Completed")}
        assert counted == {"Launched": 2, "Running": 1, "Failed": 1, "Completed": 0}
        text = (await get(node, "/metrics")).text
        assert "node_manager_metrics_containers_launched{" in text


async def test_a_node_without_web_services_has_no_port(tmp_path: Path) -> None:
    async with lone_node(tmp_path, {}) as node:
        assert node.node.facts.http_port == 0
        assert node.rm.registrations[0].http_port == 0


async def test_the_node_registers_with_its_port_and_containers_see_it(tmp_path: Path) -> None:
    async with lone_node(tmp_path, ENABLED) as node:
        port = node.node.facts.http_port
        assert node.rm.registrations[0].http_port == port
        container_id = await node.start(ContainerLaunchContext(("echo $NM_HTTP_PORT 1><LOG_DIR>/stdout; sleep 900",)))
        await node.running(container_id)
        stdout = node.logs_of(container_id) / "stdout"
        await node.rm.wait_for(lambda: stdout.exists() and stdout.read_text() == f"{port}\n")
