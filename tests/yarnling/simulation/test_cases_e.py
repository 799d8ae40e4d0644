"""Mission cases E1 to E8 on a whole simulated cluster: preemption."""

from __future__ import annotations

import pytest

from tests.yarnling.simulation.case_cluster import ALL_AT_ONCE, GB, MONITORED, CaseCluster, UserUse

ROUND_S = 3.0
"""The time between two rounds of the policy."""
HALVES = {
    **ALL_AT_ONCE,
    **MONITORED,
    "root.queues": "a,b",
    "root.a.capacity": "50",
    "root.a.user-limit-factor": "2",
    "root.b.capacity": "50",
    "root.b.user-limit-factor": "2",
}
AT_ONCE = {"preemption.max_wait_before_kill": "0"}
"""Kill in the round after the one that has requested."""
PREEMPTED = -102


def numbers(app: str, *found: int) -> list[str]:
    return [f"{app}/{number}" for number in found]


def greedy(conf: dict[str, str], memory_mb: int, tasks: int) -> CaseCluster:
    """A node; app2 in b holds its AM, app1 in a so many tasks that the node is full."""
    cluster = CaseCluster(conf, nodes=(memory_mb,))
    cluster.launch("app2", user="u2", queue="root.b")
    cluster.launch("app1", user="u1", queue="root.a")
    cluster.ask("app1", tasks)
    cluster.until(lambda: cluster.count("app1") == (tasks + 1,), "app1 has its containers")
    cluster.run(2)
    assert cluster.preemptions == []
    return cluster


@pytest.mark.case("E1")
def test_a_queue_under_its_guarantee_gets_it_back_after_a_warning_and_the_wait() -> None:
    """Half of 10 GB is b's. a holds 9 GB: its AM is warned of four containers, which are killed 15 s later."""
    cluster = greedy(HALVES, 10 * GB, 8)
    cluster.ask("app2", 10)
    cluster.until(lambda: bool(cluster.preemptions), "containers are wanted back")
    warned_s = cluster.now_s
    victims = cluster.steps("requested")
    assert sorted(victims) == sorted(numbers("app1", 6, 7, 8, 9)), "the newest ones"
    cluster.run(1.1)
    assert sorted(cluster.app("app1").asked_back) == sorted(victims), "the AM knows"
    cluster.until(lambda: bool(cluster.steps("killed")), "they are killed")
    assert 15 <= cluster.now_s - warned_s <= 15 + ROUND_S
    assert sorted(cluster.steps("killed")) == sorted(victims)
    cluster.run(20)
    assert cluster.app("app1").exits == dict.fromkeys(victims, PREEMPTED)
    assert cluster.used_mb("root.a", "root.b") == (5 * GB, 5 * GB)
    assert len(cluster.preemptions) == 8, "b has its guarantee: nothing more is taken"
    cluster.assert_settled("app1", "app2")


@pytest.mark.case("E1")
def test_an_am_that_gives_back_loses_nothing_else() -> None:
    cluster = greedy(HALVES, 10 * GB, 8)
    cluster.ask("app2", 4)
    cluster.until(lambda: len(cluster.app("app1").asked_back) == 4, "the AM knows")
    cluster.release(*numbers("app1", 2, 3, 4, 5))
    cluster.run(30)
    assert cluster.steps("killed") == []
    assert cluster.used_mb("root.a", "root.b") == (5 * GB, 5 * GB)


@pytest.mark.case("E2")
def test_the_most_over_served_queue_gives_and_in_it_the_youngest_application_and_its_newest_containers() -> None:
    """Queues b and c are guaranteed 9 of 37 GB, d 18. b holds 12, c 24 in three applications; d asks step by step."""
    conf = {
        **ALL_AT_ONCE,
        **MONITORED,
        **AT_ONCE,
        "root.queues": "b,c,d",
        "root.b.capacity": "25",
        "root.c.capacity": "25",
        "root.d.capacity": "50",
        "root.b.user-limit-factor": "4",
        "root.c.user-limit-factor": "4",
        "root.d.user-limit-factor": "4",
    }
    cluster = CaseCluster(conf, nodes=(37 * GB,))
    cluster.launch("dema", user="u4", queue="root.d")
    for app, tasks in (("b1", 11), ("c1", 7), ("c2", 7), ("c3", 7)):
        cluster.launch(app, queue=f"root.{app[0]}")
        cluster.ask(app, tasks)
        cluster.until(lambda app=app, tasks=tasks: cluster.count(app) == (tasks + 1,), f"{app} has its containers")

    def taken(more: int) -> list[str]:
        """The cost of d's request for so many more to the others."""
        before = len(cluster.steps("killed"))
        cluster.ask("dema", more)
        cluster.until(lambda: len(cluster.steps("killed")) == before + more, f"{more} are killed")
        cluster.run(2 * ROUND_S)
        return sorted(cluster.steps("killed")[before:])

    assert taken(3) == numbers("c3", 6, 7, 8)
    assert taken(8) == numbers("c2", 5, 6, 7, 8) + numbers("c3", 2, 3, 4, 5)
    assert cluster.used_mb("root.b", "root.c", "root.d") == (12 * GB, 13 * GB, 12 * GB)
    assert taken(5) == numbers("b1", 11, 12) + numbers("c2", 2, 3, 4), "from where c is as far over as b"
    assert cluster.used_mb("root.b", "root.c", "root.d") == (10 * GB, 10 * GB, 17 * GB)


@pytest.mark.case("E2")
def test_a_reservation_is_taken_before_running_containers() -> None:
    """a holds 13 of its 10 GB, and has reserved 4; b asks for the 6 GB that are free, 3 on each node."""
    one_at_a_time = {"per-node-heartbeat.maximum-offswitch-assignments": "1"}
    cluster = CaseCluster({**HALVES, **AT_ONCE, **one_at_a_time}, nodes=(10 * GB, 10 * GB))
    cluster.launch("dema", user="u2", queue="root.b")
    cluster.launch("c1", user="u1", queue="root.a")
    cluster.ask("c1", 12)
    cluster.until(lambda: cluster.count("c1") == (13,), "c1 has its containers")
    assert cluster.free_mb("n1", "n2") == (3 * GB, 3 * GB)
    cluster.ask("c1", 1, 4 * GB, priority=2)
    cluster.until(lambda: bool(cluster.reserved()), "c1 has a reservation")
    cluster.ask("dema", 6)
    cluster.until(lambda: cluster.count("dema") == (7,), "b has what it asked for")
    assert cluster.steps("requested") == ["c1/14"]
    assert cluster.steps("killed") == []
    assert cluster.used_mb("root.a") == (13 * GB,)


@pytest.mark.case("E2")
def test_am_containers_are_taken_last() -> None:
    """A queue with a guarantee of 1 GB holds four AMs with one task each; the other queue asks for everything."""
    conf = {
        **HALVES,
        **AT_ONCE,
        "root.a.capacity": "12.5",
        "root.b.capacity": "87.5",
        "root.a.user-limit-factor": "10",
    }
    cluster = CaseCluster(conf, nodes=(9 * GB,))
    cluster.launch("bb", user="u2", queue="root.b")
    for app in ("a1", "a2", "a3", "a4"):
        cluster.launch(app, user="u1", queue="root.a", max_app_attempts=1)
        cluster.ask(app, 1)
        cluster.until(lambda app=app: cluster.count(app) == (2,), f"{app} has its task")
    cluster.ask("bb", 4)
    cluster.until(lambda: cluster.count("bb") == (5,), "bb has 4 GB")
    assert sorted(cluster.steps("killed")) == ["a1/2", "a2/2", "a3/2", "a4/2"], "all tasks before any AM"
    cluster.ask("bb", 8)
    cluster.until(lambda: cluster.used_mb("root.b") == (8 * GB,), "bb has what a is not guaranteed")
    assert sorted(cluster.steps("killed")[4:]) == ["a2/1", "a3/1", "a4/1"], "not that of the oldest application"
    cluster.run(10)
    assert cluster.used_mb("root.a") == (GB,)
    assert cluster.running()["a1"] == 1


@pytest.mark.case("E3")
def test_a_round_takes_no_more_than_its_share_and_the_factor_allow() -> None:
    """0.1 of 40 GB is looked at in a round, and half of that is taken: 2 GB in each round until the guarantee."""
    pace = {"preemption.total_preemption_per_round": "0.1", "preemption.natural_termination_factor": "0.5"}
    cluster = greedy({**HALVES, **AT_ONCE, **pace}, 40 * GB, 38)
    cluster.ask("app2", 30)
    cluster.run(20 * ROUND_S)
    rounds: dict[float, int] = {}
    for each in cluster.preemptions:
        if each.step == "requested":
            rounds[each.at_s] = rounds.get(each.at_s, 0) + 1
    assert list(rounds.values()) == [2] * 9 + [1], "from 39 GB to 20"
    assert cluster.used_mb("root.a", "root.b") == (20 * GB, 20 * GB)


@pytest.mark.case("E3")
def test_a_queue_in_the_dead_zone_loses_nothing() -> None:
    """max_ignored_over_capacity 0.1: 24 of 22 GB are within it; 25 of 22 are not, and all of the excess is given."""
    conf = {**HALVES, **AT_ONCE, "preemption.max_ignored_over_capacity": "0.1"}
    cluster = CaseCluster(conf, nodes=(44 * GB,))
    cluster.launch("app2", user="u2", queue="root.b")
    cluster.ask("app2", 19)
    cluster.until(lambda: cluster.count("app2") == (20,), "b holds 20 GB")
    cluster.launch("app1", user="u1", queue="root.a")
    cluster.ask("app1", 23)
    cluster.until(lambda: cluster.count("app1") == (24,), "a holds 24 GB")
    cluster.ask("app2", 10)
    cluster.run(5 * ROUND_S)
    assert cluster.preemptions == []
    cluster.withdraw("app2", 10)
    cluster.run(2)
    cluster.ask("app1", 1)
    cluster.run(2)
    cluster.end("app2/2")
    cluster.until(lambda: cluster.count("app1") == (25,), "a holds 25 GB")
    cluster.ask("app2", 10)
    cluster.run(5 * ROUND_S)
    assert cluster.steps("requested") == cluster.steps("killed")
    assert sorted(cluster.steps("killed")) == numbers("app1", 23, 24, 25)
    assert cluster.used_mb("root.a", "root.b") == (22 * GB, 22 * GB)


THIRDS = {
    **ALL_AT_ONCE,
    **MONITORED,
    "root.queues": "a,b,c",
    "root.a.capacity": "30",
    "root.b.capacity": "30",
    "root.c.capacity": "40",
    "root.a.user-limit-factor": "4",
    "root.b.user-limit-factor": "4",
}


def above_their_guarantees(conf: dict[str, str]) -> CaseCluster:
    """a and b are above their 6 of 20 GB, with 13 and 7; c is idle, and b wants more."""
    cluster = CaseCluster(conf, nodes=(20 * GB,))
    for app, queue, tasks, held in (("app2", "b", 6, 7), ("app1", "a", 30, 13)):
        cluster.launch(app, user=app, queue=f"root.{queue}")
        cluster.ask(app, tasks)
        cluster.until(lambda app=app, held=held: cluster.count(app) == (held,), f"{app} holds {held} GB")
    cluster.ask("app2", 20)
    return cluster


@pytest.mark.case("E4")
def test_space_above_the_guarantees_is_not_balanced() -> None:
    cluster = above_their_guarantees(THIRDS)
    cluster.run(10 * ROUND_S)
    assert cluster.preemptions == []
    assert cluster.used_mb("root.a", "root.b") == (13 * GB, 7 * GB)


@pytest.mark.case("E4")
def test_preemption_to_balance_gives_both_the_same_share() -> None:
    prefix = "preemption.preemption-to-balance-queue-after-satisfied."
    balance = {prefix + "enabled": "true", prefix + "max-wait-before-kill": "20000"}
    cluster = above_their_guarantees({**THIRDS, **balance})
    cluster.until(lambda: cluster.used_mb("root.a", "root.b") == (10 * GB, 10 * GB), "both hold the same", limit_s=90)
    cluster.run(2 * ROUND_S)
    assert {each.reason for each in cluster.preemptions} == {"BALANCE"}
    assert cluster.steps("requested") == cluster.steps("killed") == numbers("app1", 13, 12, 11)


def too_large(conf: dict[str, str]) -> CaseCluster:
    """Containers of 4 GB on 24: app1 in a holds 20 GB, and app2 in b, with 4 of its 12, wants two more."""
    cluster = CaseCluster(conf, nodes=(24 * GB,))
    cluster.launch("app2", user="u2", queue="root.b", am_mb=4 * GB)
    cluster.launch("app1", user="u1", queue="root.a", am_mb=4 * GB)
    cluster.ask("app1", 4, 4 * GB)
    cluster.until(lambda: cluster.used_mb("root.a") == (20 * GB,), "a holds 20 GB")
    cluster.ask("app2", 2, 4 * GB)
    cluster.run(6 * ROUND_S)
    return cluster


@pytest.mark.case("E5")
def test_nothing_is_taken_where_no_container_fits_into_the_round() -> None:
    cluster = too_large({**HALVES, **AT_ONCE, "preemption.total_preemption_per_round": "0.1"})
    assert cluster.preemptions == []
    assert cluster.used_mb("root.a", "root.b") == (20 * GB, 4 * GB)


@pytest.mark.case("E5")
def test_with_a_larger_round_it_is_taken() -> None:
    cluster = too_large({**HALVES, **AT_ONCE})
    assert sorted(cluster.steps("killed")) == ["app1/4", "app1/5"]
    assert cluster.used_mb("root.a", "root.b") == (12 * GB, 12 * GB)


def big_in_a_full_cluster(conf: dict[str, str]) -> CaseCluster:
    """Two full nodes of 10 GB, 19 GB a's. b, with 1 of its 10, asks for one container of 6 GB."""
    one_at_a_time = {"per-node-heartbeat.maximum-offswitch-assignments": "1"}
    cluster = CaseCluster({**HALVES, **AT_ONCE, **one_at_a_time, **conf}, nodes=(10 * GB, 10 * GB))
    cluster.launch("app2", user="u2", queue="root.b")
    cluster.launch("app1", user="u1", queue="root.a")
    cluster.ask("app1", 18)
    cluster.until(lambda: cluster.used_mb("root.a") == (19 * GB,), "a holds 19 GB")
    cluster.ask("app2", 1, 6 * GB)
    cluster.run(10 * ROUND_S)
    return cluster


@pytest.mark.case("E5")
def test_the_plain_selector_may_take_what_helps_nobody() -> None:
    """FifoCandidatesSelector takes containers wherever they run, unlike the claim."""
    cluster = big_in_a_full_cluster({})
    assert sorted(cluster.steps("killed")) == numbers("app1", *range(14, 20))
    assert cluster.free_mb("n1", "n2") == (3 * GB, 3 * GB)
    assert list(cluster.reserved().values()) == ["app2/2"]
    assert cluster.count("app2") == (1,), "it still waits"


@pytest.mark.case("E5")
def test_the_surgical_selector_makes_the_reservation_fit() -> None:
    cluster = big_in_a_full_cluster({"preemption.select_based_on_reserved_containers": "true"})
    assert [each.reason for each in cluster.preemptions if each.step == "killed"] == ["GUARANTEE"] * 6 + [
        "RESERVATION"
    ] * 3
    assert cluster.count("app2") == (2,)
    assert cluster.reserved() == {}
    assert sorted(cluster.free_mb("n1", "n2")) == [0, 3 * GB]


INSIDE = {
    **ALL_AT_ONCE,
    **MONITORED,
    **AT_ONCE,
    "root.queues": "a",
    "root.a.capacity": "100",
    "root.a.minimum-user-limit-percent": "50",
    "root.a.user-limit-factor": "2",
    "yarn.cluster.max-application-priority": "5",
}
INTRA_QUEUE = "preemption.intra-queue-preemption."


def full_queue(conf: dict[str, str], *, users: tuple[str, str], priorities: tuple[int, int]) -> CaseCluster:
    """A queue of 20 GB: app1 holds 19, app2 its AM, and wants 16 GB more."""
    cluster = CaseCluster({**INSIDE, **conf}, nodes=(20 * GB,))
    for number in (0, 1):
        cluster.launch(f"app{number + 1}", user=users[number], queue="root.a", priority=priorities[number])
    cluster.ask("app1", 18)
    cluster.until(lambda: cluster.count("app1", "app2") == (19, 1), "the queue is full")
    cluster.ask("app2", 16)
    return cluster


@pytest.mark.case("E6")
def test_inside_a_queue_nothing_is_taken_by_default() -> None:
    cluster = full_queue({}, users=("u1", "u2"), priorities=(1, 3))
    cluster.run(6 * ROUND_S)
    assert cluster.preemptions == []


@pytest.mark.case("E6")
def test_inside_a_queue_the_lower_priority_gives_way_by_half_of_the_guarantee_a_round() -> None:
    conf = {
        INTRA_QUEUE + "enabled": "true",
        INTRA_QUEUE + "max-allowable-limit": "0.5",
        INTRA_QUEUE + "preemption-order-policy": "priority_first",
    }
    cluster = full_queue(conf, users=("u1", "u1"), priorities=(1, 3))
    cluster.until(lambda: bool(cluster.steps("killed")), "the first are killed")
    cluster.run(0.1)
    assert sorted(cluster.steps("killed")) == sorted(numbers("app1", *range(10, 20))), "10 of 20 GB, the newest"
    cluster.run(5 * ROUND_S)
    assert {each.reason for each in cluster.preemptions} == {"INTRA_QUEUE"}
    assert cluster.count("app1", "app2") == (3, 17), "all that was asked for"


@pytest.mark.case("E6")
def test_inside_a_queue_the_user_above_its_limit_gives_way() -> None:
    conf = {
        INTRA_QUEUE + "enabled": "true",
        INTRA_QUEUE + "max-allowable-limit": "0.5",
        INTRA_QUEUE + "preemption-order-policy": "userlimit_first",
    }
    cluster = full_queue(conf, users=("u1", "u2"), priorities=(1, 1))
    cluster.run(10 * ROUND_S)
    assert len(cluster.steps("killed")) == 7
    assert cluster.count("app1", "app2") == (12, 8), "the first user is back at its limit"
    assert cluster.users("root.a") == {"u1": UserUse(12 * GB, 11 * GB), "u2": UserUse(8 * GB, 11 * GB)}


@pytest.mark.case("E7", "G2")
def test_on_a_shared_label_the_default_partition_gives_way_to_the_labels_own_application() -> None:
    conf = {
        **HALVES,
        **AT_ONCE,
        "yarn.node-labels.enabled": "true",
        "root.accessible-node-labels.x.capacity": "100",
        "root.a.user-limit-factor": "4",
        "root.b.user-limit-factor": "4",
        "root.a.accessible-node-labels": "x",
        "root.a.accessible-node-labels.x.capacity": "100",
        "root.b.accessible-node-labels": "",
    }
    cluster = CaseCluster(conf, nodes=(8 * GB, 8 * GB), labels={"n2": "x"}, shared=["x"])
    cluster.launch("app1", user="u1", queue="root.b")
    cluster.ask("app1", 20)
    cluster.until(lambda: cluster.free_mb("n1", "n2") == (0, 0), "both nodes are full")
    assert cluster.used_mb("root.b", label="x") == (8 * GB,), "lent"
    cluster.submit("app2", user="u2", queue="root.a", am_label="x", node_label_expression="x")
    cluster.until(lambda: cluster.app("app2").is_registered, "the AM of app2 runs")
    assert cluster.held("app2") == {"app2/1": "n2"}
    cluster.ask("app2", 4, label="x")
    cluster.until(lambda: cluster.count("app2") == (5,), "app2 has what it asked for")
    cluster.run(10)
    assert set(cluster.held("app2").values()) == {"n2"}
    assert cluster.used_mb("root.a", "root.b", label="x") == (5 * GB, 3 * GB)
    assert cluster.used_mb("root.b") == (8 * GB,), "n1 keeps its containers"
    assert len(cluster.steps("killed")) == 5


def lazily() -> CaseCluster:
    """Two nodes of 6 GB, 11 GB a's; b asks for two more. Containers are only marked as killable."""
    conf = {**HALVES, **AT_ONCE, "lazy-preemption-enabled": "true"}
    cluster = CaseCluster(conf, nodes=(6 * GB, 6 * GB))
    cluster.launch("app2", user="u2", queue="root.b")
    cluster.launch("app1", user="u1", queue="root.a")
    cluster.ask("app1", 20)
    cluster.until(lambda: cluster.used_mb("root.a") == (11 * GB,), "a holds 11 GB")
    return cluster


@pytest.mark.case("E8")
def test_killable_containers_are_killed_when_a_placement_needs_them() -> None:
    cluster = lazily()
    cluster.ask("app2", 2)
    cluster.until(lambda: cluster.count("app2") == (3,), "b has its two")
    cluster.run(5)
    assert cluster.used_mb("root.a", "root.b") == (9 * GB, 3 * GB)
    assert len(cluster.steps("killable")) == 2
    assert sorted(cluster.app("app1").exits) == sorted(cluster.steps("killable"))
    assert set(cluster.app("app1").exits.values()) == {PREEMPTED}


@pytest.mark.case("E8")
def test_killable_containers_run_on_if_the_demand_goes_away() -> None:
    cluster = lazily()
    first, second = (machine.nm for machine in cluster.cluster.machines)
    cluster.ask("app2", 2)
    cluster.until(lambda: len(cluster.steps("requested")) == 2, "two are wanted back")
    # No node reports between the round that marks the containers and the AM's withdrawal.
    first.pause()
    cluster.until(lambda: len(cluster.steps("killable")) == 2, "they are killable")
    second.pause()
    cluster.withdraw("app2", 2)
    cluster.run(1.1)
    first.resume()
    second.resume()
    cluster.run(4 * ROUND_S)
    assert cluster.used_mb("root.a", "root.b") == (11 * GB, GB)
    assert cluster.app("app1").exits == {}
    assert cluster.running()["app1"] == 11
