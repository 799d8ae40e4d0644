"""Why an application does not get a container: whose check refused it, the two numbers, and the key to change."""

from __future__ import annotations

import pytest

from rm.core.explain.application import explanation
from tests.rm.builders import RM, resource_request
from yarn.containers import ANY, ResourceRequest
from yarn.errors import ApplicationNotFoundException
from yarn.ids import ApplicationId
from yarn.protocols.inspection import Explanation, ObstacleReport, ObstacleScope, SettingInForce
from yarn.resource import Resource
from yarn.states import YarnApplicationState

CAPACITY = "yarn.scheduler.capacity."
TREE = {
    f"{CAPACITY}root.queues": "a,b",
    f"{CAPACITY}root.a.capacity": "50",
    f"{CAPACITY}root.a.maximum-capacity": "50",
    f"{CAPACITY}root.a.queues": "x",
    f"{CAPACITY}root.a.x.capacity": "100",
    f"{CAPACITY}root.a.x.user-limit-factor": "10",
    f"{CAPACITY}root.b.capacity": "50",
    f"{CAPACITY}root.b.user-limit-factor": "1.5",
    f"{CAPACITY}maximum-am-resource-percent": "1",
}


def explain(rm: RM, app: ApplicationId) -> Explanation:
    return explanation(rm.core.context, app, rm.now_ms)


def one(found: Explanation, reason: str) -> ObstacleReport:
    (obstacle,) = [obstacle for obstacle in found.obstacles if obstacle.reason == reason]
    return obstacle


@pytest.fixture
def rm() -> RM:
    rm = RM(TREE)
    rm.node("n1", 8192)
    return rm


def test_an_explanation_lists_requests_and_the_state(rm: RM) -> None:
    app = rm.submit(queue="x")
    rm.run_am(app)
    far = ResourceRequest(1, "far", Resource(2048, 1), 2, relax_locality=False)
    rm.allocate(app, asks=[resource_request(3), far])
    found = explain(rm, app)
    assert (found.user, found.queue, found.state) == ("ann", "root.a.x", YarnApplicationState.RUNNING)
    assert [(row.resource_name, row.count, row.capability.memory_mb, row.relax_locality) for row in found.asks] == [
        (ANY, 3, 1024, True),
        ("far", 2, 2048, False),
    ]


def test_a_full_queue_names_the_maximum_that_binds_it(rm: RM) -> None:
    """The parent's maximum limits the leaf: 4096 of 8192 MB."""
    app = rm.submit(queue="x")
    rm.run_am(app)
    rm.get(app, 3)
    rm.allocate(app, asks=[resource_request(1)])
    rm.beat("n1")
    full = one(explain(rm, app), "QUEUE_MAXIMUM")
    assert (full.scope, full.subject) == (ObstacleScope.QUEUE, "root.a")
    assert (full.asked, full.bound) == (Resource(4096, 4), Resource(4096, 4))
    assert full.settings == (SettingInForce(f"{CAPACITY}root.a.maximum-capacity", "50 %"),)


def test_a_request_larger_than_the_free_capacity_names_the_parent_queue(rm: RM) -> None:
    app = rm.submit(queue="x")
    rm.run_am(app)
    rm.allocate(app, asks=[resource_request(1, 4096)])
    rm.beat("n1")
    small, leaf = explain(rm, app).obstacles
    assert (small.reason, small.scope, small.subject) == ("QUEUE_HEADROOM", ObstacleScope.APPLICATION, str(app))
    assert (leaf.scope, leaf.subject) == (ObstacleScope.QUEUE, "root.a.x")
    assert (small.asked, small.bound) == (Resource(4096, 1), Resource(3072, 3))
    assert small.settings == (SettingInForce(f"{CAPACITY}root.a.maximum-capacity", "50 %"),)


def test_a_user_limit_names_the_user_and_both_keys(rm: RM) -> None:
    """A user may have 1.5 times the guarantee of 4096 MB."""
    app = rm.submit(queue="b")
    rm.run_am(app)
    rm.get(app, 6)
    rm.allocate(app, asks=[resource_request(1)])
    rm.beat("n1")
    limit = one(explain(rm, app), "USER_LIMIT")
    assert limit.asked is not None
    assert limit.bound is not None
    numbers = (limit.asked.memory_mb, limit.bound.memory_mb)
    assert (limit.scope, limit.subject, numbers) == (ObstacleScope.USER, "ann", (7168, 6144))
    assert limit.settings == (
        SettingInForce(f"{CAPACITY}root.b.user-limit-factor", "1.5"),
        SettingInForce(f"{CAPACITY}root.b.minimum-user-limit-percent", "100 %"),
    )


def test_a_key_for_all_queues_is_named_where_it_applies() -> None:
    rm = RM({**TREE, f"{CAPACITY}maximum-am-resource-percent": "0.1"})
    rm.node("n1", 8192)
    rm.submit(queue="x")
    held = explain(rm, rm.submit(queue="x"))
    (obstacle,) = [obstacle for obstacle in held.obstacles if obstacle.node_id is None]
    assert (obstacle.reason, obstacle.bound) == ("AM_QUEUE_LIMIT", Resource(1024, 1))
    assert obstacle.settings == (SettingInForce(f"{CAPACITY}maximum-am-resource-percent", "0.1"),)


def test_an_application_held_back_by_max_parallel_apps_names_the_limit() -> None:
    rm = RM({**TREE, f"{CAPACITY}root.a.max-parallel-apps": "1", f"{CAPACITY}user.ben.max-parallel-apps": "1"})
    rm.node("n1", 8192)
    rm.submit(queue="x")
    (queue,) = explain(rm, rm.submit(queue="x")).obstacles
    assert queue.settings == (SettingInForce(f"{CAPACITY}root.a.max-parallel-apps", "1"),)
    rm.submit("ben", queue="b")
    (user,) = explain(rm, rm.submit("ben", queue="b")).obstacles
    assert user.settings == (SettingInForce(f"{CAPACITY}user.ben.max-parallel-apps", "1"),)


@pytest.mark.parametrize(
    ("making", "template"),
    [
        ("auto-create-child-queue.enabled", "leaf-queue-template."),
        ("auto-queue-creation-v2.enabled", "auto-queue-creation-v2.template."),
        ("auto-queue-creation-v2.enabled", "auto-queue-creation-v2.leaf-template."),
    ],
)
def test_for_a_created_queue_the_template_is_named(making: str, template: str) -> None:
    key = f"{CAPACITY}root.a.{template}max-parallel-apps"
    rm = RM(
        {
            f"{CAPACITY}root.queues": "a",
            f"{CAPACITY}root.a.capacity": "100" if template.startswith("leaf") else "1w",
            f"{CAPACITY}root.a.{making}": "true",
            f"{CAPACITY}root.a.leaf-queue-template.capacity": "50",
            f"{CAPACITY}queue-mappings": "u:%user:root.a.%user",
            f"{CAPACITY}queue-mappings-override.enable": "true",
            key: "1",
        }
    )
    rm.node("n1", 8192)
    rm.submit(queue="root.a.ann")
    (held_back,) = explain(rm, rm.submit(queue="root.a.ann")).obstacles
    assert held_back.settings == (SettingInForce(key, "1"),)


def test_a_container_larger_than_the_node_names_the_size_of_the_node() -> None:
    rm = RM({f"{CAPACITY}maximum-am-resource-percent": "1"})
    rm.node("n1", 2048)
    rm.node("n2", 8192)
    app = rm.submit()
    rm.run_am(app, "n2")
    rm.allocate(app, asks=[resource_request(1, 4096)])
    rm.beat("n1")
    small = one(explain(rm, app), "NODE_TOTAL_TOO_SMALL")
    assert small.settings == (SettingInForce("yarn.nodemanager.resource.memory-mb", "2048"),)


def test_a_reservation_is_reported_with_its_age(rm: RM) -> None:
    rm.node("n2", 2048)
    first = rm.submit(queue="b")
    rm.run_am(first)
    rm.get(first, 5)
    second = rm.submit("ben", queue="x")
    rm.run_am(second)
    rm.allocate(second, asks=[resource_request(1, 2048)])
    rm.beat("n1")
    since_ms = rm.now_ms
    rm.wait(3000)
    found = explain(rm, second)
    ((kept),) = found.reservations
    assert (kept.node_id.host, kept.resource, kept.since_ms) == ("n1", Resource(2048, 1), since_ms)
    assert found.now_ms - kept.since_ms == 3000


def test_obstacles_are_listed_by_node_after_those_of_the_application(rm: RM) -> None:
    rm.node("n2", 8192)
    app = rm.submit(queue="x")
    rm.run_am(app)
    rm.get(app, 6)
    rm.allocate(app, asks=[resource_request(1, 2048)])
    for host in ("n2", "n1"):
        rm.beat(host)
    places = [
        (found.node_id.host if found.node_id else "", found.scope.name, found.subject)
        for found in explain(rm, app).obstacles
    ]
    assert places == [
        ("n1", "APPLICATION", str(app)),
        ("n1", "QUEUE", "root.a.x"),
        ("n2", "APPLICATION", str(app)),
        ("n2", "QUEUE", "root.a.x"),
    ]


def test_a_finished_or_unknown_application_has_no_obstacles(rm: RM) -> None:
    app = rm.submit(queue="x")
    rm.run_am(app)
    rm.finish(app)
    found = explain(rm, app)
    assert (found.state, found.asks, found.obstacles) == (YarnApplicationState.FINISHED, (), ())
    with pytest.raises(ApplicationNotFoundException, match="application_1_0099"):
        explain(rm, ApplicationId(1, 99))


def test_nodes_are_listed_in_numeric_order() -> None:
    rm = RM({f"{CAPACITY}root.queues": "a", f"{CAPACITY}root.a.capacity": "100"})
    for host in ("n10", "n2", "n1"):
        rm.node(host, 2048)
    app = rm.submit(queue="a")
    rm.run_am(app)
    rm.allocate(app, asks=[resource_request(1, 4096)])
    for host in ("n10", "n2", "n1"):
        rm.beat(host)
    places = [report.node_id.host for report in explain(rm, app).obstacles if report.node_id is not None]
    assert list(dict.fromkeys(places)) == ["n1", "n2", "n10"]
