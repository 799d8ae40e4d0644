"""Warnings about values that Hadoop accepts and that stop a queue, or do nothing.

Each rule is one function, listed in `_QUEUE_RULES` or `_TREE_RULES`. A warning says what Hadoop does with the value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct

from rm.scheduler.config.queue_configuration import QueueConfiguration
from rm.scheduler.config.reader import Reader
from yarn.resource import Resource
from yarn.settings import scheduler
from yarn.settings.scheduler import PREFIX, ROOT, queue_key, queue_of, setting_of_queue

_LABELS_OR_TEMPLATE = re.compile(r"\.(accessible-node-labels|leaf-queue-template|auto-queue-creation-v2)(\.|$)")
"""Words of keys after which everything belongs to the queue that is named before them."""
_USER_PARALLEL = re.compile(rf"{re.escape(PREFIX)}user\.(?:.+\.)?max-parallel-apps")

_OF_LEAVES = (
    "minimum-user-limit-percent",
    "user-limit-factor",
    "maximum-applications",
    "maximum-am-resource-percent",
    "default-application-priority",
    "acl_application_max_priority",
)
"""Properties that only leaves read, each its own (AbstractLeafQueue.setupQueueConfigs); parents do not pass them on."""


class ReadQueues(Struct, frozen=True):
    """The queues {path: queue}, and the settings of the scheduler that rules need. `counts_memory_only`: the scheduler
    has the DefaultResourceCalculator.
    """

    reader: Reader
    queues: Mapping[str, QueueConfiguration]
    minimum_allocation: Resource
    counts_memory_only: bool


class Mistake(Struct, frozen=True):
    """A key of which Hadoop does something unexpected, what that is, and the remedy."""

    key: str
    problem: str
    remedy: str


def mistakes_of(tree: ReadQueues) -> Iterator[Mistake]:
    """The values that stop a queue or have no effect; template_mistakes has those of queues created on demand."""
    for rule in _TREE_RULES:
        yield from rule(tree)
    for queue in tree.queues.values():
        parent = tree.queues.get(queue.parent_path)
        if not (queue.is_on_demand or queue.is_plan or (parent is not None and parent.is_plan)):
            yield from mistakes_of_queue(tree, queue)


def mistakes_of_queue(tree: ReadQueues, queue: QueueConfiguration) -> Iterator[Mistake]:
    """The values of one queue that stop it or have no effect."""
    for rule in _QUEUE_RULES:
        yield from rule(tree, queue)


def _source(tree: ReadQueues, queue: QueueConfiguration, name: str) -> str:
    """The key that the value of a queue's property comes from: its own, or the one for all queues."""
    own = queue_key(queue.path, name)
    return own if own in tree.reader.configuration else PREFIX + name


def _accepts_nothing(tree: ReadQueues, queue: QueueConfiguration) -> Iterator[Mistake]:
    """Find queues that accept no application (AbstractLeafQueue.validateSubmitApplication: 0 are 0 or more)."""
    most, factor, percent = _applications_max(tree, queue), queue.user_limit_factor, queue.user_limit
    if not queue.is_leaf:
        return
    if most == 0:
        problem = "the queue refuses every application, because it already has 0 of 0"
        yield Mistake(_source(tree, queue, "maximum-applications"), problem, "raise it, or remove it")
    elif factor != -1 and factor <= 0:
        problem = "no user may use anything, and the queue refuses every application: a user may have 0 of them"
        remedy = "write a factor above 0, or -1 for no limit"
        yield Mistake(_source(tree, queue, "user-limit-factor"), problem, remedy)
    elif factor != -1 and percent <= 0:
        problem = (
            "the queue refuses every application: a user may have maximum-applications times this percentage of them, 0"
        )
        yield Mistake(_source(tree, queue, "minimum-user-limit-percent"), problem, "write a percentage above 0")
    elif factor != -1 and most is not None and most * percent / 100 * factor < 1:
        problem = (
            f"the queue refuses every application: a user may have {most} x {percent:g} % x user-limit-factor "
            f"{factor:g} of them, rounded down to 0"
        )
        yield Mistake(_source(tree, queue, "maximum-applications"), problem, "raise it")


def _applications_max(tree: ReadQueues, queue: QueueConfiguration) -> int | None:
    """The most applications of a queue if that is known without its capacity (updateMaximumApplications)."""
    if queue.maximum_applications >= 0:
        return queue.maximum_applications
    return 0 if tree.reader.value(scheduler.MAXIMUM_APPLICATIONS) <= 0 else None


def _runs_nothing(tree: ReadQueues, queue: QueueConfiguration) -> Iterator[Mistake]:
    """Find queues whose applications stay pending forever (CSMaxRunningAppsEnforcer: 0 running are the maximum)."""
    if queue.max_parallel_apps <= 0:
        problem = "applications are accepted and never run: Hadoop takes the number as it is, also a negative one"
        yield Mistake(_source(tree, queue, "max-parallel-apps"), problem, "remove it for no limit, or raise it")


def _users_run_nothing(tree: ReadQueues) -> Iterator[Mistake]:
    """The limit of one user, or of each user (CSMaxRunningAppsEnforcer.exceedUserMaxParallelApps)."""
    reader = tree.reader
    for key in reader.configuration.keys(PREFIX + "user."):
        if _USER_PARALLEL.fullmatch(key) and reader.integer(key, 1) <= 0:
            problem = "applications are accepted and never run: Hadoop takes the number as it is, also a negative one"
            yield Mistake(key, problem, "remove it for no limit, or raise it")


def _masters(tree: ReadQueues, queue: QueueConfiguration) -> Iterator[Mistake]:
    """The share of AMs is a fraction that is not bounded (calculateAndGetAMResourceLimitPerPartition)."""
    percent = queue.capacities[""].maximum_am_percent
    key = _source(tree, queue, "maximum-am-resource-percent")
    if not queue.is_leaf:
        return
    if percent > 1:
        problem = (
            f"a fraction: AMs may use {percent:g} times the queue, so that nothing may be left for other containers"
        )
        yield Mistake(key, problem, "write a fraction from 0 to 1")
    elif percent <= 0:
        problem = "one application runs at a time: the first is let in although no AM fits its limit, no second one is"
        yield Mistake(key, problem, "write a fraction above 0")


def _default_label(tree: ReadQueues, queue: QueueConfiguration) -> Iterator[Mistake]:
    """The queue's default label names nodes of which it gets nothing (SchedulerUtils.normalizeAndValidateRequest)."""
    label = queue.default_label
    if not (queue.is_leaf and label):
        return
    key = queue_key(_owner_of_label(tree, queue), "default-node-label-expression")
    if not tree.reader.value(scheduler.NODE_LABELS_ENABLED):
        problem = f"without {scheduler.NODE_LABELS_ENABLED.key} there are no labels: every application is refused"
        yield Mistake(key, problem, "set that key to true, or remove this one")
        return
    lacking = next((each for each in _upwards(tree, queue) if label not in each.capacities), None)
    if lacking is not None:
        name = f"accessible-node-labels.{label}.capacity"
        problem = (
            f"{lacking.path} has no capacity on the label {label}: requests without a label wait for ever, or are "
            "refused if the cluster does not know the label"
        )
        yield Mistake(key, problem, f"set {queue_key(lacking.path, name)}, or remove this key")


def _owner_of_label(tree: ReadQueues, queue: QueueConfiguration) -> str:
    """The path of the queue, this one or one above, that sets the default label."""
    keys = tree.reader.configuration
    name = "default-node-label-expression"
    return next((each.path for each in _upwards(tree, queue) if queue_key(each.path, name) in keys), queue.path)


def _upwards(tree: ReadQueues, queue: QueueConfiguration | None) -> Iterator[QueueConfiguration]:
    while queue is not None:
        yield queue
        queue = tree.queues.get(queue.parent_path)


def _label_without_access(tree: ReadQueues, queue: QueueConfiguration) -> Iterator[Mistake]:
    """A share of a label that the queue may not use (QueueNodeLabelsSettings.isAccessibleToPartition)."""
    for label in queue.capacities:
        key = queue_key(queue.path, f"accessible-node-labels.{label}.capacity")
        if label and not queue.may_use(label) and key in tree.reader.configuration:
            problem = f"the queue may not use the label {label}: its share of these nodes is lost to it"
            remedy = f"add {label} to {queue_key(queue.path, 'accessible-node-labels')}, or remove this key"
            yield Mistake(key, problem, remedy)


def _small_maximum(tree: ReadQueues, queue: QueueConfiguration) -> Iterator[Mistake]:
    """Find a queue whose largest container is below the scheduler's smallest (DefaultResourceCalculator.normalize)."""
    least, most = tree.minimum_allocation, queue.maximum_allocation
    pairs = (("-mb", "MB", most.memory_mb, least.memory_mb), ("-vcores", "vcores", most.vcores, least.vcores))
    for suffix, unit, high, low in pairs:
        key = queue_key(queue.path, "maximum-allocation")
        key = key if key in tree.reader.configuration else key + suffix
        if high < low and key in tree.reader.configuration:
            problem = (
                f"below the minimum allocation of {low} {unit}: larger requests are refused, and smaller ones get "
                f"{high} {unit} instead of the minimum"
            )
            yield Mistake(key, problem, f"raise it to at least {low}")


def _not_inherited(tree: ReadQueues, queue: QueueConfiguration) -> Iterator[Mistake]:
    if queue.is_leaf:
        return
    for name in _OF_LEAVES:
        key = queue_key(queue.path, name)
        if key in tree.reader.configuration:
            problem = f"has no effect: {queue.path} is a parent, and queues below it do not inherit this key"
            remedy = "write it for each leaf"
            if setting_of_queue(name) and name not in ("default-application-priority", "acl_application_max_priority"):
                remedy += f", or {PREFIX}{name} for all of them"
            yield Mistake(key, problem, remedy)


def _unlisted_queues(tree: ReadQueues) -> Iterator[Mistake]:
    """Queues that have keys but that no parent lists. Hadoop ignores their keys.

    Left out: queues below a parent that creates queues on demand, children of an unlisted queue, and the state STOPPED,
    which a refresh needs to remove a queue.
    """
    unlisted: dict[str, list[str]] = {}
    for key in tree.reader.configuration.keys(f"{PREFIX}{ROOT}."):
        path = None if _is_of_tree(key, tree.queues) else queue_of(key)
        if path is None or path in tree.queues or _LABELS_OR_TEMPLATE.search(path):
            continue
        if key != queue_key(path, "state") or tree.reader.raw(key) != "STOPPED":
            unlisted.setdefault(path, []).append(key)
    for path, keys in sorted(unlisted.items()):
        above = path.rpartition(".")[0]
        while above not in tree.queues and above not in unlisted:
            above = above.rpartition(".")[0]
        parent = tree.queues.get(above)
        if parent is None or parent.creation.enabled or parent.managed is not None or parent.is_plan:
            continue
        first, *others = sorted(keys, key=lambda key: (not key.endswith((".capacity", ".queues")), key))
        problem = f"there is no queue {path}: {queue_key(above, 'queues')} does not list it"
        if others:
            names = ", ".join(key[len(queue_key(path, "")) :] for key in others)
            problem += f"; nor has any effect what is set for its {names}"
        listed = path[len(above) + 1 :]
        yield Mistake(first, problem, f"add {listed} to that list, or remove the keys of the queue")


def _is_of_tree(key: str, queues: Mapping[str, QueueConfiguration]) -> bool:
    """True if the key is a property of a queue in the tree."""
    path, *words = key.removeprefix(PREFIX).split(".")
    for number, word in enumerate(words):
        if setting_of_queue(".".join(words[number:])) is not None:
            return path in queues
        path += "." + word
    return False


def _not_below_root(tree: ReadQueues) -> Iterator[Mistake]:
    """Keys of queues without the path, for example of `default`, which HDP's default file has."""
    for key in tree.reader.configuration.keys(PREFIX):
        if key.startswith(f"{PREFIX}{ROOT}.") or scheduler.is_of_scheduler(key):
            continue
        path = queue_of(key, any_path=True)
        if path is None:
            continue
        name = key[len(PREFIX) + len(path) + 1 :]
        problem = f"has no effect: keys of a queue have its whole path, which starts with {ROOT}; Hadoop never reads it"
        yield Mistake(key, problem, f"write {queue_key(f'{ROOT}.{path}', name)}, or remove it")


def _vcores_do_not_count(tree: ReadQueues) -> Iterator[Mistake]:
    """Settings of vcores have no effect: each container gets 1 vcore (DefaultResourceCalculator.normalize)."""
    if not tree.counts_memory_only or tree.minimum_allocation.vcores <= 1:
        return
    problem = (
        "the DefaultResourceCalculator counts memory only: each container gets 1 vcore, whatever is requested and "
        "whatever this minimum is"
    )
    remedy = f"set {scheduler.RESOURCE_CALCULATOR.key} to the DominantResourceCalculator, or remove this key"
    yield Mistake(scheduler.MINIMUM_ALLOCATION_VCORES.key, problem, remedy)


_QUEUE_RULES: tuple[Callable[[ReadQueues, QueueConfiguration], Iterator[Mistake]], ...] = (
    _accepts_nothing,
    _runs_nothing,
    _masters,
    _default_label,
    _label_without_access,
    _small_maximum,
    _not_inherited,
)
_TREE_RULES: tuple[Callable[[ReadQueues], Iterator[Mistake]], ...] = (
    _users_run_nothing,
    _unlisted_queues,
    _not_below_root,
    _vcores_do_not_count,
)
