"""Several ResourceManagers, of which one is active (HAUtil): the keys, the ids, and the addresses of each id.

yarn.resourcemanager.ha.rm-ids         rm1,rm2
yarn.resourcemanager.address.rm1       127.0.0.1:8032, or yarn.resourcemanager.hostname.rm1 for all its addresses
yarn.resourcemanager.ha.id             rm1: which one a ResourceManager is
"""

from __future__ import annotations

from yarn.configuration import Configuration
from yarn.faults import DEFAULT, ConfigurationException, Fault
from yarn.settings import resourcemanager
from yarn.settings.kinds import AddressSetting, BoolSetting, ListSetting, TextSetting, TimeSetting

HA_ENABLED = BoolSetting(
    "yarn.resourcemanager.ha.enabled", "false", "whether there are several RMs, of which one is active"
)
RM_IDS = ListSetting("yarn.resourcemanager.ha.rm-ids", "", "the ids of the RMs, such as rm1,rm2")
RM_ID = TextSetting("yarn.resourcemanager.ha.id", None, "the id of the RM that reads this configuration")
AUTOMATIC_FAILOVER_ENABLED = BoolSetting(
    "yarn.resourcemanager.ha.automatic-failover.enabled",
    "true",
    "whether a standby RM becomes active by itself; false: `rmadmin -transitionToActive` makes it active",
)
EMBEDDED_ELECTOR = BoolSetting(
    "yarn.resourcemanager.ha.automatic-failover.embedded",
    "true",
    "whether the RMs elect the active one among themselves; yarnling has no other way",
)
FAILOVER_SLEEP_BASE = TimeSetting(
    "yarn.client.failover-sleep-base-ms",
    None,
    "how long a caller waits after it has called every RM in vain",
    fallback=resourcemanager.CONNECT_RETRY_INTERVAL,
    minimum=1,
)
LEASE = TimeSetting(
    "yarn.yarnling.ha.lease-ms",
    "10000",
    "how long the active RM leads without renewing its lease in the shared state store",
    minimum=100,
    least_ms=2000,
)

SERVICE_ADDRESSES = (
    resourcemanager.ADDRESS,
    resourcemanager.SCHEDULER_ADDRESS,
    resourcemanager.RESOURCE_TRACKER_ADDRESS,
    resourcemanager.ADMIN_ADDRESS,
    resourcemanager.WEBAPP_ADDRESS,
)
"""The settings that each RM has with its id as a suffix (YarnConfiguration.getServiceAddressConfKeys)."""
_SUFFIX = ".<rm-id>"
HOSTNAME_OF_RM = TextSetting(
    f"{resourcemanager.HOSTNAME.key}{_SUFFIX}", None, "host of the addresses of the RM with this id"
)
ADDRESS_OF_RM = AddressSetting(f"{resourcemanager.ADDRESS.key}{_SUFFIX}", None, "address for clients of this RM")
SCHEDULER_ADDRESS_OF_RM = AddressSetting(
    f"{resourcemanager.SCHEDULER_ADDRESS.key}{_SUFFIX}", None, "address for ApplicationMasters of this RM"
)
RESOURCE_TRACKER_ADDRESS_OF_RM = AddressSetting(
    f"{resourcemanager.RESOURCE_TRACKER_ADDRESS.key}{_SUFFIX}", None, "address for NodeManagers of this RM"
)
ADMIN_ADDRESS_OF_RM = AddressSetting(
    f"{resourcemanager.ADMIN_ADDRESS.key}{_SUFFIX}", None, "address for rmadmin of this RM"
)
WEBAPP_ADDRESS_OF_RM = AddressSetting(
    f"{resourcemanager.WEBAPP_ADDRESS.key}{_SUFFIX}", None, "address of the web services of this RM"
)
REPLY_S_LEAST = 5.0
"""A busy RM takes a few seconds for a reply; that it has not died is seen by the election, not by its callers."""
FEWEST_RMS = 2
RMS_MAX = 9
"""More ids than any cluster of Hadoop has."""


def rm_ids(conf: Configuration) -> tuple[str, ...]:
    """The ids of the RMs; empty if there is only one RM (`yarn.resourcemanager.ha.enabled` is false)."""
    return RM_IDS.of(conf) if HA_ENABLED.of(conf) else ()


def own_id(conf: Configuration) -> str:
    """The id of the RM with this configuration. Raises ConfigurationException with every fault of the HA keys.

    The rules are those of HAUtil.verifyAndSetConfiguration, except that the id must be set: on one machine all
    addresses are local.
    """
    ids, own = RM_IDS.of(conf), RM_ID.maybe_of(conf) or ""
    faults = []
    if not FEWEST_RMS <= len(set(ids)) == len(ids) <= RMS_MAX:
        problem = f"must name {FEWEST_RMS} to {RMS_MAX} different ids"
        faults.append(RM_IDS.fault(conf, problem))
    if own not in ids:
        problem = f"must be one of {RM_IDS.key} = {','.join(ids)}"
        faults.append(Fault(RM_ID.key, own or None, conf.origin(RM_ID.key), problem, "set it for each ResourceManager"))
    if AUTOMATIC_FAILOVER_ENABLED.of(conf) and not EMBEDDED_ELECTOR.of(conf):
        problem = "the ResourceManagers elect the active one themselves, or it is chosen by hand"
        remedy = f"write true, or set {AUTOMATIC_FAILOVER_ENABLED.key} to false"
        faults.append(Fault(EMBEDDED_ELECTOR.key, "false", conf.origin(EMBEDDED_ELECTOR.key), problem, remedy))
    if not resourcemanager.RECOVERY_ENABLED.of(conf):
        key = resourcemanager.RECOVERY_ENABLED.key
        problem = "without a state store a failover loses every application"
        faults.append(Fault(key, conf.get(key), conf.origin(key), problem, "write true"))
    if faults:
        raise ConfigurationException(faults)
    return own


def addresses_of(conf: Configuration, rm_id: str) -> dict[str, str]:
    """{key without suffix: host:port} of one RM, from its keys with the suffix `.<rm_id>`."""
    host = conf.get(f"{resourcemanager.HOSTNAME.key}.{rm_id}")
    base = conf if host is None else conf.overridden({resourcemanager.HOSTNAME.key: host}, rm_id)
    found = {}
    for setting in SERVICE_ADDRESSES:
        text = conf.get(f"{setting.key}.{rm_id}") or (setting.text(base) if host is not None else None)
        if text is None:
            problem, key = "is not set", f"{setting.key}.{rm_id}"
            raise ConfigurationException([Fault(key, None, DEFAULT, problem, "write host:port for each id")])
        found[setting.key] = text
    return found


def with_own_addresses(conf: Configuration, rm_id: str) -> Configuration:
    """The configuration in which the keys without suffix have the addresses of this RM."""
    return conf.overridden(addresses_of(conf, rm_id), f"those of {rm_id}")


def reply_timeout_s(conf: Configuration) -> float | None:
    """The time after which a caller asks the next RM, because one that does not reply may not lead any more.

    None, as ever, if there is only one RM.
    """
    return max(REPLY_S_LEAST, LEASE.of(conf) / 1000) if rm_ids(conf) else None


def targets(conf: Configuration, setting: AddressSetting) -> tuple[str, ...]:
    """Addresses (`host:port`) at which a service of the RM may be: one for each id, or the only one."""
    ids = rm_ids(conf)
    texts = [addresses_of(conf, rm_id)[setting.key] for rm_id in ids]
    parsed = [setting.parse(text) for text in texts] or [setting.of(conf)]
    return tuple(f"{host}:{port}" for host, port in parsed)
