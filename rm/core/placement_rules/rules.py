"""A mapping rule: whom it is for, where it places, and what if that place cannot be had (csmappingrule)."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from rm.core.placement_rules.variables import DEFAULT, Variables


class Subject(Enum):
    """What a rule looks at."""

    ALL = "all"
    USER = "user"
    GROUP = "group"
    APPLICATION = "application"


class Action(Enum):
    """What a rule does. SET_DEFAULT changes the default queue and leaves placing to the next rule."""

    PLACE = "place"
    SET_DEFAULT = "setDefaultQueue"
    REJECT = "reject"


class Fallback(Enum):
    """What happens if the place of a matching rule cannot be had."""

    SKIP = "skip"
    PLACE_DEFAULT = "placeDefault"
    REJECT = "reject"


class MappingRule(Struct, frozen=True):
    """`matches` and `target` may have variables; `target` is where to place, or the new default queue."""

    subject: Subject
    matches: str
    action: Action
    target: str = ""
    may_create: bool = True
    fallback: Fallback = Fallback.SKIP

    def is_for(self, variables: Variables) -> bool:
        """True if the submission is one that the rule is for. Any group of the user will do."""
        if self.subject is Subject.ALL:
            return True
        wanted = variables.in_text(self.matches)
        if self.subject is Subject.USER:
            return wanted == variables.user
        if self.subject is Subject.GROUP:
            return wanted in variables.groups
        return wanted == variables.application


PLACE_DEFAULT = MappingRule(Subject.ALL, "*", Action.PLACE, DEFAULT, may_create=False)
"""What the fallback to the default queue comes to."""
