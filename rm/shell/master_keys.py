"""The RM's keys for tokens, and how they change.

A key serves for a day. Then a next one is made: nodes get it with their heartbeats and masters with their next reply,
while the old one still counts. After a delay in which every live node must have beaten, the next one takes its place.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct

from wire.tokens import (
    AMRMTokenSecretManager,
    ContainerTokenSecretManager,
    KeyRing,
    NMTokenSecretManager,
    TokenSecretManager,
    new_master_key,
)
from yarn.configuration import Configuration
from yarn.errors import YarnException
from yarn.faults import ConfigurationException, Fault
from yarn.protocols.tracker import MasterKey
from yarn.settings import resourcemanager
from yarn.settings.kinds import TimeSetting

EXPIRIES_PER_INTERVAL = 3
"""A key must last for more than so many liveness intervals (Hadoop's managers refuse to start otherwise)."""

KEEP_RETRY_S = 10.0
"""Between two tries to write a key: a day or more is left for it."""

_logger = logging.getLogger(__name__)

Sleep = Callable[[float], Awaitable[object]]
Keep = Callable[[str, tuple[MasterKey, ...]], Awaitable[None]]
"""Writes the keys of a kind: what a token is sealed with must outlive the RM that seals it."""


class Rolling(Struct, frozen=True):
    """How one kind's key changes: every `interval_ms`, in force `activation_ms` after it was made."""

    kind: str
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
        self._keep: Keep = _keep_nothing
        self._rollings = (
            _rolling(conf, self.masters, resourcemanager.AM_RM_TOKEN_ROLLING_INTERVAL, master_expiry),
            _rolling(conf, self.nodes, resourcemanager.NM_TOKEN_ROLLING_INTERVAL, node_expiry),
            _rolling(conf, self.containers, resourcemanager.CONTAINER_TOKEN_ROLLING_INTERVAL, node_expiry),
        )

    def recover(self, stored: Callable[[str], tuple[MasterKey, ...]]) -> None:
        """Go on with the keys of an earlier RM, `stored` by kind; of a change under way both count."""
        for rolling in self._rollings:
            keys = stored(rolling.kind)
            if keys:
                rolling.keys.current = keys[0]
                rolling.keys.next = keys[1] if len(keys) > 1 else None

    async def keep(self, keep: Keep) -> None:
        """Have the keys written, now and before each change of them."""
        self._keep = keep
        for rolling in self._rollings:
            await keep(rolling.kind, rolling.keys.accepted())

    async def roll_for_ever(self, sleep: Sleep = asyncio.sleep) -> None:
        """Change the keys in time, until cancelled; `sleep` takes seconds."""
        async with asyncio.TaskGroup() as group:
            for rolling in self._rollings:
                group.create_task(_roll(rolling, sleep, self._keep))


async def _roll(rolling: Rolling, sleep: Sleep, keep: Keep) -> None:
    """A next key is written before it is given to anybody; that it has taken its place, whenever that is."""
    keys = rolling.keys
    while True:
        if keys.next is None:
            await sleep((rolling.interval_ms - rolling.activation_ms) / 1000)
            fresh = new_master_key()
            await _kept(keep, sleep, rolling.kind, (*keys.accepted(), fresh))
            keys.roll(fresh)
        await sleep(rolling.activation_ms / 1000)
        keys.activate_next()
        await _kept(keep, sleep, rolling.kind, keys.accepted())


async def _kept(keep: Keep, sleep: Sleep, kind: str, keys: tuple[MasterKey, ...]) -> None:
    """Returns once they are written, however long the disk is full: the keys before stay good meanwhile."""
    while True:
        try:
            return await keep(kind, keys)
        except YarnException as error:
            _logger.warning("the next key of %s is not written, trying again: %s", kind, error.message)
            await sleep(KEEP_RETRY_S)


async def _keep_nothing(kind: str, keys: tuple[MasterKey, ...]) -> None:
    """Without a store the keys end with the RM."""


def _rolling(
    conf: Configuration, manager: TokenSecretManager[Any], interval: TimeSetting, expiry: TimeSetting
) -> Rolling:
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
    return Rolling(manager.kind, manager.keys, interval_ms, expiry_ms * 3 // 2)
