"""Where a configured value came from, and what is wrong with it.

A configuration is refused once, with everything that is wrong in it: a reader who fixes one line
should not meet the next fault at the next start. So checks return faults, and the exception carries
them all. A fault names the key, the value, where it stands, the bound and the remedy.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import ClassVar

from msgspec import Struct

from yarn.errors import YarnException


class Origin(Struct, frozen=True):
    """Where a value was written: a file's name and line, "default" or the kind of override."""

    source: str
    line: int | None = None

    def __str__(self) -> str:
        return self.source if self.line is None else f"{self.source}:{self.line}"


DEFAULT = Origin("default")
OVERRIDE = Origin("override")


class Severity(Enum):
    """ERROR: the configuration is refused. WARNING: it is accepted, but surely not as intended."""

    ERROR = "error"
    WARNING = "warning"


class Fault(Struct, frozen=True):
    """One problem of a configuration, with its remedy.

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
    """A configuration that is refused, with every fault in it: errors first, then warnings.

    Definite: nothing of the configuration was applied. `faults` is empty in a client that got it
    over the wire, where only the text travels.
    """

    java_class: ClassVar[str] = "org.apache.hadoop.yarn.exceptions.ConfigurationException"

    def __init__(self, faults: Iterable[Fault] | str) -> None:
        self.faults = () if isinstance(faults, str) else tuple(faults)
        text = faults if isinstance(faults, str) else "\n".join(map(_line, self.faults))
        assert text, "a refusal names at least one fault"
        super().__init__(text)


def _line(fault: Fault) -> str:
    return str(fault) if fault.severity is Severity.ERROR else f"warning: {fault}"


def refuse_if_faulty(faults: Iterable[Fault]) -> None:
    """Raise ConfigurationException with all `faults` if any of them is an error; warnings alone pass.

    The warnings are reported with the errors: what is odd is often the cause of what is wrong.
    """
    ordered = sorted(faults, key=lambda fault: fault.severity is not Severity.ERROR)
    if ordered and ordered[0].severity is Severity.ERROR:
        raise ConfigurationException(ordered)
