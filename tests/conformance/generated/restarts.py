"""Steps around restarts of the ResourceManager: an unquiet moment before; nodes and masters come back, or do not."""

from __future__ import annotations

from collections.abc import Callable

from tests.conformance.generated import app_actions, node_actions, preemption, queue_actions
from tests.conformance.generated.draft import Draft
from tests.conformance.generated.queue_tree import properties

MOMENTS: list[tuple[Callable[[Draft], object], str | None]] = [
    (app_actions.submit, None),
    (app_actions.ask, None),
    (app_actions.finish, None),
    (app_actions.kill, None),
    (app_actions.unregister, None),
    (node_actions.heartbeat, None),
    (app_actions.fail_master, "faults"),
    (node_actions.lose_node, "faults"),
    (app_actions.fail_with_kept_containers, "keep"),
    (app_actions.move, "moves"),
    (app_actions.set_priority, "priority"),
    (app_actions.update, "updates"),
    (node_actions.label_nodes, "labels"),
    (node_actions.decommission, "decommissioning"),
    (preemption.press, "preemption"),
    (preemption.preempt, "preemption"),
]
"""Actions that may be under way when the ResourceManager is killed, with the feature of each (None: always)."""


def restart(draft: Draft) -> None:
    """A restart, sometimes a second one before everybody is back."""
    for _ in range(draft.rng.choice([1, 1, 1, 2])):
        for _ in range(draft.rng.choice([0, 1, 2])):
            _moment(draft)
        if draft.rng.random() < 0.4:
            reserve(draft)
        draft.do("restart_rm", **_changes(draft))
        come_back(draft)
    if draft.rng.random() < 0.8:
        draft.do("end_wait")
        node_actions.all_heartbeats(draft)


def _moment(draft: Draft) -> None:
    draft.rng.choice([action for action, feature in MOMENTS if feature is None or draft.has(feature)])(draft)


def reserve(draft: Draft) -> None:
    """A large request that nodes reserve for, unless they have room."""
    app = draft.running()
    if app is not None:
        resource = {"memory": draft.rng.choice([4096, 6144, 8192]), "vcores": draft.rng.choice([1, 4])}
        ask = {"priority": draft.rng.choice([1, 5]), "resource": resource, "name": "*", "count": 3}
        draft.do("allocate", app=app.name, asks=[ask])
        for host in draft.up:
            draft.do("heartbeat", node=host)


def _changes(draft: Draft) -> dict[str, object]:
    """Other capacities, limits or queues than before the restart, without a refresh."""
    if not draft.has("reconfigured") or draft.rng.random() < 0.5:
        return {}
    if draft.rng.random() < 0.7:
        queue_actions.draw_numbers(draft)
    else:
        queue_actions.draw_queues(draft)
    return {"properties": {**draft.fixed, **properties(draft.root, draft.shape)}}


def come_back(draft: Draft) -> None:
    """Most nodes register again, most masters too, with other steps in between."""
    for host in draft.rng.sample(draft.up, len(draft.up)):
        _return(draft, host)
        if draft.rng.random() < 0.3:
            draft.rng.choice([app_actions.ask, app_actions.finish, app_actions.kill, node_actions.heartbeat])(draft)
    app_actions.register_some(draft)
    app_actions.register_some(draft)


def _return(draft: Draft, host: str) -> None:
    """A node comes back with its containers, without them, unhealthy and without them, later, or never."""
    kind = draft.rng.choices(["whole", "later", "empty", "sick", "never"], [80, 8, 4, 4, 4])[0]
    if kind == "whole":
        draft.do("resync", node=host)
    elif kind == "empty":
        draft.do("register_node", **draft.nodes[host])
    elif kind == "sick":
        draft.do("register_node", **draft.nodes[host], healthy=False)
    elif kind == "never" and len(draft.up) > 1:
        draft.lost.add(host)


def end_wait(draft: Draft) -> None:
    draft.do("end_wait")


def resync(draft: Draft) -> None:
    if draft.up:
        draft.do("resync", node=draft.rng.choice(draft.up))
