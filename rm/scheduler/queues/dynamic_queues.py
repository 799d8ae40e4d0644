"""Queues created on demand when an application is submitted to them (CapacitySchedulerQueueManager.createQueue).

If root.users creates queues on demand, `root.users.ann` and `root.users.staff.ann` are created on the first submission;
the latter with a parent root.users.staff, if two levels are allowed. Each has a weight among its siblings, so a new
queue reduces their shares. A created queue stays if the submission is refused afterwards, and created parents stay if
the next level cannot be created.
"""

from __future__ import annotations

from msgspec.structs import replace

from rm.scheduler.capacity.managed_queues import ManagedParentQueue
from rm.scheduler.config.queue_configuration import QueueConfiguration
from rm.scheduler.config.queue_reader import QueueReader
from rm.scheduler.config.queue_templates import QueueTemplate, configuration_of_leaf
from rm.scheduler.config.reader import Reader
from rm.scheduler.model.queue import CSQueue, ParentQueue
from rm.scheduler.queues.queue_tree import QueueTree
from yarn.faults import Severity
from yarn.java.values import trim
from yarn.states import QueueState


class CreationRefused(Exception):
    """The queue cannot be created. `is_reported`: the submission is refused with this message, else with "unknown
    queue"."""

    def __init__(self, message: str, *, is_reported: bool = True) -> None:
        super().__init__(message)
        self.is_reported = is_reported


def create_queue(path: str, tree: QueueTree) -> CSQueue:
    """Create the leaf at `path` and its missing parents. Raises CreationRefused.

    A path that begins with a short name is refused. Hadoop creates such a queue again for each submission, and every
    attempt in it fails because the queue cannot be found by that path (RMAppAttemptImpl.ScheduleTransition). Blanks
    around the path are not part of the new queue's name.
    """
    path = trim(path)
    if not _is_path(path):
        raise CreationRefused(f"{path!r} is not a queue path", is_reported=False)
    if path in tree.by_path:
        return tree.by_path[path]
    above = tree.get(path.rpartition(".")[0])
    if isinstance(above, ManagedParentQueue):
        return _make_in(above, path.rpartition(".")[2], tree)
    missing, parent = _parents_of_new(path, tree)
    for name in missing:
        made = _make(name, parent, tree, is_leaf=False)
        assert isinstance(made, ParentQueue)
        parent = made
    return _make(path.rpartition(".")[2], parent, tree, is_leaf=True)


def _is_path(path: str) -> bool:
    """True for a path of several names, none of them empty or with blanks around it."""
    names = path.split(".")
    return len(names) > 1 and all(name and name == trim(name) for name in names)


def can_create(path: str, tree: QueueTree) -> bool:
    """True if a submission to an unknown `path` creates the queue, unless its parent has too many by then."""
    if not _is_path(path):
        return False
    if isinstance(tree.get(path.rpartition(".")[0]), ManagedParentQueue):
        return True
    try:
        _, parent = _parents_of_new(path, tree)
    except CreationRefused:
        return False
    return not parent.context.settings.legacy_queue_mode or _has_weights(parent)


def paths_to_create(path: str, tree: QueueTree) -> tuple[str, ...]:
    """The paths whose templates decide who may submit to an unknown `path`, the leaf last.

    If the parent exists, this does not check that it creates queues. () if the parent cannot be created either.
    Source: CapacitySchedulerQueueManager.getPermissionsForDynamicQueue.
    """
    above = path.rpartition(".")[0]
    if above in tree.by_path:
        return (path,)
    try:
        missing, _ = missing_parents(path, tree)
    except CreationRefused:
        return ()
    depth = path.count(".") + 1
    parts = path.split(".")
    return tuple(".".join(parts[: depth - number]) for number in range(len(missing), -1, -1))


def _parents_of_new(path: str, tree: QueueTree) -> tuple[list[str], ParentQueue]:
    """(names of the parents to create for `path`, highest first; the parent that exists). Raises CreationRefused."""
    missing, parent = missing_parents(path, tree)
    if path != ".".join((parent.path, *missing, path.rpartition(".")[2])):
        raise CreationRefused(f"{path} does not begin with root")
    return missing, parent


def missing_parents(path: str, tree: QueueTree) -> tuple[list[str], ParentQueue]:
    """(names of the parents to create for `path`, highest first; the parent that exists). Raises CreationRefused.

    Source: CapacitySchedulerQueueManager.determineMissingParents.
    """
    above = path.rpartition(".")[0]
    if tree.is_ambiguous(above):
        raise CreationRefused(f"Could not auto-create queue {path} due to ParentQueue {above} being ambiguous.")
    missing: list[str] = []
    candidate = above
    existing = tree.get(candidate)
    while existing is None and candidate:
        candidate, _, name = candidate.rpartition(".")
        missing.insert(0, name)
        existing = tree.get(candidate)
    if existing is None:
        raise CreationRefused(f"Could not auto-create queue {path} parent queue does not exist.")
    static, distance = _configured_parent(existing, len(missing) + 1)
    if distance > static.configuration.creation.depth_max:
        raise CreationRefused(
            f"Could not auto create queue {path}. The distance of the LeafQueue from the first static ParentQueue is "
            f"{distance}, which is above the limit."
        )
    if not isinstance(existing, ParentQueue):
        raise CreationRefused(f"Could not auto create hierarchy of {path}. Queue {above} is not a ParentQueue.")
    if not existing.configuration.creation.enabled:
        raise CreationRefused(f"Auto creation of queue {path} is not enabled under parent {existing.path}")
    return missing, existing


def _configured_parent(queue: CSQueue, distance: int) -> tuple[CSQueue, int]:
    """The nearest configured queue, this one or above, and its distance from the leaf."""
    while queue.is_dynamic:
        assert queue.parent is not None, "root is configured"
        queue, distance = queue.parent, distance + 1
    return queue, distance


def _make(name: str, parent: ParentQueue, tree: QueueTree, *, is_leaf: bool) -> CSQueue:
    """Create a child of `parent` (ParentQueue.addDynamicChildQueue)."""
    path, most = f"{parent.path}.{name}", parent.configuration.creation.queues_max
    if len(parent.children) >= most:
        raise CreationRefused(
            f"Cannot auto create queue {path}. Max Child Queue limit exceeded which is configured as: {most} and "
            f"number of child queues is: {len(parent.children)}"
        )
    if parent.context.settings.legacy_queue_mode and not _has_weights(parent):
        raise CreationRefused(
            f"Trying to create new queue={path} but not all the queues under parent={parent.path} are using "
            "weight-based capacity. Failed to created queue"
        )
    settings = parent.context.settings
    template = QueueTemplate(settings.source, parent.path)
    reader = Reader(template.configuration_of(path, is_leaf=is_leaf))
    queue_reader = QueueReader(reader, settings.resource_types, settings.maximum_allocation)
    labels = template.labels_of(path)
    configuration = queue_reader.read_dynamic(path, parent.configuration, labels=labels, is_leaf=is_leaf)
    _refuse_if_faulty(reader)
    return tree.add(_with_state_of(parent, configuration), parent)


def _refuse_if_faulty(reader: Reader) -> None:
    """Raise CreationRefused with all errors of the new queue's configuration; warnings prevent nothing."""
    errors = [str(fault) for fault in reader.faults if fault.severity is Severity.ERROR]
    if errors:
        raise CreationRefused("; ".join(errors))


def _make_in(parent: ManagedParentQueue, name: str, tree: QueueTree) -> CSQueue:
    """Create a leaf of a managed parent (ManagedParentQueue.addChildQueue)."""
    path, most, settings = f"{parent.path}.{name}", parent.managed.queues_max, parent.context.settings
    reader = Reader(configuration_of_leaf(settings.source, path))
    queue_reader = QueueReader(reader, settings.resource_types, settings.maximum_allocation)
    configuration = queue_reader.read_auto_created(path, parent.configuration)
    _refuse_if_faulty(reader)
    if len(parent.children) >= most:
        raise CreationRefused(
            f"Cannot auto create leaf queue {path}.Max Child Queue limit exceeded which is configured as : {most} and "
            f"number of child queues is : {len(parent.children)}"
        )
    if parent.managed.fails_when_full and parent.is_full():
        raise CreationRefused(
            f"Cannot auto create leaf queue {path}. Child queues capacities have reached parent queue : "
            f"{parent.path}'s guaranteed capacity"
        )
    return tree.add(_with_state_of(parent, configuration), parent)


def _with_state_of(parent: ParentQueue, configuration: QueueConfiguration) -> QueueConfiguration:
    """The configuration with the parent's state, if the queue has no configured one."""
    if configuration.state is not None:
        return configuration
    running = parent.state is QueueState.RUNNING
    return replace(configuration, initial_state=QueueState.RUNNING if running else QueueState.STOPPED)


def _has_weights(parent: ParentQueue) -> bool:
    """True if the children have weights, or there are none yet."""
    partitions = tuple(parent.capacities.partitions())
    return not parent.children or any(
        child.capacities.at(partition).weight >= 0 for child in parent.children for partition in partitions
    )
