"""Several ResourceManagers in a local cluster: their ids, keys and addresses, and which of them is active.

A cluster with `rms` = 1 has none of this: its ResourceManager has no id, and the keys of Hadoop's HA are not set.
"""

from __future__ import annotations

import asyncio
import getpass
from collections.abc import Mapping

from wire.cluster_secret import read_client_token
from wire.failover import Failover
from wire.protocols.ha import HAServiceProtocol
from yarn.configuration import Configuration
from yarn.errors import InvalidArgumentException, YarnException
from yarn.settings import high_availability, resourcemanager, yarnling
from yarn.states import HAServiceState

STATE_TIMEOUT_S = 2.0
"""The time a ResourceManager may take to say its state; a paused one never does."""
_SLEEP_BASE_MS, _SLEEP_MAX_MS = 500, 2000
"""The time callers wait between two rounds. Hadoop's default, 30 s, is for machines that are restarted by people."""
_OWN_DEFAULTS = {
    high_availability.FAILOVER_SLEEP_BASE.key: str(_SLEEP_BASE_MS),
    "yarn.client.failover-sleep-max-ms": str(_SLEEP_MAX_MS),
}


def settings_for(rms: int) -> dict[str, str]:
    """{key: value} for a cluster with so many ResourceManagers. Raises InvalidArgumentException."""
    if not 1 <= rms <= high_availability.RMS_MAX:
        raise InvalidArgumentException(f"rms = {rms}: must be 1 to {high_availability.RMS_MAX}")
    if rms == 1:
        return {}
    return {
        **_OWN_DEFAULTS,
        yarnling.RESOURCE_MANAGERS.key: str(rms),
        high_availability.HA_ENABLED.key: "true",
        high_availability.RM_IDS.key: ",".join(f"rm{number}" for number in range(1, rms + 1)),
        resourcemanager.RECOVERY_ENABLED.key: "true",
    }


def ids_of(conf: Configuration) -> tuple[str, ...]:
    """The ids of the cluster's ResourceManagers; empty if there is only one, whatever the keys of HA say."""
    return high_availability.rm_ids(conf) if yarnling.RESOURCE_MANAGERS.of(conf) > 1 else ()


def with_single(values: Mapping[str, str]) -> dict[str, str]:
    """The values of a configuration file for a cluster with one ResourceManager: HA is off, as it must be."""
    key = high_availability.HA_ENABLED.key
    return {**values, key: "false"} if key in values else dict(values)


def ids_in(addresses: Mapping[str, str]) -> tuple[str, ...]:
    """The ids in {key: address}; empty for a single ResourceManager."""
    prefix = f"{resourcemanager.ADMIN_ADDRESS.key}."
    return tuple(key.removeprefix(prefix) for key in addresses if key.startswith(prefix))


def failover(addresses: Mapping[str, str], key: str) -> Failover:
    """The addresses of a service, that of each ResourceManager; "" if there is none."""
    of_each = [addresses[f"{key}.{rm_id}"] for rm_id in ids_in(addresses) if f"{key}.{rm_id}" in addresses]
    return Failover(of_each or [addresses.get(key, "")])


async def state_of(
    addresses: Mapping[str, str], rm_id: str, conf: Configuration, timeout_s: float = STATE_TIMEOUT_S
) -> HAServiceState:
    """The state of one ResourceManager. Raises YarnException if it does not answer."""
    async with admin_of(addresses, rm_id, conf, timeout_s=timeout_s) as proxy:
        return (await proxy.get_service_status()).state


def admin_of(
    addresses: Mapping[str, str], rm_id: str, conf: Configuration, *, user: str = "", timeout_s: float | None = None
) -> HAServiceProtocol:
    """A connection to one ResourceManager, active or not. Raises InvalidArgumentException for an unknown id."""
    target = addresses.get(f"{resourcemanager.ADMIN_ADDRESS.key}.{rm_id}")
    if target is None:
        ids = " ".join(ids_in(addresses)) or "none"
        raise InvalidArgumentException(f"{rm_id}: there is no such ResourceManager (there are: {ids})")
    return HAServiceProtocol(target, user=user or getpass.getuser(), token=read_client_token(conf), timeout_s=timeout_s)


async def active_of(addresses: Mapping[str, str], conf: Configuration) -> str:
    """The id of the active ResourceManager; "" if none says so."""

    async def is_active(rm_id: str) -> bool:
        try:
            return await state_of(addresses, rm_id, conf) is HAServiceState.ACTIVE
        except YarnException:
            return False

    ids = ids_in(addresses)
    found = await asyncio.gather(*(is_active(rm_id) for rm_id in ids))
    return next((rm_id for rm_id, active in zip(ids, found, strict=True) if active), "")
