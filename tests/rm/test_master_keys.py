"""The RM's keys change in time, and not faster than everybody can learn of it."""

from __future__ import annotations

import asyncio

import pytest

from rm.master_keys import MasterKeys
from tests.rm.served_cluster import until
from yarn.configuration import Configuration
from yarn.faults import ConfigurationException

NODE_EXPIRY = "yarn.nm.liveness-monitor.expiry-interval-ms"
MASTER_EXPIRY = "yarn.am.liveness-monitor.expiry-interval-ms"
INTERVALS = {
    f"yarn.resourcemanager.{kind}.master-key-rolling-interval-secs": "40ms"
    for kind in ("am-rm-tokens", "nm-tokens", "container-tokens")
}


async def test_each_key_is_announced_and_then_comes_into_force() -> None:
    keys = MasterKeys(Configuration.of({NODE_EXPIRY: "10", MASTER_EXPIRY: "10", **INTERVALS}))
    rings = (keys.masters.keys, keys.nodes.keys, keys.containers.keys)
    first = [ring.current for ring in rings]
    async with asyncio.TaskGroup() as tasks:
        rolling = tasks.create_task(keys.roll_for_ever())
        await until(lambda: all(ring.next is not None for ring in rings))
        announced = [ring.next for ring in rings]
        assert [ring.current for ring in rings] == first
        await until(lambda: all(ring.current not in first for ring in rings))
        assert [ring.current for ring in rings] == announced
        rolling.cancel()


@pytest.mark.parametrize("key", sorted(INTERVALS))
def test_a_key_lasts_for_more_than_three_liveness_intervals(key: str) -> None:
    """NMTokenSecretManagerInRM and the others refuse to start otherwise."""
    conf = Configuration.of({NODE_EXPIRY: "10", MASTER_EXPIRY: "10", **INTERVALS, key: "30ms"})
    with pytest.raises(ConfigurationException, match=r"must be more than 3 times yarn.* .10 ms.") as caught:
        MasterKeys(conf)
    assert [fault.key for fault in caught.value.faults] == [key]
