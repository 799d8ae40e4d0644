"""Every method of yarn-api-client, a Python client of Hadoop's REST API, against a cluster."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.cluster.conftest import eventually
from tests.cluster.test_web import SETTINGS, submit
from yarn.settings.resourcemanager import WEBAPP_ADDRESS
from yarnling.cluster.blocking import BlockingCluster
from yarnling.cluster.local_cluster import LocalCluster

api = pytest.importorskip("yarn_api_client", reason="needs yarn-api-client (pip install yarnling[hadoop-tests])")

pytestmark = pytest.mark.cluster
Call = Callable[[Any, "Names"], Any]


class Names:
    """The arguments of the methods."""

    def __init__(self, cluster: BlockingCluster, rm: Any) -> None:
        self.app = submit(cluster, "sleep 900")
        shown = eventually(lambda: (app := rm.cluster_application(self.app).data["app"]).get("amContainerLogs") and app)
        container = re.search(r"container_\w+", shown["amContainerLogs"])
        assert container is not None
        self.container = container[0]
        self.attempt = f"appattempt_{self.app.partition('_')[2]}_000001"
        self.node = shown["masterNodeId"]
        self.node_address = f"http://{shown['amHostHttpAddress']}"


ANSWERED: dict[str, Call] = {
    "application_activities": lambda rm, n: rm.application_activities(n.app),
    "cluster_application": lambda rm, n: rm.cluster_application(n.app),
    "cluster_application_attempts": lambda rm, n: rm.cluster_application_attempts(n.app),
    "cluster_application_attempt_info": lambda rm, n: rm.cluster_application_attempt_info(n.app, n.attempt),
    "cluster_application_attempt_containers": lambda rm, n: rm.cluster_application_attempt_containers(n.app, n.attempt),
    "cluster_application_attempt_container_info": lambda rm, n: rm.cluster_application_attempt_container_info(
        n.app, n.attempt, n.container
    ),
    "cluster_application_state": lambda rm, n: rm.cluster_application_state(n.app),
    "cluster_application_statistics": lambda rm, n: rm.cluster_application_statistics(states=["RUNNING"]),
    "cluster_application_timeout": lambda rm, n: rm.cluster_application_timeout(n.app, "LIFETIME"),
    "cluster_application_timeouts": lambda rm, n: rm.cluster_application_timeouts(n.app),
    "cluster_applications": lambda rm, n: rm.cluster_applications(states=["ACCEPTED"], limit=5),
    "cluster_change_application_priority": lambda rm, n: rm.cluster_change_application_priority(n.app, 0),
    "cluster_change_application_queue": lambda rm, n: rm.cluster_change_application_queue(n.app, "root.default"),
    "cluster_container_signal": lambda rm, n: rm.cluster_container_signal(n.container, "OUTPUT_THREAD_DUMP"),
    "cluster_get_application_priority": lambda rm, n: rm.cluster_get_application_priority(n.app),
    "cluster_get_application_queue": lambda rm, n: rm.cluster_get_application_queue(n.app),
    "cluster_information": lambda rm, n: rm.cluster_information(),
    "cluster_metrics": lambda rm, n: rm.cluster_metrics(),
    "cluster_new_application": lambda rm, n: rm.cluster_new_application(),
    "cluster_node": lambda rm, n: rm.cluster_node(n.node),
    "cluster_node_container_memory": lambda rm, n: rm.cluster_node_container_memory(),
    "cluster_node_update_resource": lambda rm, n: rm.cluster_node_update_resource(
        n.node, {"resource": {"memory": 8192, "vCores": 8}, "overCommitTimeout": -1}
    ),
    "cluster_nodes": lambda rm, n: rm.cluster_nodes(),
    "cluster_queue_partition": lambda rm, n: rm.cluster_queue_partition(rm.cluster_scheduler_queue("default"), ""),
    "cluster_scheduler": lambda rm, n: rm.cluster_scheduler(),
    "cluster_scheduler_queue": lambda rm, n: rm.cluster_scheduler_queue("default"),
    "cluster_scheduler_queue_availability": lambda rm, n: rm.cluster_scheduler_queue_availability(
        rm.cluster_queue_partition(rm.cluster_scheduler_queue("default"), ""), 99
    ),
    "cluster_submit_application": lambda rm, n: rm.cluster_submit_application(
        {"application-id": n.app, "resource": {"memory": 128, "vCores": 1}}
    ),
    "cluster_update_application_timeout": lambda rm, n: rm.cluster_update_application_timeout(
        n.app, "LIFETIME", "2099-01-01T00:00:00.000+0000"
    ),
    "get_active_endpoint": lambda rm, n: rm.get_active_endpoint(),
    "scheduler_activities": lambda rm, n: rm.scheduler_activities(),
    "cluster_application_kill": lambda rm, n: rm.cluster_application_kill(n.app),
}
REFUSED: dict[str, Call] = {
    "cluster_cancel_delegation_token": lambda rm, n: rm.cluster_cancel_delegation_token("x"),
    "cluster_new_delegation_token": lambda rm, n: rm.cluster_new_delegation_token("x"),
    "cluster_renew_delegation_token": lambda rm, n: rm.cluster_renew_delegation_token("x"),
    "cluster_modify_scheduler_conf_mutation": lambda rm, n: rm.cluster_modify_scheduler_conf_mutation({}),
    "cluster_scheduler_conf_mutation": lambda rm, n: rm.cluster_scheduler_conf_mutation(),
    "cluster_new_reservation": lambda rm, n: rm.cluster_new_reservation(),
    "cluster_submit_reservation": lambda rm, n: rm.cluster_submit_reservation({}),
    "cluster_update_reservation": lambda rm, n: rm.cluster_update_reservation({}),
    "cluster_delete_reservation": lambda rm, n: rm.cluster_delete_reservation("x"),
    "cluster_reservations": lambda rm, n: rm.cluster_reservations("default"),
}
OF_NODE: dict[str, Call] = {
    "node_application": lambda nm, n: nm.node_application(n.app),
    "node_applications": lambda nm, n: nm.node_applications(),
    "node_container": lambda nm, n: nm.node_container(n.container),
    "node_containers": lambda nm, n: nm.node_containers(),
    "node_information": lambda nm, n: nm.node_information(),
}
HELPERS = {"request", "construct_parameters", "response_class"}
REFUSED_BY_NODE = {"auxiliary_services", "auxiliary_services_update"}


@pytest.fixture(scope="module")
def cluster() -> Iterator[BlockingCluster]:
    with LocalCluster(1, memory_mb=8192, fast=True, settings=SETTINGS) as running:
        yield running


def methods_of(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_") and callable(getattr(kind, name))}


def test_every_method_of_the_client_gets_its_answer(cluster: BlockingCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    # A method reads yarn-site.xml.
    monkeypatch.setattr("yarn_api_client.resource_manager.CONF_DIR", str(cluster.directory.conf))
    rm = api.ResourceManager([f"http://{cluster.addresses[WEBAPP_ADDRESS.key]}"])
    names = Names(cluster, rm)
    node = api.NodeManager(names.node_address)
    assert methods_of(api.ResourceManager) == ANSWERED.keys() | REFUSED.keys() | HELPERS
    assert methods_of(api.NodeManager) == OF_NODE.keys() | REFUSED_BY_NODE | HELPERS
    for call in OF_NODE.values():
        call(node, names)
    for name, call in REFUSED.items():
        # The client passes some headers twice (TypeError).
        with pytest.raises((api.errors.APIError, TypeError)):
            pytest.fail(f"{name}: {call(rm, names)}")
    with pytest.raises(api.errors.APIError):
        node.auxiliary_services()
    for call in ANSWERED.values():
        call(rm, names)
    eventually(lambda: rm.cluster_application_state(names.app).data["state"] == "KILLED")
