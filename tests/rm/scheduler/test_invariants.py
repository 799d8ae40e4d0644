"""The invariants see what is broken, and hold whatever happens in whatever order."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rm.lifecycles.rm_container import RMContainerEvent
from rm.scheduler.invariants import violations
from rm.scheduler.parent_queue import ParentQueue
from tests.rm.scheduler.cluster import GB, Cluster, row
from tests.rm.scheduler.conftest import StartCluster
from yarn.containers import ContainerStatus
from yarn.resource import Resource
from yarn.states import ContainerState

TWO_QUEUES = {
    "root.queues": "a,b",
    "root.a.capacity": "40",
    "root.a.maximum-capacity": "70",
    "root.a.minimum-user-limit-percent": "50",
    "root.b.capacity": "60",
    "root.b.user-limit-factor": "2",
    "maximum-am-resource-percent": "0.5",
    "node-locality-delay": "2",
}
NODES = ("n1", "n2", "n3")
APPS = ("app1", "app2", "app3", "app4")


def _break_node(cluster: Cluster) -> None:
    cluster.node_of("n1").unallocated = Resource(1, 1)


def _break_over_commit(cluster: Cluster) -> None:
    cluster.node_of("n1").update_total(Resource(512, 1))


def _break_node_containers(cluster: Cluster) -> None:
    node = cluster.node_of("n1")
    node.allocated, node.unallocated = Resource(0, 0), node.total


def _break_leaf(cluster: Cluster) -> None:
    cluster.attempt("app1").usage.default.used = Resource(0, 0)


def _break_parent(cluster: Cluster) -> None:
    cluster.scheduler.queues["root"].usage.default.used = Resource(1, 1)


def _break_user(cluster: Cluster) -> None:
    cluster.leaf().users.users["user"].usage.default.used = Resource(1, 1)


def _break_pending(cluster: Cluster) -> None:
    cluster.attempt("app1").usage.default.pending = Resource(7, 7)


def _break_reservation(cluster: Cluster) -> None:
    reserved = cluster.node_of("n1").reserved_container
    cluster.node_of("n1").reserved_container = None
    cluster.node_of("n2").reserved_container = reserved


def _break_reservation_owner(cluster: Cluster) -> None:
    cluster.attempt("app1").is_stopped = True


def _break_masters(cluster: Cluster) -> None:
    cluster.leaf().usage.default.am_used = Resource(GB, 2)


def _break_count(cluster: Cluster) -> None:
    cluster.leaf().container_count += 1


def _break_count_above(cluster: Cluster) -> None:
    cluster.scheduler.queues["root"].container_count -= 1


def _break_count_of_applications(cluster: Cluster) -> None:
    root = cluster.scheduler.queues["root"]
    assert isinstance(root, ParentQueue)
    root.application_count += 1


def _break_count_of_asks(cluster: Cluster) -> None:
    for _, asked in cluster.attempt("app1").asks.rows():
        asked.count = -1


def _break_place(cluster: Cluster) -> None:
    container = next(iter(cluster.attempt("app1").live_containers.values()))
    cluster.node_of("n2").allocate_container(container)


def _break_hold(cluster: Cluster) -> None:
    container = next(iter(cluster.attempt("app1").live_containers.values()))
    cluster.node_of("n1").release_container(container.id, by_node=True)


def _break_state(cluster: Cluster) -> None:
    container = next(iter(cluster.attempt("app1").live_containers.values()))
    container.handle(RMContainerEvent.KILL, ContainerStatus(container.id, ContainerState.COMPLETE), cluster.now_ms)


@pytest.mark.parametrize(
    ("number", "damage"),
    [
        ("I-01", _break_node),
        ("I-02", _break_over_commit),
        ("I-03", _break_node_containers),
        ("I-04", _break_leaf),
        ("I-05", _break_parent),
        ("I-06", _break_user),
        ("I-10", _break_masters),
        ("I-11", _break_count),
        ("I-11", _break_count_above),
        ("I-11", _break_count_of_applications),
        ("I-14", _break_pending),
        ("I-14", _break_count_of_asks),
        ("I-15", _break_place),
        ("I-15", _break_hold),
        ("I-18", _break_reservation),
        ("I-19", _break_reservation_owner),
        ("I-28", _break_state),
    ],
)
def test_damage_is_found(number: str, damage: Callable[[Cluster], None], start_cluster: StartCluster) -> None:
    cluster = start_cluster(exempt=tuple(f"I-{every:02}" for every in range(1, 32)))
    cluster.node("n1", 4 * GB)
    cluster.node("n2", 4 * GB)
    cluster.run("app1", "n1")
    cluster.ask("app1", 1, 4 * GB)
    cluster.beat("n1")
    assert violations(cluster.scheduler) == []
    damage(cluster)
    assert number in {violation.split(":")[0] for violation in violations(cluster.scheduler)}


def test_a_queue_above_its_maximum_is_found(start_cluster: StartCluster) -> None:
    """What is held stays when the cluster shrinks: an exemption, not a bug."""
    cluster = start_cluster(exempt=("I-08",))
    cluster.node("n1", 4 * GB)
    cluster.node("n2", 4 * GB)
    cluster.run("app1", "n1")
    cluster.ask("app1", 3)
    cluster.beat("n1", 3)
    cluster.lose("n2")
    assert violations(cluster.scheduler) == []
    cluster.scheduler.queues["root.a"].capacities.default.effective_maximum = Resource(GB, 1)
    assert violations(cluster.scheduler)[0].startswith("I-08: root.a")


STEPS = st.one_of(
    st.tuples(st.just("beat"), st.sampled_from(NODES)),
    st.tuples(st.just("beat"), st.sampled_from(NODES)),
    st.tuples(st.just("ask"), st.sampled_from(APPS), st.integers(0, 6), st.integers(1, 6), st.sampled_from(NODES)),
    st.tuples(st.just("submit"), st.sampled_from(APPS), st.sampled_from(("u1", "u2")), st.sampled_from(("a", "b"))),
    st.tuples(st.just("poll"), st.sampled_from(APPS)),
    st.tuples(st.just("finish"), st.sampled_from(APPS), st.integers(0, 9)),
    st.tuples(st.just("release"), st.sampled_from(APPS), st.integers(0, 9)),
    st.tuples(st.just("end"), st.sampled_from(APPS)),
    st.tuples(st.just("retry"), st.sampled_from(APPS)),
    st.tuples(st.just("resize"), st.sampled_from(NODES), st.integers(4, 12)),
    st.tuples(st.just("bounce"), st.sampled_from(NODES)),
)


@settings(max_examples=60, deadline=None)
@given(steps=st.lists(STEPS, max_size=60))
def test_they_hold_after_any_steps(steps: list[tuple[object, ...]]) -> None:
    """Room and usage add up whatever comes; a queue above its maximum or a node above its total only by a resize.

    An ask that changes its size while a node is reserved for it is filled as Hadoop does it, with two sizes, so the
    sizes of one priority stay the same here.
    """
    cluster = Cluster(TWO_QUEUES)
    for name in NODES:
        cluster.node(name, 8 * GB)
    for step in steps:
        _take(cluster, *step)
        assert violations(cluster.scheduler, exempt=("I-02", "I-08", "I-19")) == [], step


def _take(cluster: Cluster, name: object, *arguments: object) -> None:
    """One step, if it can be taken now."""
    match (name, *arguments):
        case ("beat", str(node)):
            cluster.beat(node)
        case ("resize", str(node), int(size)):
            cluster.resize(node, size * GB)
        case ("bounce", str(node)):
            cluster.lose(node)
            cluster.node(node, 8 * GB)
        case ("submit", str(app), str(user), str(queue)):
            if not _is_alive(cluster, app):
                cluster.submit(f"{app}", user, queue)
        case (_, str(app), *rest) if _is_alive(cluster, app):
            _take_of(cluster, str(name), app, rest)
        case _:
            pass


def _take_of(cluster: Cluster, name: str, app: str, rest: list[object]) -> None:
    match (name, *rest):
        case ("ask", int(count), int(size), str(node)):
            places = (node, "/r1", "*")
            cluster.send(app, [row(count, size * GB, priority=size, name=place) for place in places])
        case ("poll",):
            cluster.poll(app)
        case ("finish", int(pick)):
            running = [n for n in _numbers(cluster, app) if n != 1]
            if running:
                cluster.finish(app, running[pick % len(running)])
        case ("release", int(pick)):
            held = _numbers(cluster, app)
            if held:
                cluster.release(app, held[pick % len(held)])
        case ("end",):
            cluster.end(app)
        case ("retry",):
            cluster.retry(app)
        case _:
            raise AssertionError(name)


def _is_alive(cluster: Cluster, app: str) -> bool:
    try:
        return not cluster.attempt(app).is_stopped
    except KeyError:
        return False


def _numbers(cluster: Cluster, app: str) -> list[int]:
    return sorted(container_id.number for container_id in cluster.attempt(app).live_containers)
