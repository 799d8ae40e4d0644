"""A setting: a key with a default, a kind, bounds and a meaning.

    EXPIRY = TimeSetting("yarn.nm.liveness-monitor.expiry-interval-ms", "600000", "...", minimum=1)
    EXPIRY.of(conf)            600000, or the value in conf; ConfigurationException if that is not valid
    EXPIRY.faults(conf)        the faults as a list instead

A default is a text as in Hadoop's yarn-default.xml and is parsed like a value: it may contain `${...}`. A setting
without a default falls back to another setting, or is not set.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import ClassVar, Generic, TypeVar

from yarn.configuration import Configuration
from yarn.faults import DEFAULT, ConfigurationException, Fault, Severity
from yarn.java.values import (
    parse_bool,
    parse_double,
    parse_float,
    parse_int,
    parse_long,
    parse_time_ms,
    split_strings,
)
from yarn.java.versions import HADOOP_VERSION

T = TypeVar("T")
N = TypeVar("N", int, float)

PORT_MAX = 65535
_VERSION = re.compile(r"[0-9][0-9A-Za-z._-]*")


def key_pattern(key: str) -> str:
    """A regular expression for a key in which `<...>` stands for a name chosen by the user."""
    return "(?:.+)".join(re.escape(part) for part in re.split(r"<[^>]*>", key))


@dataclass(frozen=True)
class Setting(Generic[T]):
    """A key that yarnling reads.

    `default`: as text; None if there is none. `fallback`: the setting that is used when this one is not set.
    `refers`: the settings that the default refers to as `${...}`.
    """

    key: str
    default: str | None
    meaning: str
    fallback: Setting[T] | None = field(default=None, kw_only=True)
    refers: tuple[Setting[str], ...] = field(default=(), kw_only=True)

    kind = "text"

    @property
    def remedy(self) -> str:
        """The remedy for a value with a fault."""
        return "write another value"

    def of(self, conf: Configuration) -> T:
        """The value. Raises ConfigurationException if the value cannot be parsed, is out of bounds, or is not set."""
        value = self.maybe_of(conf)
        if value is None:
            raise ConfigurationException([Fault(self.key, None, DEFAULT, "is not set and has no default", "set it")])
        return value

    def maybe_of(self, conf: Configuration) -> T | None:
        """The value; None for a key that is not set and has neither default nor fallback."""
        text = self.text(conf)
        if text is None:
            return None if self.fallback is None else self.fallback.maybe_of(conf)
        try:
            value = self.parse(text)
            self.check(value)
        except ValueError as error:
            raise ConfigurationException([self.fault(conf, str(error))]) from None
        return value

    def text(self, conf: Configuration) -> str | None:
        """The value's text, or the default's, with `${...}` replaced."""
        value, default = conf.get(self.key), self.default_in(conf)
        if value is None and default is not None:
            named = {setting.key: setting.default for setting in self.refers if setting.default is not None}
            value = conf.with_defaults(named).expand(default) if named else conf.expand(default)
        return value

    def default_in(self, conf: Configuration) -> str | None:
        """The default as text, which may depend on other keys; None if there is none."""
        return self.default

    def faults(self, conf: Configuration) -> list[Fault]:
        """Errors and warnings about the value; empty if it is valid."""
        try:
            self.maybe_of(conf)
        except ConfigurationException as refusal:
            return list(refusal.faults)
        return []

    def fault(self, conf: Configuration, problem: str, severity: Severity = Severity.ERROR) -> Fault:
        """A fault of this setting's value, with its origin and the setting's remedy."""
        return Fault(self.key, self.text(conf), conf.origin(self.key), problem, self.remedy, severity)

    def parse(self, text: str) -> T:
        """The value of `text`. Raises ValueError with the problem."""
        raise NotImplementedError(type(self).__name__)

    def check(self, value: T) -> None:
        """Raises ValueError if the value is out of bounds."""


@dataclass(frozen=True)
class TextSetting(Setting[str]):
    """Any text, trimmed."""

    def parse(self, text: str) -> str:
        return text.strip()


@dataclass(frozen=True)
class ListSetting(Setting[tuple[str, ...]]):
    """Comma-separated texts, trimmed."""

    kind = "list"
    needed: bool = field(default=False, kw_only=True)

    @property
    def remedy(self) -> str:
        return "write at least one value; separate several with commas"

    def parse(self, text: str) -> tuple[str, ...]:
        return tuple(part for part in split_strings(text) if part)

    def check(self, value: tuple[str, ...]) -> None:
        if self.needed and not value:
            raise ValueError("is empty")


@dataclass(frozen=True)
class UntrimmedListSetting(Setting[tuple[str, ...]]):
    """Comma-separated texts; blanks around them are a part of them, as in Hadoop (Configuration.getStrings)."""

    kind = "list"

    @property
    def remedy(self) -> str:
        return "write no blank and no line break around the commas, at the start or at the end"

    def parse(self, text: str) -> tuple[str, ...]:
        return tuple(part for part in text.split(",") if part)

    def faults(self, conf: Configuration) -> list[Fault]:
        untrimmed = [part for part in self.maybe_of(conf) or () if part != part.strip()]
        problem = (
            f"Hadoop does not trim this value: {untrimmed[0]!r} is not {untrimmed[0].strip()!r}" if untrimmed else ""
        )
        return [self.fault(conf, problem, Severity.WARNING)] if problem else []


@dataclass(frozen=True)
class ChoiceSetting(Setting[str]):
    """A text out of a few. `choices`: the texts that yarnling supports."""

    kind = "choice"
    choices: tuple[str, ...] = field(default=(), kw_only=True)

    @property
    def remedy(self) -> str:
        return f"write {' or '.join(self.choices)}"

    def parse(self, text: str) -> str:
        return text.strip()

    def check(self, value: str) -> None:
        if value not in self.choices:
            raise ValueError("is not supported")


@dataclass(frozen=True)
class VersionSetting(Setting[str]):
    """A lower bound on the version of a peer: `NO_MINIMUM`, `equal` for the reader's own version, or a version."""

    kind = "version"
    equal: str = field(default="", kw_only=True)

    NO_MINIMUM: ClassVar = "NONE"

    @property
    def remedy(self) -> str:
        return f"write {self.NO_MINIMUM}, {self.equal} or a version that starts with a digit, such as {HADOOP_VERSION}"

    def minimum(self, conf: Configuration, own: str) -> str | None:
        """The least version that a peer must have; None if it may have any. `own`: the reader's version."""
        value = self.of(conf)
        if value == self.NO_MINIMUM:
            return None
        return own if value == self.equal else value

    def parse(self, text: str) -> str:
        return text.strip()

    def check(self, value: str) -> None:
        if value not in (self.NO_MINIMUM, self.equal) and not _VERSION.fullmatch(value):
            raise ValueError("is not a version")


@dataclass(frozen=True)
class BoolSetting(Setting[bool]):
    """true or false. Anything else means the default, as in Hadoop, with a warning."""

    kind = "bool"

    @property
    def remedy(self) -> str:
        return "write true or false"

    def parse(self, text: str) -> bool:
        try:
            return parse_bool(text)
        except ValueError:
            return parse_bool(self.default or "false")

    def faults(self, conf: Configuration) -> list[Fault]:
        text = self.text(conf)
        if text is None or text.strip().lower() in ("true", "false"):
            return []
        problem = f"neither true nor false, so the default is used: {self.default}"
        return [self.fault(conf, problem, Severity.WARNING)]


@dataclass(frozen=True)
class NumberSetting(Setting[N]):
    """A number within bounds, inclusive.

    `special`: values outside the bounds that have a meaning of their own. `lenient`: values out of bounds are accepted
    with a warning, as Hadoop accepts them.
    """

    unit: str = field(default="", kw_only=True)
    minimum: N | None = field(default=None, kw_only=True)
    maximum: N | None = field(default=None, kw_only=True)
    special: tuple[N, ...] = field(default=(), kw_only=True)
    lenient: bool = field(default=False, kw_only=True)

    @property
    def remedy(self) -> str:
        bounds = [f"at least {self.minimum}"] if self.minimum is not None else []
        bounds += [f"at most {self.maximum}"] if self.maximum is not None else []
        exceptions = "".join(f", or {value}" for value in self.special)
        return f"write {self.kind}{' of ' if bounds else ''}{' and '.join(bounds)}{exceptions}"

    def check(self, value: N) -> None:
        problem = self._out_of_bounds(value)
        if problem and not self.lenient:
            raise ValueError(problem)

    def faults(self, conf: Configuration) -> list[Fault]:
        faults = super().faults(conf)
        value = None if faults else self.maybe_of(conf)
        problem = None if value is None else self._out_of_bounds(value)
        return [self.fault(conf, problem, Severity.WARNING)] if problem else faults

    def _out_of_bounds(self, value: N) -> str | None:
        if value in self.special:
            return None
        if self.minimum is not None and not value >= self.minimum:
            return f"below the minimum, {self.minimum}{self._shown_unit()}"
        if self.maximum is not None and not value <= self.maximum:
            return f"above the maximum, {self.maximum}{self._shown_unit()}"
        return None

    def _shown_unit(self) -> str:
        return f" {self.unit}" if self.unit else ""


@dataclass(frozen=True)
class IntSetting(NumberSetting[int]):
    """A whole number of 32 bits, or of 64 if `long`."""

    kind = "a whole number"
    long: bool = field(default=False, kw_only=True)

    def parse(self, text: str) -> int:
        return parse_long(text) if self.long else parse_int(text)


@dataclass(frozen=True)
class FloatSetting(NumberSetting[float]):
    """A number, rounded to 32 bits as Hadoop holds it."""

    kind = "a number"

    def parse(self, text: str) -> float:
        return parse_float(text)


@dataclass(frozen=True)
class DoubleSetting(NumberSetting[float]):
    """A number of 64 bits."""

    kind = "a number"

    def parse(self, text: str) -> float:
        return parse_double(text)


@dataclass(frozen=True)
class TimeSetting(NumberSetting[int]):
    """A duration; the value and its bounds are in ms.

    `written_in`: the unit of a text without a suffix. `paced`: True for an interval that the time factor scales, never
    below `least_ms`; False for a duration that depends on the machine.
    """

    kind = "a duration such as 10s"
    written_in: str = field(default="ms", kw_only=True)
    paced: bool = field(default=True, kw_only=True)
    least_ms: int = field(default=10, kw_only=True)
    unit: str = field(default="ms", kw_only=True)

    def parse(self, text: str) -> int:
        return parse_time_ms(text, self.written_in)


@dataclass(frozen=True)
class AddressSetting(Setting[tuple[str, int]]):
    """An address, host:port. With port 0 the system chooses a free port."""

    kind = "address"

    @property
    def remedy(self) -> str:
        return f"write host:port with a port from 0 (any free port) to {PORT_MAX}"

    def parse(self, text: str) -> tuple[str, int]:
        host, colon, port = text.strip().rpartition(":")
        if not colon or not host:
            raise ValueError("is not of the form host:port")
        number = parse_int(port)
        if not 0 <= number <= PORT_MAX:
            raise ValueError(f"port {number} is outside 0..{PORT_MAX}")
        return host, number
