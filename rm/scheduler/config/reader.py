"""Typed access to a configuration that collects all faults, so that they are reported at once."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from yarn.configuration import Configuration
from yarn.faults import Concern, ConfigurationException, Fault, Severity, untrimmed
from yarn.java.values import parse_int, split_at_commas
from yarn.settings.kinds import Setting
from yarn.settings.release import RELEASE
from yarn.settings.unsupported import unsupported

_T = TypeVar("_T")

_DECIMAL = re.compile(r"[+-]?[0-9]+")


class Reader:
    """Typed access to a Configuration. A value that cannot be read is added to `faults` and its default is returned.

    `release`: the release of Hadoop by whose rules the configuration is read.
    """

    __slots__ = ("configuration", "faults", "release")

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self.faults: list[Fault] = []
        self.release = self.value(RELEASE)

    def value(self, setting: Setting[_T]) -> _T:
        """The value of a setting that has a default. Its bounds are not checked: yarn.settings.check_settings does."""
        assert setting.default is not None, f"{setting.key} has no default"
        try:
            text = setting.text(self.configuration)
            return setting.parse(setting.default if text is None else text)
        except ConfigurationException as error:
            self._note(error)
        except ValueError as error:
            self._note(ConfigurationException([setting.fault(self.configuration, str(error))]))
        return setting.parse(setting.default)

    def integer(self, key: str, default: int) -> int:
        """A 32-bit integer."""
        return self._read(self.configuration.get_int, key, default)

    def untrimmed_integer(self, key: str, default: int) -> int:
        """A 32-bit decimal integer in a value that Hadoop does not trim (Integer.valueOf)."""
        text = self.configuration.get(key)
        if text is None:
            return default
        try:
            if not _DECIMAL.fullmatch(text):
                raise ValueError("not a whole number")
            return parse_int(text)
        except ValueError as error:
            self.fault(key, untrimmed(text, str(error)), "write a whole number")
            return default

    def long(self, key: str, default: int) -> int:
        """A 64-bit integer."""
        return self._read(self.configuration.get_long, key, default)

    def number(self, key: str, default: float) -> float:
        """A 32-bit float; `default` must be one."""
        return self._read(self.configuration.get_float, key, default)

    def flag(self, key: str, default: bool) -> bool:
        """A boolean: `true` or `false`."""
        return self._read(self.configuration.get_bool, key, default)

    def raw(self, key: str, default: str = "") -> str:
        """A text as written: Hadoop does not trim this value."""
        value = self.configuration.get(key)
        return default if value is None else value

    def text(self, key: str, default: str = "") -> str:
        """A trimmed text."""
        return self.configuration.get_trimmed(key, default)

    def words(self, key: str) -> tuple[str, ...]:
        """Words separated by commas or line breaks, each trimmed (Configuration.getTrimmedStrings)."""
        return self.configuration.get_strings(key)

    def listed(self, key: str) -> tuple[str, ...]:
        """Words separated by commas alone, each trimmed, without blank ones (String.split(","))."""
        return tuple(filter(None, self.names(key)))

    def names(self, key: str) -> tuple[str, ...]:
        """Comma-separated names, trimmed; a blank one is returned as an empty name."""
        return split_at_commas(self.configuration.get(key) or "")

    def fault(self, key: str, problem: str, remedy: str, *, value: str | None = None) -> None:
        """Add an error about `key`. `value`: what to show instead of the value as written."""
        shown = self.configuration.get(key) if value is None else value
        self.faults.append(Fault(key, shown, self.configuration.origin(key), problem, remedy))

    def warn(self, key: str, problem: str, remedy: str) -> None:
        """Add a warning: the value is accepted but is probably a mistake."""
        value, origin = self.configuration.get(key), self.configuration.origin(key)
        self.faults.append(Fault(key, value, origin, problem, remedy, Severity.WARNING))

    def unsupported(
        self, key: str, problem: str, effect: str, remedy: str, *, concern: Concern = Concern.PLACEMENT
    ) -> None:
        """Add the fault of a feature that is requested but not supported: an error if the configuration is strict."""
        self.faults.append(unsupported(self.configuration, key, problem, effect, remedy, concern=concern))

    def has_fault(self, key: str) -> bool:
        """True if a fault of the key was added."""
        return any(fault.key == key for fault in self.faults)

    def _read(self, getter: Callable[[str, _T], _T], key: str, default: _T) -> _T:
        try:
            return getter(key, default)
        except ConfigurationException as error:
            self._note(error)
            return default

    def _note(self, error: ConfigurationException) -> None:
        """Add the faults of `error`, each only once: a key for all queues is read once for each queue."""
        known = {(fault.key, fault.problem) for fault in self.faults}
        self.faults.extend(fault for fault in error.faults if (fault.key, fault.problem) not in known)
