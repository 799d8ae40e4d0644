"""Whose turn it was: a request waits because another queue or application comes first, and the verdict says by what."""

from __future__ import annotations

from collections.abc import Mapping

from tests.rm.builders import RM, done, resource_request
from tests.rm.test_verdicts import AMS, CAPACITY, TWO_QUEUES, running, start, verdict
from yarn.configuration import OVERRIDE, Entry
from yarn.ids import ApplicationId

PRIORITIES = {
    f"{CAPACITY}root.ordering-policy": "priority-utilization",
    f"{CAPACITY}root.b.priority": "3",
    f"{CAPACITY}root.a.priority": "1",
}


def two_queues(conf: Mapping[str, str] | None = None, containers: int = 5) -> tuple[RM, ApplicationId, ApplicationId]:
    """Of 8192 MB, queue a uses `containers` GB and an AM, queue b an AM. Then b requests 2 x 2048 MB, a 1024 MB."""
    rm = start({**TWO_QUEUES, **(conf or {})})
    first, second = running(rm, "a"), running(rm, "b", "ben")
    rm.get(first, containers)
    rm.wait(1000)
    rm.allocate(second, [resource_request(2, 2048)])
    rm.allocate(first, [resource_request(1, 1024)])
    rm.now_ms += 500
    rm.beat("n1")
    return rm, first, second


def test_what_is_left_is_kept_for_a_less_used_queue_whose_request_does_not_fit() -> None:
    """Hadoop's diagnostics only say that root.a hits its max-capacity limit, although it may use all 8192 MB."""
    rm, app, ahead = two_queues()
    found = verdict(rm, app)
    assert found.cause == "OTHERS_FIRST"
    assert found.sentence == (
        "waits because queue root.b comes first (root.b uses 25 % of its guarantee, root.a 150 %), and what is left is "
        f"kept for the request of {ahead}: 1024 MB left, 2048 needed"
    )
    assert [setting.key for setting in found.settings] == [f"{CAPACITY}root.a.capacity"]
    assert found.nodes[0].sentence == f"kept for {ahead}: 1024 MB left, 2048 needed"
    rm.allocate(ahead, [resource_request(0, 2048)])
    rm.beat("n1")
    assert len(rm.allocate(app).allocated) == 1, "without the request ahead it is served at once"


def test_the_leaf_below_a_parent_that_was_passed_over_waits_for_the_same_queue() -> None:
    below = {
        f"{CAPACITY}root.a.queues": "x",
        f"{CAPACITY}root.a.x.capacity": "100",
        f"{CAPACITY}root.a.x.user-limit-factor": "10",
    }
    rm = start({**TWO_QUEUES, **below})
    first, second = running(rm, "x"), running(rm, "b", "ben")
    rm.get(first, 5)
    rm.wait(1000)
    rm.allocate(second, [resource_request(1, 2048)])
    rm.allocate(first, [resource_request(1, 1024)])
    rm.beat("n1")
    found = verdict(rm, first)
    assert found.cause == "OTHERS_FIRST"
    assert "queue root.b comes first (root.b uses 25 % of its guarantee, root.a 150 %)" in found.sentence


def test_priorities_of_queues_come_before_their_usage() -> None:
    """Both queues are below their guarantees, and root.b uses more of its own."""
    rm = start({**TWO_QUEUES, **PRIORITIES, f"{CAPACITY}root.a.capacity": "70", f"{CAPACITY}root.b.capacity": "30"})
    first, second = running(rm, "a"), running(rm, "b", "ben")
    rm.get(first, 3)
    rm.get(second, 1)
    rm.wait(1000)
    rm.allocate(second, [resource_request(1, 3072)])
    rm.allocate(first, [resource_request(1, 1024)])
    rm.beat("n1")
    found = verdict(rm, first)
    assert "queue root.b comes first (the priority of root.b is 3, that of root.a 1)" in found.sentence
    assert [setting.key for setting in found.settings] == [f"{CAPACITY}root.a.priority"]


def test_an_older_application_of_the_leaf_comes_first() -> None:
    rm = start()
    rm.get(running(rm), 5)
    older, app = running(rm, user="ben"), rm.submit("eve")
    rm.allocate(older, [resource_request(1, 2048)])
    rm.beat("n1")
    found = verdict(rm, app)
    assert found.cause == "OTHERS_FIRST"
    assert found.sentence == (
        f"waits because {older} in queue root.default comes first (it is older), and what is left is kept for its "
        "request: 1024 MB left, 2048 needed"
    )
    assert [setting.key for setting in found.settings] == [f"{CAPACITY}root.default.ordering-policy"]


def test_a_higher_priority_of_an_application_comes_first() -> None:
    rm = start({**AMS, "yarn.cluster.max-application-priority": "10"})
    rm.get(running(rm), 5)
    app, urgent = running(rm, user="ben"), rm.submit("eve", priority=7)
    rm.wait(1000)
    rm.allocate(app, [resource_request(1, 1024)])
    assert rm.attempt_state(urgent) == "SCHEDULED"
    rm.kill(urgent)
    urgent = rm.submit("eve", priority=7, resource=resource_request(1, 2048).capability)
    rm.beat("n1")
    found = verdict(rm, app)
    assert f"{urgent} in queue root.default comes first (its priority is 7, that of this one 0)" in found.sentence


def test_with_the_fair_policy_the_one_that_uses_less_comes_first() -> None:
    rm = start({**AMS, f"{CAPACITY}root.default.ordering-policy": "fair"})
    app = running(rm)
    rm.get(app, 5)
    small = running(rm, user="ben")
    rm.wait(1000)
    rm.allocate(small, [resource_request(1, 2048)])
    rm.allocate(app, [resource_request(1, 1024)])
    rm.beat("n1")
    assert f"{small} in queue root.default comes first (it uses 1024 MB, this one 6144)" in verdict(rm, app).sentence


def test_the_figure_is_left_out_once_the_order_has_turned() -> None:
    rm, app, ahead = two_queues()
    shares = {f"{CAPACITY}root.a.capacity": "95", f"{CAPACITY}root.b.capacity": "5"}
    conf = rm.core.scheduler.context.settings.source
    changed = conf.with_entries({key: Entry(value, OVERRIDE) for key, value in shares.items()})
    rm.core.scheduler.reinitialize(changed, rm.now_ms)
    assert verdict(rm, app).sentence.startswith(
        f"waits because {ahead} in queue root.b was offered the node first, and what is left is kept for its request:"
    )


# Full clusters


def test_a_full_cluster_names_the_queue_that_was_given_what_became_free() -> None:
    rm, app, other = two_queues(containers=4)
    assert len(rm.allocate(other).allocated) == 1
    found = verdict(rm, app)
    assert found.cause == "NODE_FULL"
    assert found.sentence == (
        "waits because the cluster is full: the most free is on n1: 0 MB free, 1024 needed; since its request 1 "
        "container of at least its size was placed for others, in root.b, which comes first (root.b uses 75 % of its "
        "guarantee, root.a 125 %)"
    )


def test_a_queue_that_requests_nothing_more_does_not_come_first() -> None:
    rm, app, other = two_queues(containers=4)
    rm.allocate(other, [resource_request(0, 2048)])
    assert verdict(rm, app).sentence.endswith("1 container of at least its size was placed for others, in root.b")


def test_an_older_application_whose_user_is_above_the_limit_does_not_come_first() -> None:
    """ann's containers are larger, so that her last one takes her far above half of the queue."""
    rm = start({**AMS, f"{CAPACITY}root.default.minimum-user-limit-percent": "50"})
    older = running(rm)
    app = running(rm, user="ben")
    rm.wait(1000)
    rm.allocate(app, [resource_request(9)])
    rm.allocate(older, [resource_request(9, 3072)])
    rm.now_ms += 500
    rm.beat("n1")
    assert verdict(rm, older).cause == "USER_LIMIT"
    found = verdict(rm, app)
    assert found.sentence.endswith("2 containers of at least its size were placed for others, in root.default")


def test_containers_that_were_smaller_or_older_than_the_request_took_nothing_from_it() -> None:
    rm = start(TWO_QUEUES)
    first, second = running(rm, "a"), running(rm, "b", "ben")
    rm.get(first, 4)
    rm.get(second, 1)
    rm.wait(1000)
    rm.allocate(first, [resource_request(1, 2048)])
    rm.allocate(second, [resource_request(1, 1024)])
    rm.beat("n1")
    assert len(rm.allocate(second).allocated) == 1
    assert verdict(rm, first).sentence == (
        "waits because the cluster is full: the most free is on n1: 0 MB free, 2048 needed"
    )


def test_containers_that_have_ended_since_count_too() -> None:
    rm, app, other = two_queues(containers=4)
    (placed,) = rm.allocate(other).allocated
    rm.run(placed)
    rm.allocate(other, [resource_request(1, 2048)])
    rm.wait(1000)
    rm.beat("n1", [done(placed.id)])
    found = verdict(rm, app)
    assert "since its request 2 containers of at least its size were placed for others, in root.b" in found.sentence
