"""The verdict of each situation in which a resource request waits, and the faults of explanations before it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from rm.core.explain.application import explanation
from rm.core.explain.verdict import Cause, verdict_without_nodes, verdicts_of
from rm.core.explain.verdict_wording import reason_of
from tests.rm.builders import RM, resource_request
from yarn.containers import ANY, ResourceRequest
from yarn.ids import ApplicationId
from yarn.protocols.inspection import Explanation, SettingInForce, VerdictReport, about_vcores
from yarn.resource import Resource

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


def explain(rm: RM, app: ApplicationId) -> Explanation:
    """The explanation. The reason alone of each request, as samples of workload runs ask for it, must be the same."""
    context = rm.core.context
    found = explanation(context, app, rm.now_ms)
    attempt = context.scheduler.attempt_of(app)
    if attempt is None:
        return found
    for report in found.verdicts:
        key = report.priority, report.allocation_request_id
        assert reason_of(context, attempt, key, rm.now_ms) == (report.cause, report.sentence)
    return found


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


# Vcores that do not count


def test_a_request_whose_vcores_are_cut_says_so() -> None:
    """DefaultResourceCalculator.normalize: 1 vcore, whatever was requested."""
    rm = start(None, 2048)
    app = running(rm)
    rm.allocate(app, asks=[ResourceRequest(1, ANY, Resource(2048, 4), 1)])
    found = verdict(rm, app)
    assert found.notes[0] == about_vcores(4)
    waiting = rm.submit(resource=Resource(2048, 3))
    assert verdict(rm, waiting).notes[0] == about_vcores(3)
    both = start({**AMS, **DOMINANT}, 2048)
    app = running(both)
    both.allocate(app, asks=[ResourceRequest(1, ANY, Resource(2048, 4), 1)])
    assert not verdict(both, app).notes


# Limits


def test_a_user_limit_says_who_holds_how_much_of_what() -> None:
    """A user may have 1.5 times the guarantee of 4096 MB, and one container more."""
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


def user_limit_of_half_the_vcores(memory_mb: int, count: int) -> VerdictReport:
    """Why ann waits, who holds her AM of <1024 MB, 1 vcore> and `count` containers of <`memory_mb`, 1 vcore>.

    The cluster has 65536 MB and 16 vcores, her limit is <8192 MB, 8 vcores>, and the calculator is the
    DominantResourceCalculator: half of the cluster's vcores.
    """
    half = "[memory=8192,vcores=8]"
    rm = RM(
        {
            **TWO_QUEUES,
            **DOMINANT,
            f"{CAPACITY}root.a.capacity": half,
            f"{CAPACITY}root.b.capacity": half,
            f"{CAPACITY}root.b.user-limit-factor": "1",
        }
    )
    rm.node("n1", 65536, vcores=16)
    app = running(rm, "b")
    rm.allocate(app, asks=[ResourceRequest(1, ANY, Resource(memory_mb, 1), count + 1)])
    rm.beat("n1")
    assert len(rm.allocate(app).allocated) == count
    found = verdict(rm, app)
    assert found.cause == "USER_LIMIT"
    return found


def test_a_user_limit_names_the_dominant_type_of_what_the_user_holds() -> None:
    """The user may hold 29696 MB with a limit of 8192 MB: 8 of 16 vcores are the larger share of the cluster."""
    found = user_limit_of_half_the_vcores(4096, 7)
    assert "ann holds 8 of 8 vcores (user-limit-factor 1" in found.sentence
    assert found.nodes[0].sentence == "user ann holds 8 of 8 vcores"


def test_a_user_limit_lets_the_user_hold_the_same_share_of_another_type() -> None:
    """Half of the vcores is half of the memory, 32768 MB, though the limit says 8192 MB."""
    found = user_limit_of_half_the_vcores(8192, 4)
    assert "ann holds 33792 of 32768 MB, as large a share of the cluster as 8 vcores (" in found.sentence


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


def test_an_application_that_no_queue_takes_repeats_why_it_was_refused() -> None:
    rm = start(TWO_QUEUES)
    refused = rm.submit(queue="nosuch")
    found = verdict(rm, refused)
    assert found.cause == "REFUSED_AT_SUBMISSION"
    assert found.sentence == f"was refused: Application {refused} submitted by user ann to unknown queue: nosuch"


def test_an_application_whose_attempts_failed_repeats_why() -> None:
    rm = start({**TWO_QUEUES, "yarn.resourcemanager.am.max-attempts": "1"})
    app = running(rm, "a")
    rm.wait(20 * 60_000)
    found = verdict(rm, app)
    assert found.cause == "FAILED"
    assert found.sentence.startswith(f"failed: Application {app} failed 1 times")


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


def test_a_reason_alone_looks_no_further_than_a_node_that_is_only_waited_for() -> None:
    """n1 is full and n2 has enough, so n3, n4 and n5 are not looked at."""
    rm = start(AMS, 1024, 8192, 8192, 8192, 8192)
    app = running(rm)
    rm.allocate(app, asks=[resource_request(1)])
    attempt, context = rm.core.scheduler.attempt_of(app), rm.core.scheduler.context
    assert attempt is not None
    (whole,) = verdicts_of(attempt, context)
    assert [(node_id.host, found.cause) for node_id, found in whole.nodes.items()] == [
        ("n1", Cause.NODE_FULL),
        *((host, Cause.NEXT_HEARTBEAT) for host in ("n2", "n3", "n4", "n5")),
    ]
    found = verdict_without_nodes(attempt, context, {}, None)
    assert found is not None
    assert (found.finding, found.node_id) == (whole.finding, whole.node_id)
    assert [node_id.host for node_id in found.nodes] == ["n2"]
    assert verdict_without_nodes(attempt, context, {}, (9, 0)) is None


# Values of observations


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


# The page


def test_the_page_about_explain_has_an_example_of_each_verdict() -> None:
    page = (Path(__file__).parents[2] / "docs" / "explain.md").read_text()
    examples = dict(re.findall(r"^\| `([A-Z_]+)` \| (.+) \|$", page, re.MULTILINE))
    assert examples.keys() == {"APPLICATION_LIMIT", "REFUSED_AT_SUBMISSION", "FAILED", *(cause.name for cause in Cause)}
