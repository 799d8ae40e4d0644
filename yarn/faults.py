"""Faults of a configuration, and the origins of its values.

A configuration is refused once, with all its faults, so that a user does not fix one only to meet the next one at the
next start. Therefore checks return faults, and one exception contains all of them. A fault names the key, the value,
its origin, the bound and the remedy.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum
from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace

from yarn.errors import YarnException

ALIKE_LISTED_MAX = 3
"""More faults than this that differ only in the item of a list are one line."""
FAULTS_COUNTED = 10
"""A list with more faults than this has their number before and after it: one of the two is on the screen."""
_ITEM = re.compile(r"\[\d+\]")


class Origin(Struct, frozen=True):
    """The place where a value was written: a file's name and line, "default" or the kind of override."""

    source: str
    line: int | None = None

    def __str__(self) -> str:
        return self.source if self.line is None else f"{self.source}:{self.line}"


DEFAULT = Origin("default")
OVERRIDE = Origin("override")


class Severity(Enum):
    """ERROR: the configuration is refused. WARNING: it is accepted, but is probably a mistake."""

    ERROR = "error"
    WARNING = "warning"


class Concern(Enum):
    """The subject of a feature of Hadoop that yarnling lacks; the value orders warnings, the most important first."""

    PLACEMENT = 0
    """Which containers are placed, where and when."""
    ADMISSION = 1
    """Which requests and users are accepted."""
    OPERATION = 2
    """Nothing that the scheduler decides while the daemons run."""


class Fault(Struct, frozen=True):
    """A problem of a configuration, with its remedy.

    `value` is None if the key is not set. If a file cannot be read at all, `key` is empty as well. `problem` names the
    bound; `remedy` starts with a verb. `effect`: for a feature of Hadoop that yarnling lacks, what that means for the
    decisions of a cluster with this configuration, and `concern` which of them; empty otherwise.
    """

    key: str
    value: str | None
    origin: Origin
    problem: str
    remedy: str
    severity: Severity = Severity.ERROR
    effect: str = ""
    concern: Concern = Concern.PLACEMENT

    def __str__(self) -> str:
        subject = ""
        if self.key:
            subject = f"{self.key}: " if self.value is None else f"{self.key} = {self.value!r}: "
        effect = f"; {self.effect}" if self.effect else ""
        if self.key and self.value is None and self.origin == DEFAULT:
            return f"{self.key} (not set): {self.problem}{effect} ({self.remedy})"
        return f"{self.origin}: {subject}{self.problem}{effect} ({self.remedy})"


class ConfigurationException(YarnException):
    """A configuration is refused. `faults` has every fault: errors first, then warnings.

    The error is definite: nothing of the configuration was applied. `faults` is empty in a client that received the
    error, since only its text is sent.
    """

    java_class: ClassVar[str] = "org.apache.hadoop.yarn.exceptions.ConfigurationException"

    def __init__(self, faults: Iterable[Fault] | str) -> None:
        self.faults = () if isinstance(faults, str) else tuple(faults)
        text = faults if isinstance(faults, str) else "\n".join(map(_line, self.faults))
        assert text, "a refusal names at least one fault"
        super().__init__(text)


def _line(fault: Fault) -> str:
    return str(fault) if fault.severity is Severity.ERROR else f"warning: {fault}"


def alike_in_lists(faults: Iterable[Fault]) -> list[Fault]:
    """The faults of a file, those of many items of a list in one: "nodes[2]: has no vcores (20 alike: nodes[2],
    nodes[3], nodes[4], ...)". They are alike if only the item and the value differ.
    """
    faults = list(faults)
    kinds: dict[tuple[object, ...], list[Fault]] = {}
    for fault in faults:
        kinds.setdefault(_kind(fault), []).append(fault)
    many = {kind: alike for kind, alike in kinds.items() if len(alike) > ALIKE_LISTED_MAX}
    found = (_in_one(many[kind]) if (kind := _kind(fault)) in many else fault for fault in faults)
    return list(dict.fromkeys(found))


def _kind(fault: Fault) -> tuple[object, ...]:
    return _ITEM.sub("[]", fault.key), fault.problem, fault.remedy, fault.severity, fault.effect


def _in_one(alike: list[Fault]) -> Fault:
    first = alike[0]
    names = list(dict.fromkeys(fault.key if first.key != alike[1].key else str(fault.value) for fault in alike))
    shown = ", ".join(names[:ALIKE_LISTED_MAX])
    return replace(first, problem=f"{first.problem} ({len(alike)} alike: {shown}, ...)")


def refuse_if_faulty(faults: Iterable[Fault]) -> None:
    """Raise ConfigurationException with all `faults` if any of them is an error; warnings alone raise nothing.

    The warnings are reported with the errors, because they often explain the errors.
    """
    ordered = sorted(faults, key=lambda fault: fault.severity is not Severity.ERROR)
    if ordered and ordered[0].severity is Severity.ERROR:
        raise ConfigurationException(ordered)


def untrimmed(text: str, problem: str) -> str:
    """The problem of a value that Hadoop does not trim; blanks around it may be all that is wrong."""
    if text == text.strip():
        return problem
    return f"{problem} (Hadoop does not trim this value: remove the blanks and line breaks around it)"
