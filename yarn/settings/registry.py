"""The registry of all settings, and the checks of a whole configuration except for its queues."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

from yarn.configuration import Configuration, find_variable
from yarn.faults import DEFAULT, Fault, Severity
from yarn.resource import MEMORY_MB, VCORES
from yarn.settings import (
    high_availability,
    logs,
    nodemanager,
    preemption,
    release,
    resourcemanager,
    scheduler,
    shuffle,
    yarnling,
    zookeeper,
)
from yarn.settings.kinds import IntSetting, NumberSetting, Setting, TimeSetting, key_pattern
from yarn.settings.release import ReleasedBoolSetting
from yarn.settings.unsupported import check_unsupported

_WRITTEN: Final[tuple[Setting[Any], ...]] = tuple(
    value
    for module in (
        yarnling,
        release,
        resourcemanager,
        high_availability,
        scheduler,
        preemption,
        nodemanager,
        logs,
        shuffle,
        zookeeper,
    )
    for value in vars(module).values()
    if isinstance(value, Setting)
)
"""All settings in the order of definition. A setting that a module imports from another is here twice, but in
BY_KEY once."""

BY_KEY: Final[dict[str, Setting[Any]]] = {setting.key: setting for setting in _WRITTEN}


RELEASED: Final = tuple(setting for setting in BY_KEY.values() if isinstance(setting, ReleasedBoolSetting))
"""The settings whose defaults differ between releases of Hadoop."""

_PATTERNS: Final = tuple((re.compile(key_pattern(key)), BY_KEY[key]) for key in BY_KEY if "<" in key)


def setting_of(key: str) -> Setting[Any] | None:
    """The setting with that key: a plain one, one of a queue, or one whose key contains a name (`<type>`)."""
    exact = BY_KEY.get(key) or scheduler.queue_setting(key)
    return exact or next((setting for pattern, setting in _PATTERNS if pattern.fullmatch(key)), None)


def defaults() -> dict[str, str]:
    """{key: default} of the settings that have a default; these replace `${key}` if the key is not set."""
    return {setting.key: setting.default for setting in BY_KEY.values() if setting.default is not None}


def check_settings(conf: Configuration) -> list[Fault]:
    """Every fault of the configuration: values that are not valid, out of bounds, or contradict other values.

    The tree of queues is checked by rm.scheduler.config.
    """
    faults = [fault for setting in _settings_in(conf) for fault in setting.faults(conf)]
    faulty = {fault.key for fault in faults if fault.severity is Severity.ERROR}
    sound = _Sound(conf, faulty)
    for check in (
        _check_allocations,
        _check_expiry,
        _check_attempts,
        _check_waits,
        _check_node,
        _check_further_types,
        _check_recovery,
        _check_access,
        _check_log_aggregation,
    ):
        faults += check(sound)
    return [*faults, *check_unsupported(conf), *_unbound(conf)]


def _settings_in(conf: Configuration) -> Iterator[Setting[Any]]:
    """The settings with a value; one whose key contains a name (`<type>`), with the key of each name."""
    yield from (setting for setting in BY_KEY.values() if setting.key in conf)
    for pattern, setting in _PATTERNS:
        yield from (replace(setting, key=key) for key in conf if pattern.fullmatch(key))


def with_further(faults: list[Fault], further: Iterable[Fault]) -> list[Fault]:
    """`faults`, followed by those of `further` that say something new about their key.

    An error of `further` is added if `faults` has no error for its key. A warning of `further` is added if `faults` has
    neither an error nor a warning for its key.
    """
    any_of = {fault.key for fault in faults}
    errors_of = {fault.key for fault in faults if fault.severity is Severity.ERROR}
    return [
        *faults,
        *(found for found in further if found.key not in (errors_of if found.severity is Severity.ERROR else any_of)),
    ]


def _unbound(conf: Configuration) -> list[Fault]:
    """Warn of a `${key}` whose key is not set: it stays in the value, for example as the name of a directory."""
    faults: list[Fault] = []
    for key in conf:
        setting = setting_of(key)
        text = None if setting is None else conf.get(key)
        bounds = None if text is None else find_variable(text)
        if text is not None and bounds is not None:
            problem = f"{text[slice(*bounds)]} refers to a key that is not set"
            faults.append(Fault(key, text, conf.origin(key), problem, "set that key", Severity.WARNING))
    return faults


class _Sound:
    """The valid values of a configuration; None for a value with a fault of its own, which is reported already."""

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
        """A fault if `lower` is above `upper`, and both have valid values without a special meaning (such as -1)."""
        low, high = self.value(lower), self.value(upper)
        if low is None or high is None or low <= high or low in lower.special or high in upper.special:
            return []
        place = lower if lower.key in self.conf else upper
        relation = f"above {upper.key} = {high}" if place is lower else f"below {lower.key} = {low}"
        return [Fault(place.key, place.text(self.conf), self.conf.origin(place.key), relation, remedy, severity)]


def _check_allocations(sound: _Sound) -> list[Fault]:
    """A fault for a minimum allocation above the maximum (validateMemoryAllocation, validateVCores)."""
    remedy = "make the maximum at least the minimum"
    return [
        *sound.ordered(scheduler.MINIMUM_ALLOCATION_MB, scheduler.MAXIMUM_ALLOCATION_MB, remedy),
        *sound.ordered(scheduler.MINIMUM_ALLOCATION_VCORES, scheduler.MAXIMUM_ALLOCATION_VCORES, remedy),
    ]


def _check_expiry(sound: _Sound) -> list[Fault]:
    """A fault for an expiry below the heartbeat interval (ResourceManager.validateConfigs).

    An expiry of less than three heartbeat intervals gets a warning.
    """
    heartbeat, expiry = resourcemanager.NM_HEARTBEAT_INTERVAL, resourcemanager.NM_EXPIRY_INTERVAL
    refused = sound.ordered(heartbeat, expiry, "make the expiry several heartbeats long")
    interval_ms, expiry_ms = sound.value(heartbeat), sound.value(expiry)
    if refused or interval_ms is None or expiry_ms is None or expiry_ms >= 3 * interval_ms:
        return refused
    problem = f"less than three heartbeats of {interval_ms} ms: a late heartbeat is enough to lose the node"
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
        "the global limit is used; raise it, or lower the other",
        Severity.WARNING,
    )


def _check_waits(sound: _Sound) -> list[Fault]:
    """Warn of a wait that is shorter than the interval between attempts (RMProxy.createRetryPolicy)."""
    pairs: tuple[tuple[TimeSetting, TimeSetting], ...] = (
        (resourcemanager.CONNECT_RETRY_INTERVAL, resourcemanager.CONNECT_MAX_WAIT),
        (resourcemanager.NM_CLIENT_CONNECT_RETRY_INTERVAL, resourcemanager.NM_CLIENT_CONNECT_MAX_WAIT),
        (nodemanager.NM_CONNECT_RETRY_INTERVAL, nodemanager.NM_CONNECT_MAX_WAIT),
    )
    remedy = "there will be a single attempt; make the wait longer than the interval"
    faults = [fault for low, high in pairs for fault in sound.ordered(low, high, remedy, Severity.WARNING)]
    return list({fault.key: fault for fault in faults}.values())


def _check_node(sound: _Sound) -> list[Fault]:
    """Warn of a node smaller than the minimum allocation: the RM refuses to register it (ResourceTrackerService)."""
    pairs: tuple[tuple[IntSetting, IntSetting], ...] = (
        (scheduler.MINIMUM_ALLOCATION_MB, nodemanager.RESOURCE_MEMORY_MB),
        (scheduler.MINIMUM_ALLOCATION_VCORES, nodemanager.RESOURCE_CPU_VCORES),
    )
    remedy = "the RM will refuse the node; give it at least the minimum allocation"
    return [fault for low, high in pairs for fault in sound.ordered(low, high, remedy, Severity.WARNING)]


def _check_further_types(sound: _Sound) -> list[Fault]:
    """A fault for memory or vcores among the amounts of further resource types: they have settings of their own."""
    keys = [nodemanager.RESOURCE_TYPE.key.replace("<type>", name) for name in (MEMORY_MB, VCORES)]
    problem = "is not an amount of a further type"
    return [
        Fault(key, sound.conf.get(key), sound.conf.origin(key), problem, "remove it")
        for key in keys
        if key in sound.conf
    ]


def _check_access(sound: _Sound) -> list[Fault]:
    """Warn of a cluster that is open to all local users: the risk is reported with every configuration."""
    setting, conf = yarnling.OPEN_TO_LOCAL_USERS, sound.conf
    if not setting.of(conf):
        return []
    problem = "every user of this machine may run commands as the user who starts the cluster"
    remedy = "set it to false unless every user of this machine is trusted"
    return [Fault(setting.key, setting.text(conf), conf.origin(setting.key), problem, remedy, Severity.WARNING)]


def _check_recovery(sound: _Sound) -> list[Fault]:
    """A fault if no file is configured for the state store, or no address for one in ZooKeeper."""
    conf = sound.conf
    if not resourcemanager.RECOVERY_ENABLED.of(conf):
        return []
    setting, remedy = yarnling.STATE_STORE_FILE, "name a file on a local disk"
    if zookeeper.names_store(conf) and not zookeeper.ZK_ADDRESS.maybe_of(conf):
        setting, remedy = zookeeper.ZK_ADDRESS, "name ZooKeeper's servers on this machine, host:port"
    elif zookeeper.has_store(conf) or conf.get_trimmed(setting.key):
        return []
    problem = f"is not set, although {resourcemanager.RECOVERY_ENABLED.key} is true"
    return [Fault(setting.key, None, DEFAULT, problem, remedy)]


def _check_log_aggregation(sound: _Sound) -> list[Fault]:
    """The faults of log aggregation: yarnling writes aggregated logs into a local directory only."""
    conf = sound.conf
    if not logs.AGGREGATION_ENABLED.of(conf):
        return []
    faults = []
    directory = logs.remote_log_dir(conf)
    if not directory.startswith("/"):
        setting = logs.REMOTE_APP_LOG_DIR
        problem = "is not a local directory: an absolute path or a file: URI"
        faults.append(Fault(setting.key, directory, conf.origin(setting.key), problem, "name a local directory"))
    if "/" in logs.log_dir_suffix(conf):
        setting = logs.REMOTE_APP_LOG_DIR_SUFFIX
        problem = "has a slash, but is part of a name"
        faults.append(Fault(setting.key, setting.text(conf), conf.origin(setting.key), problem, "remove the slash"))
    return faults
