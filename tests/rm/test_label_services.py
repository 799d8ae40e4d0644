"""Labels of nodes and queues over real gRPC: administrators set them, clients read them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.rm.served_cluster import Cluster, configuration, serving
from wire.protocols.admin import ResourceManagerAdministrationProtocol
from yarn.errors import YarnException
from yarn.ids import NodeId
from yarn.nodes import NodeLabel
from yarn.protocols.admin import ReplaceLabelsRequest
from yarn.protocols.client import QueueInfoRequest
from yarn.resource import Resource

PREFIX = "yarn.scheduler.capacity."
LABELS = {
    "yarn.node-labels.enabled": "true",
    "yarn.admin.acl": "carol",
    PREFIX + "root.queues": "default,lab",
    PREFIX + "root.default.capacity": "60",
    PREFIX + "root.lab.capacity": "40",
    PREFIX + "root.accessible-node-labels": "*",
    PREFIX + "root.accessible-node-labels.gpu.capacity": "100",
    PREFIX + "root.default.accessible-node-labels": " ",
    PREFIX + "root.lab.accessible-node-labels": "gpu",
    PREFIX + "root.lab.accessible-node-labels.gpu.capacity": "100",
    PREFIX + "root.lab.accessible-node-labels.gpu.maximum-capacity": "100",
    PREFIX + "root.lab.default-node-label-expression": "gpu",
}
GPU, FAST = NodeLabel("gpu"), NodeLabel("fast", exclusive=False)


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with serving(configuration(tmp_path).overridden(LABELS)) as served:
        yield served


@pytest.fixture
async def carol(cluster: Cluster) -> ResourceManagerAdministrationProtocol:
    return await cluster.admin("carol")


async def test_labels_are_added_and_removed(cluster: Cluster, carol: ResourceManagerAdministrationProtocol) -> None:
    client = await cluster.client()
    assert await client.get_cluster_node_labels() == ()
    await carol.add_to_cluster_node_labels((GPU, FAST))
    assert await client.get_cluster_node_labels() == (GPU, FAST)
    with pytest.raises(YarnException, match=r"^java.io.IOException: .*queue=root.lab is using this label"):
        await carol.remove_from_cluster_node_labels(("gpu",))
    await carol.remove_from_cluster_node_labels(("fast",))
    assert await client.get_cluster_node_labels() == (GPU,)


async def test_node_reports_show_assigned_labels(
    cluster: Cluster, carol: ResourceManagerAdministrationProtocol
) -> None:
    node, client = await cluster.node(), await cluster.client()
    await cluster.node("127.0.0.3")
    await carol.add_to_cluster_node_labels((GPU, FAST))
    whole_host = NodeId("127.0.0.3", 0)
    await carol.replace_labels_on_nodes(ReplaceLabelsRequest(((node.node_id, ("gpu",)), (whole_host, ("fast",)))))
    reports = {report.node_id.host: report.labels for report in await client.get_cluster_nodes(frozenset())}
    assert reports == {"127.0.0.2": {"gpu"}, "127.0.0.3": {"fast"}}
    assert dict(await client.get_node_to_labels())[node.node_id] == ("gpu",)
    assert dict(await client.get_labels_to_nodes(("gpu",))) == {"gpu": (node.node_id,)}
    assert {label for label, _ in await client.get_labels_to_nodes(())} == {"gpu", "fast"}


async def test_a_queue_reports_the_labels_that_it_may_use_and_its_share_of_them(
    cluster: Cluster, carol: ResourceManagerAdministrationProtocol
) -> None:
    node, client = await cluster.node(memory_mb=4096), await cluster.client()
    await carol.add_to_cluster_node_labels((GPU, FAST))
    await carol.replace_labels_on_nodes(ReplaceLabelsRequest(((node.node_id, ("gpu",)),)))
    default, lab = (
        await client.get_queue_info(QueueInfoRequest("default")),
        await client.get_queue_info(QueueInfoRequest("lab")),
    )
    assert default is not None
    assert lab is not None
    assert (default.accessible_labels, default.partitions) == (frozenset(), ())
    assert default.default_label_expression == ""
    assert (lab.accessible_labels, lab.default_label_expression) == (frozenset({"gpu"}), "gpu")
    (gpu,) = lab.partitions
    assert (gpu.label, gpu.capacity, gpu.absolute_capacity, gpu.maximum_capacity) == ("gpu", 1.0, 1.0, 1.0)
    assert gpu.effective_minimum == Resource(4096, 8)


async def test_an_unknown_node_refuses_all_with_fail_on_unknown_nodes(
    cluster: Cluster, carol: ResourceManagerAdministrationProtocol
) -> None:
    node, client = await cluster.node(), await cluster.client()
    await carol.add_to_cluster_node_labels((GPU,))
    labels = ((node.node_id, ("gpu",)), (NodeId("nosuchhost", 0), ("gpu",)))
    with pytest.raises(YarnException, match="there are unknown nodes:"):
        await carol.replace_labels_on_nodes(ReplaceLabelsRequest(labels, fail_on_unknown_nodes=True))
    assert await client.get_node_to_labels() == ()


async def test_only_administrators_change_labels(cluster: Cluster) -> None:
    bob = await cluster.admin("bob")
    for call, name in (
        (bob.add_to_cluster_node_labels((GPU,)), "addToClusterNodeLabels"),
        (bob.remove_from_cluster_node_labels(("gpu",)), "removeFromClusterNodeLabels"),
        (bob.replace_labels_on_nodes(ReplaceLabelsRequest(())), "replaceLabelsOnNode"),
    ):
        with pytest.raises(YarnException, match=f"User bob doesn't have permission to call '{name}'"):
            await call


async def test_without_labels_nothing_is_changed(tmp_path: Path) -> None:
    async with serving(configuration(tmp_path)) as cluster:
        admin = await cluster.admin()
        with pytest.raises(YarnException, match="Node-label-based scheduling is disabled"):
            await admin.add_to_cluster_node_labels((GPU,))
