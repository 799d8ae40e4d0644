"""The settings of the ResourceManager and of those who call it.

Defaults are yarn-default.xml's of Hadoop 3.4.1, but for addresses: yarnling binds to loopback.
"""

from __future__ import annotations

from yarn.settings.kinds import (
    AddressSetting,
    BoolSetting,
    FloatSetting,
    IntSetting,
    ListSetting,
    TextSetting,
    TimeSetting,
)

HOSTNAME = TextSetting("yarn.resourcemanager.hostname", "127.0.0.1", "host that the RM's addresses stand on")
ADDRESS = AddressSetting(
    "yarn.resourcemanager.address", "${yarn.resourcemanager.hostname}:8032", "where clients call", refers=(HOSTNAME,)
)
SCHEDULER_ADDRESS = AddressSetting(
    "yarn.resourcemanager.scheduler.address",
    "${yarn.resourcemanager.hostname}:8030",
    "where AMs call",
    refers=(HOSTNAME,),
)
RESOURCE_TRACKER_ADDRESS = AddressSetting(
    "yarn.resourcemanager.resource-tracker.address",
    "${yarn.resourcemanager.hostname}:8031",
    "where NMs call",
    refers=(HOSTNAME,),
)
ADMIN_ADDRESS = AddressSetting(
    "yarn.resourcemanager.admin.address",
    "${yarn.resourcemanager.hostname}:8033",
    "where rmadmin calls",
    refers=(HOSTNAME,),
)
WEBAPP_ADDRESS = AddressSetting(
    "yarn.resourcemanager.webapp.address",
    "${yarn.resourcemanager.hostname}:8088",
    "where links to the RM's pages lead (there are none yet)",
    refers=(HOSTNAME,),
)

NM_HEARTBEAT_INTERVAL = TimeSetting(
    "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms",
    "1000",
    "told to NMs in every reply: how long they wait before the next heartbeat",
    minimum=1,
)
NM_EXPIRY_INTERVAL = TimeSetting(
    "yarn.nm.liveness-monitor.expiry-interval-ms",
    "600000",
    "a NM silent for so long is LOST (noticed within a third more)",
    minimum=1,
)
AM_EXPIRY_INTERVAL = TimeSetting(
    "yarn.am.liveness-monitor.expiry-interval-ms",
    "900000",
    "an AM silent for so long has failed (noticed within a third more)",
    minimum=1,
)
CONTAINER_ALLOCATION_EXPIRY_INTERVAL = TimeSetting(
    "yarn.resourcemanager.rm.container-allocation.expiry-interval-ms",
    "600000",
    "a container that was handed to its AM and not started within it is taken back",
    minimum=1,
)
APPLICATION_TIMEOUTS_MONITOR_INTERVAL = TimeSetting(
    "yarn.resourcemanager.application-timeouts.monitor.interval-ms",
    "3000",
    "how often lifetimes of applications are looked at",
    minimum=1,
)

NODES_INCLUDE_PATH = TextSetting(
    "yarn.resourcemanager.nodes.include-path", "", "file with the hosts that may have NodeManagers; none: all may"
)
NODES_EXCLUDE_PATH = TextSetting(
    "yarn.resourcemanager.nodes.exclude-path", "", "file with the hosts that may not; read anew by refreshNodes"
)
GRACEFUL_DECOMMISSION_TIMEOUT = TimeSetting(
    "yarn.resourcemanager.nodemanager-graceful-decommission-timeout-secs",
    "3600",
    "how long a graceful refreshNodes waits if neither it nor its file says; -1: for ever",
    written_in="s",
    minimum=0,
    special=(-1,),
    paced=False,
)
DECOMMISSIONING_POLL_INTERVAL = TimeSetting(
    "yarn.resourcemanager.decommissioning-nodes-watcher.poll-interval-secs",
    "20",
    "how often nodes are looked at that are being decommissioned and do not speak",
    written_in="s",
    minimum=1,
)
ADMIN_ACL = TextSetting(
    "yarn.admin.acl", "*", "users, a blank, groups: who may call what rmadmin calls, and change any application"
)

AM_MAX_ATTEMPTS = IntSetting(
    "yarn.resourcemanager.am.max-attempts",
    "2",
    "attempts of an application that asks for none, and the most if there is no global limit",
    minimum=1,
)
AM_GLOBAL_MAX_ATTEMPTS = IntSetting(
    "yarn.resourcemanager.am.global.max-attempts",
    None,
    "the most attempts that an application may ask for",
    minimum=1,
    fallback=AM_MAX_ATTEMPTS,
)
AM_BLACKLISTING_ENABLED = BoolSetting(
    "yarn.resourcemanager.am-scheduling.node-blacklisting-enabled",
    "false",
    "whether the next AM of an application keeps off hosts on which an earlier one failed",
)
AM_BLACKLISTING_DISABLE_THRESHOLD = FloatSetting(
    "yarn.resourcemanager.am-scheduling.node-blacklisting-disable-threshold",
    "0.2",
    "share of the hosts from which on none is kept off; one that is not 0..1 counts as 0.2",
    minimum=0.0,
    maximum=1.0,
    lenient=True,
)
MAX_COMPLETED_APPLICATIONS = IntSetting(
    "yarn.resourcemanager.max-completed-applications",
    "1000",
    "ended applications that the RM remembers, the oldest forgotten first",
    minimum=0,
)
APPLICATION_MAX_TAGS = IntSetting(
    "yarn.resourcemanager.application.max-tags", "10", "tags of an application", minimum=0
)
APPLICATION_MAX_TAG_LENGTH = IntSetting(
    "yarn.resourcemanager.application.max-tag.length", "100", "characters of a tag", minimum=1
)
ATTEMPT_DIAGNOSTICS_LIMIT = IntSetting(
    "yarn.app.attempt.diagnostics.limit.kc",
    "64",
    "thousands of characters kept of an attempt's diagnostics",
    unit="kc",
    minimum=1,
)
NODEMANAGER_CONNECT_RETRIES = IntSetting(
    "yarn.resourcemanager.nodemanager-connect-retries",
    "10",
    "tries to reach the NM that shall start an AM",
    minimum=0,
)
AM_LAUNCHER_THREAD_COUNT = IntSetting(
    "yarn.resourcemanager.amlauncher.thread-count", "50", "AMs that are started or stopped at once", minimum=1
)
AM_RM_TOKEN_ROLLING_INTERVAL = TimeSetting(
    "yarn.resourcemanager.am-rm-tokens.master-key-rolling-interval-secs",
    "86400",
    "how long one key signs AMRM tokens",
    written_in="s",
    minimum=1,
    paced=False,
)
NM_TOKEN_ROLLING_INTERVAL = TimeSetting(
    "yarn.resourcemanager.nm-tokens.master-key-rolling-interval-secs",
    "86400",
    "how long one key signs NM tokens",
    written_in="s",
    minimum=1,
    paced=False,
)
CONTAINER_TOKEN_ROLLING_INTERVAL = TimeSetting(
    "yarn.resourcemanager.container-tokens.master-key-rolling-interval-secs",
    "86400",
    "how long one key signs container tokens",
    written_in="s",
    minimum=1,
    paced=False,
)

RECOVERY_ENABLED = BoolSetting(
    "yarn.resourcemanager.recovery.enabled",
    "false",
    "whether what the RM knows of applications is kept in a state store, and taken up by the next RM",
)
SQLITE_STORE = "SQLiteRMStateStore"
STORE_CLASS = TextSetting(
    "yarn.resourcemanager.store.class",
    "org.apache.hadoop.yarn.server.resourcemanager.recovery.FileSystemRMStateStore",
    f"the state store: Hadoop's stores on local disks mean ours, {SQLITE_STORE}",
)
STORED_COMPLETED_APPLICATIONS_MAX = IntSetting(
    "yarn.resourcemanager.state-store.max-completed-applications",
    None,
    "ended applications that the state store keeps, the oldest forgotten first",
    fallback=MAX_COMPLETED_APPLICATIONS,
    minimum=0,
)
WORK_PRESERVING_RECOVERY_ENABLED = BoolSetting(
    "yarn.resourcemanager.work-preserving-recovery.enabled",
    "true",
    "whether a node that registers again keeps its containers",
)

CONNECT_MAX_WAIT = TimeSetting(
    "yarn.resourcemanager.connect.max-wait.ms",
    "900000",
    "how long a client, AM or NM tries to reach the RM; -1: for ever",
    minimum=0,
    special=(-1,),
    paced=False,
)
CONNECT_RETRY_INTERVAL = TimeSetting(
    "yarn.resourcemanager.connect.retry-interval.ms", "30000", "wait between two such tries", minimum=1
)
CLIENT_POLL_LEAST_MS = 25
"""What the pace of a cluster never goes below: each look costs client and RM some 2 ms, which the work could use."""
CLIENT_POLL_INTERVAL = TimeSetting(
    "yarn.client.application-client-protocol.poll-interval-ms",
    "200",
    "how often a client that waits for a submission or a kill asks",
    minimum=1,
    least_ms=CLIENT_POLL_LEAST_MS,
)
NM_CLIENT_CONNECT_MAX_WAIT = TimeSetting(
    "yarn.client.nodemanager-connect.max-wait-ms",
    "180000",
    "how long an AM tries to reach a NM; -1: for ever",
    minimum=0,
    special=(-1,),
    paced=False,
)
NM_CLIENT_CONNECT_RETRY_INTERVAL = TimeSetting(
    "yarn.client.nodemanager-connect.retry-interval-ms", "10000", "wait between two such tries", minimum=1
)
AM_DEFAULT_NODE_LABEL = TextSetting(
    "yarn.resourcemanager.node-labels.am.default-node-label-expression", None, "the label of AMs that name none"
)
EXCLUSIVE_ENFORCED_PARTITIONS = ListSetting(
    "yarn.node-labels.exclusive-enforced-partitions",
    "",
    "labels whose nodes are kept for applications that were submitted with them",
)
