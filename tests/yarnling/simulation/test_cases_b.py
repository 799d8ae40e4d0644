"""Mission cases B1 to B8 on a whole simulated cluster: users."""

from __future__ import annotations

import pytest

from tests.yarnling.simulation.case_cluster import ALL_AT_ONCE, GB, MONITORED, CaseCluster, UserUse

ONE_QUEUE = {"root.queues": "a", "root.a.capacity": "100"}


@pytest.mark.case("B1")
def test_a_users_limit_is_the_formulas() -> None:
    """A queue of 20 GB, 25 % at least, 0.5 of the queue at most (UsersManager.computeUserLimit)."""
    conf = {**ONE_QUEUE, "root.a.minimum-user-limit-percent": "25", "root.a.user-limit-factor": "0.5"}
    cluster = CaseCluster(conf, nodes=(20 * GB,))
    cluster.launch("app1", user="u1")
    cluster.ask("app1", 30)
    limits = {}
    while len(cluster.held("app1")) < 11:
        cluster.run(0.2)
        use = cluster.users("a")["u1"]
        limits[use.used_mb // GB] = use.limit_mb // GB
    assert limits == {1: 5, 2: 5, 3: 5, 4: 5, 5: 6, 6: 7, 7: 8, 8: 9, 9: 10, 10: 10, 11: 10}
    cluster.run(5)
    assert cluster.users("a") == {"u1": UserUse(11 * GB, 10 * GB)}
    assert "(used <memory:11264, vCores:11>, limit <memory:10240, vCores:1>)" in cluster.obstacles("app1")[0]
    cluster.launch("app2", user="u2")
    cluster.ask("app2", 30)
    cluster.until(lambda: cluster.users("a")["u2"].used_mb == 2 * GB, "the second user is active")
    assert cluster.users("a")["u2"].limit_mb == 7 * GB, "half of 12 GB and one container more"
    cluster.run(10)
    assert cluster.users("a") == {"u1": UserUse(11 * GB, 10 * GB), "u2": UserUse(9 * GB, 10 * GB)}
    cluster.assert_settled("app1", "app2")


@pytest.mark.case("B2")
@pytest.mark.parametrize("held", [(100,), (51, 49), (35, 34, 31), (31, 31, 31, 7), (31, 31, 31, 6, 1)])
def test_a_minimum_of_30_percent_shares_among_three(held: tuple[int, ...]) -> None:
    """100 containers of 1 GB: all, 50 %, 33.3 %, then 30 % for three; one above the limit (canAssignToUser)."""
    conf = {**ONE_QUEUE, **ALL_AT_ONCE, "root.a.minimum-user-limit-percent": "30"}
    cluster = CaseCluster(conf, nodes=(100 * GB,))
    apps = [f"app{number}" for number in range(1, len(held) + 1)]
    for app in apps:
        cluster.launch(app, user=f"user-of-{app}")
    cluster.cluster.machine(1).nm.pause()
    for app in apps:
        cluster.ask(app, 150)
    cluster.run(1.5)
    cluster.cluster.machine(1).nm.resume()
    cluster.run(3)
    assert cluster.count(*apps) == held
    assert tuple(use.used_mb for use in cluster.users("a").values()) == tuple(each * GB for each in held)
    cluster.assert_settled(*apps)


@pytest.mark.case("B3")
@pytest.mark.parametrize(
    ("factor", "maximum", "holds_gb"),
    [("0.5", "100", 11), ("1", "100", 21), ("2", "100", 41), ("2", "30", 30), ("100", "100", 100)],
)
def test_the_user_limit_factor_bounds_one_user(factor: str, maximum: str, holds_gb: int) -> None:
    """A queue of 20 of 100 GB. Where the limit stops the user, it holds one container more.

    AbstractLeafQueue.canAssignToUser compares what the user holds before the container.
    """
    conf = {
        **ALL_AT_ONCE,
        "root.queues": "a,b",
        "root.a.capacity": "20",
        "root.a.maximum-capacity": maximum,
        "root.a.user-limit-factor": factor,
        "root.b.capacity": "80",
    }
    cluster = CaseCluster(conf, nodes=(100 * GB,))
    cluster.launch("app", user="u")
    cluster.ask("app", 200)
    cluster.run(4)
    assert cluster.users("a")["u"].used_mb == holds_gb * GB
    assert cluster.running()["app"] == holds_gb


@pytest.mark.case("B4")
@pytest.mark.parametrize(("percent", "flat_gb"), [("30", 3), ("100", 10)])
def test_the_limit_of_one_user_is_flat_and_then_climbs_with_its_use(percent: str, flat_gb: int) -> None:
    """A queue of 10 of 20 GB. The limit is flat until it is reached, then one container ahead of use up to the cap."""
    conf = {
        "root.queues": "a,b",
        "root.a.capacity": "50",
        "root.b.capacity": "50",
        "root.a.minimum-user-limit-percent": percent,
        "root.a.user-limit-factor": "100",
    }
    cluster = CaseCluster(conf, nodes=(20 * GB,))
    cluster.launch("app", user="u")
    cluster.ask("app", 100)
    limits: dict[int, int] = {}
    headrooms: dict[int, int] = {}
    while cluster.free_mb("n1") != (0,):
        cluster.run(1)
        use = cluster.users("a")["u"]
        used_gb = use.used_mb // GB
        limits[used_gb] = use.limit_mb // GB
        headrooms[used_gb] = cluster.headroom_mb("app") // GB
    # The AM has heard of each container before the next one is allocated.
    assert limits == {used_gb: max(flat_gb, used_gb) for used_gb in range(2, 21)}
    assert headrooms == {used_gb: max(flat_gb - used_gb + 1, 1) for used_gb in range(2, 21)}
    cluster.run(3)
    assert cluster.users("a")["u"].limit_mb == 21 * GB
    assert cluster.headroom_mb("app") == 0


def second_queue(memory_mb: int, percent: str) -> CaseCluster:
    """a (75 %) fills 40 GB with containers of 1 GB; b, 10 GB guaranteed, asks for containers of this size."""
    conf = {
        **ALL_AT_ONCE,
        **MONITORED,
        "preemption.max_wait_before_kill": "0",
        "root.queues": "a,b",
        "root.a.capacity": "75",
        "root.b.capacity": "25",
        "root.a.user-limit-factor": "100",
        "root.b.user-limit-factor": "100",
        "root.a.minimum-user-limit-percent": percent,
        "root.b.minimum-user-limit-percent": percent,
    }
    cluster = CaseCluster(conf, nodes=(20 * GB, 20 * GB))
    cluster.launch("app1", user="u1", queue="root.a")
    cluster.ask("app1", 60)
    cluster.until(lambda: cluster.count("app1") == (40,), "a has everything")
    cluster.launch("app2", user="u2", queue="root.b")
    cluster.ask("app2", 40, memory_mb)
    cluster.run(60)
    return cluster


@pytest.mark.case("B5")
@pytest.mark.parametrize(
    ("percent", "taken", "held_gb", "limit_gb"),
    [("100", 10, 9, 10), ("30", 3, 1, 3)],
    ids=["minimum-100", "minimum-30"],
)
def test_a_queue_with_large_containers_sticks(percent: str, taken: int, held_gb: int, limit_gb: int) -> None:
    """The rest under the limit is less than a container: preemption frees too little, and nothing more."""
    cluster = second_queue(4 * GB, percent)
    assert cluster.users("b") == {"u2": UserUse(held_gb * GB, limit_gb * GB)}
    assert len(cluster.steps("killed")) == taken
    last_s = max(each.at_s for each in cluster.preemptions)
    assert cluster.now_s - last_s > 20, "preemption has ended"
    assert cluster.queue("root.b").usage.pending("").memory_mb > 100 * GB, "though it wants more"
    cluster.assert_settled("app1", "app2")


@pytest.mark.case("B5")
@pytest.mark.parametrize("percent", ["100", "30"])
def test_a_queue_with_small_containers_gets_its_guarantee(percent: str) -> None:
    """With each container its limit grows. Preemption ends at the guarantee of 10 GB (TempQueuePerPartition)."""
    cluster = second_queue(GB, percent)
    assert cluster.users("b") == {"u2": UserUse(10 * GB, 11 * GB)}, "the limit is above the queue's capacity"
    assert cluster.used_mb("root.a", "root.b") == (30 * GB, 10 * GB)
    assert len(cluster.steps("killed")) == 10
    cluster.assert_settled("app1", "app2")


@pytest.mark.case("B6")
@pytest.mark.parametrize(
    ("factor", "held_gb", "limit_gb"),
    [("100", (5, 5, 2), 5), ("0.25", (4, 4, 3), 3)],
    ids=["factor-100", "factor-0.25"],
)
def test_several_users_even_out_if_the_factor_is_below_their_share(
    factor: str, held_gb: tuple[int, ...], limit_gb: int
) -> None:
    """b (12 of 40 GB) has three users while a fills the cluster. With a high factor the older users grow, and the last
    one stays behind; with one below a third of the queue all end within one container of the limit.
    """
    conf = {
        **ALL_AT_ONCE,
        **MONITORED,
        "preemption.max_wait_before_kill": "0",
        "root.queues": "a,b",
        "root.a.capacity": "70",
        "root.b.capacity": "30",
        "root.a.user-limit-factor": "100",
        "root.b.user-limit-factor": factor,
        "root.b.minimum-user-limit-percent": "30",
    }
    cluster = CaseCluster(conf, nodes=(20 * GB, 20 * GB))
    cluster.launch("app1", user="u1", queue="root.a")
    cluster.ask("app1", 60)
    cluster.until(lambda: cluster.count("app1") == (40,), "a has everything")
    for number in (2, 3, 4):
        cluster.submit(f"app{number}", user=f"u{number}", queue="root.b")
    cluster.until(lambda: all(cluster.app(f"app{number}").is_registered for number in (2, 3, 4)), "all AMs run")
    for number in (2, 3, 4):
        cluster.ask(f"app{number}", 40)
    cluster.run(45)
    users = {f"u{number}": UserUse(held * GB, limit_gb * GB) for number, held in zip((2, 3, 4), held_gb, strict=True)}
    assert cluster.users("b") == users
    assert cluster.used_mb("root.a", "root.b") == ((40 - sum(held_gb)) * GB, sum(held_gb) * GB)


def big_among_small(conf: dict[str, str]) -> CaseCluster:
    """Four nodes of 8 GB; a, of 16 GB, holds 24, 6 GB on each node; big in b wants 6 GB on one node."""
    conf = {
        **MONITORED,
        "preemption.max_wait_before_kill": "0",
        "root.queues": "a,b",
        "root.a.capacity": "50",
        "root.b.capacity": "50",
        "root.a.user-limit-factor": "2",
        "root.b.user-limit-factor": "2",
        **conf,
    }
    cluster = CaseCluster(conf, nodes=(8 * GB,) * 4)
    cluster.launch("small", user="u1", queue="root.a")
    cluster.ask("small", 23)
    cluster.until(lambda: cluster.free_mb("n1", "n2", "n3", "n4") == (2 * GB,) * 4, "6 GB are used on each node")
    cluster.run(2)
    cluster.launch("big", user="u2", queue="root.b")
    cluster.ask("big", 1, 6 * GB)
    return cluster


@pytest.mark.case("B7")
def test_a_big_container_waits_while_nothing_ends() -> None:
    """The application has a reservation. The plain selector counts that as used, and takes nothing."""
    cluster = big_among_small({})
    cluster.run(30)
    assert cluster.preemptions == []
    assert list(cluster.reserved().values()) == ["big/2"]
    assert cluster.count("small", "big") == (24, 1)


@pytest.mark.case("B7")
def test_a_reservation_collects_what_ends_for_the_big_container() -> None:
    cluster = big_among_small({})
    cluster.until(lambda: bool(cluster.reserved()), "a node is reserved")
    cluster.ask("small", 20, priority=2)
    cluster.run(3)
    ((node, _),) = cluster.reserved().items()
    on_node = [name for name, host in cluster.held("small").items() if host == node and name != "small/1"]
    for name in on_node[:4]:
        assert cluster.count("big") == (1,)
        cluster.end(name)
        cluster.run(2)
    assert cluster.held("big")["big/2"] == node
    assert cluster.free_mb(node) == (0,)


@pytest.mark.case("B7")
def test_the_surgical_selector_takes_what_makes_the_big_container_fit() -> None:
    cluster = big_among_small({"preemption.select_based_on_reserved_containers": "true"})
    cluster.until(lambda: cluster.count("big") == (2,), "it is allocated")
    assert len(cluster.steps("killed")) in (3, 4), "as many as the node needs"
    assert {each.reason for each in cluster.preemptions} == {"RESERVATION"}
    node = cluster.held("big")["big/2"]
    cluster.run(3)
    assert all(exit_status == -102 for exit_status in cluster.app("small").exits.values())
    assert len(cluster.app("small").exits) == len(cluster.steps("killed"))
    assert cluster.free_mb(node)[0] < GB
    cluster.assert_settled("small", "big")


def accounts(policy: str) -> CaseCluster:
    """A service account has three applications and ann one, in a queue of 20 GB with 50 % at least for each user."""
    conf = {**ONE_QUEUE, "root.a.minimum-user-limit-percent": "50", "root.a.ordering-policy": policy}
    cluster = CaseCluster(conf, nodes=(20 * GB,))
    for app in ("etl1", "etl2", "etl3", "adhoc"):
        cluster.launch(app, user="ann" if app == "adhoc" else "service")
    node = cluster.cluster.machine(1).nm
    node.pause()
    for app, count in (("etl1", 4), ("etl2", 4), ("etl3", 20), ("adhoc", 20)):
        cluster.ask(app, count)
    cluster.run(1.5)
    node.resume()
    cluster.until(lambda: cluster.free_mb("n1") == (0,), "the queue is full")
    assert [use.used_mb for use in cluster.users("a").values()] == [11 * GB, 9 * GB], "half each"
    return cluster


@pytest.mark.case("B8")
def test_user_limits_see_one_user_behind_a_service_account() -> None:
    cluster = accounts("fifo")
    assert cluster.count("etl1", "etl2", "etl3", "adhoc") == (5, 5, 1, 9), "its applications share its half, in order"


@pytest.mark.case("B8")
def test_the_fair_policy_sees_applications() -> None:
    cluster = accounts("fair")
    assert cluster.count("etl1", "etl2", "etl3", "adhoc") == (4, 4, 3, 9), "its applications are equal within its half"
