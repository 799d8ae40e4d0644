"""Verdicts about places, reservations, labels and the states of nodes."""

from __future__ import annotations

from collections.abc import Mapping

from rm.core.events import Allocate, RefreshNodes
from rm.core.host_lists import HostLists
from rm.scheduler.model.refusals import Reason
from tests.rm.builders import RM, resource_request
from tests.rm.test_verdicts import AMS, CAPACITY, TWO_QUEUES, explain, running, start, verdict
from yarn.configuration import OVERRIDE, Entry
from yarn.containers import ANY, ResourceRequest
from yarn.ids import ApplicationId, NodeId
from yarn.nodes import NodeLabel
from yarn.protocols.inspection import SettingInForce
from yarn.protocols.master import AllocateRequest
from yarn.resource import Resource
from yarn.states import DecommissionType

LABELS = {"yarn.node-labels.enabled": "true"}


# Places


def test_a_place_that_does_not_exist() -> None:
    rm = start()
    app = running(rm)
    far = ResourceRequest(1, "far", Resource(1024, 1), 1)
    rack = ResourceRequest(1, "/far", Resource(1024, 1), 1, relax_locality=False)
    strict = ResourceRequest(1, ANY, Resource(1024, 1), 1, relax_locality=False)
    rm.allocate(app, asks=[far, rack, strict])
    found = verdict(rm, app)
    assert found.cause == "PLACE"
    assert found.sentence == "waits because it may run only on far, /far, and no such node runs"


def test_a_blacklist() -> None:
    rm = start()
    app = running(rm)
    request = AllocateRequest(0, asks=(resource_request(1),), blacklist_additions=("n1",))
    rm.send(Allocate(rm.call(), rm.attempt_id(app), request))
    found = verdict(rm, app)
    assert (found.cause, found.sentence) == (
        "BLACKLIST",
        "waits because the application has blacklisted every node that it may use",
    )


def test_a_node_that_is_no_longer_blacklisted_is_no_obstacle() -> None:
    """Its last heartbeat found it blacklisted, and there was none since."""
    rm = start()
    app = running(rm)
    request = AllocateRequest(0, asks=(resource_request(1),), blacklist_additions=("n1",))
    rm.send(Allocate(rm.call(), rm.attempt_id(app), request))
    rm.beat("n1")
    assert [obstacle.reason for obstacle in explain(rm, app).obstacles] == [Reason.NODE_BLACKLISTED.name]
    rm.send(Allocate(rm.call(), rm.attempt_id(app), AllocateRequest(1, blacklist_removals=("n1",))))
    assert explain(rm, app).obstacles == ()


def test_a_locality_delay_counts_opportunities() -> None:
    rm = start(AMS, 8192, 8192, 8192)
    app = running(rm)
    rm.allocate(
        app,
        asks=[
            ResourceRequest(1, "far", Resource(1024, 1), 3),
            ResourceRequest(1, "/far", Resource(1024, 1), 3),
            resource_request(3),
        ],
    )
    rm.beat("n2")
    found = verdict(rm, app)
    assert found.cause == "LOCALITY_DELAY"
    assert found.sentence == (
        "waits because it prefers other nodes than n1 until it has missed 2 scheduling opportunities; it has missed 1 "
        "(node-locality-delay 40)"
    )


# Reservations


def reserved() -> tuple[RM, ApplicationId, ApplicationId]:
    """Nodes with 1024 and 2048 MB free; the first of two waiting applications has reserved n1 for 3072 MB."""
    rm = start(AMS, 8192, 4096)
    first = running(rm, host="n2")
    rm.get(first, 5)
    second, third = running(rm, user="ben"), running(rm, user="eve")
    rm.get(third, 1, "n2")
    rm.allocate(second, asks=[resource_request(1, 3072)])
    rm.allocate(third, asks=[resource_request(1, 1024)])
    rm.beat("n1")
    return rm, second, third


def test_an_own_reservation_says_where_since_when_and_what_it_waits_for() -> None:
    rm, app, _ = reserved()
    rm.wait(3000)
    found = verdict(rm, app)
    assert found.cause == "RESERVATION"
    assert found.sentence == (
        "waits because its reservation on n1, made 3 s ago, waits for free capacity there: 1024 MB free, 3072 needed"
    )


def test_a_reservation_does_not_matter_if_another_node_has_enough() -> None:
    rm, app, _ = reserved()
    rm.node("n3")
    assert verdict(rm, app).cause == "NEXT_HEARTBEAT"


def test_a_reservation_of_another_application() -> None:
    rm, holder, app = reserved()
    found = verdict(rm, app)
    assert (found.cause, found.sentence) == (
        "RESERVED_FOR_OTHERS",
        f"waits because n1 is reserved for other applications, such as {holder}",
    )


def decommission(rm: RM, host: str) -> None:
    hosts = HostLists(excluded=((host, None),))
    rm.send(RefreshNodes(rm.call(), hosts, DecommissionType.GRACEFUL, -1))


def test_a_decommissioning_node_with_room_is_named() -> None:
    rm = start(AMS, 8192, 2048)
    app = running(rm, host="n2")
    rm.get(app, 1, "n1")
    rm.get(app, 1, "n2")
    decommission(rm, "n1")
    rm.allocate(app, asks=[resource_request(1)])
    rm.beat("n1")
    rm.beat("n2")
    found = verdict(rm, app)
    assert found.cause == "NODE_FULL"
    assert "n1 is DECOMMISSIONING" in found.notes


def test_a_reservation_on_a_decommissioning_node_waits_for_nothing_there() -> None:
    rm, app, _ = reserved()
    decommission(rm, "n1")
    found = verdict(rm, app)
    assert found.cause == "NODE_FULL"
    assert "n1 is DECOMMISSIONING" in found.notes


# Refusals


def test_what_the_leaf_refused_at_the_last_heartbeat_is_not_called_the_next_heartbeat() -> None:
    """The present amounts would allow a container, but the queue had nothing left when the node was visited."""
    rm = start()
    app = running(rm)
    rm.allocate(app, asks=[resource_request(1)])
    assert verdict(rm, app).cause == "NEXT_HEARTBEAT"
    leaf, node_id = rm.core.scheduler.attempt_of(app).leaf, rm.nodes["n1"].node_id
    leaf.refusals.note(node_id, Reason.QUEUE_MAXIMUM, rm.now_ms, Resource(8192, 1), Resource(8192, 8))
    found = verdict(rm, app)
    assert found.cause == "REFUSED"
    assert found.sentence == (
        "waits because n1 refused it at its last heartbeat: Queue hits max-capacity limit (8192 of 8192 MB in use)"
    )


# Labels


def test_refusals_of_the_queue_on_nodes_of_other_partitions_are_not_reported() -> None:
    """The queue refuses another application's request without a label on n1 after the request for gpu."""
    rm, app = labelled({}, 50)
    rm.wait(1000)
    other = running(rm, "a", "ben")
    rm.allocate(other, asks=[resource_request(1, 7168)])
    rm.beat("n1")
    assert [obstacle.subject for obstacle in explain(rm, other).obstacles] != []
    assert explain(rm, app).obstacles == ()


def labelled(nodes: Mapping[str, str], share: int | None) -> tuple[RM, ApplicationId]:
    """Node n1, and nodes with labels; an application in root.a requests gpu, of which root.a has `share` %.

    None: the capacity of root.a on gpu is not set.
    """
    label = "accessible-node-labels"
    keys = ("capacity", "maximum-capacity") if share is not None else ()
    rm = start(
        {
            **TWO_QUEUES,
            **LABELS,
            f"{CAPACITY}root.a.{label}": "gpu",
            f"{CAPACITY}root.b.{label}": "gpu",
            **{f"{CAPACITY}root.a.{label}.gpu.{key}": str(share) for key in keys},
            f"{CAPACITY}root.b.{label}.gpu.capacity": str(100 - (share or 0)),
        }
    )
    scheduler = rm.core.context.scheduler
    scheduler.labels.add([NodeLabel("gpu")])
    for host, label in nodes.items():
        rm.node(host)
        scheduler.replace_node_labels({NodeId(host, 0): (label,)}, rm.now_ms)
    rm.beat("n1")
    app = running(rm, "a")
    rm.allocate(app, asks=[ResourceRequest(1, ANY, Resource(1024, 1), 1, label="gpu")])
    return rm, app


def test_a_label_that_no_node_has() -> None:
    rm, app = labelled({}, 50)
    rm.beat("n1")
    found = explain(rm, app)
    assert [report.sentence for report in found.verdicts] == ["waits because label gpu has no running node"]
    assert found.obstacles == ()


def test_a_label_without_capacity() -> None:
    rm, app = labelled({"n2": "gpu"}, 0)
    found = verdict(rm, app)
    assert found.cause == "LABEL_WITHOUT_CAPACITY"
    assert found.sentence == (
        "waits because queue root.a has no capacity on label gpu (accessible-node-labels.gpu.maximum-capacity 0 %)"
    )


def test_a_label_on_which_no_capacity_is_set() -> None:
    """QueueNodeLabelsSettings: a queue has what it may use only of labels for which it has a key. The default of
    maximum-capacity, 100 %, is of no effect on others.
    """
    rm, app = labelled({"n2": "gpu"}, None)
    found = verdict(rm, app)
    assert found.cause == "LABEL_WITHOUT_CAPACITY"
    assert found.sentence == (
        "waits because queue root.a has no capacity on label gpu (accessible-node-labels.gpu.capacity not set)"
    )
    key = f"{CAPACITY}root.a.accessible-node-labels.gpu.capacity"
    assert found.settings == (SettingInForce(key, "not set"),)


def test_a_label_on_which_no_queue_has_a_capacity() -> None:
    """A capacity of the root alone would not help."""
    label = "accessible-node-labels"
    rm = start({**TWO_QUEUES, **LABELS, f"{CAPACITY}root.a.{label}": "gpu"})
    scheduler = rm.core.context.scheduler
    scheduler.labels.add([NodeLabel("gpu")])
    rm.node("n2")
    scheduler.replace_node_labels({NodeId("n2", 0): ("gpu",)}, rm.now_ms)
    app = running(rm, "a")
    rm.allocate(app, asks=[ResourceRequest(1, ANY, Resource(1024, 1), 1, label="gpu")])
    assert verdict(rm, app).sentence == (
        "waits because queue root.a has no capacity on label gpu (accessible-node-labels.gpu.capacity not set)"
    )


def test_a_label_that_the_queue_may_not_use_any_more() -> None:
    rm, app = labelled({"n2": "gpu"}, 50)
    scheduler = rm.core.context.scheduler
    label = "accessible-node-labels"
    changed = {
        f"{CAPACITY}root.a.{label}": "",
        f"{CAPACITY}root.a.{label}.gpu.capacity": "0",
        f"{CAPACITY}root.b.{label}.gpu.capacity": "100",
    }
    entries = {key: Entry(value, OVERRIDE) for key, value in changed.items()}
    scheduler.reinitialize(scheduler.context.settings.source.with_entries(entries), rm.now_ms)
    found = verdict(rm, app)
    assert (found.cause, found.sentence) == (
        "LABEL_NOT_ACCESSIBLE",
        "waits because queue root.a may not use label gpu (accessible-node-labels )",
    )


def test_an_am_may_not_run_on_idle_nodes_of_another_label() -> None:
    rm = RM({**AMS, **LABELS, f"{CAPACITY}root.default.accessible-node-labels": "gpu"})
    scheduler = rm.core.context.scheduler
    scheduler.labels.add([NodeLabel("gpu", exclusive=False)])
    rm.node("n1")
    scheduler.replace_node_labels({NodeId("n1", 0): ("gpu",)}, rm.now_ms)
    rm.beat("n1")
    rm.node("n2", 512)
    found = verdict(rm, rm.submit())
    assert [alike.sentence for alike in found.nodes if alike.node_ids[0].host == "n1"] == [
        "not for AMs of other labels"
    ]


# Nodes


def test_the_rest_of_the_cluster_is_reserved() -> None:
    """2048 MB are free on n2, but all that is left of the cluster is reserved on n1."""
    rm, _, app = reserved()
    rm.send(Allocate(rm.call(), rm.attempt_id(app), AllocateRequest(3, blacklist_additions=("n1",))))
    found = verdict(rm, app)
    assert (found.cause, found.sentence) == (
        "PARTITION_FULL",
        "waits because the cluster is full, reservations included: it would use 13312 of 12288 MB",
    )


def test_after_a_restart_the_resource_manager_waits_for_nodes_and_ams() -> None:
    rm = start()
    app = running(rm)
    rm.allocate(app, asks=[resource_request(1)])
    rm.core.context.scheduler.context.placing_from_ms = rm.now_ms + 10_000
    assert verdict(rm, app).sentence == (
        "waits because the ResourceManager has restarted and waits for nodes and AMs to report"
    )


def test_nodes_that_are_down_are_named() -> None:
    rm = start()
    app = running(rm)
    rm.allocate(app, asks=[resource_request(1)])
    rm.beat("n1", healthy=False)
    found = verdict(rm, app)
    assert (found.cause, found.sentence) == ("NO_NODE", "waits because no node is running")
    assert [note.split(":")[0] for note in found.notes] == ["n1 is UNHEALTHY"]


def test_a_node_that_is_being_decommissioned_gets_nothing() -> None:
    rm = start()
    app = running(rm)
    rm.send(RefreshNodes(rm.call(), HostLists(excluded=(("n1", None),)), DecommissionType.GRACEFUL, 60))
    rm.allocate(app, asks=[resource_request(1)])
    found = verdict(rm, app)
    assert (found.cause, found.sentence) == ("NODE_STATE", "waits because every node that it may use is out of service")
    assert found.notes == ("n1 is DECOMMISSIONING",)


def test_a_request_before_any_heartbeat_waits_for_one() -> None:
    rm = start()
    app = running(rm)
    rm.allocate(app, asks=[resource_request(1)])
    found = verdict(rm, app)
    assert found.cause == "NEXT_HEARTBEAT"
    assert found.sentence.endswith("n1 has enough free capacity")


def test_a_node_that_was_recommissioned_while_it_was_unhealthy() -> None:
    """The scheduler has removed a RUNNING node and does not get it back (RecommissionNodeTransition)."""
    rm = RM()
    rm.node("n1")
    rm.beat("n1", healthy=False)
    app = rm.submit()
    for lists in (HostLists(excluded=(("n1", None),)), HostLists()):
        rm.send(RefreshNodes(rm.call(), lists, DecommissionType.GRACEFUL, 60))
    rm.beat("n1")
    found = verdict(rm, app)
    assert (found.cause, found.sentence) == ("NO_NODE", "waits because no node is running")
    assert found.notes == (
        "n1 is RUNNING, but was recommissioned while it was UNHEALTHY: the scheduler does not have it (restart its "
        "NodeManager)",
    )
    rm.node("n1")
    rm.beat("n1")
    assert rm.attempt_state(app) == "ALLOCATED"
