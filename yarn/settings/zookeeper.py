"""The settings of ZooKeeper: the connection, the state store and the election. Defaults are those of Hadoop 3.4.1.

They are read where `yarn.resourcemanager.store.class` names ZKRMStateStore, or where ResourceManagers elect the active
one with ZooKeeper. The keys `yarn.resourcemanager.zk-...` are the earlier names of `hadoop.zk....`, as in Hadoop
(YarnConfiguration.addDeprecatedKeys).
"""

from __future__ import annotations

from yarn.configuration import Configuration
from yarn.settings.high_availability import HA_ENABLED
from yarn.settings.kinds import IntSetting, TextSetting, TimeSetting
from yarn.settings.resourcemanager import RECOVERY_ENABLED, STORE_CLASS

_EARLIER_ADDRESS = TextSetting("yarn.resourcemanager.zk-address", None, "the earlier name of hadoop.zk.address")
_EARLIER_TIMEOUT = TimeSetting(
    "yarn.resourcemanager.zk-timeout-ms", "10000", "the earlier name of hadoop.zk.timeout-ms", minimum=100, paced=False
)
_EARLIER_RETRY_INTERVAL = TimeSetting(
    "yarn.resourcemanager.zk-retry-interval-ms", "1000", "the earlier name of hadoop.zk.retry-interval-ms", minimum=1
)
_EARLIER_AUTH = TextSetting("yarn.resourcemanager.zk-auth", None, "the earlier name of hadoop.zk.auth")
ZK_ADDRESS = TextSetting(
    "hadoop.zk.address",
    None,
    "ZooKeeper's servers on this machine, host:port separated by commas, and if need be a /path",
    fallback=_EARLIER_ADDRESS,
)
ZK_TIMEOUT = TimeSetting(
    "hadoop.zk.timeout-ms",
    None,
    "ZooKeeper's session timeout: how long after its last message an active RM is replaced",
    minimum=100,
    paced=False,
    fallback=_EARLIER_TIMEOUT,
)
ZK_RETRY_INTERVAL = TimeSetting(
    "hadoop.zk.retry-interval-ms",
    None,
    "longest time between two attempts to connect to ZooKeeper",
    minimum=1,
    fallback=_EARLIER_RETRY_INTERVAL,
)
ZK_AUTH = TextSetting(
    "hadoop.zk.auth",
    None,
    "identity in ZooKeeper: digest:NAME:PASSWORD, or @FILE; by default one made of the cluster's secret",
    fallback=_EARLIER_AUTH,
)
ZK_STORE_PARENT_PATH = TextSetting(
    "yarn.resourcemanager.zk-state-store.parent-path", "/rmstore", "znode below which the state store is"
)
ZNODE_SIZE_MAX = IntSetting(
    "yarn.resourcemanager.zk-max-znode-size.bytes",
    "1048576",
    "largest record of an application in ZooKeeper, in bytes; an application with a larger one is refused",
    minimum=1024,
)
ELECTION_PATH = TextSetting(
    "yarn.resourcemanager.ha.automatic-failover.zk-base-path",
    "/yarn-leader-election",
    "znode below which each cluster elects its active RM",
)
ZK_STORE = "ZKRMStateStore"


def names_store(conf: Configuration) -> bool:
    """True if the configuration names the state store in ZooKeeper."""
    return STORE_CLASS.of(conf).rpartition(".")[2] == ZK_STORE


def has_store(conf: Configuration) -> bool:
    """True if the RM keeps its state in ZooKeeper: its store is there, or ZooKeeper elects it."""
    is_asked_for = HA_ENABLED.of(conf) or names_store(conf)
    return RECOVERY_ENABLED.of(conf) and is_asked_for and is_local(ZK_ADDRESS.maybe_of(conf) or "")


def is_local(address: str) -> bool:
    """True if all of ZooKeeper's servers are on this machine.

    Others are left alone: a cluster that tries out the configuration of another one must not write into its ZooKeeper.
    """
    servers, _, _ = address.partition("/")
    hosts = [server.strip().rpartition(":")[0].strip("[]") or server.strip() for server in servers.split(",")]
    return all(host in ("localhost", "::1") or host.startswith("127.") for host in hosts)
