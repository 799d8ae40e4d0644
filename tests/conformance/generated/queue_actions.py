"""Actions of administrators on the queues of a random scenario. Each action changes the tree and refreshes."""

from __future__ import annotations

from tests.conformance.generated.draft import Draft
from tests.conformance.generated.queue_tree import PREFIX, Queue, add_queue, draw_share, draw_vectors, properties


def refresh(draft: Draft) -> None:
    draft.do("refresh_queues", properties={**draft.fixed, **properties(draft.root, draft.shape)})


def change_numbers(draft: Draft) -> None:
    """Other capacities, maximums and limits for the same queues."""
    draw_numbers(draft)
    refresh(draft)


def draw_numbers(draft: Draft) -> None:
    """Draw other capacities, maximums and limits; the next refresh or start has them."""
    rng = draft.rng
    for queue in draft.root.walk():
        if queue.path == "root":
            continue
        if rng.random() < 0.3:
            queue.share = draw_share(rng, draft.shape)
        if rng.random() < 0.3 and draft.shape.notation == "vectors":
            draw_vectors(rng, draft.shape, queue)
        if rng.random() < 0.2 and draft.shape.notation not in ("weight", "vectors"):
            queue.maximum = rng.choice([None, 1.0, 1.5, 3.0])
        if rng.random() < 0.2:
            queue.settings["user-limit-factor"] = str(rng.choice([0.5, 1, 2, 10]))
        weighted = any(setting.startswith("user-settings") for setting in queue.settings)
        if rng.random() < 0.2 and not weighted:
            queue.settings["minimum-user-limit-percent"] = str(rng.choice([100, 50, 25]))
        if queue.labels and rng.random() < 0.2:
            queue.labels[rng.choice(sorted(queue.labels))] = rng.choice([1, 2, 5])
    if rng.random() < 0.2:
        draft.fixed[PREFIX + "maximum-am-resource-percent"] = str(rng.choice([0.2, 0.5, 1.0]))
    if draft.shape.notation == "vectors" and rng.random() < 0.1:
        _refresh_with_a_wrong_unit(draft, draft.leaf())
    if draft.has("universal") and rng.random() < 0.3:
        draft.fixed[PREFIX + "legacy-queue-mode.enabled"] = rng.choice(["true", "false"])


def _refresh_with_a_wrong_unit(draft: Draft, queue: Queue) -> None:
    """A change that is refused, and then reverted."""
    right = queue.vectors[""]
    queue.vectors[""] = "[memory=25%,vcores=q]"
    refresh(draft)
    queue.vectors[""] = right


def add_or_remove_queues(draft: Draft) -> None:
    """Add leaves, turn leaves into parents (refused while they run applications), remove queues, stopped or not."""
    rng = draft.rng
    kind = rng.choice(["add", "add", "split", "remove", "remove"])
    if kind == "add":
        parents = [queue for queue in draft.root.walk() if queue.children]
        add_queue(rng, draft.shape, rng.choice(parents))
    elif kind == "split":
        leaf = draft.leaf()
        if leaf.path.count(".") < 5:
            _split(draft, leaf)
    else:
        _remove(draft)
    refresh(draft)


def draw_queues(draft: Draft) -> None:
    """Add a leaf, or drop a queue with all below it, as a start allows without stopping anything before."""
    rng = draft.rng
    if rng.random() < 0.5:
        add_queue(rng, draft.shape, rng.choice([queue for queue in draft.root.walk() if queue.children]))
        return
    parent, gone = _removable(draft)
    if gone is not None:
        parent.children.remove(gone)


def _split(draft: Draft, leaf: Queue) -> None:
    """Give the leaf a child. If that is refused, every later change is refused too, so it is often reverted."""
    add_queue(draft.rng, draft.shape, leaf)
    if draft.rng.random() < 0.5:
        refresh(draft)
        leaf.children.clear()


def _remove(draft: Draft) -> None:
    parent, gone = _removable(draft)
    if gone is None:
        return
    if draft.rng.random() < 0.8:
        # As Hadoop requires; while applications run the queue only drains.
        for queue in gone.walk():
            queue.settings["state"] = "STOPPED"
        refresh(draft)
        if draft.rng.random() < 0.5:
            return
    parent.children.remove(gone)


def _removable(draft: Draft) -> tuple[Queue, Queue | None]:
    """A queue with siblings, preferably one that is stopped, and its parent."""
    pairs = [(parent, child) for parent in draft.root.walk() if len(parent.children) > 1 for child in parent.children]
    stopped = [pair for pair in pairs if pair[1].stopped]
    if not pairs:
        return draft.root, None
    return draft.rng.choice(stopped or pairs)


def stop_or_run(draft: Draft) -> None:
    """Stop a queue (with applications: drain it) or start it again; sometimes a parent with everything below it."""
    rng = draft.rng
    stopped = [queue for queue in draft.root.walk() if queue.stopped]
    if stopped and rng.random() < 0.6:
        queue = rng.choice(stopped)
        queue.settings["state"] = "RUNNING"
    else:
        below_root = [queue for queue in draft.root.walk() if queue.path != "root"]
        rng.choice(below_root).settings["state"] = "STOPPED"
    refresh(draft)


def remove_idle_queues(draft: Draft) -> None:
    for _ in range(draft.rng.choice([1, 2, 3])):
        draft.do("remove_idle_queues")
