"""Random configuration apart from the queues: calculator, allocations, locality, preemption, placement rules."""

from __future__ import annotations

import json
import random
from typing import Any

from tests.conformance.generated import preemption
from tests.conformance.generated.queue_tree import PREFIX, Queue

RESOURCE_TYPES = ("yarn.io/gpu", "yarn.io/fpga")
QUEUES_FEW = 8
WORK_PRESERVING = "yarn.resourcemanager.work-preserving-recovery.enabled"
POLICIES = (
    *("specified", "reject", "defaultQueue", "user", "primaryGroup", "secondaryGroup", "primaryGroupUser"),
    *("secondaryGroupUser", "applicationName", "setDefaultQueue", "custom", "custom", "custom"),
)
Properties = dict[str, str]


def cluster_properties(rng: random.Random, features: frozenset[str]) -> Properties:
    """Keys that are not the scheduler's: refreshes do not change them."""
    found: dict[str, Any] = {
        "yarn.scheduler.minimum-allocation-mb": rng.choice([256, 512, 1024, 1024]),
        "yarn.scheduler.maximum-allocation-mb": rng.choice([8192, 16384]),
        "yarn.scheduler.maximum-allocation-vcores": rng.choice([4, 8, 16]),
        "yarn.cluster.max-application-priority": 10,
    }
    if "types" in features:
        types = RESOURCE_TYPES[: rng.choice([1, 1, 2])]
        found["yarn.resource-types"] = ",".join(types)
        for name in types:
            found[f"yarn.resource-types.{name}.maximum-allocation"] = 8
    if "execution" in features:
        # Without this Hadoop fails on demotions.
        found["yarn.resourcemanager.opportunistic-container-allocation.enabled"] = "true"
    if "labels" in features:
        found["yarn.node-labels.enabled"] = "true"
    if "acls" in features:
        found["yarn.acl.enable"] = "true"
        found["yarn.admin.acl"] = "admin"
    if "labels" in features and rng.random() < 0.3:
        found["yarn.resourcemanager.node-labels.am.allow-non-exclusive-allocation"] = "true"
    if "amblacklist" in features:
        blacklisting = "yarn.resourcemanager.am-scheduling.node-blacklisting-"
        found[blacklisting + "enabled"] = "true"
        found[blacklisting + "disable-threshold"] = rng.choice([0.2, 0.5, 0.8, 1.0])
    if "restart" in features:
        found["yarn.resourcemanager.recovery.enabled"] = "true"
        found[WORK_PRESERVING] = rng.choice(["true", "true", "true", "false"])
    if "preemption" in features:
        found |= preemption.cluster_properties(rng, features)
    return {key: str(value) for key, value in found.items()}


def scheduler_properties(rng: random.Random, features: frozenset[str], queues: int) -> Properties:
    """The scheduler's keys that do not belong to a queue. `queues`: how many share the resources for AMs."""
    kind = "Dominant" if "dominant" in features else "Default"
    found: dict[str, Any] = {
        "resource-calculator": f"org.apache.hadoop.yarn.util.resource.{kind}ResourceCalculator",
        "maximum-am-resource-percent": rng.choice([0.1, 0.3, 0.5, 0.5, 1, 1] if queues < QUEUES_FEW else [0.5, 1, 1]),
        "node-locality-delay": rng.choice([-1, 0, 2, 5, 40]),
        "rack-locality-additional-delay": rng.choice([-1, -1, 0, 3]),
    }
    if rng.random() < 0.3:
        found["rack-locality-full-reset"] = "false"
    if rng.random() < 0.4 or "preemption" in features:
        heartbeat = "per-node-heartbeat."
        quick = "preemption" in features
        found[heartbeat + "multiple-assignments-enabled"] = rng.choice(["true"] * (6 if quick else 1) + ["false"])
        found[heartbeat + "maximum-container-assignments"] = rng.choice([-1, -1, 10] if quick else [-1, 1, 3])
        found[heartbeat + "maximum-offswitch-assignments"] = rng.choice([10, 100] if quick else [1, 2, 10])
    if rng.random() < 0.3:
        found["reservations-continue-look-all-nodes"] = "false"
    if "limits" in features:
        found["maximum-applications"] = rng.choice([10, 30, 60, 200])
        if rng.random() < 0.2:
            found["global-queue-max-application"] = rng.choice([3, 8])
    if "parallel" in features:
        found["max-parallel-apps"] = rng.choice([2, 4])
        found["user.max-parallel-apps"] = rng.choice([2, 3])
        found["user.u1.max-parallel-apps"] = rng.choice([1, 5])
    if "universal" in features or "vectors" in features:
        by_refresh = "vectors" not in features and rng.random() < 0.3
        found["legacy-queue-mode.enabled"] = "true" if by_refresh else "false"
    if "preemption" in features:
        found |= preemption.scheduler_properties(rng, features)
    if "acls" in features:
        # Otherwise root's default gives everybody access everywhere.
        found["root.acl_submit_applications"] = " "
        found["root.acl_administer_queue"] = " "
    return {PREFIX + key: str(value) for key, value in found.items()}


def legacy_mappings(rng: random.Random, root: Queue, users: tuple[str, ...]) -> Properties:
    """`u:` and `g:` rules, with names, placeholders and paths that exist or do not."""
    rules = []
    for _ in range(rng.choice([1, 2, 3, 5])):
        leaf = rng.choice(root.leaves())
        parent = leaf.path.rpartition(".")[0]
        target = rng.choice([leaf.path, leaf.path, leaf.name, f"{parent}.%user", "%user", f"{parent}.%primary_group"])
        who = rng.choice([f"u:{rng.choice(users)}", f"u:{rng.choice(users)}", "u:%user", "g:g1", "g:g2"])
        rules.append(f"{who}:{target}")
    return {
        PREFIX + "queue-mappings": ",".join(rules),
        PREFIX + "queue-mappings-override.enable": rng.choice(["true", "false"]),
    }


def application_mappings(rng: random.Random, root: Queue) -> Properties:
    """Rules by application name. They are not keys of the scheduler, so refreshes do not replace them."""
    apps = rng.sample(range(1, 16), rng.choice([1, 3, 6]))
    rules = [f"a{app}:{rng.choice(root.leaves()).path}" for app in apps]
    return {
        "yarn.scheduler.queue-placement-rules": rng.choice(["user-group,app-name", "app-name"]),
        "yarn.scheduler.queue-placement-rules.app-name": ",".join(rules),
    }


def json_rules(rng: random.Random, root: Queue, users: tuple[str, ...]) -> Properties:
    """Rules as JSON: each policy, each fallback, with and without making the queue."""
    rules = [_json_rule(rng, root, users) for _ in range(rng.choice([1, 2, 4, 6]))]
    if rng.random() < 0.7:
        # A rule for applications that no other rule places, so that not too many are refused.
        last = {"customPlacement": rng.choice(root.leaves()).path, "fallbackResult": "reject"}
        rules.append({"type": "user", "matches": "*", "policy": "custom", **last})
    return {
        PREFIX + "mapping-rule-format": "json",
        PREFIX + "mapping-rule-json": json.dumps({"rules": rules}),
        PREFIX + "queue-mappings-override.enable": rng.choice(["true", "false"]),
    }


def _json_rule(rng: random.Random, root: Queue, users: tuple[str, ...]) -> dict[str, Any]:
    kind = rng.choice(["user", "user", "user", "group", "application"])
    matches = {"user": [*users, "*"], "group": ["g1", "g2", "g3"], "application": ["a1", "a2", "a3", "*"]}[kind]
    policy = rng.choice(POLICIES)
    leaf = rng.choice(root.leaves())
    rule: dict[str, Any] = {"type": kind, "matches": rng.choice(matches), "policy": policy}
    if policy == "custom":
        rule["customPlacement"] = rng.choice([leaf.path, leaf.path, leaf.name, "%specified", "root.%user", "%default"])
    elif policy == "setDefaultQueue":
        rule["value"] = leaf.path
    elif policy not in ("specified", "reject", "defaultQueue") and rng.random() < 0.7:
        rule["parentQueue"] = rng.choice([leaf.path.rpartition(".")[0], "root"])
        rule["create"] = rng.random() < 0.5
    rule["fallbackResult"] = rng.choice(["skip", "skip", "placeDefault", "reject"])
    return rule


def auto_creation(rng: random.Random, root: Queue) -> tuple[Properties, list[str]]:
    """Keys that let some parents (and root) create queues dynamically; the paths of those parents."""
    parents = [queue for queue in root.walk() if queue.children]
    chosen = [queue.path for queue in parents if rng.random() < 0.6] or ["root"]
    found: dict[str, Any] = {}
    for path in chosen:
        key = f"{path}.auto-queue-creation-v2."
        found[key + "enabled"] = "true"
        if rng.random() < 0.3:
            found[key + "max-queues"] = rng.choice([1, 2, 4])
        if rng.random() < 0.3:
            found[key + "maximum-queue-depth"] = rng.choice([1, 2, 3])
        if rng.random() < 0.5:
            found[key + "template.capacity"] = rng.choice(["1w", "3w", "5w"])
        if rng.random() < 0.5:
            found[key + "leaf-template.user-limit-factor"] = rng.choice([0.5, 1, 4])
        if rng.random() < 0.3:
            found[key + "leaf-template.maximum-am-resource-percent"] = rng.choice([0.2, 1])
        if rng.random() < 0.2:
            found[f"{path}.v1.auto-queue-creation-v2.queue-auto-removal.enable"] = "false"
    return {PREFIX + key: str(value) for key, value in found.items()}, chosen
