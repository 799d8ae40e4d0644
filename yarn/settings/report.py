"""A report on a configuration: which keys are read, defaulted, ignored or unknown, and all faults.

A key that is set is read by yarnling, or known to Hadoop but ignored here, or unknown, which is most often a typing
error: then the report names the most similar known key.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from yarn.configuration import Configuration
from yarn.faults import Fault, Origin, Severity
from yarn.settings import scheduler
from yarn.settings.folding import folded
from yarn.settings.kinds import Setting, key_pattern
from yarn.settings.registry import BY_KEY, check_settings, setting_of

PREFIX_CUTOFF = 0.9
"""The similarity from which on the beginning of a key is taken for that of the capacity scheduler's keys."""
NEAREST_CUTOFF = 0.8
"""The similarity (0..1, by difflib) from which on a known key is suggested. Less similar suggestions were mostly
wrong."""
_SECRET = re.compile(r"secret|password|passwd|credential|\.pass$|token", re.IGNORECASE)
"""Keys whose values are not shown."""


class KeyRead(Struct, frozen=True):
    """A key that is set and read. `value` has `${...}` replaced; `meaning` is one line."""

    key: str
    value: str
    origin: Origin
    meaning: str


class KeyDefaulted(Struct, frozen=True):
    """A key that is not set. `value`: the default that yarnling uses, or the name of the key it uses instead."""

    key: str
    value: str
    meaning: str


class KeyIgnored(Struct, frozen=True):
    """A key of Hadoop that yarnling does not read."""

    key: str
    value: str
    origin: Origin


class KeyUnknown(Struct, frozen=True):
    """A key that neither Hadoop nor yarnling has. `nearest`: the most similar known key, or None."""

    key: str
    value: str
    origin: Origin
    nearest: str | None


class ConfigurationReport(Struct, frozen=True):
    """Every key in one of four lists, and the faults: errors first, then warnings and notes."""

    read: tuple[KeyRead, ...]
    defaulted: tuple[KeyDefaulted, ...]
    ignored: tuple[KeyIgnored, ...]
    unknown: tuple[KeyUnknown, ...]
    faults: tuple[Fault, ...]

    def with_faults(self, faults: Iterable[Fault]) -> ConfigurationReport:
        """A report of the same keys with these faults."""
        return replace(self, faults=tuple(sorted(faults, key=lambda fault: fault.severity is not Severity.ERROR)))

    @property
    def warnings(self) -> tuple[str, ...]:
        """A sentence for each kind of fault; those of one kind are folded (see yarn.settings.folding).

        First what yarnling does not do, with what that means for the result, that which changes placement before the
        rest; then what is probably a mistake, for example a misspelled key.
        """
        kinds = sorted(folded(self.faults), key=lambda kind: (not kind.first.effect, kind.first.concern.value))
        return tuple(str(kind) for kind in kinds)


class HadoopKeys:
    """The keys of Hadoop: plain ones, and patterns with `<...>` for a name chosen by the user."""

    def __init__(self, keys: Iterable[str]) -> None:
        listed = tuple(keys)
        self.plain = frozenset(key for key in listed if "<" not in key)
        self._patterns = tuple(re.compile(key_pattern(key)) for key in listed if "<" in key)

    def __contains__(self, key: str) -> bool:
        return key in self.plain or any(pattern.fullmatch(key) for pattern in self._patterns)


def describe(conf: Configuration, hadoop: HadoopKeys, faults: Iterable[Fault] | None = None) -> ConfigurationReport:
    """The report on a configuration. `faults`: those of all checks; None: those of the settings."""
    read: list[KeyRead] = []
    ignored: list[KeyIgnored] = []
    unknown: list[KeyUnknown] = []
    candidates = sorted(BY_KEY.keys() | hadoop.plain)
    for key in conf:
        setting, value, origin = setting_of(key), _shown(conf, key), conf.origin(key)
        if setting is not None:
            read.append(KeyRead(key, value, origin, setting.meaning))
        elif key in hadoop:
            ignored.append(KeyIgnored(key, value, origin))
        else:
            unknown.append(KeyUnknown(key, value, origin, _nearest(key, candidates)))
    defaulted = [
        KeyDefaulted(setting.key, _default_shown(setting, conf), setting.meaning)
        for setting in BY_KEY.values()
        if setting.key not in conf
    ]
    report = ConfigurationReport(tuple(read), tuple(defaulted), tuple(ignored), tuple(unknown), ())
    return report.with_faults([*(check_settings(conf) if faults is None else faults), *conf.notes])


def _nearest(key: str, candidates: list[str]) -> str | None:
    """The most similar known key; for a queue's key, the most similar property of that queue.

    A key that is wrong only in the prefix of the capacity scheduler's keys may be about any queue.
    """
    parts = key.split(".", scheduler.PREFIX.count("."))
    prefix = "".join(f"{part}." for part in parts[:-1])
    if prefix != scheduler.PREFIX and difflib.get_close_matches(prefix, [scheduler.PREFIX], cutoff=PREFIX_CUTOFF):
        return scheduler.PREFIX + parts[-1]
    head, _, name = key.rpartition(".")
    path = head.removeprefix(scheduler.PREFIX)
    if head.startswith(scheduler.PREFIX) and scheduler.is_queue_path(path):
        names = [setting.key for setting in scheduler.QUEUE_SETTINGS]
        close = difflib.get_close_matches(name, names, n=1, cutoff=NEAREST_CUTOFF)
        return scheduler.queue_key(path, close[0]) if close else None
    close = difflib.get_close_matches(key, candidates, n=1, cutoff=NEAREST_CUTOFF)
    return close[0] if close else None


def _shown(conf: Configuration, key: str) -> str:
    """The value with `${...}` replaced; as written if that fails, which is one of the faults."""
    entry = conf.entry(key)
    written = "" if entry is None else entry.value
    try:
        return conf.expand(written)
    except ValueError:
        return written


def _default_shown(setting: Setting[Any], conf: Configuration) -> str:
    default = setting.default_in(conf)
    if default is not None:
        return default
    return f"as {setting.fallback.key}" if setting.fallback is not None else "not set"


def is_secret(key: str) -> bool:
    """True if the value of the key is not for others, such as a password."""
    return _SECRET.search(key) is not None


def shown_value(key: str, value: str) -> str:
    """The value of a key, as pages and files for others have it: without secrets."""
    return "(not shown)" if is_secret(key) else value
