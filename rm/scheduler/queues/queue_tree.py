"""The tree of queues: built from a configuration, looked up by path or short name, refreshed as a whole.

A refresh is checked against the tree before anything changes: deleted queues must be stopped, the others may not lower
their maximum allocation. Applying it then cannot fail. After a refused refresh the old configuration is applied again,
as in Hadoop, which may reorder children as any refresh does.
"""

from __future__ import annotations

from collections.abc import Iterator

from rm.scheduler.capacity.managed_queues import (
    AutoCreatedLeafQueue,
    ManagedParentQueue,
    check_managed,
    new_queue,
    reconfigure,
)
from rm.scheduler.capacity.queue_update import update_cluster_resource
from rm.scheduler.config.checks import check_children
from rm.scheduler.config.configuration import CapacitySchedulerConfiguration
from rm.scheduler.config.queue_configuration import PLAN_DEFAULT, QueueConfiguration
from rm.scheduler.config.queue_templates import QUEUE_CREATION
from rm.scheduler.config.reader import Reader
from rm.scheduler.model.application import ApplicationTable
from rm.scheduler.model.context import SchedulerContext
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.queue import CSQueue, ParentQueue
from rm.scheduler.model.usage import ResourceLimits
from yarn.configuration import Configuration
from yarn.faults import Fault
from yarn.java.hash_order import hash_order, string_hash
from yarn.settings.scheduler import ROOT, queue_key
from yarn.states import QueueState


class QueueTree:
    """All queues. `by_path` has parents before their children."""

    __slots__ = ("_context", "_short_names", "by_path", "root")

    def __init__(self, context: SchedulerContext) -> None:
        self._context = context
        root = _build(context.settings, ROOT, None, context)
        assert isinstance(root, ParentQueue), "root has children: checked with the configuration"
        self.root = root
        self._index()
        self.update_cluster_resource()

    def get(self, name: str) -> CSQueue | None:
        """The queue with that path, or with that short name if it is unique."""
        queue = self.by_path.get(name)
        if queue is not None:
            return queue
        paths = self._short_names.get(name, ())
        return self.by_path[paths[0]] if len(paths) == 1 else None

    def behind_plan(self, name: str) -> str:
        """The name of a reservable queue's default leaf; any other name unchanged.

        The suffix is appended to the given name: `a` becomes `a-default`, but `root.a` becomes `root.a-default`, which
        does not exist (CapacityScheduler.getDefaultReservationQueueName).
        """
        found = self.get(name)
        return name + PLAN_DEFAULT if found is not None and found.configuration.is_plan else name

    def is_ambiguous(self, name: str) -> bool:
        """True if several queues have this short name."""
        return name not in self.by_path and len(self._short_names.get(name, ())) > 1

    def leaves(self) -> Iterator[LeafQueue]:
        """All leaves, in the order of `by_path`."""
        return (queue for queue in self.by_path.values() if isinstance(queue, LeafQueue))

    def managed_parents(self) -> list[ManagedParentQueue]:
        """The managed parents whose leaves get and lose guarantees (QueueManagementDynamicEditPolicy)."""
        parents = (queue for queue in self.by_path.values() if isinstance(queue, ManagedParentQueue))
        return [queue for queue in parents if not queue.managed.fails_when_full]

    def update_cluster_resource(self) -> None:
        """Update everything that depends on the cluster's size, from the root down."""
        update_cluster_resource(self.root, ResourceLimits(self._context.cluster_resource, self._context.none))

    def add(self, configuration: QueueConfiguration, parent: ParentQueue) -> ParentQueue | LeafQueue:
        """Append a new queue to its parent's children, which reduces its siblings' shares (addDynamicChildQueue)."""
        self._context.settings.queues[configuration.path] = configuration
        queue = new_queue(configuration, parent, self._context)
        parent.children.append(queue)
        if isinstance(queue, AutoCreatedLeafQueue):
            queue.maker.entitle(queue)
        parent.last_submitted_ms = self._context.now_ms
        self._note(queue)
        self._name(queue.name)
        self._update_below(parent)
        return queue

    def remove(self, queue: CSQueue) -> None:
        """Remove a queue without applications and children, which raises its siblings' shares (removeChildQueue)."""
        assert queue.parent is not None, "root is never removed"
        del self._context.settings.queues[queue.path]
        queue.parent.children.remove(queue)
        del self.by_path[queue.path]
        self._short_names[queue.name].remove(queue.path)
        self._name(queue.name)
        self._update_below(queue.parent)

    def _update_below(self, parent: ParentQueue) -> None:
        """Update as after a change of the cluster, ignoring limits of queues above the parent."""
        update_cluster_resource(parent, ResourceLimits(self._context.cluster_resource, self._context.none))

    def dynamic_queues(self) -> dict[str, QueueConfiguration]:
        """{path: configuration} of the queues that were created on demand, parents before their children."""
        return {path: queue.configuration for path, queue in self.by_path.items() if queue.configuration.is_on_demand}

    def faults_of_change(
        self, settings: CapacitySchedulerConfiguration, configuration: Configuration, *, with_capacities: bool
    ) -> list[Fault]:
        """Faults that forbid a change from the present tree to the configured one. All of its queues were read.

        `with_capacities`: the new capacities are valid by themselves; check them against the present queues too.
        """
        faults: list[Fault] = []
        _check_activations(self.by_path, settings, configuration, faults)
        for queue in self.by_path.values():
            new = settings.queues.get(queue.path)
            if new is None and queue.configuration.is_on_demand:
                _check_loss(queue, configuration, faults)
            elif new is None:
                _check_deletion(queue, configuration, faults)
            else:
                _check_change(queue, new, configuration, faults)
                check_managed(queue, new, configuration, faults)
        if settings.legacy_queue_mode and with_capacities:
            self._check_capacities(settings, configuration, faults)
        return faults

    def _check_capacities(
        self, settings: CapacitySchedulerConfiguration, configuration: Configuration, faults: list[Fault]
    ) -> None:
        """Check the capacities of siblings again, with the order and `allow_zero_capacity_sum` of present parents."""
        reader = Reader(configuration)
        for queue in self.by_path.values():
            new = settings.queues.get(queue.path)
            if isinstance(queue, ManagedParentQueue):
                continue
            if isinstance(queue, ParentQueue) and new is not None and not new.is_leaf and not new.is_plan:
                children = [settings.queues[path] for path in _paths_after_refresh(queue, settings)]
                flag = queue.allow_zero_capacity_sum
                comparator = self._context.comparator()
                check_children(reader, new, children, comparator, allow_zero_capacity_sum=flag)
        faults.extend(reader.faults)

    def refresh(self, applications: ApplicationTable) -> None:
        """Apply the context's settings, which have been checked, and recompute everything."""
        self._refresh_parent(self.root, applications)
        self._index()
        self.update_cluster_resource()

    def _refresh_parent(self, parent: ParentQueue, applications: ApplicationTable) -> None:
        """Reconfigure a parent and all queues below, in Hadoop's order: by the hash of the children's paths.

        Children that were created on demand come first (AbstractParentQueue.reinitialize).
        """
        settings = self._context.settings
        if isinstance(parent, ManagedParentQueue):
            self._refresh_managed(parent, applications)
            return
        self._reconfigure(parent, settings.queues[parent.path])
        present = {child.path: child for child in parent.children}
        order = _paths_after_refresh(parent, settings)
        kept = [path for path in hash_order(present, string_hash) if path in _dynamic_below(parent, settings)]
        for path in (*kept, *hash_order(_configured_below(parent, settings), string_hash)):
            child = present.get(path)
            if child is None or isinstance(child, LeafQueue) != settings.queues[path].is_leaf:
                present[path] = _build(settings, path, parent, self._context)
            elif isinstance(child, ParentQueue):
                self._refresh_parent(child, applications)
            else:
                self._reconfigure(child, settings.queues[path])
        parent.children = [present[path] for path in order]

    def _refresh_managed(self, parent: ManagedParentQueue, applications: ApplicationTable) -> None:
        """Refresh a managed parent: its leaves keep their order and lose their guarantees.

        Then the leaves with applications get guarantees.
        """
        queues = self._context.settings.queues
        parent.load_template(queues[parent.path])
        self._reconfigure(parent, queues[parent.path])
        for child in parent.children:
            if isinstance(child, ParentQueue):
                self._refresh_parent(child, applications)
            else:
                self._reconfigure(child, queues[child.path])
        parent.restart(applications)

    def _reconfigure(self, queue: CSQueue, configuration: QueueConfiguration) -> None:
        reconfigure(queue, configuration)
        if queue.state is QueueState.RUNNING:
            if configuration.state is QueueState.STOPPED:
                queue.stop()
        elif configuration.state is QueueState.RUNNING:
            queue.state = QueueState.RUNNING

    def _index(self) -> None:
        self.by_path: dict[str, CSQueue] = {}
        self._short_names: dict[str, list[str]] = {}
        for queue in _walk(self.root):
            self._note(queue)
        for name in self._short_names:
            self._name(name)

    def _note(self, queue: CSQueue) -> None:
        self.by_path[queue.path] = queue
        if queue.parent is not None:
            self._short_names.setdefault(queue.name, []).append(queue.path)

    def _name(self, short_name: str) -> None:
        """Set the queue name that new containers of these queues will carry: see `CSQueue.remembered_as`."""
        paths = self._short_names[short_name]
        for path in paths:
            self.by_path[path].remembered_as = path if self.get(short_name) is self.by_path[path] else short_name


def _build(
    settings: CapacitySchedulerConfiguration, path: str, parent: ParentQueue | None, context: SchedulerContext
) -> ParentQueue | LeafQueue:
    configuration = settings.queues[path]
    queue = new_queue(configuration, parent, context)
    if isinstance(queue, ParentQueue):
        queue.children = [_build(settings, f"{path}.{name}", queue, context) for name in configuration.children]
    return queue


def _configured_below(parent: ParentQueue, settings: CapacitySchedulerConfiguration) -> list[str]:
    return [f"{parent.path}.{name}" for name in settings.queues[parent.path].children]


def _dynamic_below(parent: ParentQueue, settings: CapacitySchedulerConfiguration) -> set[str]:
    """The paths of children that were created on demand and are still so in `settings`."""
    there = (settings.queues.get(child.path) for child in parent.children if child.is_dynamic)
    return {new.path for new in there if new is not None and new.is_dynamic}


def _paths_after_refresh(parent: ParentQueue, settings: CapacitySchedulerConfiguration) -> list[str]:
    """The paths of a parent's children in the order after a refresh: that of Java's map of old and new paths."""
    configured = _configured_below(parent, settings)
    wanted = {*configured, *_dynamic_below(parent, settings)}
    known = dict.fromkeys([*(child.path for child in parent.children), *hash_order(configured, string_hash)])
    return hash_order([path for path in known if path in wanted], string_hash, peak=len(known))


def _walk(queue: CSQueue) -> Iterator[CSQueue]:
    yield queue
    if isinstance(queue, ParentQueue):
        for child in queue.children:
            yield from _walk(child)


def _check_deletion(queue: CSQueue, configuration: Configuration, faults: list[Fault]) -> None:
    """Add a fault for a deleted queue that is not stopped, nor set to STOPPED in the new configuration, in exactly this
    spelling: CapacitySchedulerConfigValidator.createQueueState does not trim the value.
    """
    key = queue_key(queue.path, "state")
    if queue.state is QueueState.STOPPED or configuration.get(key) == "STOPPED":
        return
    problem = (
        f"{queue.path} cannot be deleted from the capacity scheduler configuration, as the queue is not yet in stopped "
        f"state. Current State : {queue.state.name}"
    )
    faults.append(_fault(configuration, key, problem, "stop the queue first, or keep it in its parent's list"))


def _check_loss(queue: CSQueue, configuration: Configuration, faults: list[Fault]) -> None:
    """Add a fault for a queue created on demand that has applications and would be deleted with its parent.

    In Hadoop such queues can still be found by their paths, below a parent that is no longer in the tree.
    """
    if isinstance(queue, LeafQueue) and queue.application_total() > 0:
        above = queue.path.rpartition(".")[0]
        problem = f"{above} would no longer create queues on demand, and {queue.path} has applications"
        key = queue_key(above, QUEUE_CREATION + "enabled")
        faults.append(_fault(configuration, key, problem, "keep it true until the applications have ended"))


def _check_change(queue: CSQueue, new: QueueConfiguration, configuration: Configuration, faults: list[Fault]) -> None:
    key = queue_key(queue.path, "state")
    stopped = queue.state is QueueState.STOPPED or new.initial_state is QueueState.STOPPED
    if isinstance(queue, LeafQueue) and not new.is_leaf and not stopped:
        problem = (
            f"Can not convert the leaf queue: {queue.path} to parent queue since it is not yet in stopped state. "
            f"Current State : {queue.state.name}"
        )
        faults.append(_fault(configuration, key, problem, "stop the queue first"))
    if (
        isinstance(queue, LeafQueue)
        and not new.is_on_demand
        and not queue.configuration.maximum_allocation.fits_in(new.maximum_allocation)
    ):
        problem = (
            f"Trying to reinitialize {queue.path} the maximum allocation size can not be decreased! "
            f"Current setting: {queue.configuration.maximum_allocation}, trying to set it to: {new.maximum_allocation}"
        )
        remedy = "keep the maximum: applications were informed of it when they registered"
        faults.append(_fault(configuration, queue_key(queue.path, "maximum-allocation"), problem, remedy))


def _check_activations(
    tree: dict[str, CSQueue],
    settings: CapacitySchedulerConfiguration,
    configuration: Configuration,
    faults: list[Fault],
) -> None:
    """Add a fault for each queue that is to be started below a queue that will not run (activateQueue)."""
    running, stopped = QueueState.RUNNING, QueueState.STOPPED
    states: dict[str, QueueState] = {}
    stopping: set[str] = set()
    for path, queue in tree.items():
        new, above = settings.queues.get(path), queue.configuration.parent_path
        configured = new.state if new is not None else None
        old = stopped if above in stopping else queue.state
        if above in stopping or (old is running and configured is stopped):
            stopping.add(path)
        if configured is running and old is not running and states.get(above, running) is not running:
            problem = f"The parent Queue:{above} is not running. Please activate the parent queue first"
            faults.append(_fault(configuration, queue_key(path, "state"), problem, f"set {above} to RUNNING as well"))
        states[path] = old if configured is None else configured


def _fault(configuration: Configuration, key: str, problem: str, remedy: str) -> Fault:
    return Fault(key, configuration.get(key), configuration.origin(key), problem, remedy)
