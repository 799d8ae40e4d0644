"""The scheduler's configuration where clients can change it (MutableCSConfigurationProvider).

    mutable = MutableConfiguration.open(conf)        None if yarn.scheduler.configuration.store.class is file
    await mutable.change(change, refresh)

A change is written to the store, then applied by `refresh`, which takes the path of refreshQueues, then confirmed. If
it is refused, nothing has changed, neither in the scheduler nor in the store. One change happens at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from rm.scheduler.config.mutation import SchedConfUpdateInfo, Values, changed, values_of, with_values
from rm.shell.configuration_stores import ConfigurationStore, store_of
from yarn.configuration import Configuration
from yarn.errors import YarnException
from yarn.faults import ConfigurationException, Fault
from yarn.settings.resourcemanager import CONFIGURATION_FS_PATH

T = TypeVar("T")
Refresh = Callable[[Values], Awaitable[None]]
"""Applies values to the scheduler. Raises ConfigurationException; then nothing was applied."""


class MutableConfiguration:
    """The present values, and the store that keeps them."""

    def __init__(self, store: ConfigurationStore, values: Values) -> None:
        self._store = store
        self._lock = asyncio.Lock()
        self.values = values

    @classmethod
    def open(cls, conf: Configuration) -> MutableConfiguration | None:
        """The configured store, with what is stored or `conf` has; None for a file.

        Raises ConfigurationException if the store cannot be read.
        """
        store = store_of(conf)
        if store is None:
            return None
        try:
            return cls(store, store.open(values_of(conf)))
        except OSError as error:
            fault = Fault(
                CONFIGURATION_FS_PATH.key,
                CONFIGURATION_FS_PATH.text(conf),
                conf.origin(CONFIGURATION_FS_PATH.key),
                f"the store of the scheduler's configuration cannot be used: {error}",
                "name a directory that the ResourceManager can write",
            )
            raise ConfigurationException([fault]) from None

    def applied_to(self, conf: Configuration) -> Configuration:
        """The configuration with the present values."""
        return with_values(conf, self.values)

    async def version(self) -> int:
        """The number of the stored configuration. Raises YarnException."""
        return await _stored(lambda: self._store.version)

    async def after(self, change: SchedConfUpdateInfo) -> Values:
        """The values after a change, which is not made. Raises YarnException."""
        return await asyncio.to_thread(changed, self.values, change)

    async def change(self, change: SchedConfUpdateInfo, refresh: Refresh) -> None:
        """Make a change. Raises YarnException; then nothing has changed."""
        async with self._lock:
            before, after = self.values, await self.after(change)
            await _stored(lambda: self._store.log(after))
            try:
                await refresh(after)
            except BaseException:
                await _stored(self._store.cancel)
                raise
            try:
                await _stored(self._store.confirm)
            except YarnException:
                await refresh(before)
                raise
            self.values = after

    async def format(self, initial: Callable[[], Values], refresh: Refresh) -> None:
        """Delete what is stored, and begin with `initial()` again. Raises YarnException; then nothing has changed."""
        async with self._lock:
            after = initial()
            await refresh(after)
            await _stored(self._store.format)
            self.values = await _stored(lambda: self._store.open(after))


async def _stored(work: Callable[[], T]) -> T:
    """The result of work that blocks. Raises YarnException for what the disk refuses."""
    try:
        return await asyncio.to_thread(work)
    except OSError as error:
        raise YarnException(f"the store of the scheduler's configuration: {error}") from None
