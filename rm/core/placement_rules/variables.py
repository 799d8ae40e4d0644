"""The variables of mapping rules: who submits what, as it may stand in a matcher or a target (VariableContext).

In a target a variable is replaced only as a whole part between dots; in a matcher, and in a new default queue, it is
replaced wherever it stands. A name that becomes part of a path must not have dots, so `ann.smith` becomes
`ann_dot_smith`; matchers compare with the name as it was.
"""

from __future__ import annotations

from collections.abc import Callable

USER = "%user"
PRIMARY_GROUP = "%primary_group"
SECONDARY_GROUP = "%secondary_group"
APPLICATION = "%application"
SPECIFIED = "%specified"
DEFAULT = "%default"

NAMES = frozenset({USER, PRIMARY_GROUP, SECONDARY_GROUP, APPLICATION, SPECIFIED, DEFAULT})

DEFAULT_QUEUE = "default"
"""The name of a submission that names no queue."""


class Variables:
    """The variables of one submission. `groups`: the user's as they are; the first is the primary one.

    Without any group neither group variable is set: it stays as written, which no queue is called.
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
        """From now on the default queue is another."""
        self._values[DEFAULT] = self.in_text(queue)

    def in_text(self, text: str) -> str:
        """Every variable replaced, wherever it stands, the longest names first."""
        for name in sorted(self._values, key=len, reverse=True):
            text = text.replace(name, self._values[name])
        return text

    def in_path(self, path: str) -> str:
        """The parts that are variables replaced."""
        parts = path.split(".")
        while len(parts) > 1 and not parts[-1]:
            parts.pop()  # as Java splits
        for index, part in enumerate(parts):
            if part == SECONDARY_GROUP and part not in self._values and self._secondary_groups:
                parts[index] = self._secondary_group(parts[:index])
            else:
                parts[index] = self._values.get(part, part)
        return ".".join(parts)

    def _secondary_group(self, above: list[str]) -> str:
        """The first secondary group that a queue under the path so far is called after."""
        for group in self._secondary_groups:
            if self._exists(".".join((*above, group))):
                return group
        return ""


def _as_part(name: str) -> str:
    return name.replace(".", "_dot_")
