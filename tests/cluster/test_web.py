"""The web services of a cluster of real processes: an application from its submission to its logs, by HTTP alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.conftest import eventually
from tests.rm.web.http import request
from wire.files.hadoop_xml import to_xml
from yarn.settings.resourcemanager import WEBAPP_ADDRESS
from yarnling.cluster.blocking import BlockingCluster
from yarnling.cluster.local_cluster import LocalCluster

pytestmark = pytest.mark.cluster
SETTINGS = {
    "yarn.yarnling.web.enabled": "true",
    "yarn.scheduler.minimum-allocation-mb": "128",
    "yarn.scheduler.capacity.maximum-am-resource-percent": "1",
}
SMALL = {"memory": 128, "vCores": 1}
GPU = "yarn.io/gpu"


@pytest.fixture(scope="module")
def cluster() -> Iterator[BlockingCluster]:
    with LocalCluster(2, fast=True, settings=SETTINGS) as running:
        yield running


def get(cluster: BlockingCluster, path: str) -> Any:
    return request(cluster.addresses[WEBAPP_ADDRESS.key], f"/ws/v1/cluster{path}").json


def submit(cluster: BlockingCluster, command: str, resource: Mapping[str, Any] = SMALL) -> str:
    address = cluster.addresses[WEBAPP_ADDRESS.key]
    new = request(address, "/ws/v1/cluster/apps/new-application?user.name=ann", method="POST").json
    body = {
        "application-id": new["application-id"],
        "application-name": "by-rest",
        "am-container-spec": {"commands": {"command": command}},
        "max-app-attempts": 1,
        "resource": resource,
        "application-type": "YARN",
    }
    reply = request(address, "/ws/v1/cluster/apps?user.name=ann", method="POST", body=body)
    assert reply.status == 202, reply.text
    assert reply.headers["location"] == f"http://{address}/ws/v1/cluster/apps/{new['application-id']}"
    return str(new["application-id"])


def test_an_applications_logs_are_found_through_its_answer(cluster: BlockingCluster) -> None:
    app = submit(cluster, "echo $NM_HTTP_PORT 1><LOG_DIR>/stdout; sleep 900")
    shown = eventually(lambda: (found := get(cluster, f"/apps/{app}")["app"]).get("amHostHttpAddress") and found)
    address = shown["amHostHttpAddress"]
    assert address in {node["nodeHTTPAddress"] for node in get(cluster, "/nodes")["nodes"]["node"]}
    container = re.search(r"container_\w+", shown["amContainerLogs"])
    assert container is not None
    path = f"/ws/v1/node/containers/{container[0]}/logs/stdout"
    port = address.rpartition(":")[2]
    eventually(lambda: f"LogContents:\n{port}\n" in request(address, path).text)
    killed = request(
        cluster.addresses[WEBAPP_ADDRESS.key],
        f"/ws/v1/cluster/apps/{app}/state?user.name=ann",
        method="PUT",
        body={"state": "KILLED"},
    )
    assert killed.status == 202
    eventually(lambda: get(cluster, f"/apps/{app}/state")["state"] == "KILLED")
    assert (
        get(cluster, f"/apps/{app}")["app"]["trackingUrl"]
        == f"http://{cluster.addresses[WEBAPP_ADDRESS.key]}/cluster/app/{app}"
    )


def test_the_address_outlives_the_resource_manager(cluster: BlockingCluster) -> None:
    address = cluster.addresses[WEBAPP_ADDRESS.key]
    cluster.kill_rm()
    cluster.restart_rm()
    eventually(lambda: get(cluster, "/metrics")["clusterMetrics"]["activeNodes"] == 2)
    assert cluster.addresses[WEBAPP_ADDRESS.key] == address


@pytest.fixture
def gpus(tmp_path: Path) -> Path:
    """The folder of a configuration whose nodes have 4 GPUs each."""
    prefix = "yarn.scheduler.capacity."
    files = {
        "yarn-site.xml": SETTINGS,
        "capacity-scheduler.xml": {
            prefix + "resource-calculator": "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
            prefix + "maximum-am-resource-percent": "1",
            prefix + "root.queues": "default",
            prefix + "root.default.capacity": "100",
        },
        "resource-types.xml": {"yarn.resource-types": GPU},
        "node-resources.xml": {f"yarn.nodemanager.resource-type.{GPU}": "4"},
    }
    for name, values in files.items():
        (tmp_path / name).write_text(to_xml(values))
    return tmp_path


def gpus_of_the_node(cluster: BlockingCluster) -> tuple[int, int, int]:
    """All GPUs of the only node, those in use, and those available."""
    (node,) = get(cluster, "/nodes")["nodes"]["node"]
    total, used, available = (
        {one["name"]: one["value"] for one in node[field]["resourceInformations"]["resourceInformation"]}[GPU]
        for field in ("totalResource", "usedResource", "availableResource")
    )
    return total, used, available


def test_a_node_shows_its_gpus_and_a_container_gets_the_one_it_requests(gpus: Path) -> None:
    with LocalCluster(1, fast=True, conf=gpus) as cluster:
        assert gpus_of_the_node(cluster) == (4, 0, 4)
        wanted = {"resourceInformation": [{"name": GPU, "value": 1, "units": "", "resourceType": "COUNTABLE"}]}
        app = submit(cluster, "sleep 900", {**SMALL, "resourceInformations": wanted})
        eventually(lambda: gpus_of_the_node(cluster) == (4, 1, 3))
        cluster.client.kill(app)
        eventually(lambda: gpus_of_the_node(cluster) == (4, 0, 4))
