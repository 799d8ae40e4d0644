"""A new ResourceManager recovers labels, excluded hosts, node sizes and access lists."""

from __future__ import annotations

from rm.core.events import (
    AddClusterNodeLabels,
    HostListsRead,
    RefreshNodes,
    RemoveClusterNodeLabels,
    ReplaceLabelsOnNodes,
)
from rm.core.host_lists import HostLists
from rm.core.node_reports import cluster_metrics
from tests.rm.stored import StoredRM
from tests.rm.test_node_labels import CONF
from yarn.containers import ContainerLaunchContext
from yarn.ids import NodeId
from yarn.nodes import NodeLabel
from yarn.states import ApplicationAccessType, DecommissionType, NodeAction

GPU, SSD = NodeLabel("gpu"), NodeLabel("ssd", exclusive=False)


def labelled() -> StoredRM:
    rm = StoredRM(CONF)
    rm.send(AddClusterNodeLabels(rm.call(), (GPU, SSD)))
    rm.node("g1")
    rm.node("n1")
    return rm


def set_labels(rm: StoredRM, **labels: str) -> None:
    """Labels by host (`n1`), by port where the name ends with the port's (`n1_1`); "" for none."""
    given = {NodeId(*_host_and_port(name)): (label,) if label else () for name, label in labels.items()}
    rm.send(ReplaceLabelsOnNodes(rm.call(), tuple(given.items())))


def _host_and_port(name: str) -> tuple[str, int]:
    host, _, port = name.partition("_")
    return host, int(port or 0)


def labels_of(rm: StoredRM) -> dict[str, str]:
    return {str(node_id): label.name for node_id, label in rm.core.scheduler.labels.nodes_to_labels().items()}


# Labels, as FileSystemNodeLabelsStore keeps them


def test_labels_and_their_nodes_are_recovered_before_nodes_register() -> None:
    rm = labelled()
    port = rm.nodes["n1"].node_id.port
    set_labels(rm, g1="gpu", **{f"n1_{port}": "ssd"})
    again = rm.restart()
    assert again.core.scheduler.labels.cluster_labels() == (GPU, SSD)
    assert labels_of(again) == {"g1:0": "gpu", f"n1:{port}": "ssd"}
    again.comes_back("g1")
    assert again.core.scheduler.labels.label_of(again.nodes["g1"].node_id) == "gpu"
    assert again.core.scheduler.labels.resource_of("gpu") == again.nodes["g1"].resource


def test_a_node_without_the_label_of_its_host_stays_unlabelled() -> None:
    rm = labelled()
    node_id = rm.nodes["g1"].node_id
    set_labels(rm, g1="gpu")
    set_labels(rm, **{f"g1_{node_id.port}": ""})
    again = rm.restart().restart()
    again.comes_back("g1")
    assert again.core.scheduler.labels.label_of(node_id) == ""
    assert labels_of(again) == {"g1:0": "gpu"}


def test_removed_labels_stay_removed() -> None:
    rm = labelled()
    rm.send(AddClusterNodeLabels(rm.call(), (NodeLabel("later"),)))
    set_labels(rm, g1="later")
    assert labels_of(rm.restart())["g1:0"] == "later"
    rm.send(RemoveClusterNodeLabels(rm.call(), ("later",)))
    again = rm.restart()
    assert again.core.scheduler.labels.cluster_labels() == (GPU, SSD)
    assert labels_of(again) == {}


def test_a_container_of_a_labelled_node_is_charged_to_its_label_again() -> None:
    rm = labelled()
    set_labels(rm, g1="gpu")
    app = rm.submit(node_label_expression="gpu")
    rm.run_am(app, "g1")
    again = rm.restart()
    again.comes_back("g1")
    used = again.core.scheduler.queues["root.default"].usage.booked("gpu").used
    assert used.memory_mb == 1024


def test_stored_labels_survive_a_run_without_node_labels() -> None:
    rm = labelled()
    set_labels(rm, g1="gpu")
    without = rm.restart({})
    assert without.core.scheduler.labels.cluster_labels() == ()
    assert without.restart(CONF).core.scheduler.labels.cluster_labels() == (GPU, SSD)


# Excluded hosts (NodesListManager: the lists are read again, timeouts are not stored)


def test_a_node_that_was_decommissioning_is_refused_after_the_restart() -> None:
    """Its containers are killed with it: RMStateStore has no record of a decommissioning node or its timeout."""
    rm = StoredRM()
    rm.node("n1")
    app = rm.submit()
    rm.run_am(app)
    excluded = HostLists(excluded=(("n1", None),))
    rm.send(RefreshNodes(rm.call(), excluded, DecommissionType.GRACEFUL, 3600))
    assert rm.beat().action is NodeAction.NORMAL
    again = rm.restart()
    again.send(HostListsRead(excluded))
    assert again.beat("n1").action is NodeAction.SHUTDOWN
    assert cluster_metrics(again.core.context).decommissioning == 0


# Credentials are removed when an application has ended, access lists are kept (pruneAppState)


def test_credentials_of_an_ended_application_are_removed_from_the_store() -> None:
    rm = StoredRM()
    rm.node("n1")
    acls = {ApplicationAccessType.VIEW_APP: "bob"}
    container = ContainerLaunchContext(("run me",), tokens=b"credentials", application_acls=acls)
    app = rm.submit(am_container=container, name="nightly", tags=frozenset({"a"}))
    rm.run_am(app)
    assert rm.disk.applications[app].submission.am_container == container
    rm.kill(app)
    kept = rm.disk.applications[app].submission
    assert (kept.am_container.tokens, kept.am_container.commands) == (b"", ())
    assert (kept.name, kept.tags, kept.queue) == ("nightly", frozenset({"a"}), "default")
    again = rm.restart().core.context.apps[app]
    assert again.acls[ApplicationAccessType.VIEW_APP].allows("bob", ())
