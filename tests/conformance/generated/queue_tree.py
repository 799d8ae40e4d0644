"""Random trees of queues, and their properties in one of the notations.

The tree keeps shares, not capacities: what siblings have is worked out when the properties are written, so that queues
can come and go and the sums stay right (or wrong, where a scenario wants that).
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

PREFIX = "yarn.scheduler.capacity."

QUEUES_ENOUGH = 20
"""A tree with this many queues does not get another level: each would have almost nothing of a small cluster."""

TENTHS = 1000
"""Percentages are multiples of a tenth, so that they add up to exactly 100."""


_OF_LEAVES = ("ordering-policy", "default-node-label", "user-settings")
"""Not written for parents: unknown orders there, and a user's weight that the leaves below may find too large."""


@dataclass(slots=True)
class Queue:
    """`share`: of its parent, among its siblings. `settings`: further keys below its own. `labels`: {label: share}.
    `label_maximums`: in multiples of its share of the label. `label_parts`: the share in amounts, as last written.

    `vectors`: {label, "" for none: capacity} where capacities have a unit for each resource.
    """

    path: str
    share: int
    maximum: float | None = None
    settings: dict[str, str] = field(default_factory=dict)
    labels: dict[str, int] = field(default_factory=dict)
    label_maximums: dict[str, float] = field(default_factory=dict)
    label_parts: dict[str, dict[str, int]] = field(default_factory=dict)
    vectors: dict[str, str] = field(default_factory=dict)
    vector_maximum: str | None = None
    children: list[Queue] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.path.rpartition(".")[2]

    @property
    def stopped(self) -> bool:
        return self.settings.get("state") == "STOPPED"

    def walk(self) -> Iterator[Queue]:
        yield self
        for child in self.children:
            yield from child.walk()

    def leaves(self) -> list[Queue]:
        return [queue for queue in self.walk() if not queue.children]


@dataclass(frozen=True, slots=True)
class Shape:
    """The parameters of a tree. `depth`: levels below root. `cluster`: what absolute capacities divide."""

    notation: str
    features: frozenset[str]
    users: tuple[str, ...]
    labels: tuple[str, ...]
    depth: int
    cluster: dict[str, int]


def grow(rng: random.Random, shape: Shape) -> Queue:
    """Add levels until no queue becomes a parent or there are enough."""
    root = Queue("root", 1, labels=dict.fromkeys(shape.labels, 1))
    parents, queues = [root], 0
    for level in range(1, shape.depth + 1):
        below: list[Queue] = []
        for parent in parents:
            below += [add_queue(rng, shape, parent) for _ in range(_breadth(rng, shape, level))]
        queues += len(below)
        parents = [queue for queue in below if rng.random() < 0.6] if queues < QUEUES_ENOUGH else []
    return root


def _breadth(rng: random.Random, shape: Shape, level: int) -> int:
    if "deep" in shape.features and rng.random() < 0.2:
        return rng.choice([5, 7, 9])
    return rng.choice([2, 2, 3, 4]) if level == 1 else rng.choice([1, 2, 2, 2, 3])


def add_queue(rng: random.Random, shape: Shape, parent: Queue) -> Queue:
    """A new leaf below `parent`, with a name that its siblings do not have."""
    taken = {child.name for child in parent.children}
    letter = next(letter for letter in "abcdefghijklmnopqrstuvwxyz" if _named(parent, letter) not in taken)
    queue = Queue(f"{parent.path}.{_named(parent, letter)}", draw_share(rng, shape))
    parent.children.append(queue)
    if shape.notation not in ("weight", "vectors") and rng.random() < 0.4:
        queue.maximum = rng.choice([1.0, 1.2, 1.5, 2.0, 3.0])
    for label in parent.labels:
        if rng.random() < 0.7:
            queue.labels[label] = rng.choice([1, 1, 2, 3])
            if rng.random() < 0.3:
                queue.label_maximums[label] = rng.choice([1.0, 1.5, 3.0])
            if rng.random() < 0.2:
                name = f"accessible-node-labels.{label}.maximum-am-resource-percent"
                queue.settings[name] = str(rng.choice([0.05, 0.4, 1]))
    if shape.notation == "vectors":
        draw_vectors(rng, shape, queue)
    _set_limits(rng, shape, queue)
    return queue


def draw_share(rng: random.Random, shape: Shape) -> int:
    """Capacities of siblings; sometimes zero, where the scenario has that feature."""
    if "zero" in shape.features and rng.random() < 0.2:
        return 0
    return rng.choice([1, 2, 3, 4, 5, 7, 10])


def draw_vectors(rng: random.Random, shape: Shape, queue: Queue) -> None:
    """Capacities in any unit, above and below what exists. Siblings need not agree."""
    queue.vectors = {label: _vector(rng, shape) for label in ("", *queue.labels)}
    queue.vector_maximum = None
    kind = rng.random()
    if kind < 0.15:
        queue.vector_maximum = str(rng.choice([-1, 0, 40, 62.5, 100]))
    elif kind < 0.3:
        queue.vector_maximum = _absolute({name: amount * 3 for name, amount in shape.cluster.items()})
    elif kind < 0.5:
        # With the percent sign Hadoop does not compare it with amounts of the parent.
        parts = {name: f"{rng.choice([20, 45.5, 80, 100])}%" for name in shape.cluster}
        queue.vector_maximum = _bracketed(parts | ({"vcores": rng.choice(["3", "64"])} if rng.random() < 0.3 else {}))


def _vector(rng: random.Random, shape: Shape) -> str:
    kind = rng.random()
    if kind < 0.1:
        return f"{rng.choice([0, 10, 25, 33.3, 50, 100])}"
    if kind < 0.2:
        return f"{rng.choice([0, 0.5, 1, 2, 3])}w"
    if kind < 0.23:
        return rng.choice(["[vcores=50%]", "[memory=0w,vcores=1w]"])
    names = [name for name in shape.cluster if name == "memory" or rng.random() < 0.9]
    return _bracketed({name: _with_unit(rng, name, shape.cluster[name]) for name in names})


def _with_unit(rng: random.Random, name: str, whole: int) -> str:
    unit = rng.choice(["%", "w", "", "", "%", "w", "Gi" if name == "memory" else ""])
    if unit == "%":
        return f"{rng.choice([0.5, 10, 20, 33.3, 50, 80, 120])}%"
    if unit == "w":
        return f"{rng.choice([0.3, 1, 1, 2, 3, 7])}w"
    part = max(1, whole // rng.choice([2, 4, 5, 9]))
    return f"{max(1, part // 1024)}Gi" if unit else str(part)


def _named(parent: Queue, letter: str) -> str:
    return letter if parent.path == "root" else f"{letter}{parent.name}"


def _set_limits(rng: random.Random, shape: Shape, queue: Queue) -> None:
    has, settings = shape.features.__contains__, queue.settings
    settings["user-limit-factor"] = str(rng.choice([2, 10, 10] if has("preemption") else [0.5, 1, 2, 2, 10]))
    settings["minimum-user-limit-percent"] = str(rng.choice([100, 100, 50, 30, 25, 10]))
    if has("zero"):
        _set_extremes(rng, settings)
    if rng.random() < 0.15:
        settings["maximum-am-resource-percent"] = str(rng.choice([0.05, 0.3, 1]))
    if (has("priority") or has("upward")) and rng.random() < 0.5:
        settings["priority"] = str(rng.choice([1, 2, 5]))
    if has("priority") and rng.random() < 0.15:
        settings["default-application-priority"] = str(rng.choice([1, 4]))
    if has("priorityacls") and rng.random() < 0.5:
        settings["acl_application_max_priority"] = _priority_acl(rng, shape)
    if has("states") and rng.random() < 0.05:
        settings["state"] = "STOPPED"
    if has("partitions") and rng.random() < 0.6:
        settings["ordering-policy"] = "fifo-with-partitions"
        settings["ordering-policy.exclusive-enforced-partitions"] = ",".join(shape.labels)
    elif has("fair") and rng.random() < 0.6:
        settings["ordering-policy"] = "fifo-for-pending-apps" if has("pending") and rng.random() < 0.5 else "fair"
        if settings["ordering-policy"] == "fair" and rng.random() < 0.4:
            settings["ordering-policy.fair.enable-size-based-weight"] = "true"
    if has("weights") and rng.random() < 0.4 and int(settings["minimum-user-limit-percent"]) <= 50:
        settings[f"user-settings.{rng.choice(shape.users)}.weight"] = str(rng.choice([0.5, 1.5, 2]))
    if has("limits") and rng.random() < 0.3:
        settings["maximum-applications"] = str(rng.choice([2, 5, 20]))
    if has("limits") and rng.random() < 0.15:
        settings["maximum-allocation-mb"] = str(rng.choice([2048, 4096]))
    elif has("limits") and rng.random() < 0.1:
        settings["maximum-allocation"] = f"memory-mb={rng.choice([3072, 6144])},vcores={rng.choice([2, 4])}"
    if has("parallel") and rng.random() < 0.4:
        settings["max-parallel-apps"] = str(rng.choice([1, 2, 3]))
    if has("acls") and rng.random() < 0.5:
        settings["acl_submit_applications"] = rng.choice(["*", "*", f"{rng.choice(shape.users)} g1", " g1,g2", " "])
    if has("lifetime") and rng.random() < 0.5:
        longest = rng.choice([60, 3600])
        settings["maximum-application-lifetime"] = str(longest)
        if rng.random() < 0.5:
            settings["default-application-lifetime"] = str(rng.choice([30, longest]))
    if has("preemption") and rng.random() < 0.1:
        settings["disable_preemption"] = rng.choice(["true", "true", "false"])
    if has("intra") and rng.random() < 0.1:
        settings["intra-queue-preemption.disable_preemption"] = rng.choice(["true", "false"])
    if queue.labels and rng.random() < 0.3:
        settings["default-node-label-expression"] = rng.choice(sorted(queue.labels))


def _set_extremes(rng: random.Random, settings: dict[str, str]) -> None:
    """Limits without effect, and permission for children that all have zero."""
    if rng.random() < 0.2:
        settings["user-limit-factor"] = "-1"
    if rng.random() < 0.1:
        settings["minimum-user-limit-percent"] = "0"
    if rng.random() < 0.5:
        settings["allow-zero-capacity-sum"] = "true"


def _priority_acl(rng: random.Random, shape: Shape) -> str:
    groups = [f"user={rng.choice(shape.users)} group=g1", "user=*", f"group=g2,g3 user={rng.choice(shape.users)}"]
    chosen = rng.sample(groups, rng.choice([1, 2, 3]))
    return " ".join(f"[{who} max_priority={rng.choice([1, 3, 8])} default_priority=1]" for who in chosen)


def properties(root: Queue, shape: Shape) -> dict[str, str]:
    """All of the tree's keys. Keys that only leaves may have are left out of parents."""
    found: dict[str, str] = {}
    for label in shape.labels:
        found[f"{PREFIX}root.accessible-node-labels.{label}.capacity"] = "100"
    _write_children(found, shape, root, shape.cluster)
    return found


def _write_children(found: dict[str, str], shape: Shape, parent: Queue, resources: dict[str, int]) -> None:
    found[f"{PREFIX}{parent.path}.queues"] = ",".join(child.name for child in parent.children)
    if shape.features & {"priority", "upward"}:
        found[f"{PREFIX}{parent.path}.ordering-policy"] = "priority-utilization"
    for label in shape.labels:
        _write_label(found, shape, parent, label)
    cuts = _cut([child.share for child in parent.children])
    for child, cut in zip(parent.children, cuts, strict=True):
        key = f"{PREFIX}{child.path}."
        part = {name: max(1, amount * cut // TENTHS) for name, amount in resources.items()}
        found |= _capacity(shape, child, cut, part, resources)
        if shape.labels:
            found[key + "accessible-node-labels"] = ",".join(sorted(child.labels)) or " "
        for setting, value in child.settings.items():
            if not child.children or not setting.startswith(_OF_LEAVES):
                found[key + setting] = value
        if child.children:
            _write_children(found, shape, child, part)


def _capacity(shape: Shape, queue: Queue, cut: int, part: dict[str, int], resources: dict[str, int]) -> dict[str, str]:
    key = f"{PREFIX}{queue.path}."
    if shape.notation == "weight":
        return {key + "capacity": f"{queue.share / 2:g}w"}
    if shape.notation == "vectors":
        found = {key + "capacity": queue.vectors[""]}
        return found | ({key + "maximum-capacity": queue.vector_maximum} if queue.vector_maximum is not None else {})
    if shape.notation == "percent":
        found = {key + "capacity": f"{cut / 10:g}"}
        if queue.maximum is not None:
            found[key + "maximum-capacity"] = f"{min(TENTHS, int(cut * queue.maximum)) / 10:g}"
        return found
    found = {key + "capacity": _absolute(part)}
    if queue.maximum is not None:
        most = {name: min(resources[name], int(amount * queue.maximum)) for name, amount in part.items()}
        found[key + "maximum-capacity"] = _absolute(most)
    return found


def _absolute(amounts: dict[str, int]) -> str:
    return _bracketed({name: str(amount) for name, amount in amounts.items()})


def _bracketed(amounts: dict[str, str]) -> str:
    return "[" + ",".join(f"{name}={amount}" for name, amount in amounts.items()) + "]"


def _write_label(found: dict[str, str], shape: Shape, parent: Queue, label: str) -> None:
    """The siblings that may use a label share all of it."""
    using = [child for child in parent.children if label in child.labels]
    for child, cut in zip(using, _cut([child.labels[label] for child in using]), strict=True):
        key = f"{PREFIX}{child.path}.accessible-node-labels.{label}.capacity"
        if shape.notation == "weight":
            found[key] = f"{child.labels[label]}w"
        elif shape.notation == "vectors":
            found[key] = child.vectors[label]
        elif shape.notation == "absolute":
            whole = parent.label_parts.get(label, shape.cluster)
            child.label_parts[label] = {name: max(1, amount * cut // TENTHS) for name, amount in whole.items()}
            found[key] = _absolute(child.label_parts[label])
        elif shape.notation == "percent":
            found[key] = f"{cut / 10:g}"
            if (maximum := child.label_maximums.get(label)) is not None:
                most = min(TENTHS, int(cut * maximum))
                found[key.replace(".capacity", ".maximum-capacity")] = f"{most / 10:g}"


def _cut(shares: list[int]) -> list[int]:
    """Tenths of percents in proportion, adding up to 100 %: the last one gets the rounding error."""
    if not any(shares):
        return [0] * len(shares)
    cuts = [TENTHS * share // sum(shares) for share in shares]
    last = max(index for index, share in enumerate(shares) if share)
    cuts[last] += TENTHS - sum(cuts)
    return cuts
