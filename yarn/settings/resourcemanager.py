"""The settings of the ResourceManager, and of the clients, NodeManagers and ApplicationMasters that call it.

Defaults are those of yarn-default.xml of Hadoop 3.4.1, except for addresses: yarnling binds to loopback.
"""

from __future__ import annotations

from yarn.settings.kinds import (
    AddressSetting,
    BoolSetting,
    ChoiceSetting,
    FloatSetting,
    IntSetting,
    ListSetting,
    TextSetting,
    TimeSetting,
    UntrimmedListSetting,
    VersionSetting,
)

HOSTNAME = TextSetting("yarn.resourcemanager.hostname", "127.0.0.1", "host of the RM's addresses")
ADDRESS = AddressSetting(
    "yarn.resourcemanager.address", "${yarn.resourcemanager.hostname}:8032", "address for clients", refers=(HOSTNAME,)
)
SCHEDULER_ADDRESS = AddressSetting(
    "yarn.resourcemanager.scheduler.address",
    "${yarn.resourcemanager.hostname}:8030",
    "address for ApplicationMasters",
    refers=(HOSTNAME,),
)
RESOURCE_TRACKER_ADDRESS = AddressSetting(
    "yarn.resourcemanager.resource-tracker.address",
    "${yarn.resourcemanager.hostname}:8031",
    "address for NodeManagers",
    refers=(HOSTNAME,),
)
ADMIN_ADDRESS = AddressSetting(
    "yarn.resourcemanager.admin.address",
    "${yarn.resourcemanager.hostname}:8033",
    "address for rmadmin",
    refers=(HOSTNAME,),
)
CLUSTER_ID = TextSetting(
    "yarn.resourcemanager.cluster-id",
    None,
    "name of the cluster, on each of its web pages (`yarnling up` sets it to the cluster's name)",
)
WEBAPP_ADDRESS = AddressSetting(
    "yarn.resourcemanager.webapp.address",
    "${yarn.resourcemanager.hostname}:8088",
    "address of the RM's web services, which links to it use",
    refers=(HOSTNAME,),
)
REST_SUBMISSIONS_ENABLED = BoolSetting(
    "yarn.webapp.enable-rest-app-submissions",
    "true",
    "whether applications may be submitted by REST",
)

CONFIGURATION_STORE_CLASS = TextSetting(
    "yarn.scheduler.configuration.store.class",
    "file",
    "where queues are configured: file (capacity-scheduler.xml), or what REST can change: memory, fs",
)
CONFIGURATION_FS_PATH = TextSetting(
    "yarn.scheduler.configuration.fs.path", None, "directory of the store fs, which keeps changes of queues by REST"
)
CONFIGURATION_FS_MAX_VERSION = IntSetting(
    "yarn.scheduler.configuration.max.version",
    "100",
    "files that the store fs keeps: each change writes one, and removes older ones",
    minimum=1,
)
_MUTATION_POLICIES = (
    "org.apache.hadoop.yarn.server.resourcemanager.scheduler.DefaultConfigurationMutationACLPolicy",
    "org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.conf.QueueAdminConfigurationMutationACLPolicy",
)
MUTATION_ACL_POLICY_CLASS = ChoiceSetting(
    "yarn.scheduler.configuration.mutation.acl-policy.class",
    _MUTATION_POLICIES[0],
    "who may change queues by REST: administrators of the cluster, or those of each changed queue",
    choices=_MUTATION_POLICIES,
)

NM_HEARTBEAT_INTERVAL = TimeSetting(
    "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms",
    "1000",
    "time between two heartbeats of an NM; the RM sends it with every reply",
    minimum=1,
)
NM_MINIMUM_VERSION = VersionSetting(
    "yarn.resourcemanager.nodemanager.minimum.version",
    VersionSetting.NO_MINIMUM,
    "an NM of a lower version may not register; EqualToRM: the RM's version, NONE: any may",
    equal="EqualToRM",
)
NM_EXPIRY_INTERVAL = TimeSetting(
    "yarn.nm.liveness-monitor.expiry-interval-ms",
    "600000",
    "an NM without a heartbeat for this long is LOST (detected within a third of it)",
    minimum=1,
)
AM_EXPIRY_INTERVAL = TimeSetting(
    "yarn.am.liveness-monitor.expiry-interval-ms",
    "900000",
    "an AM without a heartbeat for this long has failed (detected within a third of it)",
    minimum=1,
)
CONTAINER_ALLOCATION_EXPIRY_INTERVAL = TimeSetting(
    "yarn.resourcemanager.rm.container-allocation.expiry-interval-ms",
    "600000",
    "a container that its AM does not start within this time is released",
    minimum=1,
)
APPLICATION_TIMEOUTS_MONITOR_INTERVAL = TimeSetting(
    "yarn.resourcemanager.application-timeouts.monitor.interval-ms",
    "3000",
    "time between two checks of application lifetimes",
    minimum=1,
)

NODES_INCLUDE_PATH = TextSetting(
    "yarn.resourcemanager.nodes.include-path", "", "file of hosts that may run NodeManagers; empty: all hosts"
)
NODES_EXCLUDE_PATH = TextSetting(
    "yarn.resourcemanager.nodes.exclude-path",
    "",
    "file of hosts that may not run NodeManagers; refreshNodes reads it again",
)
GRACEFUL_DECOMMISSION_TIMEOUT = TimeSetting(
    "yarn.resourcemanager.nodemanager-graceful-decommission-timeout-secs",
    "3600",
    "timeout of a graceful decommission if neither refreshNodes nor its file sets one; -1: none",
    written_in="s",
    minimum=0,
    special=(-1,),
    paced=False,
)
DECOMMISSIONING_POLL_INTERVAL = TimeSetting(
    "yarn.resourcemanager.decommissioning-nodes-watcher.poll-interval-secs",
    "20",
    "time between two checks of decommissioning nodes that send no heartbeats",
    written_in="s",
    minimum=1,
)
ADMIN_ACL = TextSetting("yarn.admin.acl", "*", "users, a blank, groups: who may use rmadmin and change any application")

AM_MAX_ATTEMPTS = IntSetting(
    "yarn.resourcemanager.am.max-attempts",
    "2",
    "maximum attempts of an application that sets none; the maximum for all without a global one",
    minimum=1,
)
AM_GLOBAL_MAX_ATTEMPTS = IntSetting(
    "yarn.resourcemanager.am.global.max-attempts",
    None,
    "maximum attempts that an application may set",
    minimum=1,
    fallback=AM_MAX_ATTEMPTS,
)
AM_BLACKLISTING_ENABLED = BoolSetting(
    "yarn.resourcemanager.am-scheduling.node-blacklisting-enabled",
    "false",
    "whether the next AM of an application avoids hosts on which an earlier one failed",
)
AM_BLACKLISTING_DISABLE_THRESHOLD = FloatSetting(
    "yarn.resourcemanager.am-scheduling.node-blacklisting-disable-threshold",
    "0.2",
    "fraction of hosts above which no host is avoided; a value outside 0..1 counts as 0.2",
    minimum=0.0,
    maximum=1.0,
    lenient=True,
)
MAX_COMPLETED_APPLICATIONS = IntSetting(
    "yarn.resourcemanager.max-completed-applications",
    "1000",
    "completed applications that the RM keeps; the oldest are dropped first",
    minimum=0,
)
APPLICATION_MAX_TAGS = IntSetting(
    "yarn.resourcemanager.application.max-tags", "10", "maximum number of tags of an application", minimum=0
)
APPLICATION_MAX_TAG_LENGTH = IntSetting(
    "yarn.resourcemanager.application.max-tag.length", "100", "maximum number of characters of a tag", minimum=1
)
TAG_PLACEMENT_ENABLED = BoolSetting(
    "yarn.resourcemanager.application-tag-based-placement.enable",
    "false",
    "whether the tag userid=NAME makes placement rules choose the queue as for user NAME",
)
TAG_PLACEMENT_USERS = UntrimmedListSetting(
    "yarn.resourcemanager.application-tag-based-placement.username.whitelist",
    "",
    "users whose tags count, with tag-based placement",
)
FORCE_LOWER_CASE_TAGS = BoolSetting(
    "yarn.resourcemanager.application-tag-based-placement.force-lowercase",
    "true",
    "whether clients, and REST, put tags of submissions and filters in lower case",
)
ATTEMPT_DIAGNOSTICS_LIMIT = IntSetting(
    "yarn.app.attempt.diagnostics.limit.kc",
    "64",
    "length of an attempt's diagnostics that is kept, in thousands of characters",
    unit="kc",
    minimum=1,
)
NODEMANAGER_CONNECT_RETRIES = IntSetting(
    "yarn.resourcemanager.nodemanager-connect-retries",
    "10",
    "attempts to reach the NM that is to start an AM",
    minimum=0,
)
AM_LAUNCHER_THREAD_COUNT = IntSetting(
    "yarn.resourcemanager.amlauncher.thread-count", "50", "AMs that are started or stopped at the same time", minimum=1
)
AM_RM_TOKEN_ROLLING_INTERVAL = TimeSetting(
    "yarn.resourcemanager.am-rm-tokens.master-key-rolling-interval-secs",
    "86400",
    "how long a master key signs AMRM tokens",
    written_in="s",
    minimum=1,
    paced=False,
)
NM_TOKEN_ROLLING_INTERVAL = TimeSetting(
    "yarn.resourcemanager.nm-tokens.master-key-rolling-interval-secs",
    "86400",
    "how long a master key signs NM tokens",
    written_in="s",
    minimum=1,
    paced=False,
)
CONTAINER_TOKEN_ROLLING_INTERVAL = TimeSetting(
    "yarn.resourcemanager.container-tokens.master-key-rolling-interval-secs",
    "86400",
    "how long a master key signs container tokens",
    written_in="s",
    minimum=1,
    paced=False,
)

RECOVERY_ENABLED = BoolSetting(
    "yarn.resourcemanager.recovery.enabled",
    "false",
    "whether the RM keeps applications in a state store, from which the next RM recovers",
)
SQLITE_STORE = "SQLiteRMStateStore"
STORE_CLASS = TextSetting(
    "yarn.resourcemanager.store.class",
    "org.apache.hadoop.yarn.server.resourcemanager.recovery.FileSystemRMStateStore",
    f"the state store: ZKRMStateStore, or {SQLITE_STORE}, which Hadoop's local stores select too",
)
STORED_COMPLETED_APPLICATIONS_MAX = IntSetting(
    "yarn.resourcemanager.state-store.max-completed-applications",
    None,
    "completed applications that the state store keeps; the oldest are dropped first",
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
    "how long a client, AM or NM tries to reach the RM; -1: forever",
    minimum=0,
    special=(-1,),
    paced=False,
)
CONNECT_RETRY_INTERVAL = TimeSetting(
    "yarn.resourcemanager.connect.retry-interval.ms", "30000", "time between two attempts to reach the RM", minimum=1
)
CLIENT_POLL_LEAST_MS = 25
"""The time factor never goes below this: each poll costs client and RM about 2 ms."""
CLIENT_POLL_INTERVAL = TimeSetting(
    "yarn.client.application-client-protocol.poll-interval-ms",
    "200",
    "time between two polls of a client that waits for a submission or a kill",
    minimum=1,
    least_ms=CLIENT_POLL_LEAST_MS,
)
NM_CLIENT_CONNECT_MAX_WAIT = TimeSetting(
    "yarn.client.nodemanager-connect.max-wait-ms",
    "180000",
    "how long an AM tries to reach an NM; -1: forever",
    minimum=0,
    special=(-1,),
    paced=False,
)
NM_CLIENT_CONNECT_RETRY_INTERVAL = TimeSetting(
    "yarn.client.nodemanager-connect.retry-interval-ms", "10000", "time between two attempts to reach an NM", minimum=1
)
AM_DEFAULT_NODE_LABEL = TextSetting(
    "yarn.resourcemanager.node-labels.am.default-node-label-expression", None, "node label of AMs that set none"
)
EXCLUSIVE_ENFORCED_PARTITIONS = ListSetting(
    "yarn.node-labels.exclusive-enforced-partitions",
    "",
    "labels whose nodes only run applications submitted with that label",
)
AM_HEARTBEAT_INTERVAL = TimeSetting(
    "yarn.app.mapreduce.am.scheduler.heartbeat.interval-ms",
    "1000",
    "time between two heartbeats of any AM to the RM (in Hadoop: of a MapReduce AM only)",
    minimum=1,
)
