"""The web services of a cluster of real processes: an application from its submission to its logs, by HTTP alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.conftest import eventually
from tests.rm.web.http import request
from yarn.settings.resourcemanager import WEBAPP_ADDRESS
from yarnling.cluster.blocking import BlockingCluster
from yarnling.cluster.local_cluster import LocalCluster

pytestmark = pytest.mark.cluster
SETTINGS = {
    "yarn.yarnling.web.enabled": "true",
    "yarn.scheduler.minimum-allocation-mb": "128",
    "yarn.scheduler.capacity.maximum-am-resource-percent": "1",
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[BlockingCluster]:
    with LocalCluster(2, fast=True, settings=SETTINGS) as running:
        yield running


def get(cluster: BlockingCluster, path: str) -> Any:
    return request(cluster.addresses[WEBAPP_ADDRESS.key], f"/ws/v1/cluster{path}").json


def submit(cluster: BlockingCluster, command: str) -> str:
    address = cluster.addresses[WEBAPP_ADDRESS.key]
    new = request(address, "/ws/v1/cluster/apps/new-application?user.name=ann", method="POST").json
    body = {
        "application-id": new["application-id"],
        "application-name": "by-rest",
        "am-container-spec": {"commands": {"command": command}},
        "max-app-attempts": 1,
        "resource": {"memory": 128, "vCores": 1},
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
