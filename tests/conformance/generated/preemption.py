"""Preemption in a random scenario: queues above their guarantee, queues below it, and rounds."""

from __future__ import annotations

import random
from typing import Any

from tests.conformance.generated.app_actions import PICKS, submit
from tests.conformance.generated.draft import App, Draft
from tests.conformance.generated.node_actions import all_heartbeats
from tests.conformance.generated.queue_tree import Queue

MONITOR = "yarn.resourcemanager.monitor.capacity.preemption."


def cluster_properties(rng: random.Random, features: frozenset[str]) -> dict[str, Any]:
    """The policy's keys, which are not keys of the scheduler."""
    found: dict[str, Any] = {
        "yarn.resourcemanager.scheduler.monitor.enable": "true",
        MONITOR + "total_preemption_per_round": rng.choice([0.1, 0.3, 1.0, 1.0, 1.0]),
        MONITOR + "natural_termination_factor": rng.choice([0.2, 0.5, 1.0, 1.0, 1.0]),
        MONITOR + "max_ignored_over_capacity": rng.choice([0.0, 0.1]),
        MONITOR + "max_wait_before_kill": rng.choice([0, 0, 5000, 15000]),
    }
    if rng.random() < 0.15:
        found[MONITOR + "conservative-drf"] = "true"
    if rng.random() < 0.15:
        found[MONITOR + "additional_res_balance_based_on_reserved_containers"] = "true"
    if rng.random() < 0.03:
        found[MONITOR + "observe_only"] = "true"
    if "surgical" in features:
        found[MONITOR + "select_based_on_reserved_containers"] = "true"
    if "balance" in features:
        balance = MONITOR + "preemption-to-balance-queue-after-satisfied."
        found[balance + "enabled"] = "true"
        if rng.random() < 0.7:
            found[balance + "max-wait-before-kill"] = rng.choice([0, 1, 4000, 20000])
    if "intra" in features:
        intra = MONITOR + "intra-queue-preemption."
        found[intra + "enabled"] = "true"
        found[intra + "minimum-threshold"] = rng.choice([0.0, 0.5])
        found[intra + "max-allowable-limit"] = rng.choice([0.2, 0.6, 1.0])
        found[intra + "preemption-order-policy"] = rng.choice(["userlimit_first", "priority_first"])
        if rng.random() < 0.3:
            found[intra + "conservative-drf"] = "false"
    return found


def scheduler_properties(rng: random.Random, features: frozenset[str]) -> dict[str, Any]:
    """Keys of the scheduler that belong to preemption, without their prefix."""
    found: dict[str, Any] = {}
    if "lazy" in features:
        found["lazy-preemption-enabled"] = "true"
    if "upward" in features:
        upward = "ordering-policy.priority-utilization.underutilized-preemption."
        found[upward + "enabled"] = "true"
        found[upward + "reserved-container-delay-ms"] = "0"
        found[upward + "allow-move-reservation"] = rng.choice(["false", "true"])
    return found


def preempt(draft: Draft) -> None:
    draft.do("preempt", advance=draft.rng.choice([3000, 3000, 15000]))


def press(draft: Draft) -> None:
    """Some queues fill the cluster, then another one requests its guarantee; rounds follow."""
    rng, leaves = draft.rng, draft.root.leaves()
    owed, *rich = rng.sample(leaves, min(rng.choice([2, 2, 3]), len(leaves)))
    creditors = _started(draft, owed, rng.choice([1, 1, 2]))
    debtors = [app for leaf in rich for app in _started(draft, leaf, rng.choice([1, 2, 3]))]
    _fill(draft, debtors, rng.choice([512, 1024, 1024, 2048]))
    for app in creditors:
        _want(draft, app)
    for _ in range(rng.choice([1, 2])):
        all_heartbeats(draft)
    rounds(draft, [*debtors, *creditors])


def press_inside(draft: Draft) -> None:
    """An application fills a leaf, then others in it make requests, of other users or at a higher priority."""
    leaf, rng = draft.leaf(), draft.rng
    first, *others = _started(draft, leaf, rng.choice([2, 3]))
    _fill(draft, [first], rng.choice([512, 1024, 1024, 2048]))
    for app in others:
        _want(draft, app)
        if draft.has("priority") and rng.random() < 0.6:
            draft.do("set_priority", app=app.name, priority=rng.randint(1, 9))
    all_heartbeats(draft)
    rounds(draft, [first, *others])


def rounds(draft: Draft, apps: list[App]) -> None:
    """Rounds of the policy, with heartbeats of AMs and nodes in between."""
    rng = draft.rng
    for _ in range(rng.choice([3, 4, 6])):
        preempt(draft)
        if rng.random() < 0.4:
            draft.do("allocate", app=rng.choice(apps).name)
        if rng.random() < 0.5 and draft.up:
            draft.do("heartbeat", node=rng.choice(draft.up))
        if rng.random() < 0.15:
            draft.do("finish", app=rng.choice(apps).name, pick=rng.randint(0, PICKS))
        if rng.random() < 0.3:
            all_heartbeats(draft)


def _started(draft: Draft, leaf: Queue, count: int) -> list[App]:
    apps = [submit(draft, leaf) for _ in range(count)]
    for host in draft.up:
        draft.do("heartbeat", node=host)
    for app in apps:
        draft.do("register", app=app.name)
    return apps


def _fill(draft: Draft, apps: list[App], memory: int) -> None:
    """Containers of one size, until nothing fits, all of them running."""
    rng = draft.rng
    for app in apps:
        resource = {"memory": memory, "vcores": 1}
        asks = [
            {"priority": priority, "resource": resource, "name": "*", "count": rng.choice([30, 60, 100])}
            for priority in rng.sample([1, 2, 5, 10], rng.choice([1, 1, 2]))
        ]
        draft.do("allocate", app=app.name, asks=asks)
    for _ in range(rng.choice([2, 3, 5])):
        for host in draft.up:
            draft.do("heartbeat", node=host)
    for app in apps:
        draft.do("allocate", app=app.name)
    for host in draft.up:
        draft.do("heartbeat", node=host)


def _want(draft: Draft, app: App) -> None:
    rng = draft.rng
    resource = {"memory": rng.choice([512, 1024, 1024, 2048, 4096, 8192]), "vcores": rng.choice([1, 1, 2])}
    ask: dict[str, Any] = {"priority": rng.choice([1, 1, 3]), "resource": resource, "name": "*"}
    if draft.labels and rng.random() < 0.3:
        ask["label"] = rng.choice([*draft.labels, ""])
    draft.do("allocate", app=app.name, asks=[{**ask, "count": rng.choice([1, 3, 10, 30, 30])}])
