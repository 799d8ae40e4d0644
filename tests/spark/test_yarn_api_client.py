"""yarn-api-client (PyPI) on a cluster: every method of its ResourceManager and NodeManager over HTTP."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from tests.spark.clients import JOBS, TIMEOUT_S, home_of
from yarn.settings import resourcemanager, yarnling
from yarnling.cluster.blocking import BlockingCluster
from yarnling.cluster.jobs import Job
from yarnling.cluster.local_cluster import LocalCluster

pytestmark = [pytest.mark.spark, pytest.mark.cluster]

REFUSED = {
    "cluster_reservations": "Reservation is not enabled",
    "cluster_new_reservation": "Unable to create new reservation",
    "cluster_submit_reservation": "APIError",
    "cluster_update_reservation": "APIError",
    "cluster_delete_reservation": "APIError",
    "cluster_new_delegation_token": "Kerberos authenticated channel",
    # Mistakes of the client's own: they never reach a server.
    "cluster_renew_delegation_token": "TypeError: .*multiple values for keyword argument 'headers'",
    "cluster_cancel_delegation_token": "TypeError: .*multiple values for keyword argument 'headers'",
    "cluster_scheduler_conf_mutation": "only supports to retrieve .* from a mutable-conf scheduler",
    "cluster_modify_scheduler_conf_mutation": "only supported by mutable configuration store",
    "auxiliary_services": "Auxiliary services manifest is not enabled",
    "auxiliary_services_update": "APIError",
}
"""{method: what its error contains}: as a Hadoop cluster without Kerberos, reservations and a mutable configuration."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[BlockingCluster]:
    settings = {yarnling.WEB_ENABLED.key: "true", "yarn.scheduler.minimum-allocation-mb": "128"}
    with LocalCluster(1, memory_mb=4096, vcores=8, settings=settings, fast=True) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def results(cluster: BlockingCluster) -> Iterator[dict[str, dict[str, Any]]]:
    """The results of the methods, while an application runs."""
    python = home_of("yarn-api-client-1.0.3") / "bin" / "python"
    app_id = cluster.submit(Job("sleep 600")).application_id
    (container,) = cluster.wait_containers(app_id, 1)
    (node,) = cluster.client.nodes()
    endpoints = (cluster.addresses[resourcemanager.WEBAPP_ADDRESS.key], node.http_address)
    ids = (str(app_id), str(node.node_id), str(container.container_id))
    done = subprocess.run(
        [python, JOBS / "rest_calls.py", *(f"http://{endpoint}" for endpoint in endpoints), *ids],
        env={**os.environ, "HADOOP_CONF_DIR": str(cluster.directory.conf)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    assert printed["not called"] == []
    yield printed["results"]
    cluster.client.kill(app_id)


def test_every_method_that_hadoop_answers_is_answered(results: dict[str, dict[str, Any]]) -> None:
    errors = {method: result["error"] for method, result in results.items() if "error" in result}
    assert errors.keys() == REFUSED.keys(), errors
    for method, message in REFUSED.items():
        assert re.search(message, errors[method]), errors[method]


def test_answers_are_about_the_cluster(results: dict[str, dict[str, Any]], cluster: BlockingCluster) -> None:
    answers = {method: result.get("answer") for method, result in results.items()}
    (app,) = (app for app in cluster.client.applications() if app.name != "by REST")
    assert answers["cluster_information"]["clusterInfo"]["state"] == "STARTED"
    assert answers["cluster_metrics"]["clusterMetrics"]["activeNodes"] == 1
    assert [found["id"] for found in answers["cluster_applications"]["apps"]["app"]] == [str(app.application_id)]
    assert answers["cluster_application"]["app"]["name"] == app.name
    assert len(answers["cluster_application_attempt_containers"]["container"]) == 2
    assert answers["cluster_get_application_queue"] == {"queue": "root.default"}
    assert answers["cluster_scheduler_queue"]["queueName"] == "default"
    assert answers["cluster_node_container_memory"] == 4096
    assert answers["node_information"]["nodeInfo"]["totalPmemAllocatedContainersMB"] == 4096
    assert len(answers["node_containers"]["containers"]["container"]) == 2


def test_an_application_that_was_submitted_by_rest_is_killed(
    results: dict[str, dict[str, Any]], cluster: BlockingCluster
) -> None:
    assert "answer" in results["cluster_application_kill"]
    (app,) = (app for app in cluster.client.applications() if app.name == "by REST")
    assert cluster.client.wait(app.application_id, timeout_s=60).final_status.name == "KILLED"
