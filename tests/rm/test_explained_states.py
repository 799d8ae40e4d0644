"""Verdicts and changes in random states: each is checked on a second core that was brought into the same state."""

from __future__ import annotations

import re
from random import Random

import pytest

from rm.core.explain.application import explanation
from rm.core.explain.trial import PASSES
from tests.rm.builders import RM
from tests.rm.test_verdicts import CAPACITY
from yarn.configuration import OVERRIDE, Entry
from yarn.containers import ANY, ResourceRequest
from yarn.ids import ApplicationId, NodeId
from yarn.protocols.inspection import VerdictReport
from yarn.resource import Resource

FEW, MORE = 10, 30
"""The number of states in every run."""

NOT_BY_ITSELF = frozenset(
    {
        *("PARALLEL_LIMIT", "AM_QUEUE_LIMIT", "AM_USER_LIMIT", "NO_NODE", "PLACE", "TOO_LARGE"),
        *("QUEUE_MAXIMUM", "USER_LIMIT", "PARTITION_FULL", "NODE_FULL", "RESERVED_FOR_OTHERS", "RESERVATION"),
    }
)
"""Causes with which a heartbeat alone places nothing for the request."""


def random_rm(seed: int) -> tuple[RM, list[ApplicationId]]:
    """A core after random operations, the same for the same seed, and its applications."""
    rng = Random(seed)
    rm = RM(
        {
            f"{CAPACITY}root.queues": "a,b",
            f"{CAPACITY}root.a.capacity": "40",
            f"{CAPACITY}root.a.maximum-capacity": rng.choice(("40", "60", "100")),
            f"{CAPACITY}root.a.user-limit-factor": rng.choice(("0.5", "1", "3")),
            f"{CAPACITY}root.a.minimum-user-limit-percent": rng.choice(("25", "50", "100")),
            f"{CAPACITY}root.b.capacity": "60",
            f"{CAPACITY}root.b.maximum-capacity": rng.choice(("60", "80", "100")),
            f"{CAPACITY}root.b.max-parallel-apps": rng.choice(("1", "3")),
            f"{CAPACITY}root.b.ordering-policy": rng.choice(("fifo", "fair")),
            f"{CAPACITY}maximum-am-resource-percent": rng.choice(("0.2", "0.5", "1")),
            f"{CAPACITY}node-locality-delay": "2",
            "yarn.resourcemanager.scheduler.monitor.enable": rng.choice(("true", "false")),
            "yarn.resourcemanager.monitor.capacity.preemption.total_preemption_per_round": "1",
            "yarn.resourcemanager.monitor.capacity.preemption.natural_termination_factor": "1",
        }
    )
    hosts = [f"n{number}" for number in range(1, rng.randint(2, 4))]
    for host in hosts:
        rm.node(host, 1024 * rng.randint(3, 10))
    apps: list[ApplicationId] = []
    for _ in range(rng.randint(3, 6)):
        apps.append(rm.submit(rng.choice(("ann", "ben")), queue=rng.choice("ab")))
        rm.beat(rng.choice(hosts))
    for _ in range(rng.randint(5, 15)):
        random_step(rm, rng, rng.choice(apps), hosts)
    return rm, apps


def random_step(rm: RM, rng: Random, app: ApplicationId, hosts: list[str]) -> None:
    """Something that an AM or a node does."""
    rm.wait(rng.choice((0, 500)))
    if rm.attempt_state(app) == "ALLOCATED":
        rm.launch(app)
        rm.register(app)
    elif rm.attempt_state(app) == "RUNNING":
        rm.run(*rm.allocate(app).allocated)
        size = Resource(1024 * rng.randint(1, 4), 1)
        rm.allocate(app, asks=[ResourceRequest(rng.randint(1, 2), ANY, size, rng.randint(1, 4))])
    rm.beat(rng.choice(hosts))


def pending(rm: RM, app: ApplicationId, verdict: VerdictReport) -> int:
    attempt = rm.core.context.scheduler.attempt_of(app)
    assert attempt is not None
    keys = [key for key in attempt.requests.keys if key.priority == verdict.priority]
    return attempt.requests.count(keys[0]) if keys else 0


def make(rm: RM, change: str) -> int:
    """Make the change on the core; returns the seconds within which it works."""
    scheduler = rm.core.context.scheduler
    if found := re.match(r"with (\d+) MB more on (\S+)", change):
        node = scheduler.nodes[NodeId(found[2], 45454)]
        scheduler.update_node_resource(node.node_id, node.total + Resource(int(found[1]), 0), rm.now_ms)
    elif found := re.match(r"with another node of (\d+) MB ", change):
        rm.node("another", int(found[1]))
    elif found := re.match(r"with (\S+) (\S+) \(", change):
        key = {f"{CAPACITY}{found[1]}": Entry(found[2], OVERRIDE)}
        scheduler.reinitialize(scheduler.context.settings.source.with_entries(key), rm.now_ms)
    elif found := re.match(r"if application_\d+_(\d+) ended", change):
        rm.kill(next(app for app in rm.core.context.apps if app.id == int(found[1])))
    elif found := re.match(r"in (\d+) s by preemption", change):
        return int(found[1])
    else:
        assert change.startswith("at the next heartbeats"), change
    return 0


def works(seed: int, app: ApplicationId, verdict: VerdictReport, change: str) -> bool:
    """True if the request gets a container after the change, by heartbeats alone."""
    rm, _ = random_rm(seed)
    wanted = pending(rm, app, verdict)
    assert wanted > 0
    end_ms = rm.now_ms + 1000 * make(rm, change)
    while True:
        for _ in range(PASSES):
            for host in list(rm.nodes):
                rm.beat(host)
                if pending(rm, app, verdict) < wanted:
                    return True
        if rm.now_ms > end_ms + 3000:
            return False
        rm.wait(1000)


@pytest.mark.parametrize(
    "state",
    [
        *range(FEW),
        *(pytest.param(state, marks=pytest.mark.slow) for state in range(FEW, MORE)),
        *(pytest.param(state, marks=pytest.mark.soak) for state in range(MORE, 200)),
    ],
)
def test_changes_work_and_verdicts_hold(state: int) -> None:
    rm, apps = random_rm(state)
    for app in apps:
        for verdict in explanation(rm.core.context, app, rm.now_ms, what_if=True).verdicts:
            for change in verdict.changes:
                assert works(state, app, verdict, change), f"{app}: {verdict.sentence}: {change}"
            if verdict.cause in NOT_BY_ITSELF:
                again, _ = random_rm(state)
                wanted = pending(again, app, verdict)
                again.beat(next(iter(again.nodes)))
                assert pending(again, app, verdict) == wanted, f"{app}: {verdict.sentence}"
