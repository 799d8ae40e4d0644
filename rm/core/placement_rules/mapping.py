"""Hadoop's CSMappingPlacementRule: the first rule that places an application decides.

A submission that names a queue keeps it unless queue-mappings-override.enable is set. The path of a rule is valid if it
names a leaf, or a queue that can be created below a parent that creates queues. Its first part may be any unambiguous
short name: `users.ann` is below root.users.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from rm.core.placement_rules.reading import JSON, MAPPINGS, OVERRIDE, read_rules
from rm.core.placement_rules.rules import DEFAULT_QUEUE, NAMES, PLACE_DEFAULT, Action, Fallback, MappingRule, Variables
from yarn.configuration import Configuration
from yarn.errors import YarnException
from yarn.faults import Fault, refuse_if_faulty


class FoundQueue(NamedTuple):
    """A queue that the rules found; `path` is its full path. `is_managed`: it creates leaves only."""

    path: str
    is_leaf: bool
    creates_queues: bool = False
    is_managed: bool = False


class KnownQueues(Protocol):
    """The part of the queue tree that the rules need to know."""

    def find(self, name: str) -> FoundQueue | None:
        """The queue with a path or unambiguous short name."""
        ...

    def is_ambiguous(self, name: str) -> bool:
        """True for a short name that several queues have."""
        ...


class NoSuchQueue(Exception):
    """A path does not name a usable queue; the message says why."""


def resolved(path: str, queues: KnownQueues, *, may_create: bool) -> str:
    """Check the path that a rule returned; returns its full path. Raises NoSuchQueue (validateAndNormalizeQueue)."""
    if "" in path.split("."):
        raise NoSuchQueue(f"Invalid path returned by rule: '{path}'")
    if "." not in path:
        return _existing(path, queues)
    full, found = _look_up(path, queues)
    if found is None and not may_create:
        raise NoSuchQueue(f"Mapping rule doesn't allow auto-creation of the queue '{full}'.")
    if found is not None and not found.is_leaf:
        raise NoSuchQueue(f"Mapping rule returned a non-leaf queue '{full}', cannot place application in it.")
    return full


def check_target(path: str, variables: frozenset[str], queues: KnownQueues) -> None:
    """Raises NoSuchQueue for a target that can never name a usable queue (MappingRuleValidationContextImpl)."""
    if not path:
        raise NoSuchQueue("Queue path is empty.")
    parts = path.split(".")
    fixed = parts[: next((number for number, part in enumerate(parts) if part in variables), len(parts))]
    if "" in fixed:
        raise NoSuchQueue(f"Path segment cannot be empty '{path}'.")
    if len(fixed) == len(parts):
        _check_fixed(path, queues)
    elif fixed:
        _check_prefix(path, fixed, queues)


def _existing(name: str, queues: KnownQueues) -> str:
    found = queues.find(name)
    if found is None:
        problem = "is ambiguous" if queues.is_ambiguous(name) else "does not exist."
        raise NoSuchQueue(f"Queue '{name}' specified in mapping rule {problem}")
    if not found.is_leaf:
        raise NoSuchQueue(f"Mapping rule returned a non-leaf queue '{found.path}', cannot place application in it.")
    return found.path


def _look_up(path: str, queues: KnownQueues) -> tuple[str, FoundQueue | None]:
    """(full path, the queue there). The queue is None if it does not exist and can be created."""
    full = _from_root(path, queues)
    found = queues.find(full)
    if found is None:
        _check_creatable(full, queues)
    return full, found


def _from_root(path: str, queues: KnownQueues) -> str:
    """Replace the first part of the path, which may be a short name, by the full path of that queue."""
    first, dot, rest = path.partition(".")
    root = queues.find(first)
    if root is None:
        problem = "is ambiguous" if queues.is_ambiguous(first) else "does not exist"
        raise NoSuchQueue(f"Path root '{first}' {problem}. Path '{path}' is invalid")
    return root.path + dot + rest


def _check_creatable(path: str, queues: KnownQueues) -> None:
    if queues.is_ambiguous(path):
        raise NoSuchQueue(f"Target queue is an ambiguous leaf queue '{path}'.")
    parent_path, _, leaf = path.rpartition(".")
    if not parent_path:
        raise NoSuchQueue(f"Target queue does not exist and has no parent defined '{path}'.")
    parent = queues.find(parent_path)
    if parent is None:
        above = queues.find(parent_path.rpartition(".")[0])
        if above is not None and above.creates_queues and not above.is_managed:
            return
    elif parent.creates_queues:
        return
    raise NoSuchQueue(
        f"Mapping rule specified a parent queue '{parent_path}', but it is not a dynamic parent queue, "
        f"and no queue exists with name '{leaf}' under it."
    )


def _check_fixed(path: str, queues: KnownQueues) -> None:
    _, found = _look_up(path, queues)
    if found is not None and not found.is_leaf:
        raise NoSuchQueue(f"Target queue '{path}' but it's not a leaf queue.")


def _check_prefix(path: str, fixed: list[str], queues: KnownQueues) -> None:
    """Raises NoSuchQueue unless the part before the first variable is a queue that can have children."""
    prefix = _from_root(".".join(fixed), queues)
    found = queues.find(prefix)
    if found is not None and found.is_leaf:
        raise NoSuchQueue(
            f"Queue path '{path}' is invalid because '{prefix}' is a leaf queue, "
            "which can have no other queues under it."
        )
    if found is not None:
        return
    above = queues.find(prefix.rpartition(".")[0])
    if above is None or not above.creates_queues:
        raise NoSuchQueue(f"No eligible parent found on path '{path}'.")


REJECTED = "Application submission have been rejected by a mapping rule. Please see the logs for details"


class MappingPlacement:
    """The rules of a configuration. Each call applies them to the queues that exist then.

    `warnings`: what is accepted but probably a mistake, or not supported.
    """

    __slots__ = ("_overrides", "_queues", "_rules", "warnings")

    def __init__(self, configuration: Configuration, queues: KnownQueues) -> None:
        """Raises ConfigurationException for rules that are not valid, or that can never place an application."""
        faults: list[Fault] = []
        self._queues = queues
        self._rules = read_rules(configuration, faults)
        self._overrides = configuration.get_bool(OVERRIDE, False)
        key = JSON if configuration.get(JSON) and not configuration.get(MAPPINGS) else MAPPINGS
        for rule in self._rules:
            try:
                _check(rule, queues)
            except NoSuchQueue as problem:
                faults.append(
                    Fault(key, rule.target, configuration.origin(key), str(problem), "name an existing leaf queue")
                )
        refuse_if_faulty(faults)
        self.warnings = tuple(faults)

    def place(self, *, user: str, groups: tuple[str, ...], application: str, queue: str) -> str | None:
        """The full path that the rules choose; None to keep the submitted `queue`. Raises YarnException to reject."""
        if not self._rules or (queue != DEFAULT_QUEUE and not self._overrides):
            return None
        variables = Variables(
            user=user,
            groups=groups,
            application=application,
            queue=queue,
            exists=lambda path: self._queues.find(path) is not None,
        )
        for rule in self._rules:
            if rule.matches_submission(variables) and (path := self._apply(rule, variables)) is not None:
                return path
        return None

    def _apply(self, rule: MappingRule, variables: Variables) -> str | None:
        """The queue of a matching rule; None to continue with the next rule."""
        if rule.action is Action.REJECT:
            raise YarnException(REJECTED)
        if rule.action is Action.SET_DEFAULT:
            variables.set_default(rule.target)
            return None
        try:
            return resolved(variables.in_path(rule.target), self._queues, may_create=rule.may_create)
        except NoSuchQueue:
            return self._fall_back(rule.fallback, variables)

    def _fall_back(self, fallback: Fallback, variables: Variables) -> str | None:
        if fallback is Fallback.SKIP:
            return None
        if fallback is Fallback.REJECT:
            raise YarnException(REJECTED)
        try:
            return resolved(variables.in_path(PLACE_DEFAULT.target), self._queues, may_create=False)
        except NoSuchQueue:
            raise YarnException(REJECTED) from None


def _check(rule: MappingRule, queues: KnownQueues) -> None:
    if rule.action is Action.PLACE:
        check_target(rule.target, NAMES, queues)
