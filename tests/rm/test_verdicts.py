"""The verdict of each situation in which a resource request waits, and the faults of explanations before it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from rm.core.events import Allocate, RefreshNodes
from rm.core.host_lists import HostLists
from rm.core.reports.explanations import explanation
from rm.scheduler.view.verdict import Cause
from tests.rm.builders import RM, resource_request
from yarn.configuration import OVERRIDE, Entry
from yarn.containers import ANY, ResourceRequest
from yarn.ids import ApplicationId, NodeId
from yarn.nodes import NodeLabel
from yarn.protocols.inspection import Explanation, SettingInForce, VerdictReport
from yarn.protocols.master import AllocateRequest
from yarn.resource import Resource
from yarn.states import DecommissionType

CAPACITY = "yarn.scheduler.capacity."
AMS = {f"{CAPACITY}maximum-am-resource-percent": "1"}
TWO_QUEUES = {
    **AMS,
    f"{CAPACITY}root.queues": "a,b",
    f"{CAPACITY}root.a.capacity": "50",
    f"{CAPACITY}root.b.capacity": "50",
    f"{CAPACITY}root.a.user-limit-factor": "10",
    f"{CAPACITY}root.b.user-limit-factor": "10",
}
DOMINANT = {
    f"{CAPACITY}resource-calculator": "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
}
LABELS = {"yarn.node-labels.enabled": "true"}


def explain(rm: RM, app: ApplicationId) -> Explanation:
    return explanation(rm.core.context, app, rm.now_ms)


def verdict(rm: RM, app: ApplicationId) -> VerdictReport:
    (found,) = explain(rm, app).verdicts
    return found


def start(conf: Mapping[str, str] | None = None, *sizes_mb: int) -> RM:
    rm = RM(dict(AMS if conf is None else conf))
    for index, memory_mb in enumerate(sizes_mb or (8192,)):
        rm.node(f"n{index + 1}", memory_mb)
    return rm


def running(rm: RM, queue: str = "default", user: str = "ann", host: str = "n1", **context: object) -> ApplicationId:
    app = rm.submit(user, queue=queue, **context)
    rm.run_am(app, host)
    return app


# Limits


def test_a_user_limit_says_who_holds_how_much_of_what() -> None:
    """One user may have 1.5 times the guarantee of 4096 MB, and one container more."""
    rm = start({**TWO_QUEUES, f"{CAPACITY}root.b.user-limit-factor": "1.5"})
    app = running(rm, "b")
    rm.get(app, 6)
    rm.allocate(app, asks=[resource_request(1)])
    found = verdict(rm, app)
    assert found.cause == "USER_LIMIT"
    assert found.sentence == (
        "waits because queue root.b is at its user limit: ann holds 7168 of 6144 MB "
        "(user-limit-factor 1.5, minimum-user-limit-percent 100 %, 1 active user)"
    )


def test_a_user_exactly_at_the_limit_may_have_one_more_container() -> None:
    rm = start({**TWO_QUEUES, f"{CAPACITY}root.b.user-limit-factor": "1.5"})
    app = running(rm, "b")
    rm.get(app, 5)
    rm.allocate(app, asks=[resource_request(1)])
    assert verdict(rm, app).cause == "NEXT_HEARTBEAT"


def test_a_limit_is_checked_before_the_free_capacity_of_a_node() -> None:
    rm = start({**TWO_QUEUES, f"{CAPACITY}root.b.user-limit-factor": "1"})
    app = running(rm, "b")
    rm.get(app, 4)
    other = running(rm, "a", "ben")
    rm.get(other, 2)
    rm.allocate(app, asks=[resource_request(1)])
    assert verdict(rm, app).cause == "USER_LIMIT"


def test_a_queue_maximum_names_the_queue_up_the_tree_whose_maximum_it_is() -> None:
    rm = start(
        {
            **TWO_QUEUES,
            f"{CAPACITY}root.a.maximum-capacity": "50",
            f"{CAPACITY}root.a.queues": "x",
            f"{CAPACITY}root.a.x.capacity": "100",
            f"{CAPACITY}root.a.x.user-limit-factor": "10",
        }
    )
    app = running(rm, "x")
    rm.get(app, 3)
    rm.allocate(app, asks=[resource_request(1)])
    found = verdict(rm, app)
    assert found.cause == "QUEUE_MAXIMUM"
    assert found.sentence == (
        "waits because queue root.a is at its maximum: it would use 5120 of 4096 MB (maximum-capacity 50 %)"
    )


def test_the_limit_of_the_queue_for_ams() -> None:
    rm = start({**TWO_QUEUES, f"{CAPACITY}maximum-am-resource-percent": "0.1"})
    rm.submit(queue="a")
    found = verdict(rm, rm.submit(queue="a"))
    assert found.cause == "AM_QUEUE_LIMIT"
    assert found.sentence == (
        "waits because queue root.a is at its limit for AMs: they would use 2048 of 1024 MB "
        "(maximum-am-resource-percent 0.1)"
    )


def test_the_limit_of_the_user_for_ams() -> None:
    """With factor 0.5 one user's AMs may have half of what all AMs may have."""
    rm = start({**TWO_QUEUES, f"{CAPACITY}root.a.user-limit-factor": "0.5"})
    rm.submit(queue="a")
    rm.submit(queue="a")
    found = verdict(rm, rm.submit(queue="a"))
    assert found.cause == "AM_USER_LIMIT"
    assert found.sentence.startswith(
        "waits because user ann in queue root.a is at its limit for AMs: they would use 3072 of 2048 MB"
    )


def test_max_parallel_apps_of_a_queue_and_of_a_user() -> None:
    rm = start({**TWO_QUEUES, f"{CAPACITY}root.a.max-parallel-apps": "1", f"{CAPACITY}user.ben.max-parallel-apps": "1"})
    rm.submit(queue="a")
    of_queue = verdict(rm, rm.submit(queue="a"))
    assert of_queue.cause == "PARALLEL_LIMIT"
    assert of_queue.sentence == "waits because queue root.a already runs 1 application (max-parallel-apps 1)"
    rm.submit("ben", queue="b")
    of_user = verdict(rm, rm.submit("ben", queue="b"))
    assert of_user.sentence == (
        "waits because user ben already runs as many applications as it may (user.ben.max-parallel-apps 1)"
    )


def test_the_limits_on_the_number_of_applications() -> None:
    rm = start({**TWO_QUEUES, f"{CAPACITY}root.a.maximum-applications": "1"})
    rm.submit(queue="a")
    refused = rm.submit(queue="a")
    found = verdict(rm, refused)
    assert found.cause == "APPLICATION_LIMIT"
    assert found.sentence == (
        f"was refused: Queue root.a already has 1 applications, cannot accept submission of application: {refused}"
    )
    assert found.settings == (SettingInForce(f"{CAPACITY}root.a.maximum-applications", "1"),)


def test_a_limit_that_is_not_reached_any_more_is_not_named() -> None:
    """The verdict is of the limits now: another container has ended since the last refusal."""
    rm = start({**TWO_QUEUES, f"{CAPACITY}root.b.maximum-capacity": "50"})
    app = running(rm, "b")
    got = rm.get(app, 3)
    rm.allocate(app, asks=[resource_request(1)])
    rm.beat("n1")
    assert verdict(rm, app).cause == "QUEUE_MAXIMUM"
    rm.allocate(app, release=[got[0].id])
    assert verdict(rm, app).cause != "QUEUE_MAXIMUM"


# Full nodes


def test_a_full_cluster_is_not_blamed_on_a_setting() -> None:
    rm = start()
    app = running(rm)
    rm.get(app, 7)
    rm.allocate(app, asks=[resource_request(1)])
    rm.beat("n1")
    found = explain(rm, app)
    assert found.verdicts[0].cause == "NODE_FULL"
    assert found.verdicts[0].sentence == (
        "waits because the cluster is full: the most free is on n1: 0 MB free, 1024 needed"
    )
    assert [setting.key for obstacle in found.obstacles for setting in obstacle.settings] == []


def test_equal_nodes_are_folded() -> None:
    rm = start(AMS, *[1024] * 6, 4096)
    app = running(rm, host="n7")
    for host in ("n1", "n2", "n3", "n4", "n5", "n6"):
        rm.get(app, 1, host)
    rm.allocate(app, asks=[resource_request(1, 4096)])
    groups = [(alike.count, alike.sentence) for alike in verdict(rm, app).nodes]
    assert groups == [(6, "1024 MB in all, 4096 needed"), (1, "3072 MB free, 4096 needed")]
    assert [node.host for node in verdict(rm, app).nodes[0].node_ids] == ["n1", "n2", "n3", "n4", "n5"]


def test_only_types_that_count_are_compared() -> None:
    """Nine containers use 9 of 8 vcores, which does not count with the DefaultResourceCalculator."""
    rm = RM(AMS)
    rm.node("n1", 8192, vcores=1)
    app = running(rm)
    rm.get(app, 7)
    rm.allocate(app, asks=[resource_request(1)])
    assert "vcore" not in verdict(rm, app).sentence
    assert explain(rm, app).counted_types == ("memory-mb",)
    both = RM({**AMS, **DOMINANT})
    both.node("n1", 8192, vcores=2)
    app = running(both)
    both.get(app, 1)
    both.allocate(app, asks=[resource_request(1)])
    assert verdict(both, app).sentence.endswith("the most free is on n1: 0 vcores free, 1 needed")
    assert explain(both, app).counted_types == ("memory-mb", "vcores")


def test_a_node_too_small_by_a_type_that_does_not_count_names_no_setting() -> None:
    rm = RM(AMS)
    rm.node("n1", 2048, vcores=1)
    rm.node("n2", 8192)
    app = running(rm, host="n2")
    rm.allocate(app, asks=[ResourceRequest(1, ANY, Resource(4096, 4), 1)])
    rm.beat("n1")
    (small,) = [obstacle for obstacle in explain(rm, app).obstacles if obstacle.reason == "NODE_TOTAL_TOO_SMALL"]
    assert [setting.key for setting in small.settings] == ["yarn.nodemanager.resource.memory-mb"]


def test_a_request_that_no_node_can_ever_meet() -> None:
    rm = start(AMS, 2048, 4096)
    app = running(rm)
    rm.allocate(app, asks=[resource_request(1, 8192)])
    found = verdict(rm, app)
    assert found.cause == "TOO_LARGE"
    assert found.sentence == (
        "waits because no node that it may use is large enough: n2 has 4096 MB in all, 8192 needed "
        "(yarn.nodemanager.resource.memory-mb 4096)"
    )


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


# Order of applications


def test_an_earlier_application_whose_request_does_not_fit_stops_its_queue() -> None:
    rm = start()
    first = running(rm)
    rm.get(first, 5)
    second, third = running(rm, user="ben"), rm.submit("eve")
    rm.allocate(second, asks=[resource_request(1, 2048)])
    rm.beat("n1")
    found = verdict(rm, third)
    assert found.cause == "REFUSED"
    assert found.sentence.startswith("waits because queue root.default serves an earlier application first")


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


def labelled(nodes: Mapping[str, str], share: int) -> tuple[RM, ApplicationId]:
    """Node n1, and nodes with labels; an application in root.a requests gpu, of which root.a has `share` %."""
    label = "accessible-node-labels"
    rm = start(
        {
            **TWO_QUEUES,
            **LABELS,
            f"{CAPACITY}root.a.{label}": "gpu",
            f"{CAPACITY}root.b.{label}": "gpu",
            f"{CAPACITY}root.a.{label}.gpu.capacity": str(share),
            f"{CAPACITY}root.a.{label}.gpu.maximum-capacity": str(share),
            f"{CAPACITY}root.b.{label}.gpu.capacity": str(100 - share),
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


def test_the_page_about_explain_has_an_example_of_each_verdict() -> None:
    page = (Path(__file__).parents[2] / "docs" / "explain.md").read_text()
    examples = dict(re.findall(r"^\| `([A-Z_]+)` \| (.+) \|$", page, re.MULTILINE))
    assert examples.keys() == {"APPLICATION_LIMIT", *(cause.name for cause in Cause)}


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
    assert found.sentence.endswith("n1 has enough")


# What an observation is worth


def test_what_was_observed_before_the_request_is_not_reported() -> None:
    rm = start({**TWO_QUEUES, f"{CAPACITY}root.a.maximum-capacity": "50"})
    first = running(rm, "a")
    rm.get(first, 1)
    rm.allocate(first, asks=[resource_request(1, 4096)])
    rm.beat("n1")
    assert [obstacle.reason for obstacle in explain(rm, first).obstacles]
    rm.wait(1000)
    second = rm.submit("ben", queue="a")
    found = explain(rm, second)
    assert found.obstacles == ()
    assert [report.cause for report in found.verdicts] == ["NEXT_HEARTBEAT"]


def test_a_refusal_of_the_former_terms_of_a_request_is_not_reported() -> None:
    rm = start(AMS, 2048)
    app = running(rm)
    rm.allocate(app, asks=[resource_request(1, 2048)])
    rm.beat("n1")
    assert explain(rm, app).obstacles != ()
    rm.wait(1000)
    rm.allocate(app, asks=[resource_request(2, 2048)])
    assert explain(rm, app).obstacles != (), "the terms are the same"
    rm.allocate(app, asks=[resource_request(2, 1024)])
    assert explain(rm, app).obstacles == ()
