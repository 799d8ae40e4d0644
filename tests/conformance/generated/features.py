"""The features that a random scenario may use, by name, and sets of them."""

from __future__ import annotations

import random

NOTATIONS = ("percent", "absolute", "weight", "vectors")
"""The notations of capacities; each scenario has one of them. Vectors mean that legacy queue mode is off."""

_OF_QUEUES: dict[str, float] = {
    "deep": 0.2,  # trees of up to five levels, wide ones among them
    "limits": 0.25,  # maximum-applications, maximum allocations of queues
    "universal": 0.2,  # legacy queue mode is off
    "parallel": 0.15,  # max-parallel-apps, of all, of queues and of users
    "weights": 0.4,  # users with weights
    "priority": 0.35,  # priorities of queues and applications
    "fair": 0.3,  # fair order in leaves
    "pending": 0.1,  # fifo-for-pending-apps order in leaves
    "zero": 0.1,  # shares of nothing
    "acls": 0.15,
    "priorityacls": 0.3,  # who may submit at which priority
    "names": 0.3,  # submissions by the last part of a queue's name
    "refresh": 0.3,  # numbers change at refreshQueues
    "queues": 0.25,  # queues come and go at refreshQueues
    "states": 0.25,  # queues are stopped, drain, and run again
    "mappings": 0.15,  # u:, g: rules
    "appnames": 0.4,  # rules by the names of applications
    "rules": 0.15,  # JSON rules
    "autocreate": 0.2,  # flexible auto-created queues (weights only)
    "lifetime": 0.1,
}

_OF_NODES: dict[str, float] = {
    "dominant": 0.5,
    "types": 0.15,  # a third and a fourth resource type
    "locality": 0.5,
    "labels": 0.25,
    "partitions": 0.2,  # fifo-with-partitions order in leaves
    "faults": 0.5,  # masters fail; nodes are lost, come back, restart, change size
    "health": 0.25,
    "decommissioning": 0.25,  # nodes leave gracefully or at once, and some stay after all
}

_OF_APPLICATIONS: dict[str, float] = {
    "amblacklist": 0.2,  # the next master keeps off hosts where one failed
    "keep": 0.3,  # containers outlive attempts, and end in every state of the next one
    "moves": 0.25,
    "updates": 0.25,
    "execution": 0.1,  # promotions and demotions
    "blacklist": 0.25,
    "requestids": 0.2,
    "expiry": 0.15,  # containers, masters and lifetimes expire
}

_OF_PREEMPTION: dict[str, float] = {
    "preemption": 0.3,
    "intra": 0.3,
    "lazy": 0.2,
    "surgical": 0.3,
    "balance": 0.15,
    "upward": 0.15,  # for reservations of queues of higher priority
}

_OF_RESTARTS: dict[str, float] = {
    "restart": 1,  # the ResourceManager restarts, with or without work-preserving recovery
    "reconfigured": 0.4,  # with other capacities, limits or queues than before
}

CHANCES = {**_OF_QUEUES, **_OF_NODES, **_OF_APPLICATIONS, **_OF_PREEMPTION, **_OF_RESTARTS}
"""{feature: the probability that a scenario has it by default}."""

NEEDS = {
    "types": "dominant",
    "pending": "fair",
    "priorityacls": "priority",
    "appnames": "mappings",
    "partitions": "labels",
    "amblacklist": "faults",
    "intra": "preemption",
    "lazy": "preemption",
    "surgical": "preemption",
    "balance": "preemption",
    "upward": "preemption",
    "autocreate": "weight",
    "reconfigured": "restart",
}
"""{feature: the feature it depends on}; choosing the first chooses the second, except a notation."""

SETS: dict[str, frozenset[str]] = {
    "basic": frozenset({"percent", "locality", "limits"}),
    "calculators": frozenset({*NOTATIONS, "locality", "dominant", "types", "deep", "limits"}),
    "vectors": frozenset(
        {"vectors", "dominant", "types", "deep", "limits", "faults", "refresh", "queues", "states", "moves", "weights"}
    ),
    "queues": frozenset({*NOTATIONS, *_OF_QUEUES, "moves"}),
    "nodes": frozenset({"percent", "weight", *_OF_NODES, "keep", "expiry", "refresh"}),
    "applications": frozenset({"percent", "absolute", "locality", "dominant", "faults", *_OF_APPLICATIONS}),
    "preemption": frozenset(
        {"percent", "absolute", "weight", *_OF_PREEMPTION, "priority", "fair", "weights", "dominant", "faults"}
        | {"keep", "moves", "refresh", "deep"}
    ),
    "restarts": frozenset(
        {"percent", "absolute", "weight", *_OF_RESTARTS, *_OF_PREEMPTION, "locality", "dominant", "labels", "faults"}
        | {"health", "fair", "priority", "parallel", "refresh", "autocreate", "keep", "moves", "updates", "blacklist"}
        | {"requestids", "expiry"}
    ),
    "random": frozenset({*NOTATIONS, *CHANCES}) - _OF_PREEMPTION.keys() - _OF_RESTARTS.keys(),
    "all": frozenset({*NOTATIONS, *CHANCES}) - _OF_RESTARTS.keys(),
}
"""`random` is all but preemption and restarts, `all` all but restarts.

A scenario takes some of its set's features, by the seed; its notation is one.
"""


def parse(names: str) -> frozenset[str]:
    """A set's name, or features with commas. Raises ValueError for a name that is neither."""
    if names in SETS:
        return SETS[names]
    chosen = {name.strip() for name in names.split(",") if name.strip()}
    unknown = chosen - {*NOTATIONS, *CHANCES}
    if unknown or not chosen:
        raise ValueError(
            f"no such feature: {', '.join(sorted(unknown)) or 'none named'} (sets: {', '.join(SETS)};"
            f" features: {', '.join((*NOTATIONS, *CHANCES))})"
        )
    return frozenset(chosen)


def draw(rng: random.Random, allowed: frozenset[str], *, every: bool) -> frozenset[str]:
    """The features of one scenario: all allowed ones or some by chance, one notation, and what they depend on."""
    named = [feature for feature in CHANCES if feature in allowed]
    drawn = set(named) if every else {feature for feature in named if rng.random() < _chance(feature, allowed)}
    drawn |= {NEEDS[feature] for feature in drawn & NEEDS.keys() if NEEDS[feature] in CHANCES}
    notations = [notation for notation in NOTATIONS if notation in allowed] or ["percent"]
    notation = rng.choice(notations)
    if "autocreate" in drawn and "weight" in notations:
        notation = "weight"
    elif "autocreate" in drawn:
        drawn.discard("autocreate")
    return frozenset({*drawn, notation})


def _chance(feature: str, allowed: frozenset[str]) -> float:
    """In a small set each feature is frequent."""
    return max(CHANCES[feature], min(0.5, 4 / max(len(allowed), 1)))
