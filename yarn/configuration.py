"""A configuration: Hadoop's keys and values, each with its origin, read by Hadoop's rules.

It is immutable; an overlay makes a new one. Files are read in wire.files.hadoop_xml; what the keys mean is in
yarn.settings.

    conf = Configuration.of({"yarn.nm.x": " 10"}, origin="yarn-site.xml")
    conf.get_int("yarn.nm.x", 0)      10
    conf.origin("yarn.nm.x")          yarn-site.xml

The rules are those of org.apache.hadoop.conf.Configuration 3.4.1: `${key}` in a value stands for
that key's value, numbers are parsed as in Java, later files win unless an earlier one sets `final`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from itertools import islice, takewhile
from operator import itemgetter
from types import MappingProxyType
from typing import TypeVar

from msgspec import Struct

from yarn.faults import DEFAULT, OVERRIDE, ConfigurationException, Fault, Origin, Severity
from yarn.java.values import (
    parse_bool,
    parse_float,
    parse_int,
    parse_long,
    split_strings,
)

__all__ = [
    "DEFAULT",
    "OVERRIDE",
    "Configuration",
    "ConfigurationException",
    "Entry",
    "Fault",
    "Origin",
    "Severity",
]

# Configuration.MAX_SUBST: more replacements than this in one value count as an endless expansion.
MAX_SUBSTITUTIONS = 20

_T = TypeVar("_T")


class Entry(Struct, frozen=True):
    """The value of one key as written (`${...}` not replaced). `final`: later files cannot change it."""

    value: str
    origin: Origin
    final: bool = False


class Configuration:
    """An immutable map from Hadoop keys to values with their origins.

    The getters return the default for a key that is not set, and raise ConfigurationException
    (one fault: key, value, origin, problem, remedy) for a value that is not valid.
    `notes`: warnings from composing it, such as overlays refused because of `final`.
    """

    __slots__ = ("_defaults", "_entries", "_in_order", "notes")

    def __init__(
        self,
        entries: Mapping[str, Entry] | None = None,
        *,
        defaults: Mapping[str, str] | None = None,
        notes: tuple[Fault, ...] = (),
    ) -> None:
        """`defaults` {key: value} are used only to replace `${key}`; a key that is not set stays so."""
        self._entries: Mapping[str, Entry] = MappingProxyType(dict(entries or {}))
        self._defaults: Mapping[str, str] = MappingProxyType(dict(defaults or {}))
        self._in_order: list[tuple[str, int]] = []
        self.notes = notes

    @classmethod
    def of(cls, values: Mapping[str, str], origin: Origin | str = OVERRIDE) -> Configuration:
        """A configuration of plain texts with the same origin."""
        place = Origin(origin) if isinstance(origin, str) else origin
        return cls({key: Entry(value, place) for key, value in values.items()})

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Configuration):
            return NotImplemented
        return self._entries == other._entries and self._defaults == other._defaults

    __hash__ = None  # type: ignore[assignment]

    def __deepcopy__(self, _: object) -> Configuration:
        return self

    def __repr__(self) -> str:
        return f"<Configuration of {len(self._entries)} keys>"

    def keys(self, prefix: str = "") -> tuple[str, ...]:
        """The keys that are set and start with `prefix`, in the order they were first set."""
        if not prefix:
            return tuple(self._entries)
        if len(self._in_order) != len(self._entries):
            # Sorted once: a reader of queues looks up several prefixes for each queue.
            self._in_order = sorted((key, number) for number, key in enumerate(self._entries))
        first = bisect_left(self._in_order, (prefix, -1))
        found = takewhile(lambda entry: entry[0].startswith(prefix), islice(self._in_order, first, None))
        return tuple(key for key, _ in sorted(found, key=itemgetter(1)))

    def entry(self, key: str) -> Entry | None:
        """The key's value as written, with its origin; None if it is not set."""
        return self._entries.get(key)

    def origin(self, key: str) -> Origin:
        """The place where the key's value was written; DEFAULT if it is not set."""
        entry = self._entries.get(key)
        return DEFAULT if entry is None else entry.origin

    def values(self, prefix: str = "") -> dict[str, str]:
        """{key: value with `${...}` replaced} of the keys that are set and start with `prefix`."""
        return {key: self._expanded(key, self._entries[key].value) for key in self.keys(prefix)}

    @property
    def defaults(self) -> Mapping[str, str]:
        """{key: default}: the values that replace `${key}` if the key is not set."""
        return self._defaults

    def get(self, key: str, default: str | None = None) -> str | None:
        """The value with every `${...}` replaced, not trimmed. If the key is not set, `default` unchanged."""
        entry = self._entries.get(key)
        return default if entry is None else self._expanded(key, entry.value)

    def get_trimmed(self, key: str, default: str = "") -> str:
        """The value without the white space around it."""
        value = self.get(key)
        return default if value is None else value.strip()

    def get_int(self, key: str, default: int) -> int:
        """A 32-bit integer, decimal or after 0x."""
        return self._read(key, default, parse_int, "write a whole number")

    def get_long(self, key: str, default: int) -> int:
        """A 64-bit integer, decimal or after 0x."""
        return self._read(key, default, parse_long, "write a whole number")

    def get_float(self, key: str, default: float) -> float:
        """A number rounded to 32 bits, as Hadoop holds it; `default` is returned as it is."""
        return self._read(key, default, parse_float, "write a number, e.g. 0.5")

    def get_bool(self, key: str, default: bool) -> bool:
        """A boolean: true or false in any case. As in Hadoop, anything else means the default."""
        try:
            return self._read(key, default, parse_bool, "write true or false")
        except ConfigurationException:
            return default

    def get_strings(self, key: str) -> tuple[str, ...]:
        """The parts of a comma-separated value, trimmed; () if it is not set."""
        value = self.get(key)
        return () if value is None else split_strings(value)

    def expand(self, text: str) -> str:
        """`text` with every `${key}` replaced by that key's value, as in values of this configuration.

        A `${key}` of an unknown key stays, and a text that refers to itself stays as written. Raises ValueError after
        MAX_SUBSTITUTIONS replacements. Source: Configuration.substituteVars.
        """
        expanded = text
        for _ in range(MAX_SUBSTITUTIONS):
            bounds = find_variable(expanded)
            if bounds is None:
                return expanded
            start, end = bounds
            reference = expanded[start:end]
            value = self._variable(reference[2:-1])
            if value is None:
                return expanded
            if reference in value:
                return text
            expanded = expanded[:start] + value + expanded[end:]
        raise ValueError(f"more than {MAX_SUBSTITUTIONS} replacements of ${{...}} in one value")

    def overlaid(self, upper: Configuration) -> Configuration:
        """This configuration overridden by `upper`, like by a file that is loaded later.

        A key that is final here keeps its value; a note reports it if the two values differ.
        """
        entries = dict(self._entries)
        notes = [*self.notes, *upper.notes]
        for key, entry in upper._entries.items():
            present = entries.get(key)
            if present is None or not present.final:
                entries[key] = entry
            elif present.value != entry.value:
                notes.append(_final_refused(key, entry, present))
        return Configuration(entries, defaults={**self._defaults, **upper._defaults}, notes=tuple(notes))

    def overridden(self, values: Mapping[str, str], origin: Origin | str = OVERRIDE) -> Configuration:
        """This configuration with `values` set by the program, even where a key is `final` (Configuration.set)."""
        return self.with_entries(Configuration.of(values, origin)._entries)

    def with_entries(self, entries: Mapping[str, Entry]) -> Configuration:
        """This configuration with the given entries set, even where a key is `final`."""
        return Configuration({**self._entries, **entries}, defaults=self._defaults, notes=self.notes)

    def with_defaults(self, defaults: Mapping[str, str]) -> Configuration:
        """This configuration with defaults that replace `${key}` if the key is not set."""
        return Configuration(self._entries, defaults={**self._defaults, **defaults}, notes=self.notes)

    def _variable(self, name: str) -> str | None:
        entry = self._entries.get(name)
        return self._defaults.get(name) if entry is None else entry.value

    def _expanded(self, key: str, text: str) -> str:
        try:
            return self.expand(text)
        except ValueError as error:
            raise ConfigurationException(
                [Fault(key, text, self.origin(key), str(error), "write the value out")]
            ) from None

    def _read(self, key: str, default: _T, parse: Callable[[str], _T], remedy: str) -> _T:
        value = self.get(key)
        if value is None:
            return default
        try:
            return parse(value)
        except ValueError as error:
            fault = Fault(key, value, self.origin(key), str(error), remedy)
            raise ConfigurationException([fault]) from None


def find_variable(text: str) -> tuple[int, int] | None:
    """(start, end) of the first `${name}` in `text`; a name has no space, `$` or `}`.

    Source: Configuration.findSubVariable.
    """
    start = text.find("${")
    while start != -1:
        for index in range(start + 2, len(text)):
            letter = text[index]
            if letter == "}" and index > start + 2:
                return start, index + 1
            if letter in "} $":
                break
        else:
            return None
        start = text.find("${", start + 2)
    return None


def _final_refused(key: str, refused: Entry, kept: Entry) -> Fault:
    return Fault(
        key,
        refused.value,
        refused.origin,
        f"ignored: {kept.origin} sets {kept.value!r} as final",
        "remove one of the two",
        Severity.WARNING,
    )
