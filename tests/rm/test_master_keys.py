"""The RM's keys change in time, and not faster than everybody can learn of it."""

from __future__ import annotations

import asyncio

import pytest

from rm.shell.master_keys import KEEP_RETRY_S, MasterKeys
from tests.rm.served_cluster import until
from yarn.configuration import Configuration
from yarn.errors import YarnException
from yarn.faults import ConfigurationException
from yarn.protocols.tracker import MasterKey

NODE_EXPIRY = "yarn.nm.liveness-monitor.expiry-interval-ms"
MASTER_EXPIRY = "yarn.am.liveness-monitor.expiry-interval-ms"
INTERVALS = {
    f"yarn.resourcemanager.{kind}.master-key-rolling-interval-secs": "40ms"
    for kind in ("am-rm-tokens", "nm-tokens", "container-tokens")
}


class Sleeper:
    """A sleep that lasts until `wake`; `slept` are the seconds asked for, in order."""

    def __init__(self) -> None:
        self.slept: list[float] = []
        self._sleeping: list[asyncio.Future[None]] = []

    async def __call__(self, seconds: float) -> None:
        self.slept.append(seconds)
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleeping.append(future)
        await future

    async def wake(self, sleepers: int) -> None:
        """Wake all, once so many sleep."""
        await until(lambda: len(self._sleeping) == sleepers)
        sleeping, self._sleeping = self._sleeping, []
        for future in sleeping:
            future.set_result(None)
        await until(lambda: len(self._sleeping) == sleepers)


async def test_each_key_is_distributed_before_it_is_used() -> None:
    """In force 1.5 liveness intervals after it was made: by then every live node has beaten."""
    keys = MasterKeys(Configuration.of({NODE_EXPIRY: "10", MASTER_EXPIRY: "12", **INTERVALS}))
    rings = (keys.masters.keys, keys.nodes.keys, keys.containers.keys)
    first = [ring.current for ring in rings]
    sleeper = Sleeper()
    async with asyncio.TaskGroup() as tasks:
        rolling = tasks.create_task(keys.roll_forever(sleeper))
        await sleeper.wake(len(rings))
        announced = [ring.next for ring in rings]
        assert None not in announced
        assert [ring.current for ring in rings] == first
        await sleeper.wake(len(rings))
        assert [ring.current for ring in rings] == announced
        assert [ring.next for ring in rings] == [None] * len(rings)
        rolling.cancel()
    assert sleeper.slept[:6] == [0.022, 0.025, 0.025, 0.018, 0.015, 0.015]


async def test_a_key_is_not_distributed_before_it_is_written(caplog: pytest.LogCaptureFixture) -> None:
    """The disk is full: the key before stays good, and the RM goes on."""
    keys = MasterKeys(Configuration.of({NODE_EXPIRY: "10", MASTER_EXPIRY: "12", **INTERVALS}))
    is_full = False

    async def keep(kind: str, written: tuple[MasterKey, ...]) -> None:
        if is_full:
            raise YarnException("no room")

    await keys.keep(keep)
    sleeper = Sleeper()
    async with asyncio.TaskGroup() as tasks:
        rolling = tasks.create_task(keys.roll_forever(sleeper))
        is_full = True
        await sleeper.wake(3)
        assert keys.masters.keys.next is None
        is_full = False
        await sleeper.wake(3)
        assert keys.masters.keys.next is not None
        rolling.cancel()
    assert sleeper.slept[3:6] == [KEEP_RETRY_S] * 3
    assert "cannot store the next key of" in caplog.text


@pytest.mark.parametrize("key", sorted(INTERVALS))
def test_a_key_lasts_for_more_than_three_liveness_intervals(key: str) -> None:
    """NMTokenSecretManagerInRM and the others refuse to start otherwise."""
    conf = Configuration.of({NODE_EXPIRY: "10", MASTER_EXPIRY: "10", **INTERVALS, key: "30ms"})
    with pytest.raises(ConfigurationException, match=r"must be more than 3 times yarn.* .10 ms.") as caught:
        MasterKeys(conf)
    assert [fault.key for fault in caught.value.faults] == [key]
