"""Creates and replaces the RM's keys for tokens.

A key is used for a day. Then the next one is created: NMs receive it with their heartbeats and AMs with their next
reply, while the old key is still valid. After a delay in which every live node must have sent a heartbeat, the next key
becomes current.
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
"""A key must be used for more than this many expiry intervals (Hadoop's managers do not start otherwise)."""

KEEP_RETRY_S = 10.0
"""Time between two attempts to write a key; the old key is still valid meanwhile."""

_logger = logging.getLogger(f"yarnling.{__name__}")

Sleep = Callable[[float], Awaitable[object]]
Keep = Callable[[str, tuple[MasterKey, ...]], Awaitable[None]]
"""The function that stores the keys of one kind of token, so that tokens stay valid after a restart of the RM."""


class Rolling(Struct, frozen=True):
    """The schedule for keys of one kind: a new key every `interval_ms`, which becomes current `activation_ms` later."""

    kind: str
    keys: KeyRing
    interval_ms: int
    activation_ms: int


class MasterKeys:
    """The secret managers of the RM's three kinds of tokens. `new_key` makes their keys."""

    def __init__(self, conf: Configuration, new_key: Callable[[], MasterKey] = new_master_key) -> None:
        """Raises ConfigurationException if keys would change too often for every node to receive them."""
        self.masters = AMRMTokenSecretManager(KeyRing(new_key()))
        self.nodes = NMTokenSecretManager(KeyRing(new_key()))
        self.containers = ContainerTokenSecretManager(KeyRing(new_key()))
        self._new_key = new_key
        node_expiry, master_expiry = resourcemanager.NM_EXPIRY_INTERVAL, resourcemanager.AM_EXPIRY_INTERVAL
        self._keep: Keep = _keep_nothing
        self._rollings = (
            _rolling(conf, self.masters, resourcemanager.AM_RM_TOKEN_ROLLING_INTERVAL, master_expiry),
            _rolling(conf, self.nodes, resourcemanager.NM_TOKEN_ROLLING_INTERVAL, node_expiry),
            _rolling(conf, self.containers, resourcemanager.CONTAINER_TOKEN_ROLLING_INTERVAL, node_expiry),
        )

    def recover(self, stored: Callable[[str], tuple[MasterKey, ...]]) -> None:
        """Use the keys of an earlier RM, `stored` by kind; both keys if one was being replaced."""
        for rolling in self._rollings:
            keys = stored(rolling.kind)
            if keys:
                rolling.keys.current = keys[0]
                rolling.keys.next = keys[1] if len(keys) > 1 else None

    async def keep(self, keep: Keep) -> None:
        """Store the keys, now and before each later change."""
        self._keep = keep
        for rolling in self._rollings:
            await keep(rolling.kind, rolling.keys.accepted())

    async def roll_forever(self, sleep: Sleep = asyncio.sleep) -> None:
        """Replace the keys at their times until cancelled; `sleep` takes seconds."""
        async with asyncio.TaskGroup() as group:
            for rolling in self._rollings:
                group.create_task(_roll(rolling, sleep, self._keep, self._new_key))


async def _roll(rolling: Rolling, sleep: Sleep, keep: Keep, new_key: Callable[[], MasterKey]) -> None:
    """Roll the keys. A new key is stored before any node gets it; its activation may be stored later."""
    keys = rolling.keys
    while True:
        if keys.next is None:
            await sleep((rolling.interval_ms - rolling.activation_ms) / 1000)
            fresh = new_key()
            await _kept(keep, sleep, rolling.kind, (*keys.accepted(), fresh))
            keys.roll(fresh)
        await sleep(rolling.activation_ms / 1000)
        keys.activate_next()
        await _kept(keep, sleep, rolling.kind, keys.accepted())


async def _kept(keep: Keep, sleep: Sleep, kind: str, keys: tuple[MasterKey, ...]) -> None:
    """Store the keys; returns once they are durable, however long the disk is full.

    The earlier keys stay valid meanwhile.
    """
    while True:
        try:
            return await keep(kind, keys)
        except YarnException as error:
            _logger.warning("cannot store the next key of %s, trying again: %s", kind, error.message)
            await sleep(KEEP_RETRY_S)


async def _keep_nothing(kind: str, keys: tuple[MasterKey, ...]) -> None:
    """Store nothing: without a state store the keys are lost when the RM exits."""


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
