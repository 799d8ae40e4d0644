"""What the rules need to know of the queues, and where a path that a rule gives leads.

A path is good if it names a leaf, or a queue that may be created under a parent that creates queues. The first part
may be any unambiguous short name: `users.ann` under root.users.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol


class FoundQueue(NamedTuple):
    """A queue: its full path, and whether it is a leaf or creates queues on demand, one level only if `is_managed`."""

    path: str
    is_leaf: bool
    creates_queues: bool = False
    is_managed: bool = False


class Queues(Protocol):
    """The queue tree as the rules see it."""

    def find(self, name: str) -> FoundQueue | None:
        """The queue of a path or unambiguous short name."""
        ...

    def is_ambiguous(self, name: str) -> bool:
        """True for a short name that several queues have."""
        ...


class NoSuchPlace(Exception):
    """A path leads nowhere; the message says why, to whoever wrote the rules."""


def resolved(path: str, queues: Queues, *, may_create: bool) -> str:
    """The full path of what a rule gave (CSMappingPlacementRule.validateAndNormalizeQueue). Raises NoSuchPlace."""
    if "" in path.split("."):
        raise NoSuchPlace(f"Invalid path returned by rule: '{path}'")
    if "." not in path:
        return _existing(path, queues)
    full, found = _look_up(path, queues)
    if found is None and not may_create:
        raise NoSuchPlace(f"Mapping rule doesn't allow auto-creation of the queue '{full}'.")
    if found is not None and not found.is_leaf:
        raise NoSuchPlace(f"Mapping rule returned a non-leaf queue '{full}', cannot place application in it.")
    return full


def check_target(path: str, variables: frozenset[str], queues: Queues) -> None:
    """Raises NoSuchPlace for a rule's target that can never lead anywhere (MappingRuleValidationContextImpl)."""
    if not path:
        raise NoSuchPlace("Queue path is empty.")
    parts = path.split(".")
    fixed = parts[: next((number for number, part in enumerate(parts) if part in variables), len(parts))]
    if "" in fixed:
        raise NoSuchPlace(f"Path segment cannot be empty '{path}'.")
    if len(fixed) == len(parts):
        _check_fixed(path, queues)
    elif fixed:
        _check_prefix(path, fixed, queues)


def _existing(name: str, queues: Queues) -> str:
    found = queues.find(name)
    if found is None:
        problem = "is ambiguous" if queues.is_ambiguous(name) else "does not exist."
        raise NoSuchPlace(f"Queue '{name}' specified in mapping rule {problem}")
    if not found.is_leaf:
        raise NoSuchPlace(f"Mapping rule returned a non-leaf queue '{found.path}', cannot place application in it.")
    return found.path


def _look_up(path: str, queues: Queues) -> tuple[str, FoundQueue | None]:
    """(full path, its queue; None if it can be created)."""
    full = _from_root(path, queues)
    found = queues.find(full)
    if found is None:
        _check_creatable(full, queues)
    return full, found


def _from_root(path: str, queues: Queues) -> str:
    """The path with its first part, a short name perhaps, written out."""
    first, dot, rest = path.partition(".")
    root = queues.find(first)
    if root is None:
        problem = "is ambiguous" if queues.is_ambiguous(first) else "does not exist"
        raise NoSuchPlace(f"Path root '{first}' {problem}. Path '{path}' is invalid")
    return root.path + dot + rest


def _check_creatable(path: str, queues: Queues) -> None:
    if queues.is_ambiguous(path):
        raise NoSuchPlace(f"Target queue is an ambiguous leaf queue '{path}'.")
    parent_path, _, leaf = path.rpartition(".")
    if not parent_path:
        raise NoSuchPlace(f"Target queue does not exist and has no parent defined '{path}'.")
    parent = queues.find(parent_path)
    if parent is None:
        above = queues.find(parent_path.rpartition(".")[0])
        if above is not None and above.creates_queues and not above.is_managed:
            return
    elif parent.creates_queues:
        return
    raise NoSuchPlace(
        f"Mapping rule specified a parent queue '{parent_path}', but it is not a dynamic parent queue, "
        f"and no queue exists with name '{leaf}' under it."
    )


def _check_fixed(path: str, queues: Queues) -> None:
    _, found = _look_up(path, queues)
    if found is not None and not found.is_leaf:
        raise NoSuchPlace(f"Target queue '{path}' but it's not a leaf queue.")


def _check_prefix(path: str, fixed: list[str], queues: Queues) -> None:
    """What stands before the first variable must be a queue that can have others below it."""
    prefix = _from_root(".".join(fixed), queues)
    found = queues.find(prefix)
    if found is not None and found.is_leaf:
        raise NoSuchPlace(
            f"Queue path '{path}' is invalid because '{prefix}' is a leaf queue, "
            "which can have no other queues under it."
        )
    if found is not None:
        return
    above = queues.find(prefix.rpartition(".")[0])
    if above is None or not above.creates_queues:
        raise NoSuchPlace(f"No eligible parent found on path '{path}'.")
