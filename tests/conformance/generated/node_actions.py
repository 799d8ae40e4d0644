"""Actions of nodes in a random scenario. Each action writes some steps, or none if there is nothing to do it to."""

from __future__ import annotations

from tests.conformance.generated import app_actions
from tests.conformance.generated.draft import Draft

RACKS = 3


def add_node(draft: Draft) -> None:
    """A host registers for the first time."""
    rng, leaves = draft.rng, len(draft.root.leaves())
    grow = 1 if leaves <= 3 or draft.has("preemption") else 2 if leaves <= 6 else 4 if leaves <= 12 else 8
    resource = {
        "memory": grow * rng.choice([4, 8, 8, 12, 16, 24]) * 1024,
        "vcores": grow * rng.choice([4, 8, 8, 16, 32]),
    }
    for name in draft.resource_types:
        if rng.random() < 0.8:
            resource[name] = rng.choice([4, 8])
    host = f"h{len(draft.nodes) + 1}"
    rack = f"/r{rng.randint(1, RACKS) if draft.has('locality') else 1}"
    draft.nodes[host] = {"node": host, "rack": rack, "resource": resource}
    draft.do("register_node", **draft.nodes[host])


def heartbeat(draft: Draft) -> None:
    if draft.up:
        draft.do("heartbeat", node=draft.rng.choice(draft.up))


def all_heartbeats(draft: Draft) -> None:
    """Every node and most AMs send one heartbeat."""
    for host in draft.up:
        draft.do("heartbeat", node=host)
    for app in draft.apps[-12:]:
        if not app.ended and draft.rng.random() < 0.7:
            draft.do("allocate", app=app.name)


def lose_node(draft: Draft) -> None:
    if len(draft.up) > 1:
        host = draft.rng.choice(draft.up)
        draft.lost.add(host)
        draft.do("lose_node", node=host)


def rejoin(draft: Draft) -> None:
    """A lost node comes back; now and then with other resources."""
    if draft.lost:
        host = draft.rng.choice(sorted(draft.lost))
        draft.lost.discard(host)
        if draft.rng.random() < 0.2:
            resource = draft.nodes[host]["resource"]
            draft.nodes[host] = {**draft.nodes[host], "resource": {**resource, "memory": resource["memory"] * 2}}
        draft.do("register_node", **draft.nodes[host])


def restart(draft: Draft) -> None:
    """A NodeManager restarts before it expires; its containers are gone."""
    if draft.up:
        draft.do("register_node", **draft.nodes[draft.rng.choice(draft.up)])


def resize(draft: Draft) -> None:
    if draft.up:
        host = draft.rng.choice(draft.up)
        resource = {**draft.nodes[host]["resource"], "memory": draft.rng.choice([2, 4, 8, 16]) * 1024}
        draft.do("resize_node", node=host, resource=resource)


def turn_unhealthy_or_back(draft: Draft) -> None:
    if draft.up:
        draft.do("heartbeat", node=draft.rng.choice(draft.up), healthy=draft.rng.random() < 0.6)


def be_unhealthy_for_a_while(draft: Draft) -> None:
    """Heartbeats of one node, with other steps in between."""
    if len(draft.up) > 1:
        sick = draft.rng.choice(draft.up)
        draft.do("heartbeat", node=sick, healthy=False)
        for _ in range(draft.rng.choice([1, 3])):
            heartbeat(draft)
            draft.do("heartbeat", node=sick, healthy=draft.rng.random() < 0.3)
        draft.do("heartbeat", node=sick)


def decommission(draft: Draft) -> None:
    """A host is excluded, mostly gracefully. Some have to leave at their next heartbeat."""
    if len(draft.up) > 1:
        fields = draft.rng.choice([{}, {}, {}, {"timeout": -1}, {"timeout": 0}, {"graceful": False}])
        draft.do("decommission", node=draft.rng.choice(draft.up), **fields)


def drain(draft: Draft) -> None:
    """A node is decommissioned gracefully while applications ask for more; then it may stay."""
    if len(draft.up) > 1:
        leaving = draft.rng.choice(draft.up)
        draft.do("decommission", node=leaving)
        for _ in range(draft.rng.choice([1, 3, 6])):
            draft.rng.choice([app_actions.ask, app_actions.finish, app_actions.release, heartbeat])(draft)
            draft.do("heartbeat", node=leaving)
        draft.do(*draft.rng.choice([("recommission",), ("recommission",), ("heartbeat",)]), node=leaving)
        draft.do("heartbeat", node=leaving)


def recommission_or_rejoin(draft: Draft) -> None:
    """A host is included again: its node stays, or its NodeManager is started again."""
    if draft.up:
        host = draft.rng.choice(draft.up)
        draft.do("recommission", node=host)
        if draft.rng.random() < 0.3:
            draft.do("register_node", **draft.nodes[host])


def label_nodes(draft: Draft) -> None:
    choices = [*draft.labels, ""]
    changed = {host: draft.rng.choice(choices) for host in draft.nodes if draft.rng.random() < 0.5}
    if changed:
        draft.do("label_nodes", nodes=changed)


def remove_label(draft: Draft) -> None:
    """Remove a label, which is refused while a queue may use it."""
    draft.do("remove_labels", labels=[draft.rng.choice(draft.labels)])


def add_label(draft: Draft) -> None:
    """Add an existing label (an error if it changes), or one that no queue may use."""
    name = draft.rng.choice([*draft.labels, "z"])
    draft.do("add_labels", labels=[{"name": name, "exclusive": draft.rng.random() < 0.5}])
