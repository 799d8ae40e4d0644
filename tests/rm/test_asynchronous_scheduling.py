"""Asynchronous scheduling: walks over all nodes place containers (CapacityScheduler.schedule), heartbeats do not."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import TypeAlias

import pytest

from rm.core.events import RefreshNodes
from rm.core.host_lists import HostLists
from rm.core.resource_manager import ResourceManagerCore
from rm.scheduler.config.configuration import CapacitySchedulerConfiguration
from rm.scheduler.model.context import RepeatedCounts
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.requests import SchedulerKey
from rm.scheduler.placement.walk import VISITS_A_PART_MAX, NodeWalks
from tests.compiled import only_interpreted
from tests.rm.builders import ONE_QUEUE, RM, START_MS, done, resource_request
from yarn.configuration import Configuration
from yarn.containers import Container
from yarn.ids import ApplicationId
from yarn.machine import Tick
from yarn.resource import Resource
from yarn.settings.yarnling import CHECK_INVARIANTS
from yarn.states import DecommissionType

PREFIX = "yarn.scheduler.capacity."
ASYNCHRONOUS = {PREFIX + "schedule-asynchronously.enable": "true"}
INTERVAL_MS = 5
ALL_AMS = {PREFIX + "maximum-am-resource-percent": "1"}
TWO_QUEUES = {
    PREFIX + "root.queues": "a,b",
    PREFIX + "root.a.capacity": "50",
    PREFIX + "root.b.capacity": "50",
    PREFIX + "root.b.user-limit-factor": "2",
}


def cluster(
    nodes: int = 1, conf: dict[str, str] | None = None, draw: Callable[[int], int] = lambda _: 0, memory_mb: int = 8192
) -> RM:
    rm = RM({**ASYNCHRONOUS, **ALL_AMS, **(conf or {})}, draw=draw)
    for number in range(1, nodes + 1):
        rm.node(f"n{number}", memory_mb)
    return rm


def with_am(rm: RM, queue: str = "default") -> ApplicationId:
    """An application whose AM runs on the node where the first walk places it."""
    app = rm.submit(queue=queue)
    rm.wait(INTERVAL_MS)
    am = rm.core.context.apps[app].current_attempt.am_container  # type: ignore[union-attr]
    assert am is not None
    rm.run_am(app, am.node_id.host)
    return app


def placed(rm: RM, app: ApplicationId) -> list[tuple[int, str]]:
    """(number, host) of the containers that the application fetches now, in the order of placement."""
    return [(number_of(container), container.node_id.host) for container in rm.allocate(app).allocated]


def number_of(container: Container) -> int:
    return int(str(container.id).rpartition("_")[2])


def ticks(rm: RM, duration_ms: int) -> list[int]:
    """The times of the Ticks that the core wanted, in ms from now."""
    before, start_ms = len(rm.log), rm.now_ms
    rm.wait(duration_ms)
    return [now_ms - start_ms for now_ms, event, _ in rm.log[before:] if isinstance(event, Tick)]


def test_heartbeats_place_nothing_and_the_next_walk_does() -> None:
    rm = cluster()
    app = with_am(rm)
    rm.allocate(app, [resource_request(1)])
    rm.beat("n1")
    assert placed(rm, app) == []
    rm.wait(INTERVAL_MS)
    assert placed(rm, app) == [(2, "n1")]


def test_a_walk_starts_at_the_drawn_node_and_visits_it_twice() -> None:
    """The loop over the nodes before the start includes the start: `if (current++ > start) break`."""
    drawn: list[int] = []

    def draw(count: int) -> int:
        drawn.append(count)
        return 1

    rm = cluster(3, draw=draw)
    app = with_am(rm)
    order = [node.node_id.host for node in rm.core.scheduler.context.nodes_in_hash_order()]
    rm.allocate(app, [resource_request(10)])
    rm.wait(INTERVAL_MS)
    assert [host for _, host in placed(rm, app)] == [order[1], order[2], order[0], order[1]]
    assert set(drawn) == {3}


def test_each_thread_is_a_walk() -> None:
    rm = cluster(2, {PREFIX + "schedule-asynchronously.maximum-threads": "2"})
    app = with_am(rm)
    rm.allocate(app, [resource_request(10)])
    rm.wait(INTERVAL_MS)
    assert len(placed(rm, app)) == 2 * 3


def test_a_silent_node_is_skipped_until_it_sends_a_heartbeat() -> None:
    rm = cluster(2)
    app = with_am(rm)
    rm.beat("n2")
    rm.wait(1500)
    rm.beat("n1")
    rm.wait(501)
    rm.allocate(app, [resource_request(12)])
    rm.wait(100)
    assert {host for _, host in placed(rm, app)} == {"n1"}
    rm.beat("n2")
    rm.wait(100)
    assert {host for _, host in placed(rm, app)} == {"n2"}


def test_a_node_that_missed_just_two_heartbeats_is_visited() -> None:
    rm = cluster(1, {PREFIX + "schedule-asynchronously.scheduling-interval-ms": "1000"})
    app = with_am_slowly(rm)
    heard_ms = rm.now_ms
    rm.beat("n1")
    rm.allocate(app, [resource_request(1)])
    rm.wait(heard_ms + 2000 - rm.now_ms)
    assert len(placed(rm, app)) == 1


def with_am_slowly(rm: RM) -> ApplicationId:
    app = rm.submit()
    rm.wait(1000)
    rm.run_am(app)
    return app


def test_a_node_that_is_being_decommissioned_is_skipped() -> None:
    rm = cluster(2)
    app = with_am(rm)
    leaving = next(host for host in ("n1", "n2") if not rm.nodes[host].running)
    lists = HostLists(excluded=((leaving, None),))
    rm.send(RefreshNodes(rm.call(), lists, DecommissionType.GRACEFUL, 3600))
    rm.allocate(app, [resource_request(3)])
    rm.wait(100)
    assert leaving not in {host for _, host in placed(rm, app)}


def test_an_idle_cluster_has_no_walks() -> None:
    rm = cluster(3)
    app = with_am(rm)
    assert len(ticks(rm, 1000)) < 10
    rm.allocate(app)
    assert len(ticks(rm, 1000)) < 10


def test_walks_that_would_change_nothing_are_left_out() -> None:
    """A full cluster: nothing can be placed until a container ends."""
    rm = cluster(1, memory_mb=4096)
    app = with_am(rm)
    rm.allocate(app, [resource_request(10)])
    rm.wait(100)
    containers = rm.allocate(app).allocated
    rm.run(*containers)
    rm.beat("n1")
    assert len(containers) == 3
    assert len(ticks(rm, 500)) <= 3
    rm.beat("n1", ended=[done(containers[0].id)])
    rm.wait(INTERVAL_MS)
    assert len(rm.allocate(app).allocated) == 1


def test_walks_stay_whole_intervals_apart() -> None:
    rm = cluster(1)
    app = with_am(rm)
    first_ms = rm.now_ms
    rm.wait(1003)
    rm.allocate(app, [resource_request(2)])
    deadline_ms = rm.core.next_deadline_ms()
    assert deadline_ms is not None
    assert 0 < deadline_ms - rm.now_ms <= INTERVAL_MS
    assert (deadline_ms - first_ms) % INTERVAL_MS == 0


def test_a_long_walk_is_divided() -> None:
    rm = cluster(VISITS_A_PART_MAX + 10, memory_mb=2048)
    app = with_am(rm)
    rm.wait(100)
    rm.allocate(app, [resource_request(1000)])
    deadline_ms = rm.core.next_deadline_ms()
    assert deadline_ms is not None
    rm.wait(deadline_ms - rm.now_ms)
    assert len(placed(rm, app)) == VISITS_A_PART_MAX
    rm.wait(1)
    assert len(placed(rm, app)) == 10, "the first node, which is visited again, is full"


def test_a_reservation_is_given_up_for_another_node() -> None:
    """The reserved node is full; another one has become free (reservations-continue-look-all-nodes)."""
    rm = cluster(2, memory_mb=4096)
    app = with_am(rm)
    rm.allocate(app, [resource_request(7)])
    rm.wait(100)
    held = {container.id: container for container in rm.allocate(app).allocated}
    rm.run(*held.values())
    rm.beat("n1")
    rm.beat("n2")
    for host in ("n1", "n2"):
        ended = first_on(held.values(), host)
        del held[ended.id]
        rm.beat(host, ended=[done(ended.id)])
    rm.allocate(app, [resource_request(1, 2048, priority=2)])
    rm.wait(50)
    (reserved,) = [node for node in rm.core.scheduler.nodes.values() if node.reserved_container is not None]
    other = "n2" if reserved.name == "n1" else "n1"
    rm.beat(other, ended=[done(first_on(held.values(), other).id)])
    rm.wait(50)
    assert [host for _, host in placed(rm, app)] == [other]
    assert reserved.reserved_container is None


def first_on(containers: Iterable[Container], host: str) -> Container:
    return next(container for container in containers if container.node_id.host == host)


def test_one_node_and_one_application_get_the_same_containers_as_with_heartbeats() -> None:
    stories = []
    for conf in (ASYNCHRONOUS, {}):
        rm = RM({**conf, **ALL_AMS})
        rm.node("n1")
        app = rm.submit()
        story: list[tuple[int, str]] = []
        for step in range(200):
            rm.wait(INTERVAL_MS)
            rm.beat("n1")
            if step == 20:
                rm.run_am(app)
                rm.allocate(app, [resource_request(3), resource_request(2, 2048, priority=2)])
            elif step > 20:
                containers = rm.allocate(app).allocated
                rm.run(*containers)
                story += [(number_of(container), str(container.resource)) for container in containers]
        stories.append(story)
    assert len(stories[0]) == 5
    assert stories[0] == stories[1]


Story: TypeAlias = list[tuple[int, list[tuple[str, str]], Resource]]
"""The containers that applications get: the time, (container, node) of each container, and the headroom."""

WALKED = (
    {},
    TWO_QUEUES,
    # Large requests, which reserve one node more only after some 50 tries.
    {**TWO_QUEUES, "yarn.scheduler.minimum-allocation-mb": "64", "yarn.scheduler.maximum-allocation-mb": "3072"},
)


def random_life(seed: int, draw: Callable[[int], int], conf: dict[str, str] | None = None) -> tuple[RM, Story]:
    """A random workload on four nodes; what its applications get, and when."""
    numbers, story = random.Random(seed), Story()
    rm = cluster(4, conf, draw=draw, memory_mb=numbers.choice((4096, 8192, 16384)))
    queues, sizes = (("a", "b"), (1024, 2048, 3072)) if conf else (("default",), (1024, 2048))
    apps = [with_am(rm, queues[number % len(queues)]) for number in range(3)]
    held: list[Container] = []
    for _ in range(120):
        rm.wait(numbers.choice((0, 1, 3, 7, 40, 400)))
        app = numbers.choice(apps)
        if numbers.random() < 0.3:
            size = numbers.choice(sizes)
            rm.allocate(app, [resource_request(numbers.randint(0, 4), size, priority=size // 1024)])
        elif numbers.random() < 0.5:
            response = rm.allocate(app)
            containers = response.allocated
            fetched = [(str(container.id), str(container.node_id)) for container in containers]
            story.append((rm.now_ms, fetched, response.headroom))
            rm.run(*containers)
            held += containers
        else:
            host = f"n{numbers.randint(1, 4)}"
            here = [container for container in held if container.node_id.host == host]
            ended = [container for container in here if numbers.random() < 0.4]
            held = [container for container in held if container not in ended]
            rm.beat(host, ended=[done(container.id) for container in ended])
    return rm, story


def counts_and_limits(rm: RM) -> list[object]:
    """The counts of walks for applications, and the limits that they store, after a request has made walks go on."""
    scheduler = rm.core.context.scheduler
    rm.allocate(next(iter(rm.core.context.apps)), [resource_request(1, priority=9)])
    found: list[object] = []
    for app in rm.core.context.apps:
        attempt = scheduler.attempt_of(app)
        assert attempt is not None
        leaf = LeafQueue.of(attempt)
        found += [dict(attempt.opportunities), dict(attempt.missed_non_partitioned), dict(attempt.re_reservations)]
        found += [leaf.current_limit, leaf.copied_limit, *(user.limit for user in leaf.users.users.values())]
    return found


def with_all_walks(patch: pytest.MonkeyPatch) -> None:
    """No walk is left out as long as there are nodes."""
    patch.setattr(NodeWalks, "_has_nothing_to_do", lambda walks: not walks._context.nodes)
    patch.setattr(NodeWalks, "_end", lambda walks: None)


@only_interpreted
@pytest.mark.unmeasured
@pytest.mark.parametrize("lives", [range(1), pytest.param(range(1, 6), marks=pytest.mark.slow)], ids=str)
@pytest.mark.parametrize("conf", WALKED)
def test_left_out_walks_change_no_decision(conf: dict[str, str], lives: range, monkeypatch: pytest.MonkeyPatch) -> None:
    containers = left_out = 0
    for life in lives:
        rm, story = random_life(life, lambda _: 0, conf)
        with monkeypatch.context() as patch:
            with_all_walks(patch)
            always, story_of_all = random_life(life, lambda _: 0, conf)
        assert story == story_of_all, life
        containers += sum(len(fetched) for _, fetched, _ in story)
        left_out += len(always.log) - len(rm.log)
        assert counts_and_limits(rm) == counts_and_limits(always)
    assert containers > 6 * len(lives)
    assert left_out > 160 * len(lives)


def test_opportunities_that_change_nothing_do_not_keep_walks_going() -> None:
    """A request fits nowhere, and counts an opportunity at each visit. They are added up when walks go on."""
    rm = cluster(2, {PREFIX + "reservations-continue-look-all-nodes": "true"}, memory_mb=4096)
    app = with_am(rm)
    rm.allocate(app, [resource_request(7)])
    rm.wait(100)
    held = {container.id: container for container in rm.allocate(app).allocated}
    rm.run(*held.values())
    for host in ("n1", "n2"):
        rm.beat(host, ended=[done(first_on(held.values(), host).id)])
    rm.allocate(app, [resource_request(1, 2048, priority=2)])
    rm.wait(100)
    assert len(ticks(rm, 1000)) < 10
    attempt = rm.core.context.scheduler.attempt_of(app)
    assert attempt is not None
    counted = sum(attempt.opportunities.values())
    rm.allocate(app, [resource_request(2, 2048, priority=2)])
    assert sum(attempt.opportunities.values()) - counted >= 1000 // INTERVAL_MS


def test_limits_that_change_at_each_visit_do_not_keep_walks_going() -> None:
    """The limit of a queue differs for its reservation, which ignores the queues above, and for other nodes."""
    rm = cluster(3, {**TWO_QUEUES, PREFIX + "root.a.maximum-capacity": "60"}, memory_mb=4096)
    reserving, other = with_am(rm, "a"), with_am(rm, "b")
    rm.allocate(other, [resource_request(5)])
    rm.wait(100)
    rm.run(*rm.allocate(other).allocated)
    rm.allocate(reserving, [resource_request(1, 4096, priority=2)])
    rm.wait(100)
    assert sum(node.reserved_container is not None for node in rm.core.scheduler.nodes.values()) == 1
    assert len(ticks(rm, 1000)) < 10


def reservations_over_time(rm: RM) -> list[tuple[int, int]]:
    """(ms, number of reservations) each time that the number changes, for a large request that fits on no node."""
    app = with_am(rm)
    rm.allocate(app, [resource_request(5, 1536)])
    rm.wait(100)
    rm.run(*rm.allocate(app).allocated)
    rm.allocate(app, [resource_request(1, 3072, priority=2)])
    found = [(0, 0)]
    for passed_ms in range(1, 1001):
        rm.wait(1)
        count = sum(node.reserved_container is not None for node in rm.core.scheduler.nodes.values())
        if count != found[-1][1]:
            found.append((passed_ms, count))
    return found


@only_interpreted
def test_tries_to_fill_reservations_are_left_out_until_one_more_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    conf = {"yarn.scheduler.minimum-allocation-mb": "64", "yarn.scheduler.maximum-allocation-mb": "3072"}
    rm = cluster(5, conf, memory_mb=4096)
    found = reservations_over_time(rm)
    assert [count for _, count in found] == [0, 1, 2, 3]
    assert sum(isinstance(event, Tick) for _, event, _ in rm.log) < 30
    with_all_walks(monkeypatch)
    assert reservations_over_time(cluster(5, conf, memory_mb=4096)) == found


def test_a_count_that_each_walk_restarts_is_not_raised() -> None:
    counts = RepeatedCounts()
    key, other = SchedulerKey(False, 1, -1), SchedulerKey(False, 2, -1)
    missed = {key: 2, other: 2}
    for raised in (key, key, other):
        counts.note_raised(missed, raised, None)
    counts.note_restarted(missed, other)
    counts.raise_again(10)
    assert missed == {key: 22, other: 2}


def test_a_log_replays_with_the_same_random_numbers() -> None:
    rm, _ = random_life(7, random.Random(42).randrange)
    configuration = Configuration.of({CHECK_INVARIANTS.key: "true", **ONE_QUEUE, **ASYNCHRONOUS, **ALL_AMS})
    core = ResourceManagerCore(configuration, cluster_timestamp=START_MS, strict=True, draw=random.Random(42).randrange)
    for now_ms, event, effects in rm.log:
        assert core.handle(event, now_ms) == effects


def test_the_settings_have_the_defaults_of_hadoop() -> None:
    def settings(values: dict[str, str]) -> tuple[bool, int, int, int]:
        tree = {PREFIX + "root.queues": "a", PREFIX + "root.a.capacity": "100"}
        found = CapacitySchedulerConfiguration.read(Configuration.of({**tree, **values})).asynchronous
        return found.enabled, found.interval_ms, found.threads, found.skip_after_ms

    assert settings({}) == (False, 5, 1, 2000)
    assert settings(
        {
            **ASYNCHRONOUS,
            PREFIX + "schedule-asynchronously.scheduling-interval-ms": "50",
            PREFIX + "schedule-asynchronously.maximum-threads": "0",
            "yarn.scheduler.skip.node.multiplier": "3",
            "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": "500",
        }
    ) == (True, 50, 1, 1500)
