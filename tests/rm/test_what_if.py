"""Changes that would get a waiting request its next container: each was tried on a copy, and the core is unchanged."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from rm.core.explain.application import explanation
from tests.rm.builders import RM, resource_request
from tests.rm.state_digest import digest
from tests.rm.test_verdicts import AMS, CAPACITY, TWO_QUEUES, running, start
from tests.rm.test_verdicts_of_nodes import reserved
from yarn.containers import ANY, ResourceRequest
from yarn.ids import ApplicationId
from yarn.protocols.inspection import VerdictReport
from yarn.resource import Resource

THREE_QUEUES = {
    **TWO_QUEUES,
    f"{CAPACITY}root.queues": "a,b,c",
    f"{CAPACITY}root.a.capacity": "30",
    f"{CAPACITY}root.b.capacity": "30",
    f"{CAPACITY}root.c.capacity": "40",
}
MONITOR = "yarn.resourcemanager.scheduler.monitor.enable"
PREEMPTION = "yarn.resourcemanager.monitor.capacity.preemption."


def what_if(rm: RM, app: ApplicationId) -> VerdictReport:
    """The verdict with its changes; checks that they were tried without a trace."""
    before = digest(rm.core)
    (found,) = explanation(rm.core.context, app, rm.now_ms, what_if=True).verdicts
    assert digest(rm.core) == before
    return found


def test_a_user_limit_is_lifted_by_a_setting_or_by_the_end_of_another_application_of_the_user() -> None:
    rm = start({**TWO_QUEUES, f"{CAPACITY}root.b.user-limit-factor": "1"})
    first = running(rm, "b")
    rm.get(first, 1)
    app = running(rm, "b")
    rm.get(app, 2)
    rm.allocate(app, asks=[resource_request(1)])
    found = what_if(rm, app)
    assert found.cause == "USER_LIMIT"
    assert found.changes == (
        "with root.b.user-limit-factor 1.3 (on n1)",
        f"if {first} ended (on n1)",
    )


def test_a_full_node_needs_what_is_missing() -> None:
    rm = start(AMS, 8192, 2048)
    app = running(rm)
    rm.get(app, 6)
    rm.allocate(app, asks=[resource_request(1, 4096)])
    found = what_if(rm, app)
    assert found.cause == "NODE_FULL"
    assert found.changes == ("with 2048 MB more on n2",)
    assert found.notes[-1] == f"preemption is off ({MONITOR} is false)"


def test_the_end_of_the_application_that_uses_least_is_named() -> None:
    rm = start()
    large, small = running(rm), running(rm, user="ben")
    rm.get(large, 4)
    rm.get(small, 1)
    app = running(rm, user="eve")
    rm.allocate(app, asks=[resource_request(1, 2048)])
    assert f"if {small} ended (on n1)" in what_if(rm, app).changes
    rm.allocate(app, asks=[resource_request(1, 4096)])
    assert f"if {large} ended (on n1)" in what_if(rm, app).changes


def test_limits_of_ams_and_of_running_applications() -> None:
    rm = start({**TWO_QUEUES, f"{CAPACITY}maximum-am-resource-percent": "0.1"})
    first = rm.submit(queue="a")
    app = rm.submit(queue="a")
    assert what_if(rm, app).changes == (
        "with maximum-am-resource-percent 0.2 (on n1)",
        f"if {first} ended (on n1)",
    )
    held = start({**TWO_QUEUES, f"{CAPACITY}root.a.max-parallel-apps": "1"})
    first = held.submit(queue="a")
    app = held.submit(queue="a")
    assert what_if(held, app).changes == (
        "with root.a.max-parallel-apps 2 (on n1)",
        f"if {first} ended (on n1)",
    )


def test_a_queue_maximum_is_raised_as_far_as_needed() -> None:
    rm = start({**TWO_QUEUES, f"{CAPACITY}root.b.maximum-capacity": "50"})
    app = running(rm, "b")
    rm.get(app, 3)
    rm.allocate(app, asks=[resource_request(1)])
    assert what_if(rm, app).changes == ("with root.b.maximum-capacity 63 (on n1)",)


def test_a_node_that_is_down_may_come_back() -> None:
    rm = start(AMS, 8192, 2048)
    app = running(rm)
    rm.get(app, 7)
    rm.beat("n2", healthy=False)
    rm.allocate(app, asks=[resource_request(1)])
    assert "if n2 were in service again" in what_if(rm, app).changes


def test_a_request_that_is_about_to_be_served_needs_no_change() -> None:
    rm = start()
    app = running(rm)
    rm.allocate(app, asks=[resource_request(1)])
    assert what_if(rm, app).changes == ("at the next heartbeats, without any change (on n1)",)


def test_a_strict_request_for_a_place_that_does_not_exist_could_relax_locality() -> None:
    rm = start()
    app = running(rm)
    strict = ResourceRequest(1, ANY, Resource(1024, 1), 1, relax_locality=False)
    rm.allocate(app, asks=[strict])
    assert what_if(rm, app).changes == ("if the request relaxed locality (on n1)",)


def test_a_reservation_is_filled_when_another_application_ends() -> None:
    rm, app, _ = reserved()
    assert any(change.startswith("if application_") for change in what_if(rm, app).changes)


def test_a_large_cluster_is_not_copied_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the node, two applications and their eight containers a copy has eleven objects, so one copy is allowed."""
    monkeypatch.setattr("rm.core.explain.changes.COPIED_OBJECTS_MAX", 15)
    rm = start()
    rm.get(running(rm), 6)
    app = running(rm)
    rm.allocate(app, asks=[resource_request(1)])
    found = what_if(rm, app)
    assert found.changes == ()
    assert found.notes[-1].startswith("further changes were not tried")


# Preemption


def preempting(**conf: str) -> tuple[RM, ApplicationId, ApplicationId]:
    """Queue b uses the whole cluster, of which half is guaranteed to queue a, where an application waits."""
    settings = {f"{PREEMPTION}{key}": value for key, value in conf.items()}
    rm = start({**TWO_QUEUES, MONITOR: "true", f"{PREEMPTION}total_preemption_per_round": "1", **settings})
    greedy = running(rm, "b")
    rm.get(greedy, 7)
    return rm, greedy, rm.submit("ben", queue="a")


def test_preemption_says_whose_containers_and_when() -> None:
    """The wait before a container is killed is 15 s, and the first round is due now."""
    rm, greedy, app = preempting(natural_termination_factor="1")
    (change, *_) = what_if(rm, app).changes
    assert change == f"in 18 s by preemption of 1 container of {greedy}"


def test_rounds_that_follow_fast_are_skipped() -> None:
    rm, greedy, app = preempting(natural_termination_factor="1", monitoring_interval="10")
    (change, *_) = what_if(rm, app).changes
    assert change == f"in 15 s by preemption of 1 container of {greedy}"


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("max_ignored_over_capacity", "2", "dead zone"),
        ("total_preemption_per_round", "0.01", "one round may not preempt"),
        ("observe_only", "true", "rounds only observe"),
    ],
)
def test_why_preemption_gives_nothing(key: str, value: str, words: str) -> None:
    rm, _, app = preempting(**{"natural_termination_factor": "1", key: value})
    (note,) = [note for note in what_if(rm, app).notes if note.startswith("preemption")]
    assert words in note
    assert note.endswith(f"({PREEMPTION}{key} {value})")


BALANCE = f"{PREEMPTION}preemption-to-balance-queue-after-satisfied."


def unbalanced(conf: Mapping[str, str]) -> tuple[RM, ApplicationId, ApplicationId]:
    """Two full nodes (YARN-8379): queue a has its guarantee, queue b twice its own, and an AM waits in queue a."""
    rm = start({**THREE_QUEUES, MONITOR: "true", **conf}, 5120, 5120)
    rm.get(running(rm, "a"), 2)
    greedy = running(rm, "b", "bob", "n2")
    rm.get(greedy, 4, "n2")
    rm.get(greedy, 2)
    return rm, greedy, rm.submit("dan", queue="a")


def test_preemption_to_balance_queues_is_named_where_it_would_help() -> None:
    """FifoCandidatesSelector takes nothing for a queue that has its guarantee, unless queues are to be balanced."""
    rm, _, app = unbalanced({})
    assert what_if(rm, app).notes[-1] == (
        "preemption gives nothing: queues at or above their guarantees get nothing of what others have above theirs "
        f"({BALANCE}enabled default)"
    )


def test_preemption_to_balance_queues_is_run_ahead_with_its_own_wait() -> None:
    rm, greedy, app = unbalanced({f"{BALANCE}enabled": "true", f"{BALANCE}max-wait-before-kill": "24000"})
    assert what_if(rm, app).changes[0].endswith(f"s by preemption of 1 container of {greedy}")


def test_a_wait_for_balance_that_is_never_over_is_named() -> None:
    """A victim is forgotten after twice 15 s (cleanupStaledPreemptionCandidates); balance waits 300 s by default."""
    rm, _, app = unbalanced({f"{BALANCE}enabled": "true"})
    assert what_if(rm, app).notes[-1].endswith(f"({BALANCE}max-wait-before-kill default)")


def test_intra_queue_preemption_is_named_where_it_would_help() -> None:
    """A user has the whole queue, of which half is the limit of each of two users."""
    half = {f"{CAPACITY}root.default.minimum-user-limit-percent": "50", f"{PREEMPTION}total_preemption_per_round": "1"}
    off = start({**AMS, MONITOR: "true", **half})
    rm = start({**AMS, MONITOR: "true", **half, f"{PREEMPTION}intra-queue-preemption.enabled": "true"})
    for cluster in (off, rm):
        cluster.get(running(cluster), 7)
    waiting = off.submit("ben")
    assert what_if(off, waiting).notes[-1] == (
        "preemption gives nothing: the applications of one queue do not preempt each other "
        f"({PREEMPTION}intra-queue-preemption.enabled default)"
    )
    assert "by preemption of 1 container of" in what_if(rm, rm.submit("ben")).changes[0]


def test_preemption_that_is_disabled_for_a_queue() -> None:
    rm = start({**TWO_QUEUES, MONITOR: "true", f"{CAPACITY}root.b.disable_preemption": "true"})
    greedy = running(rm, "b")
    rm.get(greedy, 7)
    found = what_if(rm, rm.submit("ben", queue="a"))
    assert found.notes[-1] == "preemption gives nothing: it is disabled for queue root.b (disable_preemption)"


def test_a_queue_above_its_guarantee_gets_nothing_back() -> None:
    rm, greedy, _ = preempting()
    rm.allocate(greedy, asks=[resource_request(1)])
    assert what_if(rm, greedy).notes[-1].startswith("preemption gives nothing: queue root.b is not below its guarantee")


def test_two_limits_at_once_are_lifted_by_no_single_change() -> None:
    """The user is at its limit, and the cluster is full of another user's containers."""
    rm = start({**TWO_QUEUES, f"{CAPACITY}root.b.user-limit-factor": "1.25"})
    app = running(rm, "b")
    rm.get(app, 5)
    running(rm, "a", "ben")
    rm.allocate(app, asks=[resource_request(1, 2048)])
    found = what_if(rm, app)
    assert found.changes == ()
    assert found.notes[0] == "no single change that was tried would get it a container"
