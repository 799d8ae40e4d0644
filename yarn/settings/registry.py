"""Every setting that yarnling reads, and what its values must be together."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from yarn.configuration import Configuration, find_variable
from yarn.faults import DEFAULT, Fault, Severity
from yarn.settings import applicationmaster, nodemanager, preemption, resourcemanager, scheduler, yarnling
from yarn.settings.absent import check_absent
from yarn.settings.kinds import IntSetting, NumberSetting, Setting, TimeSetting, key_pattern

_WRITTEN: Final[tuple[Setting[Any], ...]] = tuple(
    value
    for module in (yarnling, resourcemanager, scheduler, preemption, nodemanager, applicationmaster)
    for value in vars(module).values()
    if isinstance(value, Setting)
)
"""In the order they are written; one that a module borrows from another is here twice and in BY_KEY once."""

BY_KEY: Final[dict[str, Setting[Any]]] = {setting.key: setting for setting in _WRITTEN}


_PATTERNS: Final = tuple((re.compile(key_pattern(key)), BY_KEY[key]) for key in BY_KEY if "<" in key)


def setting_of(key: str) -> Setting[Any] | None:
    """The setting that the key sets: of the whole, of a queue, or one whose key holds a name (`<type>`)."""
    exact = BY_KEY.get(key) or scheduler.queue_setting(key)
    return exact or next((setting for pattern, setting in _PATTERNS if pattern.fullmatch(key)), None)


def defaults() -> dict[str, str]:
    """{key: default} of the settings that have one; what `${key}` finds when the key is not set."""
    return {setting.key: setting.default for setting in BY_KEY.values() if setting.default is not None}


def check_settings(conf: Configuration) -> list[Fault]:
    """Every fault of the configuration: values that cannot be read, out of bounds, or at odds with others.

    Queues are not looked at as a tree here: that is rm.scheduler.config.configuration's part.
    """
    faults = [fault for setting in BY_KEY.values() if setting.key in conf for fault in setting.faults(conf)]
    faulty = {fault.key for fault in faults if fault.severity is Severity.ERROR}
    sound = _Sound(conf, faulty)
    for check in (
        _check_allocations,
        _check_expiry,
        _check_attempts,
        _check_waits,
        _check_node,
        _check_recovery,
        _check_access,
    ):
        faults += check(sound)
    return [*faults, *check_absent(conf), *_unbound(conf)]


def with_further(faults: list[Fault], further: Iterable[Fault]) -> list[Fault]:
    """`faults`, and those of `further` that add something.

    A key that has an error needs no other, and a warning is only for a key without any fault.
    """
    any_of = {fault.key for fault in faults}
    errors_of = {fault.key for fault in faults if fault.severity is Severity.ERROR}
    return [
        *faults,
        *(found for found in further if found.key not in (errors_of if found.severity is Severity.ERROR else any_of)),
    ]


def _unbound(conf: Configuration) -> list[Fault]:
    """`${key}` of a key that nobody sets stays in the value as it is; a directory of that name is no one's wish."""
    faults: list[Fault] = []
    for key in conf:
        setting = setting_of(key)
        text = None if setting is None else conf.get(key)
        bounds = None if text is None else find_variable(text)
        if text is not None and bounds is not None:
            problem = f"{text[slice(*bounds)]} stands for nothing"
            faults.append(Fault(key, text, conf.origin(key), problem, "set that key", Severity.WARNING))
    return faults


class _Sound:
    """A configuration's values, None for those that are faulty by themselves: they are told already."""

    def __init__(self, conf: Configuration, faulty: set[str]) -> None:
        self.conf = conf
        self._faulty = faulty

    def value(self, setting: NumberSetting[int]) -> int | None:
        key: str | None = setting.key
        if key not in self.conf and setting.fallback is not None:
            key = setting.fallback.key
        return None if key in self._faulty else setting.maybe_of(self.conf)

    def ordered(
        self,
        lower: NumberSetting[int],
        upper: NumberSetting[int],
        remedy: str,
        severity: Severity = Severity.ERROR,
    ) -> list[Fault]:
        """A fault if lower > upper, both being sound and not special."""
        low, high = self.value(lower), self.value(upper)
        if low is None or high is None or low <= high or low in lower.special or high in upper.special:
            return []
        place = lower if lower.key in self.conf else upper
        relation = f"above {upper.key} = {high}" if place is lower else f"below {lower.key} = {low}"
        return [Fault(place.key, place.text(self.conf), self.conf.origin(place.key), relation, remedy, severity)]


def _check_allocations(sound: _Sound) -> list[Fault]:
    """CapacitySchedulerConfigValidator.validateMemoryAllocation and validateVCores."""
    remedy = "make the maximum at least the minimum"
    return [
        *sound.ordered(scheduler.MINIMUM_ALLOCATION_MB, scheduler.MAXIMUM_ALLOCATION_MB, remedy),
        *sound.ordered(scheduler.MINIMUM_ALLOCATION_VCORES, scheduler.MAXIMUM_ALLOCATION_VCORES, remedy),
    ]


def _check_expiry(sound: _Sound) -> list[Fault]:
    """ResourceManager.validateConfigs refuses an expiry below the heartbeat; one near it is warned of."""
    heartbeat, expiry = resourcemanager.NM_HEARTBEAT_INTERVAL, resourcemanager.NM_EXPIRY_INTERVAL
    refused = sound.ordered(heartbeat, expiry, "make the expiry several heartbeats long")
    interval_ms, expiry_ms = sound.value(heartbeat), sound.value(expiry)
    if refused or interval_ms is None or expiry_ms is None or expiry_ms >= 3 * interval_ms:
        return refused
    problem = f"fewer than three heartbeats of {interval_ms} ms: one that is late loses the node"
    place = expiry if expiry.key in sound.conf else heartbeat
    return [
        Fault(
            place.key,
            place.text(sound.conf),
            sound.conf.origin(place.key),
            problem,
            "make the expiry several heartbeats long",
            Severity.WARNING,
        )
    ]


def _check_attempts(sound: _Sound) -> list[Fault]:
    return sound.ordered(
        resourcemanager.AM_MAX_ATTEMPTS,
        resourcemanager.AM_GLOBAL_MAX_ATTEMPTS,
        "the global limit holds; raise it, or lower the other",
        Severity.WARNING,
    )


def _check_waits(sound: _Sound) -> list[Fault]:
    """A wait shorter than the interval between tries means a single try (RMProxy.createRetryPolicy)."""
    pairs: tuple[tuple[TimeSetting, TimeSetting], ...] = (
        (resourcemanager.CONNECT_RETRY_INTERVAL, resourcemanager.CONNECT_MAX_WAIT),
        (resourcemanager.NM_CLIENT_CONNECT_RETRY_INTERVAL, resourcemanager.NM_CLIENT_CONNECT_MAX_WAIT),
        (nodemanager.NM_CONNECT_RETRY_INTERVAL, nodemanager.NM_CONNECT_MAX_WAIT),
    )
    remedy = "there will be a single try; make the wait longer than the interval"
    faults = [fault for low, high in pairs for fault in sound.ordered(low, high, remedy, Severity.WARNING)]
    return list({fault.key: fault for fault in faults}.values())


def _check_node(sound: _Sound) -> list[Fault]:
    """The RM turns away a node smaller than the minimum allocation (ResourceTrackerService)."""
    pairs: tuple[tuple[IntSetting, IntSetting], ...] = (
        (scheduler.MINIMUM_ALLOCATION_MB, nodemanager.RESOURCE_MEMORY_MB),
        (scheduler.MINIMUM_ALLOCATION_VCORES, nodemanager.RESOURCE_CPU_VCORES),
    )
    remedy = "the RM will turn the node away; give it at least the minimum allocation"
    return [fault for low, high in pairs for fault in sound.ordered(low, high, remedy, Severity.WARNING)]


def _check_access(sound: _Sound) -> list[Fault]:
    """An open cluster is a risk that is taken on purpose; it is reported wherever the configuration is."""
    setting, conf = yarnling.OPEN_TO_LOCAL_USERS, sound.conf
    if not setting.of(conf):
        return []
    problem = "every user of this machine may run commands as the user who starts the cluster"
    remedy = "set it to false unless every user of this machine is trusted"
    return [Fault(setting.key, setting.text(conf), conf.origin(setting.key), problem, remedy, Severity.WARNING)]


def _check_recovery(sound: _Sound) -> list[Fault]:
    """What is to be kept needs a file, and a store that is there: ours stands for Hadoop's on local disks."""
    conf = sound.conf
    if not resourcemanager.RECOVERY_ENABLED.of(conf):
        return []
    faults = []
    store = resourcemanager.STORE_CLASS
    name = store.of(conf).rpartition(".")[2]
    if name not in (resourcemanager.SQLITE_STORE, "FileSystemRMStateStore", "LeveldbRMStateStore"):
        problem = "is no store that yarnling has: it keeps what it knows in a file of its own"
        remedy = f"write {resourcemanager.SQLITE_STORE}, or remove it"
        faults.append(Fault(store.key, store.text(conf), conf.origin(store.key), problem, remedy))
    if not conf.get_trimmed(yarnling.STATE_STORE_FILE.key):
        problem = f"is not set, and {resourcemanager.RECOVERY_ENABLED.key} is true"
        faults.append(Fault(yarnling.STATE_STORE_FILE.key, None, DEFAULT, problem, "name a file on a local disk"))
    return faults
