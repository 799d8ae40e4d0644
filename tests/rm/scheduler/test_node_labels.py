"""The registry of labels: which host or port has which, and the total of each partition (RMNodeLabelsManager)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rm.scheduler.model.node_labels import NodeLabels
from tests.rm.scheduler.cluster import GB
from yarn.errors import YarnException
from yarn.ids import NodeId
from yarn.nodes import NodeLabel
from yarn.resource import Resource

X, Y = NodeLabel("x"), NodeLabel("y", exclusive=False)
N1, N2, TWIN = NodeId("n1", 1), NodeId("n2", 1), NodeId("n1", 2)
HOST_1, HOST_2 = NodeId("n1", 0), NodeId("n2", 0)
NONE = Resource(0, 0)


def size(gb: int) -> Resource:
    return Resource(gb * GB, gb)


@pytest.fixture
def labels() -> NodeLabels:
    """Labels x and y, and three registered nodes of 1, 2 and 4 GB, two of them on one host."""
    labels = NodeLabels(NONE, enabled=True)
    labels.add([X, Y])
    labels.activate(N1, size(1))
    labels.activate(TWIN, size(2))
    labels.activate(N2, size(4))
    return labels


def amounts(labels: NodeLabels) -> dict[str, int]:
    return {partition: resource.memory_mb // GB for partition, resource in labels.resources().items()}


def test_labelling_a_host_labels_all_its_nodes(labels: NodeLabels) -> None:
    changes = labels.replace({HOST_1: ("x",)})
    assert sorted(changes or ()) == [(N1, "x"), (TWIN, "x")]
    assert amounts(labels) == {"": 4, "x": 3, "y": 0}
    assert (labels.active_count("x"), labels.active_count("y")) == (2, 0)


def test_a_node_is_labelled_by_its_port(labels: NodeLabels) -> None:
    assert list(labels.replace({TWIN: ("y",)}) or ()) == [(TWIN, "y")]
    assert (labels.label_of(N1), labels.label_of(TWIN)) == ("", "y")
    assert amounts(labels) == {"": 5, "x": 0, "y": 2}


def test_a_hosts_label_applies_to_nodes_that_register_later(labels: NodeLabels) -> None:
    new = NodeId("n9", 1)
    assert list(labels.replace({NodeId("n9", 0): ("x",)}) or ()) == []
    assert labels.label_of(new) == "x"
    assert list(labels.activate(new, size(8))) == [(new, "x")]
    assert amounts(labels)["x"] == 8


def test_a_label_by_port_outlives_its_node_and_one_of_a_host_stays_with_the_host(labels: NodeLabels) -> None:
    labels.replace({HOST_1: ("x",), N2: ("y",)})
    for node_id in (N1, N2):
        assert list(labels.deactivate(node_id)) == []
    assert amounts(labels) == {"": 0, "x": 2, "y": 0}
    labels.replace({HOST_1: (), HOST_2: ()})
    labels.activate(N1, size(1))
    assert labels.label_of(N1) == "", "it now has its host's label"
    labels.replace({N2: ("y",)})
    labels.deactivate(N2)
    labels.activate(N2, size(4))
    assert amounts(labels)["y"] == 4


def test_a_registered_node_changes_its_size(labels: NodeLabels) -> None:
    labels.replace({N2: ("x",)})
    labels.activate(N2, size(16))
    assert (amounts(labels)["x"], labels.active_count("x")) == (16, 1)


def test_a_label_that_a_node_already_has_changes_nothing(labels: NodeLabels) -> None:
    labels.replace({HOST_1: ("x",)})
    assert labels.replace({HOST_1: ("x",), HOST_2: (), N1: ("x",)}) is None


def test_a_node_without_a_label_of_its_own_counts_as_changed(labels: NodeLabels) -> None:
    """getModifiedNodeLabelsMappings: its reservation is removed although its host already gives it the label."""
    labels.replace({NodeId("n9", 0): ("x",)})
    new = NodeId("n9", 1)
    labels.activate(new, size(8))
    assert list(labels.replace({new: ("x",)}) or ()) == [(new, "x")]


def test_changes_are_in_the_order_of_javas_map(labels: NodeLabels) -> None:
    for number in range(3, 12):
        labels.activate(NodeId(f"n{number}", 1), size(1))
    changes = labels.replace({NodeId(f"n{number}", 0): ("x",) for number in range(3, 12)})
    assert [node_id.host for node_id, _ in changes or ()] == ["n8", "n11", "n7", "n5", "n3", "n9", "n10", "n6", "n4"]


def test_a_removed_label_leaves_its_nodes_and_reports_all_nodes(labels: NodeLabels) -> None:
    """removeFromClusterNodeLabels sends every node to the scheduler, whatever its label."""
    labels.replace({HOST_1: ("x",), N2: ("y",)})
    changes = labels.remove(["x"], {"root": ("*",), "root.a": ("y",)})
    assert sorted(changes) == [(N1, ""), (TWIN, ""), (N2, "y")]
    assert amounts(labels) == {"": 3, "y": 4}
    assert labels.cluster_labels() == (Y,)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda labels: labels.add([NodeLabel("")]), "label added is empty or exceeds 255 character"),
        (lambda labels: labels.add([NodeLabel("z" * 256)]), "label added is empty or exceeds 255 character"),
        (
            lambda labels: labels.add([NodeLabel("new"), NodeLabel("-z")]),
            "label name should only contains .* it is= -z",
        ),
        (
            lambda labels: labels.add([NodeLabel("new"), NodeLabel("x", exclusive=False)]),
            "Exclusivity cannot be modified for an existing label with : <x:exclusivity=false>",
        ),
        (lambda labels: labels.remove(["y", "z"], {}), "Node label=z to be removed doesn't existed"),
        (lambda labels: labels.remove(["y", " "], {}), "Label to be removed is null or empty"),
        (
            lambda labels: labels.remove(["y", "x"], {"root.a": ("x",)}),
            "Cannot remove label=x, because queue=root.a is using this label",
        ),
        (lambda labels: labels.replace({N1: ("y",), N2: ("z",)}), r"Not all labels being replaced .* labels=\[z\]"),
        (
            lambda labels: labels.replace({N1: ("y",), N2: ("x", "y")}),
            "2 labels specified on host=n2, please note that we do not support specifying multiple labels",
        ),
    ],
)
def test_a_refused_change_changes_nothing(
    labels: NodeLabels, change: Callable[[NodeLabels], object], problem: str
) -> None:
    with pytest.raises(YarnException, match=rf"^java\.io\.IOException: {problem}"):
        change(labels)
    assert labels.cluster_labels() == (X, Y)
    assert amounts(labels) == {"": 7, "x": 0, "y": 0}


def test_without_labels_nothing_is_changed() -> None:
    labels = NodeLabels(NONE, enabled=False)
    labels.activate(N1, size(1))
    for change in (lambda: labels.add([X]), lambda: labels.replace({N2: ("x",)})):
        with pytest.raises(YarnException, match=r"Node-label-based scheduling is disabled\. Please check yarn\.node-"):
            change()
    assert labels.replace({HOST_1: ()}) is None, "it already has no label"
    assert amounts(labels) == {"": 1}


def test_names_are_trimmed(labels: NodeLabels) -> None:
    labels.add([NodeLabel(" z ")])
    labels.replace({N1: (" z ",)})
    assert labels.label_of(N1) == "z"


def test_only_a_non_exclusive_label_lends_its_nodes(labels: NodeLabels) -> None:
    assert [labels.is_shared(partition) for partition in ("x", "y", "", "unknown")] == [False, True, False, False]


def test_reports_list_labels_with_their_nodes(labels: NodeLabels) -> None:
    labels.replace({HOST_1: ("x",), N2: ("y",)})
    assert labels.nodes_to_labels() == {N1: X, TWIN: X, HOST_1: X, N2: Y}
    assert labels.labels_to_nodes() == {X: (HOST_1, N1, TWIN), Y: (N2,)}
    assert labels.labels_to_nodes(["y", "unknown"]) == {Y: (N2,)}
    labels.replace({HOST_1: ()})
    assert labels.labels_to_nodes(["x"]) == {}


def test_a_node_that_registered_under_its_hosts_label_stays_listed_under_it(labels: NodeLabels) -> None:
    """CommonNodeLabelsManager.replaceNodeForLabels removes a node only from its own old label, and it had none."""
    new = NodeId("n9", 1)
    labels.replace({NodeId("n9", 0): ("x",)})
    labels.activate(new, size(8))
    labels.replace({NodeId("n9", 0): ("y",)})
    assert labels.labels_to_nodes(["x"]) == {X: (new,)}
    assert labels.label_of(new) == "y"
