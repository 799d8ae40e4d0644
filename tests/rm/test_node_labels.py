"""Labels through the core's events: an administrator gives them to nodes, requests name them (AdminService)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from rm.core.events import AddClusterNodeLabels, RemoveClusterNodeLabels, ReplaceLabelsOnNodes
from tests.rm.builders import RM, resource_request
from yarn.containers import ANY, ResourceRequest
from yarn.errors import InvalidLabelResourceRequestException, YarnException
from yarn.ids import ApplicationId, NodeId
from yarn.nodes import NodeLabel
from yarn.resource import Resource

CONF = {
    "yarn.node-labels.enabled": "true",
    "yarn.scheduler.capacity.root.queues": "default,gpus",
    "yarn.scheduler.capacity.root.default.capacity": "50",
    "yarn.scheduler.capacity.root.default.accessible-node-labels": "ssd,gpu",
    "yarn.scheduler.capacity.root.default.accessible-node-labels.gpu.capacity": "50",
    "yarn.scheduler.capacity.root.gpus.capacity": "50",
    "yarn.scheduler.capacity.root.gpus.accessible-node-labels": "gpu",
    "yarn.scheduler.capacity.root.gpus.accessible-node-labels.gpu.capacity": "50",
    "yarn.scheduler.capacity.root.gpus.default-node-label-expression": "gpu",
    "yarn.scheduler.capacity.user-limit-factor": "10",
}


@pytest.fixture
def rm() -> RM:
    """Two nodes, `g1` with the label gpu."""
    return labelled_rm({})


def labelled_rm(conf: dict[str, str]) -> RM:
    rm = RM({**CONF, **conf})
    rm.send(AddClusterNodeLabels(rm.call(), (NodeLabel("gpu"), NodeLabel("ssd"))))
    rm.send(ReplaceLabelsOnNodes(rm.call(), ((NodeId("g1", 0), ("gpu",)),)))
    rm.node("n1")
    rm.node("g1")
    return rm


def labelled(label: str | None, count: int = 1, name: str = ANY) -> ResourceRequest:
    return replace(resource_request(count), label=label, resource_name=name)


def places(rm: RM, app: ApplicationId) -> list[str]:
    """The nodes of the containers that a heartbeat of each node places."""
    rm.beat("n1")
    rm.beat("g1")
    return [container.node_id.host for container in rm.allocate(app).allocated]


@pytest.mark.case("G1")
def test_a_request_is_placed_on_nodes_of_its_label(rm: RM) -> None:
    app = rm.submit()
    rm.run_am(app)
    rm.allocate(app, [labelled("gpu", 2), replace(resource_request(1), priority=2)])
    assert sorted(places(rm, app)) == ["g1", "g1", "n1"]


def test_requests_without_a_label_get_that_of_the_application_or_queue(rm: RM) -> None:
    of_application = rm.submit(node_label_expression="gpu")
    rm.run_am(of_application, "g1")
    rm.allocate(of_application, [resource_request(1)])
    assert places(rm, of_application) == ["g1"]
    of_queue = rm.submit(queue="gpus")
    rm.run_am(of_queue, "g1")
    rm.allocate(of_queue, [resource_request(1), labelled("", 1)])
    assert places(rm, of_queue) == ["n1"], "the last row for a name wins, and it wants no label"


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        (
            labelled("gpu", name="n1"),
            "queue=gpus specified node label expression in a resource request has resource name = n1",
        ),
        (labelled("gpu && ssd"), "queue=gpus specified more than one node label in a node label expression"),
        (labelled("ssd"), "queue=gpus doesn't have permission to access all labels in resource request."),
    ],
)
def test_a_request_with_an_invalid_label_is_refused(rm: RM, wrong: ResourceRequest, problem: str) -> None:
    app = rm.submit(queue="gpus")
    rm.run_am(app, "g1")
    with pytest.raises(InvalidLabelResourceRequestException, match=problem):
        rm.allocate(app, [resource_request(1), wrong])
    assert places(rm, app) == []


def test_a_request_with_an_unknown_label_is_refused_if_its_queue_may_use_all_labels(rm: RM) -> None:
    app = rm.submit()
    rm.run_am(app)
    rm.allocate(app, [labelled("ssd")])
    rm2 = RM({**CONF, "yarn.scheduler.capacity.root.default.accessible-node-labels": "*"})
    rm2.node("n1")
    app = rm2.submit()
    rm2.run_am(app)
    with pytest.raises(InvalidLabelResourceRequestException, match=r"cluster do not contain , label= ssd$"):
        rm2.allocate(app, [labelled("ssd")])


def test_without_node_labels_a_request_may_not_name_a_label() -> None:
    rm = RM({**CONF, "yarn.node-labels.enabled": "false"})
    rm.node("n1")
    app = rm.submit()
    rm.run_am(app)
    with pytest.raises(InvalidLabelResourceRequestException, match="node label not enabled but request contains"):
        rm.allocate(app, [labelled("gpu")])
    with pytest.raises(YarnException, match="Node-label-based scheduling is disabled"):
        rm.send(AddClusterNodeLabels(rm.call(), (NodeLabel("gpu"),)))


def test_an_am_is_placed_on_nodes_of_its_label() -> None:
    """Its own label, else that of the configuration for AMs, else its application's, else its queue's."""
    rm = labelled_rm({})
    am = ResourceRequest(0, ANY, Resource(1024, 1), 1)
    own = rm.submit(am_requests=(replace(am, label="gpu"),))
    of_application = rm.submit(node_label_expression="gpu")
    of_queue = rm.submit(queue="gpus")
    assert [rm.launch(app, "g1").node_id.host for app in (own, of_application, of_queue)] == ["g1"] * 3
    rm = labelled_rm({"yarn.resourcemanager.node-labels.am.default-node-label-expression": "gpu"})
    of_configuration = rm.submit(node_label_expression="ssd")
    assert rm.launch(of_configuration, "g1").node_id.host == "g1"


def test_an_am_with_a_label_inaccessible_to_its_queue_is_refused(rm: RM) -> None:
    with pytest.raises(InvalidLabelResourceRequestException, match=r"label.*=ssd\. Queue labels=gpu$"):
        rm.submit(queue="gpus", node_label_expression="ssd")


def test_an_enforced_partition_serves_only_applications_of_its_label() -> None:
    """enforcePartitionExclusivity: requests of other applications for it get the label of their application."""
    rm = labelled_rm({"yarn.node-labels.exclusive-enforced-partitions": "gpu"})
    stranger = rm.submit()
    rm.run_am(stranger)
    rm.allocate(stranger, [labelled("gpu")])
    assert places(rm, stranger) == ["n1"]
    native = rm.submit(node_label_expression="gpu")
    rm.run_am(native, "g1")
    rm.allocate(native, [labelled("")])
    assert places(rm, native) == ["g1"]
    am = ResourceRequest(0, ANY, Resource(1024, 1), 1, label="gpu")
    assert rm.launch(rm.submit(am_requests=(am,)), "n1").node_id.host == "n1"


def test_an_am_is_notified_of_nodes_with_its_queues_label(rm: RM) -> None:
    rm.node("n2")
    for queue, host, count in (("default", "n1", 3), ("gpus", "g1", 1)):
        app = rm.submit(queue=queue)
        rm.run_am(app, host)
        assert rm.allocate(app).cluster_nodes == count


def test_unknown_nodes_can_be_refused(rm: RM) -> None:
    wanted = ((NodeId("n1", 0), ("gpu",)), (NodeId("n7", 0), ("gpu",)), (NodeId("n1", 7), ("gpu",)))
    with pytest.raises(YarnException, match=r"IOException: Failed to replace .* unknown nodes:\[n7:0, n1:7\]$"):
        rm.send(ReplaceLabelsOnNodes(rm.call(), wanted, fail_on_unknown_nodes=True))
    assert rm.core.scheduler.labels.label_of(NodeId("n1", 45454)) == ""
    rm.send(ReplaceLabelsOnNodes(rm.call(), wanted))
    assert rm.core.scheduler.labels.label_of(NodeId("n1", 45454)) == "gpu"


def test_a_label_that_no_queue_names_can_be_removed() -> None:
    rm = RM({**CONF, "yarn.scheduler.capacity.root.default.accessible-node-labels": "gpu"})
    rm.send(AddClusterNodeLabels(rm.call(), (NodeLabel("gpu"), NodeLabel("ssd"))))
    rm.node("n1")
    rm.send(ReplaceLabelsOnNodes(rm.call(), ((NodeId("n1", 0), ("ssd",)),)))
    rm.send(RemoveClusterNodeLabels(rm.call(), ("ssd",)))
    assert rm.core.scheduler.nodes[NodeId("n1", 45454)].partition == ""
    with pytest.raises(YarnException, match=r"Cannot remove label=gpu, because queue=root\.gpus is using this label"):
        rm.send(RemoveClusterNodeLabels(rm.call(), ("gpu",)))
