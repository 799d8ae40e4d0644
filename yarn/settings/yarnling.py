"""yarnling's own settings, and the few of hadoop-common that it reads."""

from __future__ import annotations

from yarn.settings.kinds import BoolSetting, FloatSetting, IntSetting, TextSetting, TimeSetting

TIME_FACTOR = FloatSetting(
    "yarn.yarnling.time-factor",
    "1",
    "multiplies the cluster's intervals (heartbeats, expiry, polling); below 1 is faster",
    minimum=0.001,
    maximum=1000.0,
)
CLUSTER_SECRET_FILE = TextSetting(
    "yarn.yarnling.cluster-secret-file",
    None,
    "file (mode 0600) with the secret shared by RM, NMs and clients",
)
OPEN_TO_LOCAL_USERS = BoolSetting(
    "yarn.yarnling.open-to-local-users",
    "false",
    "whether every user of this machine may call the RM, and so run commands as the cluster's owner",
)
HADOOP_RPC_ENABLED = BoolSetting(
    "yarn.yarnling.hadoop-rpc.enabled",
    "false",
    "whether Hadoop's own clients (`yarn`, Spark, an ApplicationMaster in Java) can call the daemons",
)
STATE_STORE_FILE = TextSetting(
    "yarn.yarnling.state-store-file",
    None,
    "file (mode 0600) of the RM's state store; it contains keys and users' credentials",
)
EVENT_LOG = TextSetting(
    "yarn.yarnling.event-log",
    None,
    "file, or directory with a file per daemon, for the log of core events and their effects",
)
WATCH_DIR = TextSetting(
    "yarn.yarnling.watch-dir",
    None,
    "directory in which each daemon has a socket that reports the calls it receives (`yarnling watch`)",
)
CONTROL_SOCKET = TextSetting(
    "yarn.yarnling.control-socket",
    None,
    "socket of the cluster's supervisor: with it, pages can kill and pause nodes (`yarnling up` sets it)",
)
NETWORK_FAULTS = BoolSetting(
    "yarn.yarnling.network-faults",
    "false",
    "whether nodes can be partitioned: connections go through proxies (`yarnling up --network-faults`)",
)
RESOURCE_MANAGERS = IntSetting(
    "yarn.yarnling.resource-managers",
    "1",
    "ResourceManagers of a local cluster; with more than one, one is active (`yarnling up --rms` sets it)",
    minimum=1,
    maximum=9,
)
PACK_MAX = 4096
PACK = IntSetting(
    "yarn.yarnling.pack",
    "1",
    "nodes in one NodeManager process; their addresses count up from yarn.nodemanager.address",
    minimum=1,
    maximum=PACK_MAX,
)
ARCHIVE_ENTRIES_MAX = IntSetting(
    "yarn.yarnling.localizer.archive-entries-max",
    "100000",
    "limit on the files, directories and links of an archive that a container gets unpacked",
    minimum=1,
)
ARCHIVE_SIZE_MAX_MB = IntSetting(
    "yarn.yarnling.localizer.archive-size-max-mb",
    "10240",
    "limit on the total size of the files of an archive that a container gets unpacked",
    unit="MB",
    minimum=1,
)
WEB_ENABLED = BoolSetting(
    "yarn.yarnling.web.enabled",
    "false",
    "whether the RM and the NMs serve Hadoop's REST API, JMX and metrics over HTTP (`yarnling up`: true)",
)
STRICT = BoolSetting(
    "yarn.yarnling.strict",
    "false",
    "whether a configuration that requests what yarnling does not do is refused, not warned of",
)
CHECK_INVARIANTS = BoolSetting(
    "yarn.yarnling.check-invariants",
    "false",
    "whether daemons check their invariants after each step and exit on a violation",
)
LISTEN_BEYOND_LOOPBACK = BoolSetting(
    "yarn.yarnling.listen-beyond-loopback",
    "false",
    "whether daemons may listen on addresses that other machines can reach; nothing is encrypted",
)
EMULATION_TABLE = TextSetting(
    "yarn.yarnling.emulation.table",
    None,
    "YAML file of rules for containers that are emulated, not run; or the built-in `default` or `all`",
)
EMULATION_SEED = IntSetting(
    "yarn.yarnling.emulation.seed",
    None,
    "random seed of emulated containers, instead of the one in the table",
    minimum=0,
)
PREDICTION_WORKLOAD = TextSetting(
    "yarn.yarnling.prediction.workload",
    None,
    "workload, such as a recorded day, for which changes of queues can be predicted by REST",
)
PREDICTION_NODES = TextSetting("yarn.yarnling.prediction.nodes", None, "nodes file with the machines of that workload")
PREDICTION_TIMEOUT = TimeSetting(
    "yarn.yarnling.prediction.timeout",
    "10m",
    "limit on the time of a prediction",
    minimum=1000,
    maximum=24 * 3_600_000,
    paced=False,
)

NODE_SWITCH_MAPPING = TextSetting(
    "net.topology.node.switch.mapping.impl",
    "org.apache.hadoop.net.ScriptBasedMapping",
    "how racks are found: TableMapping reads a file; else all hosts are in /default-rack",
)
TOPOLOGY_TABLE_FILE = TextSetting(
    "net.topology.table.file.name", None, "the file of TableMapping: a host and its rack per line"
)
