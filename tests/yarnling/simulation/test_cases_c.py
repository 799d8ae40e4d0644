"""Mission cases C1 to C7 on a whole simulated cluster: limits and admission."""

from __future__ import annotations

import pytest

from rm.core.events import MoveApplication, UpdateApplicationPriority
from tests.yarnling.simulation.case_cluster import ALL_AT_ONCE, GB, CaseCluster
from yarn.resource import NONE
from yarn.states import QueueState, YarnApplicationState

ONE_QUEUE = {"root.queues": "a", "root.a.capacity": "100"}


@pytest.mark.case("C1")
def test_the_application_above_a_limit_is_rejected_with_the_limit() -> None:
    """Two in queue a, one of a user there, three in the system."""
    conf = {
        "maximum-applications": "3",
        "root.queues": "a,b",
        "root.a.capacity": "50",
        "root.b.capacity": "50",
        "root.a.maximum-applications": "2",
        "root.a.minimum-user-limit-percent": "50",
        "root.b.maximum-applications": "5",
    }
    cluster = CaseCluster(conf, nodes=(16 * GB,))
    submitted = (
        ("1", "u1", "a"),
        ("2", "u1", "a"),
        ("3", "u2", "a"),
        ("4", "u3", "a"),
        ("5", "u3", "b"),
        ("6", "u3", "b"),
    )
    for app, user, queue in submitted:
        cluster.submit(app, user=user, queue=queue)
        cluster.run(3)
    states = {app: cluster.state(app).name for app, _, _ in submitted}
    assert states == {"1": "RUNNING", "2": "FAILED", "3": "RUNNING", "4": "FAILED", "5": "RUNNING", "6": "FAILED"}
    assert "Queue root.a already has 1 applications from user u1" in cluster.diagnostics("2")
    assert "Queue root.a already has 2 applications" in cluster.diagnostics("4")
    assert "Maximum system application limit reached" in cluster.diagnostics("6")
    cluster.finish("1")
    cluster.until(lambda: cluster.state("1") is YarnApplicationState.FINISHED, "one has ended")
    cluster.run(3)
    cluster.launch("7", user="u1", queue="a")


@pytest.mark.case("C2")
def test_above_the_share_of_ams_an_application_waits_with_the_reason() -> None:
    """The first AM is let in, though 8 GB are more than 10 % of 40 GB; the second one waits until it has ended."""
    cluster = CaseCluster({**ONE_QUEUE, "maximum-am-resource-percent": "0.1"}, nodes=(40 * GB,))
    cluster.launch("first", user="u1", am_mb=8 * GB)
    cluster.submit("second", user="u2")
    cluster.run(5)
    assert cluster.state("second") is YarnApplicationState.ACCEPTED
    assert "Queue's AM resource limit exceeded" in cluster.obstacles("second")[0]
    assert "limit <memory:4096, vCores:1>" in cluster.obstacles("second")[0]
    cluster.finish("first")
    cluster.until(lambda: cluster.app("second").is_registered, "it runs")


@pytest.mark.case("C2")
def test_the_ams_of_one_user_have_a_limit_too() -> None:
    """A queue with 40 GB of guarantee, of which AMs may use 20 % and one user half of that: 4 GB."""
    conf = {
        "root.queues": "a,b",
        "root.a.capacity": "50",
        "root.b.capacity": "50",
        "root.a.minimum-user-limit-percent": "50",
        "maximum-am-resource-percent": "0.2",
    }
    cluster = CaseCluster(conf, nodes=(80 * GB,))
    for app, user in (("app1", "u1"), ("app2", "u2")):
        cluster.launch(app, user=user, am_mb=2 * GB)
        # Both users stay active: what they ask for is never served.
        cluster.avoid(app, "n1")
        cluster.ask(app, 3)
    cluster.run(4)
    cluster.launch("app3", user="u1", am_mb=2 * GB)
    cluster.submit("app4", user="u1", am_mb=2 * GB)
    cluster.launch("app5", user="u2", am_mb=2 * GB)
    assert cluster.state("app4") is YarnApplicationState.ACCEPTED
    assert "User's AM resource limit exceeded" in cluster.obstacles("app4")[0]
    assert "limit <memory:4096, vCores:1>" in cluster.obstacles("app4")[0]


@pytest.mark.case("C3")
@pytest.mark.parametrize(("minimum_mb", "asked_mb", "given_mb"), [(1024, 4608, 5120), (4096, 5120, 8192)])
def test_containers_are_multiples_of_the_minimum_and_none_is_above_the_maximum(
    minimum_mb: int, asked_mb: int, given_mb: int
) -> None:
    conf = {
        **ONE_QUEUE,
        "yarn.scheduler.minimum-allocation-mb": str(minimum_mb),
        "yarn.scheduler.maximum-allocation-mb": str(8 * GB),
    }
    cluster = CaseCluster(conf, nodes=(40 * GB,))
    cluster.launch("app", max_app_attempts=1)
    cluster.ask("app", 1, asked_mb)
    cluster.run(3)
    assert cluster.attempt("app").live_containers[cluster.container_id("app/2")].resource.memory_mb == given_mb
    held = cluster.used_mb("root.a")
    cluster.ask("app", 2, priority=3)
    cluster.ask("app", 1, 8 * GB + 1, priority=4)
    cluster.until(lambda: bool(cluster.app("app").failure), "the call is refused")
    assert "requested resource is greater than maximum allowed allocation" in cluster.app("app").failure
    assert cluster.used_mb("root.a") == held
    assert cluster.queue("root.a").usage.pending("") == NONE, "nothing else of the call is applied"


@pytest.mark.case("C4")
def test_leaves_of_one_name_need_their_full_path_and_parents_take_no_applications() -> None:
    conf = {
        "root.queues": "x,y",
        "root.x.capacity": "50",
        "root.y.capacity": "50",
        "root.x.queues": "dev,one",
        "root.x.dev.capacity": "50",
        "root.x.one.capacity": "50",
        "root.y.queues": "dev",
        "root.y.dev.capacity": "100",
    }
    cluster = CaseCluster(conf, nodes=(16 * GB,))
    for queue in ("root.x.dev", "root.y.dev", "one"):
        cluster.launch(queue, queue=queue)
    refused = {
        "dev": "ambiguous queue: dev please use full queue path instead",
        "root.x": "to non-leaf queue : root.x",
        "nowhere": "to unknown queue: nowhere",
    }
    for queue, reason in refused.items():
        cluster.submit(queue, queue=queue)
        cluster.run(1)
        assert cluster.state(queue) is YarnApplicationState.FAILED
        assert reason in cluster.diagnostics(queue)


@pytest.mark.case("C5")
def test_the_first_queue_mapping_that_matches_places_an_application() -> None:
    conf = {
        "root.queues": "a,b,c",
        "root.a.capacity": "40",
        "root.b.capacity": "40",
        "root.c.capacity": "20",
        "queue-mappings": "u:ann:a,u:%user:b",
        "queue-mappings-override.enable": "true",
    }
    cluster = CaseCluster(conf, nodes=(16 * GB,))
    for user in ("ann", "bob"):
        cluster.launch(user, user=user, queue="c")
    assert cluster.attempt("ann").leaf.path == "root.a"
    assert cluster.attempt("bob").leaf.path == "root.b"


@pytest.mark.case("C6")
def test_an_application_of_higher_priority_is_served_first_also_if_it_is_changed() -> None:
    cluster = CaseCluster({**ONE_QUEUE, "yarn.cluster.max-application-priority": "5"}, nodes=(8 * GB,))
    cluster.launch("old")
    cluster.launch("new")
    cluster.admin(lambda call: UpdateApplicationPriority(call, cluster.id_of("new"), 3, "user"))
    node = cluster.cluster.machine(1).nm
    node.pause()
    cluster.ask("old", 5)
    cluster.ask("new", 5)
    cluster.run(1.5)
    node.resume()
    cluster.run(8)
    assert cluster.count("old", "new") == (2, 6)


TWO_QUEUES = {
    "root.queues": "a,b",
    "root.a.capacity": "50",
    "root.b.capacity": "50",
    "root.a.user-limit-factor": "2",
    "root.b.user-limit-factor": "2",
}


@pytest.mark.case("C6")
def test_an_application_moves_with_its_containers() -> None:
    cluster = CaseCluster(TWO_QUEUES, nodes=(8 * GB,))
    cluster.launch("app", queue="a")
    cluster.ask("app", 3)
    cluster.run(5)
    cluster.admin(lambda call: MoveApplication(call, "user", cluster.id_of("app"), "b"))
    assert cluster.used_mb("root.a", "root.b") == (0, 4 * GB)
    cluster.ask("app", 2)
    cluster.run(5)
    assert cluster.used_mb("root.a", "root.b") == (0, 6 * GB)
    cluster.assert_settled("app")


@pytest.mark.case("C6")
def test_a_stopped_queue_drains_and_takes_no_applications() -> None:
    cluster = CaseCluster(TWO_QUEUES, nodes=(8 * GB,))
    cluster.launch("app", queue="b")
    cluster.refresh({"root.b.state": "STOPPED"})
    assert cluster.queue("root.b").state is QueueState.DRAINING
    cluster.submit("late", queue="b")
    cluster.run(2)
    assert cluster.state("late") is YarnApplicationState.FAILED
    assert "is STOPPED" in cluster.diagnostics("late") or "DRAINING" in cluster.diagnostics("late")
    cluster.ask("app", 1)
    cluster.run(3)
    assert cluster.count("app") == (2,), "what runs there goes on"
    cluster.finish("app")
    cluster.run(5)
    assert cluster.queue("root.b").state is QueueState.STOPPED


@pytest.mark.case("C6")
def test_only_who_may_submits_to_a_queue() -> None:
    acls = {
        "yarn.acl.enable": "true",
        "root.acl_submit_applications": " ",
        "root.acl_administer_queue": " ",
        "root.a.acl_submit_applications": "*",
        "root.b.acl_submit_applications": "bob",
    }
    cluster = CaseCluster({**TWO_QUEUES, **acls}, nodes=(8 * GB,))
    cluster.launch("1", user="bob", queue="b")
    cluster.submit("2", user="ann", queue="b")
    cluster.launch("3", user="ann", queue="a")
    assert "User ann does not have permission to submit application_" in cluster.app("2").refusal
    assert cluster.used_mb("root.a", "root.b") == (GB, GB)


@pytest.mark.case("C7")
def test_the_checks_before_a_container_is_given_are_told_in_order() -> None:
    """Each obstacle is removed once it is seen; the next one appears."""
    conf = {
        **ALL_AT_ONCE,
        "root.queues": "a,b",
        "root.a.capacity": "50",
        "root.a.maximum-capacity": "50",
        "root.a.user-limit-factor": "0.5",
        "root.b.capacity": "50",
    }
    cluster = CaseCluster(conf, nodes=(8 * GB,))
    cluster.launch("app", queue="a")
    cluster.avoid("app", "n1")
    cluster.run(2)
    cluster.ask("app", 8)
    cluster.run(3)
    assert cluster.why("app") == "waits because the application has blacklisted every node that it may use"
    cluster.readmit("app", "n1")
    cluster.run(3)
    assert cluster.why("app").startswith("waits because queue root.a is at its user limit: user holds 3072 of 2048 MB")
    cluster.refresh({"root.a.user-limit-factor": "4"})
    cluster.run(3)
    at_maximum = "waits because queue root.a is at its maximum: it would use 5120 of 4096 MB (maximum-capacity 50 %)"
    assert cluster.why("app") == at_maximum
    cluster.refresh({"root.a.maximum-capacity": "100"})
    cluster.run(3)
    assert cluster.why("app") == "waits because the cluster is full: the most free is on n1: 0 MB free, 1024 needed"
    assert cluster.count("app") == (8,)
