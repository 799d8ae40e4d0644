"""/jmx and /metrics of a ResourceManager that is served, and the pages around them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.rm.served_cluster import Cluster, serving
from tests.rm.web.http import ask
from tests.rm.web.test_writes import WEB, served, submit
from wire.web.jmx import Bean, beans_text
from wire.web.prometheus import prometheus_name, prometheus_text

READ_BY_EXPORTERS = {
    "ClusterMetrics": {"NumActiveNMs", "NumLostNMs", "NumUnhealthyNMs", "NumDecommissionedNMs", "NumRebootedNMs"},
    "QueueMetrics,q0=root,q1=default": {
        "AllocatedContainers",
        "AllocatedMB",
        "AllocatedVCores",
        "AppsPending",
        "AppsRunning",
        "AppsSubmitted",
        "AvailableMB",
        "PendingMB",
        "ReservedMB",
        "running_0",
        "AMResourceLimitMB",
        "UsedCapacity",
    },
    "JvmMetrics": {"MemHeapUsedM", "GcCount", "ThreadsRunnable"},
    "RMNMInfo": {"LiveNodeManagers"},
}


async def beans(cluster: Cluster, query: str) -> list[dict[str, Any]]:
    reply = await ask(cluster.addresses[WEB], f"/jmx?qry={query}")
    assert reply.headers["content-type"] == "application/json; charset=utf8"
    return list(reply.json["beans"])


async def test_the_fields_that_exporters_read_are_there(tmp_path: Path) -> None:
    async with serving(served(tmp_path)) as cluster:
        for name, fields in READ_BY_EXPORTERS.items():
            (bean,) = await beans(cluster, f"Hadoop:service=ResourceManager,name={name}")
            assert fields <= bean.keys(), name


async def test_applications_are_counted_although_they_are_forgotten(tmp_path: Path) -> None:
    forgetful = {"yarn.resourcemanager.max-completed-applications": "0"}
    async with serving(served(tmp_path, **forgetful)) as cluster:
        node = await cluster.node()
        app = await submit(cluster)
        await node.beat()
        killed = await ask(
            cluster.addresses[WEB],
            f"/ws/v1/cluster/apps/{app}/state?user.name=alice",
            method="PUT",
            body={"state": "KILLED"},
        )
        assert killed.status == 202
        await submit(cluster, queue="nosuch")
        for _ in range(3):
            await node.beat()
        (root,) = await beans(cluster, "Hadoop:service=ResourceManager,name=QueueMetrics,q0=root")
        assert (root["AppsSubmitted"], root["AppsKilled"], root["AppsFailed"]) == (1, 1, 0)
        assert root["AggregateContainersAllocated"] == root["AggregateContainersReleased"] == 1
        assert root["AggregateOffSwitchContainersAllocated"] == 1
        metrics = (await ask(cluster.addresses[WEB], "/ws/v1/cluster/metrics")).json["clusterMetrics"]
        assert (metrics["appsSubmitted"], metrics["appsKilled"]) == (1, 1)
        health = (await ask(cluster.addresses[WEB], "/ws/v1/cluster/scheduler")).json["scheduler"]["schedulerInfo"]
        last = {entry["operation"]: entry for entry in health["health"]["operationsInfo"]}
        assert last["last-allocation"]["nodeId"] == last["last-release"]["nodeId"] == str(node.node_id)
        assert last["last-release"]["queue"] == "root.default"
        assert last["last-preemption"]["nodeId"] == "N/A"


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("java.lang:type=Memory", {"java.lang:type=Memory"}),
        ("Hadoop:service=ResourceManager,name=Clus*", {"Hadoop:service=ResourceManager,name=ClusterMetrics"}),
        ("Hadoop:service=ResourceManager,name=QueueMetrics", set()),
        ("Hadoop:name=ClusterMetrics,*", {"Hadoop:service=ResourceManager,name=ClusterMetrics"}),
        ("nosuch:x=y", set()),
    ],
)
async def test_beans_are_chosen_by_a_pattern(tmp_path: Path, query: str, names: set[str]) -> None:
    async with serving(served(tmp_path)) as cluster:
        assert {bean["name"] for bean in await beans(cluster, query)} == names


async def test_one_attribute_can_be_had_and_a_bad_pattern_is_refused(tmp_path: Path) -> None:
    async with serving(served(tmp_path)) as cluster:
        name = "Hadoop:service=ResourceManager,name=ClusterMetrics"
        reply = await ask(cluster.addresses[WEB], f"/jmx?get={name}::NumActiveNMs")
        assert reply.text == beans_text([Bean(name, "ClusterMetrics", {"NumActiveNMs": 0})])
        assert (await ask(cluster.addresses[WEB], "/jmx?qry=nosuch")).status == 400


def test_beans_are_indented_as_hadoops() -> None:
    assert beans_text([]) == '{\n  "beans" : [ ]\n}'
    text = beans_text([Bean("a:b=c", "B", {"x": 1, "m": {"used": 2}}), Bean("a:b=d", "B", {})])
    assert text.startswith('{\n  "beans" : [ {\n    "name" : "a:b=c",\n    "modelerType" : "B",\n    "x" : 1,\n')
    assert "}, {" in text
    assert json.loads(text)["beans"][0]["m"] == {"used": 2}


async def test_prometheus_reads_the_beans_with_the_queue_as_a_label(tmp_path: Path) -> None:
    async with serving(served(tmp_path)) as cluster:
        reply = await ask(cluster.addresses[WEB], "/metrics", headers={"Accept": "application/openmetrics-text"})
        assert reply.headers["content-type"].startswith("text/plain; version=")
        samples = [line for line in reply.text.splitlines() if not line.startswith("#")]
        queues = [line for line in samples if line.startswith("queue_metrics_apps_submitted{")]
        assert len(queues) == 5
        assert any('queue="root.dev.a"' in line and line.endswith(" 0.0") for line in queues)
        names = [family.name for family in text_string_to_metric_families(reply.text)]
        assert len(names) == len(set(names)) > 50


@pytest.mark.parametrize(
    ("record", "metric", "kind"),
    [
        ("QueueMetrics", "AppsSubmitted", "counter"),
        ("QueueMetrics", "UnmanagedAppsKilled", "counter"),
        ("QueueMetrics", "AggregateContainersAllocated", "counter"),
        ("QueueMetrics", "AppsRunning", "gauge"),
        ("QueueMetrics", "AllocatedContainers", "gauge"),
        ("NodeManagerMetrics", "ContainersLaunched", "counter"),
        ("NodeManagerMetrics", "ContainersRunning", "gauge"),
        ("JvmMetrics", "GcCount", "counter"),
        ("JvmMetrics", "MemHeapUsedM", "gauge"),
    ],
)
def test_what_hadoop_counts_is_a_counter_under_hadoops_name(record: str, metric: str, kind: str) -> None:
    """MutableCounterInt and MutableCounterLong of QueueMetrics, NodeManagerMetrics and JvmMetrics."""
    bean = Bean("Hadoop:service=X,name=Y", record, {"tag.Queue": 'a"\\', metric: 3})
    name = prometheus_name(record, metric)
    text = prometheus_text([bean])
    assert text == f'# HELP {name} {record} {metric}\n# TYPE {name} {kind}\n{name}{{queue="a\\"\\\\"}} 3.0\n'
    (family,) = text_string_to_metric_families(text)
    assert family.samples[0].labels == {"queue": 'a"\\'}


@pytest.mark.parametrize(
    ("record", "metric", "name"),
    [
        ("QueueMetrics", "AllocatedMB", "queue_metrics_allocated_mb"),
        ("ClusterMetrics", "NumActiveNMs", "cluster_metrics_num_active_n_ms"),
        ("QueueMetrics", "running_0", "queue_metrics_running_0"),
        ("JvmMetrics", "MemHeapUsedM", "jvm_metrics_mem_heap_used_m"),
    ],
)
def test_names_are_those_of_hadoops_own_sink(record: str, metric: str, name: str) -> None:
    assert prometheus_name(record, metric) == name


async def test_the_root_leads_to_an_index_of_what_is_served(tmp_path: Path) -> None:
    async with serving(served(tmp_path)) as cluster:
        address = cluster.addresses[WEB]
        reply = await ask(address, "/")
        assert (reply.status, reply.headers["location"]) == (302, f"http://{address}/cluster")
        assert "<title>ResourceManager</title>" in (await ask(address, "/cluster")).text
        page = await ask(address, "/cluster/paths", headers={"Accept": "text/html,*/*;q=0.8"})
        assert page.headers["content-type"] == "text/html;charset=utf-8"
        assert "<code>GET /ws/v1/cluster/apps/{appid}</code>" in page.text
        assert (await ask(address, "/isActive")).text == "I am Active!"
