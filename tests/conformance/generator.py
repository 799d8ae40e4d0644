"""Random scenarios from a seed: a configuration, a cluster, and some hundred steps of nodes, clients and AMs.

The same seed, features and length give the same scenario on every machine. A scenario need not make sense throughout:
steps about what has ended or never was admitted are part of it, since Hadoop answers those too.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.conformance.generated import app_actions, node_actions, preemption, queue_actions, restarts, settings
from tests.conformance.generated.draft import Draft
from tests.conformance.generated.features import NOTATIONS, SETS, draw
from tests.conformance.generated.queue_tree import Queue, Shape, grow, properties
from tests.conformance.scenario import Scenario

STEPS_DEFAULT = 300

Action = Callable[[Draft], object]

ACTIONS: list[tuple[Action, str | None, float]] = [
    (node_actions.heartbeat, None, 26),
    (node_actions.all_heartbeats, None, 7),
    (app_actions.ask, None, 16),
    (app_actions.poll, None, 8),
    (app_actions.finish, None, 9),
    (app_actions.release, None, 3),
    (app_actions.submit, None, 4),
    (app_actions.register_some, None, 4),
    (app_actions.unregister, None, 1.5),
    (app_actions.kill, None, 1),
    (preemption.preempt, "preemption", 10),
    (preemption.press, "preemption", 2),
    (preemption.press_inside, "intra", 2),
    (app_actions.fail_master, "faults", 2.5),
    (node_actions.lose_node, "faults", 2),
    (node_actions.rejoin, "faults", 3.75),
    (node_actions.restart, "faults", 0.75),
    (node_actions.resize, "faults", 1.75),
    (app_actions.fail_with_kept_containers, "keep", 3.75),
    (node_actions.turn_unhealthy_or_back, "health", 3.75),
    (node_actions.be_unhealthy_for_a_while, "health", 1.25),
    (node_actions.decommission, "decommissioning", 1.5),
    (node_actions.drain, "decommissioning", 2),
    (node_actions.recommission_or_rejoin, "decommissioning", 3.75),
    (restarts.restart, "restart", 3),
    (restarts.resync, "restart", 2),
    (restarts.end_wait, "restart", 1),
    (app_actions.move, "moves", 3),
    (app_actions.set_priority, "priority", 2.5),
    (queue_actions.change_numbers, "refresh", 1.25),
    (queue_actions.add_or_remove_queues, "queues", 2),
    (queue_actions.stop_or_run, "states", 2),
    (queue_actions.remove_idle_queues, "autocreate", 3),
    (app_actions.end_many, "autocreate", 1),
    (app_actions.end_many, "states", 0.75),
    (app_actions.end_many, "queues", 0.75),
    (app_actions.update, "updates", 7.5),
    (app_actions.promote_or_demote, "execution", 5),
    (app_actions.blacklist, "blacklist", 2.5),
    (app_actions.expire, "expiry", 3.75),
    (node_actions.label_nodes, "labels", 1),
    (node_actions.add_label, "labels", 0.25),
    (node_actions.remove_label, "labels", 0.25),
]
"""The possible actions: the action, the feature that it belongs to (None: always), its weight."""


def generate(
    seed: int, steps: int = STEPS_DEFAULT, allowed: frozenset[str] = SETS["random"], *, every: bool = False
) -> Scenario:
    """The scenario of a seed. `every`: it has all allowed features (and one notation), otherwise some."""
    rng = random.Random(seed)
    features = draw(rng, allowed, every=every)
    draft, configuration = _begin(rng, features)
    actions = [(action, weight) for action, feature, weight in ACTIONS if feature is None or feature in features]
    while len(draft.steps) < steps:
        rng.choices([action for action, _ in actions], [weight for _, weight in actions])[0](draft)
    return Scenario(f"seed-{seed}", configuration, draft.steps[:steps], {"features": sorted(features)})


def _begin(rng: random.Random, features: frozenset[str]) -> tuple[Draft, dict[str, str]]:
    """A cluster with some nodes and applications, and the configuration that it started with."""
    cluster = settings.cluster_properties(rng, features)
    resource_types = tuple(filter(None, cluster.get("yarn.resource-types", "").split(",")))
    shape = _shape(rng, features, resource_types)
    root = grow(rng, shape)
    fixed, auto_parents = _fixed(rng, features, shape, root)
    draft = Draft(rng, features, shape, root, fixed, resource_types, auto_parents)
    draft.keeps_containers = cluster.get(settings.WORK_PRESERVING, "true") == "true"
    if "appnames" in features and "mappings" in features:
        cluster |= settings.application_mappings(rng, root)
    configuration = {**cluster, **fixed, **properties(root, shape)}
    if shape.labels:
        draft.do("add_labels", labels=[{"name": name, "exclusive": rng.random() < 0.5} for name in shape.labels])
    for _ in range(rng.choice([2, 3, 4, 4, 5, 6])):
        node_actions.add_node(draft)
    if shape.labels:
        node_actions.label_nodes(draft)
    turned_away = features & {"acls", "rules", "mappings", "names"}
    for _ in range(rng.randint(4, 7) if turned_away else rng.randint(2, 4)):
        app_actions.submit(draft)
    if "preemption" in features:
        preemption.press(draft)
    return draft, configuration


def _shape(rng: random.Random, features: frozenset[str], resource_types: tuple[str, ...]) -> Shape:
    notation = next(name for name in NOTATIONS if name in features)
    depths = [3, 4, 5] if "deep" in features else [1, 1, 2] if "preemption" in features else [1, 1, 2, 2, 3]
    # Absolute capacities above the cluster are scaled down; below it, the rest stays unused.
    gigabytes = rng.choice([16, 40, 80, 1000])
    cluster = {"memory": gigabytes * 1024, "vcores": gigabytes} | dict.fromkeys(resource_types, gigabytes // 2)
    users = tuple(f"u{number}" for number in range(1, rng.choice([2, 3, 5]) + 1))
    labels = ("x", "y")[: rng.choice([1, 1, 2])] if "labels" in features else ()
    return Shape(notation, features, users, labels, rng.choice(depths), cluster)


def _fixed(rng: random.Random, features: frozenset[str], shape: Shape, root: Queue) -> tuple[dict[str, str], list[str]]:
    """The scheduler's keys apart from those of queues, and the parents that create queues dynamically."""
    fixed, auto_parents = settings.scheduler_properties(rng, features, len(list(root.walk()))), list[str]()
    if "autocreate" in features:
        keys, auto_parents = settings.auto_creation(rng, root)
        fixed |= keys
    if "rules" in features:
        fixed |= settings.json_rules(rng, root, shape.users)
    elif "mappings" in features:
        fixed |= settings.legacy_mappings(rng, root, shape.users)
    return fixed, auto_parents
