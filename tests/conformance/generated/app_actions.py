"""Actions of clients, AMs and containers in a random scenario. Each action writes some steps, or none."""

from __future__ import annotations

from typing import Any

from tests.conformance.generated.draft import App, Draft
from tests.conformance.generated.queue_tree import Queue

PICKS = 50

ACKNOWLEDGED = 2
"""Empty heartbeats after a release: the last one reports the container's end to the AM for certain. With fewer, a
race between Hadoop's threads decides whether the next attempt gets the report again."""


def submit(draft: Draft, leaf: Queue | None = None) -> App:
    """Submit an application; mostly its AM starts and requests containers."""
    rng = draft.rng
    keeps = rng.random() < (0.7 if draft.has("keep") else 0.2)
    app = App(f"a{len(draft.apps) + 1}", keeps=keeps and draft.keeps_containers)
    draft.apps.append(app)
    fields = _submission(draft, app, leaf or draft.leaf())
    draft.do("submit", app=app.name, **fields)
    if rng.random() < 0.8:
        for host in draft.up:
            draft.do("heartbeat", node=host)
        draft.do("register", app=app.name)
        if rng.random() < 0.7:
            ask(draft, app)
    return app


def _submission(draft: Draft, app: App, leaf: Queue) -> dict[str, Any]:
    rng = draft.rng
    user = rng.choice(draft.shape.users)
    am = {"memory": rng.choice([512, 512, 1024, 1024, 2048]), "vcores": 1}
    if draft.has("limits") and rng.random() < 0.05:
        am["memory"] = rng.choice([5120, 9000, 20000])
    fields: dict[str, Any] = {"user": user, "queue": _queue_name(draft, leaf, user), "am": am}
    placed = draft.has("mappings") or draft.has("rules")
    if placed and rng.random() < 0.5:
        del fields["queue"]
    if placed or draft.has("acls"):
        number = int(user[1:])
        fields["groups"] = f"g{number % 3 + 1},g{(number + 1) % 3 + 1}"
    if draft.has("priority") and rng.random() < 0.6:
        fields["priority"] = rng.randint(0, 5)
    if leaf.labels and rng.random() < 0.3:
        fields["label"] = rng.choice(sorted(leaf.labels))
    if draft.labels and rng.random() < 0.15:
        fields["am_label"] = rng.choice([*draft.labels, ""])
    if draft.has("lifetime") and rng.random() < 0.5:
        fields["lifetime"] = rng.choice([10, 60, 7200])
    if app.keeps:
        fields["keep_containers"] = True
    attempts = rng.choice([1, 2, 2, 2, 4] if draft.has("keep") else [1, 2, 2, 2, 2])
    if attempts != 2:
        fields["max_attempts"] = attempts
    return fields


def _queue_name(draft: Draft, leaf: Queue, user: str) -> str:
    rng = draft.rng
    if draft.auto_parents and rng.random() < 0.5:
        below = f"{rng.choice(draft.auto_parents)}.{rng.choice([user, 'v1', 'v2'])}"
        return f"{below}.{rng.choice(['w1', 'w2'])}" if rng.random() < 0.25 else below
    if draft.has("names") and rng.random() < 0.5:
        return rng.choice([leaf.name, leaf.name, leaf.name, leaf.name, "nowhere", leaf.path.rpartition(".")[0]])
    return leaf.path


def register_some(draft: Draft) -> None:
    for app in draft.apps[-8:]:
        if not app.ended and draft.rng.random() < 0.5:
            draft.do("register", app=app.name)


def ask(draft: Draft, app: App | None = None, *, urgent: int | None = None) -> None:
    """A heartbeat with requests: anywhere, for a label, or for hosts and racks. `urgent`: many, high priority."""
    rng = draft.rng
    app = app or draft.running()
    if app is None:
        return
    asks: list[dict[str, Any]] = []
    for priority in [urgent] if urgent else rng.sample([1, 2, 5, 10, 20], rng.choice([1, 1, 1, 2])):
        count = rng.choice([20, 60] if urgent else [0, 1, 2, 2, 3, 5, 10, 30])
        base: dict[str, Any] = {"priority": priority, "resource": _resource(draft)}
        if draft.has("requestids") and rng.random() < 0.5:
            base["request_id"] = rng.randint(0, 2)
        if draft.labels and rng.random() < 0.4:
            base["label"] = rng.choice([*draft.labels, ""])
        if draft.has("locality") and rng.random() < 0.4 and "label" not in base:
            asks += _local_asks(draft, base, count)
        else:
            asks.append({**base, "name": "*", "count": count})
    draft.do("allocate", app=app.name, asks=asks)


def _local_asks(draft: Draft, base: dict[str, Any], count: int) -> list[dict[str, Any]]:
    rng = draft.rng
    hosts = rng.sample(sorted(draft.nodes), min(len(draft.nodes), rng.choice([1, 1, 2])))
    if rng.random() < 0.05:
        hosts.append("elsewhere")
    relax = rng.random() < 0.8
    total = count * len(hosts)
    asks = [{**base, "name": host, "count": count} for host in hosts]
    racks = {draft.nodes[host]["rack"] for host in hosts if host in draft.nodes}
    asks += [{**base, "name": rack, "count": total, "relax": relax} for rack in sorted(racks)]
    return [*asks, {**base, "name": "*", "count": total, "relax": relax and rng.random() < 0.9}]


def _resource(draft: Draft) -> dict[str, int]:
    rng = draft.rng
    memory = rng.choice([512, 1024, 1024, 1024, 2048, 2048, 3072, 4096, 1500, 6144, 8192])
    resource = {"memory": memory, "vcores": rng.choice([1, 1, 1, 2, 3, 4])}
    for name in draft.resource_types:
        if rng.random() < 0.3:
            resource[name] = rng.choice([1, 2])
    return resource


def poll(draft: Draft) -> None:
    if app := draft.running():
        draft.do("allocate", app=app.name)


def finish(draft: Draft) -> None:
    if app := draft.running():
        for _ in range(draft.rng.choice([1, 1, 2, 4])):
            _finish_one(draft, app)


def _finish_one(draft: Draft, app: App) -> None:
    draft.do("finish", app=app.name, pick=draft.rng.randint(0, PICKS), exit=draft.rng.choice([0, 0, 0, 1]))


def release(draft: Draft) -> None:
    if app := draft.running():
        picks = [draft.rng.randint(0, PICKS) for _ in range(draft.rng.choice([1, 1, 3]))]
        draft.do("allocate", app=app.name, release=picks, again=ACKNOWLEDGED)


def unregister(draft: Draft) -> None:
    if app := draft.running():
        draft.do("unregister", app=app.name)
        _end(draft, app)


def end_many(draft: Draft) -> None:
    """Most applications end at once: queues drain, dynamic queues become idle."""
    for app in draft.apps[-12:]:
        if not app.ended and draft.rng.random() < 0.7:
            draft.do(draft.rng.choice(["unregister", "kill_app"]), app=app.name)
            _end(draft, app)


def kill(draft: Draft) -> None:
    if app := draft.running():
        draft.do("kill_app", app=app.name)
        _end(draft, app)


def _end(draft: Draft, app: App) -> None:
    """Note an ended application; later steps mostly do not refer to it."""
    app.ended = draft.rng.random() < 0.9


def fail_master(draft: Draft) -> None:
    if app := draft.running():
        draft.do("fail_am", app=app.name)


def fail_with_kept_containers(draft: Draft) -> None:
    """An AM fails; its containers end, are released or lose their node in each state of the next attempt."""
    rng = draft.rng
    keeping = [app for app in draft.apps[-12:] if app.keeps and not app.ended]
    if not keeping:
        return
    app = rng.choice(keeping)
    stages = [("fail_am", {"app": app.name}), ("heartbeat", None), ("heartbeat", None), ("register", {"app": app.name})]
    for op, fields in [*stages, ("allocate", {"app": app.name})]:
        if fields is not None:
            draft.do(op, **fields)
        elif draft.up:
            draft.do("heartbeat", node=rng.choice(draft.up))
        if rng.random() < 0.5:
            _finish_one(draft, app)
            if draft.up and rng.random() < 0.7:
                draft.do("heartbeat", node=rng.choice(draft.up))
        if rng.random() < 0.15:
            draft.do("allocate", app=app.name, release=[rng.randint(0, PICKS)], again=ACKNOWLEDGED)


def move(draft: Draft) -> None:
    if app := draft.running():
        draft.do("move", app=app.name, queue=draft.leaf().path)


def set_priority(draft: Draft) -> None:
    if app := draft.running():
        draft.do("set_priority", app=app.name, priority=draft.rng.randint(0, 12))


def update(draft: Draft) -> None:
    if app := draft.running():
        kind = draft.rng.choice(["INCREASE_RESOURCE", "DECREASE_RESOURCE"])
        memory = draft.rng.choice([4096, 6144, 8192] if kind == "INCREASE_RESOURCE" else [512, 1024])
        resource = {"memory": memory, "vcores": draft.rng.choice([1, 1, 2])}
        change = {"pick": draft.rng.randint(0, 20), "type": kind, "resource": resource}
        draft.do("allocate", app=app.name, updates=[change])


def promote_or_demote(draft: Draft) -> None:
    if app := draft.running():
        kind, execution = draft.rng.choice(
            [("PROMOTE_EXECUTION_TYPE", "GUARANTEED"), ("DEMOTE_EXECUTION_TYPE", "OPPORTUNISTIC")]
        )
        change = {"pick": draft.rng.randint(0, 3), "type": kind, "execution": execution}
        draft.do("allocate", app=app.name, updates=[change])


def blacklist(draft: Draft) -> None:
    if app := draft.running():
        hosts = [draft.rng.choice(sorted(draft.nodes))]
        if draft.rng.random() < 0.1:
            hosts.append(draft.nodes[hosts[0]]["rack"])
        draft.do("allocate", app=app.name, blacklist={draft.rng.choice(["add", "add", "remove"]): hosts})


def expire(draft: Draft) -> None:
    if app := draft.running():
        kind = draft.rng.choice(["container", "container", "container", "master", "lifetime"])
        if kind == "container":
            draft.do("expire_container", app=app.name, pick=draft.rng.randint(0, PICKS))
        else:
            draft.do(f"expire_{kind}", app=app.name)
