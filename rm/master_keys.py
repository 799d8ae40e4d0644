"""The RM's keys for tokens, and how they change.

A key serves for a day. Then a next one is made: nodes get it with their heartbeats and masters with their next reply,
while the old one still counts. After a delay in which every live node must have beaten, the next one takes its place.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from wire.tokens import (
    AMRMTokenSecretManager,
    ContainerTokenSecretManager,
    KeyRing,
    NMTokenSecretManager,
    new_master_key,
)
from yarn.configuration import Configuration
from yarn.faults import ConfigurationException, Fault
from yarn.settings import resourcemanager
from yarn.settings.kinds import TimeSetting

EXPIRIES_PER_INTERVAL = 3
"""A key must last for more than so many liveness intervals (Hadoop's managers refuse to start otherwise)."""

Sleep = Callable[[float], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Rolling:
    """How one kind's key changes: every `interval_ms`, in force `activation_ms` after it was made."""

    keys: KeyRing
    interval_ms: int
    activation_ms: int


class MasterKeys:
    """The secret managers of the RM's three kinds of tokens."""

    def __init__(self, conf: Configuration) -> None:
        """Raises ConfigurationException if a key would change too often for all to learn of it."""
        self.masters = AMRMTokenSecretManager(KeyRing(new_master_key()))
        self.nodes = NMTokenSecretManager(KeyRing(new_master_key()))
        self.containers = ContainerTokenSecretManager(KeyRing(new_master_key()))
        node_expiry, master_expiry = resourcemanager.NM_EXPIRY_INTERVAL, resourcemanager.AM_EXPIRY_INTERVAL
        self._rollings = (
            _rolling(conf, self.masters.keys, resourcemanager.AM_RM_TOKEN_ROLLING_INTERVAL, master_expiry),
            _rolling(conf, self.nodes.keys, resourcemanager.NM_TOKEN_ROLLING_INTERVAL, node_expiry),
            _rolling(conf, self.containers.keys, resourcemanager.CONTAINER_TOKEN_ROLLING_INTERVAL, node_expiry),
        )

    async def roll_for_ever(self, sleep: Sleep = asyncio.sleep) -> None:
        """Change the keys in time, until cancelled; `sleep` takes seconds."""
        async with asyncio.TaskGroup() as group:
            for rolling in self._rollings:
                group.create_task(_roll(rolling, sleep))


async def _roll(rolling: Rolling, sleep: Sleep) -> None:
    while True:
        await sleep((rolling.interval_ms - rolling.activation_ms) / 1000)
        rolling.keys.roll()
        await sleep(rolling.activation_ms / 1000)
        rolling.keys.activate_next()


def _rolling(conf: Configuration, keys: KeyRing, interval: TimeSetting, expiry: TimeSetting) -> Rolling:
    interval_ms, expiry_ms = interval.of(conf), expiry.of(conf)
    if interval_ms <= EXPIRIES_PER_INTERVAL * expiry_ms:
        fault = Fault(
            interval.key,
            f"{interval_ms} ms",
            conf.origin(interval.key),
            f"must be more than {EXPIRIES_PER_INTERVAL} times {expiry.key} ({expiry_ms} ms)",
            "write a longer interval, or a shorter expiry",
        )
        raise ConfigurationException([fault])
    return Rolling(keys, interval_ms, expiry_ms * 3 // 2)
