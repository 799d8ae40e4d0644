"""Mapping rules and the variables in them (Hadoop's csmappingrule and VariableContext).

A rule states which submissions it matches, where it places them, and what happens if that queue cannot be used. In a
target, a variable is replaced only if it is a whole part between dots. In a matcher, and in a new default queue,
variables are replaced anywhere. A name that becomes part of a path must not contain dots, so `ann.smith` becomes
`ann_dot_smith`; matchers compare with the original name.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from msgspec import Struct

USER = "%user"
PRIMARY_GROUP = "%primary_group"
SECONDARY_GROUP = "%secondary_group"
APPLICATION = "%application"
SPECIFIED = "%specified"
DEFAULT = "%default"

NAMES = frozenset({USER, PRIMARY_GROUP, SECONDARY_GROUP, APPLICATION, SPECIFIED, DEFAULT})

DEFAULT_QUEUE = "default"
"""The queue name of a submission without a queue."""


class Variables:
    """The variables of one submission. `groups`: the user's groups, unchanged, the primary one first.

    Without any group the group variables are not replaced; the resulting path is not a queue.
    """

    __slots__ = ("_exists", "_secondary_groups", "_values", "application", "groups", "user")

    def __init__(
        self, *, user: str, groups: tuple[str, ...], application: str, queue: str, exists: Callable[[str], bool]
    ) -> None:
        self.user = user
        self.groups = groups
        self.application = application
        self._exists = exists
        self._values = {
            USER: _as_part(user),
            SPECIFIED: "" if queue == DEFAULT_QUEUE else queue,
            APPLICATION: application,
            DEFAULT: f"root.{DEFAULT_QUEUE}",
        }
        distinct = tuple(dict.fromkeys(groups))
        self._secondary_groups = tuple(_as_part(group) for group in distinct[1:])
        if distinct:
            self._values[PRIMARY_GROUP] = _as_part(distinct[0])
            if not self._secondary_groups:
                self._values[SECONDARY_GROUP] = ""

    def set_default(self, queue: str) -> None:
        """Change the default queue for the rules that follow."""
        self._values[DEFAULT] = self.in_text(queue)

    def in_text(self, text: str) -> str:
        """`text` with all variables replaced, longest names first."""
        for name in sorted(self._values, key=len, reverse=True):
            text = text.replace(name, self._values[name])
        return text

    def in_path(self, path: str) -> str:
        """`path` with the parts that are variables replaced."""
        parts = path.split(".")
        while len(parts) > 1 and not parts[-1]:
            parts.pop()  # as String.split in Java
        for index, part in enumerate(parts):
            if part == SECONDARY_GROUP and part not in self._values and self._secondary_groups:
                parts[index] = self._secondary_group(parts[:index])
            else:
                parts[index] = self._values.get(part, part)
        return ".".join(parts)

    def _secondary_group(self, above: list[str]) -> str:
        """The first secondary group for which there is a queue below the path so far; "" if there is none."""
        for group in self._secondary_groups:
            if self._exists(".".join((*above, group))):
                return group
        return ""


class Subject(Enum):
    """The part of a submission that a rule compares."""

    ALL = "all"
    USER = "user"
    GROUP = "group"
    APPLICATION = "application"


class Action(Enum):
    """The action of a rule. SET_DEFAULT changes the default queue and continues with the next rule."""

    PLACE = "place"
    SET_DEFAULT = "setDefaultQueue"
    REJECT = "reject"


class Fallback(Enum):
    """The action if the queue of a matching rule cannot be used."""

    SKIP = "skip"
    PLACE_DEFAULT = "placeDefault"
    REJECT = "reject"


class MappingRule(Struct, frozen=True):
    """A mapping rule. `matches` and `target` may contain variables.

    `target`: the queue to place in, or the new default queue.
    """

    subject: Subject
    matches: str
    action: Action
    target: str = ""
    may_create: bool = True
    fallback: Fallback = Fallback.SKIP

    def matches_submission(self, variables: Variables) -> bool:
        """True if the rule matches the submission; a group rule matches any group of the user."""
        if self.subject is Subject.ALL:
            return True
        wanted = variables.in_text(self.matches)
        if self.subject is Subject.USER:
            return wanted == variables.user
        if self.subject is Subject.GROUP:
            return wanted in variables.groups
        return wanted == variables.application


PLACE_DEFAULT = MappingRule(Subject.ALL, "*", Action.PLACE, DEFAULT, may_create=False)
"""The rule of the fallback to the default queue."""


def _as_part(name: str) -> str:
    return name.replace(".", "_dot_")
