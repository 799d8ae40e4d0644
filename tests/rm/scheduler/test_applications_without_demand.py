"""Applications without demand are skipped, so that the cost of a pass does not grow with them."""

from __future__ import annotations

from rm.scheduler.placement.memo import only_for_limits, with_demand
from tests.rm.scheduler.cluster import GB, ONE_QUEUE, Cluster

LARGE_USER_LIMIT = {**ONE_QUEUE, "root.a.user-limit-factor": "10"}
NAMES = ("app0", "app1", "app2", "app3")


def four_applications() -> Cluster:
    """They run on n0, in one queue, and have all they requested."""
    cluster = Cluster(LARGE_USER_LIMIT)
    cluster.node("n0", 16 * GB)
    cluster.node("n1", 16 * GB)
    for name in NAMES:
        cluster.run(name, "n0")
        cluster.now_ms += 1
    return cluster


def offered(cluster: Cluster) -> list[str]:
    """The applications that the next pass over the leaf looks at."""
    return [NAMES[attempt.attempt_id.application_id.id - 1] for attempt in with_demand(cluster.leaf(), "")]


def test_a_pass_drops_applications_without_demand_except_each_users_first() -> None:
    cluster = four_applications()
    cluster.request("app2", 1)
    cluster.heartbeat("n1")
    assert offered(cluster) == ["app0", "app2", "app3"], "the pass did not reach app3"
    cluster.request("app3", 2)
    cluster.heartbeat("n1")
    assert offered(cluster) == ["app0", "app3"]


def test_a_request_puts_an_application_back_in_its_old_place() -> None:
    cluster = four_applications()
    cluster.request("app3", 5)
    cluster.heartbeat("n1")
    assert offered(cluster) == ["app0", "app3"]
    cluster.request("app1", 1)
    assert offered(cluster) == ["app0", "app1", "app3"]
    assert cluster.heartbeat("n1") == ["app1/2 on n1 1024"]


def only_limits(cluster: Cluster) -> list[str]:
    """The applications of which the next pass looks at nothing but their users' limits."""
    return [NAMES[application_id.id - 1] for application_id in only_for_limits(cluster.leaf())]


def test_of_each_users_first_application_without_demand_only_the_limit_is_checked() -> None:
    cluster = four_applications()
    cluster.request("app3", 5)
    cluster.heartbeat("n1")
    assert only_limits(cluster) == ["app0"]
    cluster.request("app0", 1)
    assert only_limits(cluster) == []
    assert cluster.heartbeat("n1") == ["app0/2 on n1 1024"]


def test_the_users_next_application_is_checked_again_when_the_first_ends() -> None:
    cluster = four_applications()
    cluster.request("app3", 9)
    cluster.heartbeat("n1")
    cluster.end("app0")
    assert only_limits(cluster) == []
    cluster.heartbeat("n1")
    assert only_limits(cluster) == ["app1"]


def test_the_users_next_application_is_offered_when_the_first_ends() -> None:
    cluster = four_applications()
    cluster.request("app3", 5)
    cluster.heartbeat("n1")
    cluster.end("app0")
    assert offered(cluster) == ["app1", "app3"]


def test_with_reservations_the_first_application_without_one_is_checked() -> None:
    """LeafQueue checks its maximum for each application while those before it have reservations.

    18 of 15.6 GB are used, 4 of them reserved for app0 and 4 for app2. app0 blacklists n2; app1 requests nothing and
    has nothing reserved, which puts the queue above its maximum: so app2 is not tried, although it could release its
    4 GB for the 1 GB that it now requests.
    """
    cluster = Cluster({**LARGE_USER_LIMIT, "root.a.maximum-capacity": "65"})
    for name in ("n0", "n1", "n2", "n3"):
        cluster.node(name, 8 * GB)
    for name in NAMES[:3]:
        cluster.run(name, "n0")
    cluster.request("app2", 1, 2 * GB)
    cluster.heartbeat("n0")
    cluster.request("app2", 1, 5 * GB, priority=2)
    cluster.heartbeat("n1")
    assert offered(cluster) == ["app0", "app2"]
    cluster.request("app0", 1, 4 * GB)
    assert cluster.heartbeat("n0") == ["app0/2 reserved on n0 4096"]
    cluster.request("app2", 1, 4 * GB, priority=3)
    assert cluster.heartbeat("n1") == ["app2/4 reserved on n1 4096"]
    cluster.request("app0", 1)
    cluster.request("app2", 1, priority=3)
    cluster.blacklist("app0", "n2")
    cluster.lose("n3")
    assert cluster.heartbeat("n2") == []


def test_a_new_application_of_a_refused_user_is_looked_at_once() -> None:
    """Its headroom is computed from then on."""
    cluster = Cluster({**ONE_QUEUE, "root.a.user-limit-factor": "0.1"})
    cluster.node("n0", 16 * GB)
    cluster.run("app0", "n0")
    cluster.request("app0", 9)
    cluster.heartbeat("n0", times=4)
    cluster.submit("app1", unmanaged=True)
    assert cluster.attempt("app1").headroom_provider is None
    cluster.heartbeat("n0")
    assert cluster.attempt("app1").headroom_provider is not None


def test_all_applications_are_offered_when_their_users_entry_is_recreated() -> None:
    """Held back attempts are subtracted although they were not counted, so an entry can be dropped too early."""
    cluster = Cluster({**LARGE_USER_LIMIT, "root.a.max-parallel-apps": "3"})
    cluster.node("n0", 16 * GB)
    for name in NAMES[:3]:
        cluster.run(name, "n0")
    cluster.request("app2", 5)
    cluster.heartbeat("n0")
    assert offered(cluster) == ["app0", "app2"]
    for name in ("parked0", "parked1", "parked2"):
        cluster.submit(name)
        cluster.end(name)
    assert "user" not in cluster.leaf().users.users
    cluster.submit("parked3")
    cluster.heartbeat("n0")
    provider = cluster.attempt("app1").headroom_provider
    assert provider is not None
    assert provider.user is cluster.leaf().users.users["user"]
