"""Reading a configuration to the end although parts of it are wrong, so that all faults are told at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from yarn.configuration import Configuration
from yarn.faults import ConfigurationException, Fault, Severity
from yarn.java.values import split_at_commas

_T = TypeVar("_T")


class Reader:
    """Configuration's getters that note a fault and go on with the default instead of raising."""

    __slots__ = ("configuration", "faults")

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self.faults: list[Fault] = []

    def integer(self, key: str, default: int) -> int:
        """A 32-bit integer."""
        return self._read(self.configuration.get_int, key, default)

    def long(self, key: str, default: int) -> int:
        """A 64-bit integer."""
        return self._read(self.configuration.get_long, key, default)

    def number(self, key: str, default: float) -> float:
        """A 32-bit float; `default` must be one."""
        return self._read(self.configuration.get_float, key, default)

    def double(self, key: str, default: float) -> float:
        """A 64-bit float."""
        return self._read(self.configuration.get_double, key, default)

    def flag(self, key: str, default: bool) -> bool:
        """true or false."""
        return self._read(self.configuration.get_bool, key, default)

    def duration_ms(self, key: str, default_ms: int) -> int:
        """A duration in ms."""
        return self._read(self.configuration.get_time_ms, key, default_ms)

    def text(self, key: str, default: str = "") -> str:
        """A trimmed text."""
        return self.configuration.get_trimmed(key, default)

    def words(self, key: str) -> tuple[str, ...]:
        """Comma-separated words, trimmed."""
        return self.configuration.get_strings(key)

    def names(self, key: str) -> tuple[str, ...]:
        """Comma-separated names, trimmed; one that is blank is an empty name."""
        return split_at_commas(self.configuration.get(key) or "")

    def fault(self, key: str, problem: str, remedy: str, *, value: str | None = None) -> None:
        """Note a fault of `key`; its value as written unless another one says more."""
        shown = self.configuration.get(key) if value is None else value
        self.faults.append(Fault(key, shown, self.configuration.origin(key), problem, remedy))

    def warn(self, key: str, problem: str, remedy: str) -> None:
        """Note what is taken, but surely not as meant."""
        value, origin = self.configuration.get(key), self.configuration.origin(key)
        self.faults.append(Fault(key, value, origin, problem, remedy, Severity.WARNING))

    def _read(self, getter: Callable[[str, _T], _T], key: str, default: _T) -> _T:
        try:
            return getter(key, default)
        except ConfigurationException as error:
            # A key for all queues is read once for each of them.
            self.faults.extend(fault for fault in error.faults if fault not in self.faults)
            return default
