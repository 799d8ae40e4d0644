"""Where a configured value came from, and what is wrong with it.

A configuration is refused once, with everything that is wrong in it: a reader who fixes one line
should not meet the next fault at the next start. So checks return faults, and the exception carries
them all. A fault names the key, the value, where it stands, the bound and the remedy.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import ClassVar

from yarn.errors import YarnException
from yarn.records import dataclass


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value was written: a file's name and line, "default" or the kind of override."""

    source: str
    line: int | None = None

    def __str__(self) -> str:
        return self.source if self.line is None else f"{self.source}:{self.line}"


DEFAULT = Origin("default")
OVERRIDE = Origin("override")


class Severity(Enum):
    """ERROR: the configuration is refused. WARNING: it is taken, but surely not as meant."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong in a configuration, with what would put it right.

    `value` is None when the fault is that nothing was set, or that the file cannot be read at all
    (then `key` is empty as well). `problem` names the bound, `remedy` starts with a verb.
    """

    key: str
    value: str | None
    origin: Origin
    problem: str
    remedy: str
    severity: Severity = Severity.ERROR

    def __str__(self) -> str:
        subject = ""
        if self.key:
            subject = f"{self.key}: " if self.value is None else f"{self.key} = {self.value!r}: "
        return f"{self.origin}: {subject}{self.problem} ({self.remedy})"


class ConfigurationException(YarnException):
    """A configuration that is refused, with every fault in it.

    Definite: nothing of the configuration was applied. `faults` is empty in a client that got it
    over the wire, where only the text travels.
    """

    java_class: ClassVar[str] = "org.apache.hadoop.yarn.exceptions.ConfigurationException"

    def __init__(self, faults: Iterable[Fault] | str) -> None:
        self.faults = () if isinstance(faults, str) else tuple(faults)
        text = faults if isinstance(faults, str) else "\n".join(str(fault) for fault in self.faults)
        assert text, "a refusal names at least one fault"
        super().__init__(text)


def refuse_if_faulty(faults: Iterable[Fault]) -> None:
    """Raise ConfigurationException with every error among `faults`; warnings alone pass."""
    errors = [fault for fault in faults if fault.severity is Severity.ERROR]
    if errors:
        raise ConfigurationException(errors)
