"""The settings that are yarnling's own, and the few of Hadoop's common part that it reads."""

from __future__ import annotations

from yarn.settings.kinds import BoolSetting, FloatSetting, IntSetting, TextSetting

TIME_FACTOR = FloatSetting(
    "yarn.yarnling.time-factor",
    "1",
    "multiplies every interval of the cluster's pace; below 1 is faster (see yarn.settings.pace)",
    minimum=0.001,
    maximum=1000.0,
)
CLUSTER_SECRET_FILE = TextSetting(
    "yarn.yarnling.cluster-secret-file",
    None,
    "file (mode 0600) with the secret that RM, NMs and clients share",
)
OPEN_TO_LOCAL_USERS = BoolSetting(
    "yarn.yarnling.open-to-local-users",
    "false",
    "whether every user of this machine may call the RM, and so run commands as the cluster's owner",
)
STATE_STORE_FILE = TextSetting(
    "yarn.yarnling.state-store-file",
    None,
    "file (mode 0600) of the RM's state store; it holds keys and users' credentials",
)
EVENT_LOG = TextSetting(
    "yarn.yarnling.event-log",
    None,
    "file, or directory of one file a daemon, for the events of cores and their effects",
)
WATCH_DIR = TextSetting(
    "yarn.yarnling.watch-dir",
    None,
    "directory in which each daemon has a socket that tells of the calls it takes (`yarnling watch`)",
)
PACK_MAX = 4096
PACK = IntSetting(
    "yarn.yarnling.pack",
    "1",
    "nodes of one NodeManager process, which have the addresses from yarn.nodemanager.address on",
    minimum=1,
    maximum=PACK_MAX,
)
CHECK_INVARIANTS = BoolSetting(
    "yarn.yarnling.check-invariants",
    "false",
    "whether daemons check their invariants after each step and exit if one does not hold",
)
LISTEN_BEYOND_LOOPBACK = BoolSetting(
    "yarn.yarnling.listen-beyond-loopback",
    "false",
    "whether daemons may listen where other machines can call; nothing is encrypted",
)
EMULATION_TABLE = TextSetting(
    "yarn.yarnling.emulation.table",
    None,
    "YAML file of rules by which nodes play containers, not run them; `default` and `all` are ready-made",
)
EMULATION_SEED = IntSetting(
    "yarn.yarnling.emulation.seed",
    None,
    "what emulated containers draw their chances from, instead of the table's own seed",
    minimum=0,
)

NODE_SWITCH_MAPPING = TextSetting(
    "net.topology.node.switch.mapping.impl",
    "org.apache.hadoop.net.ScriptBasedMapping",
    "how a host's rack is found: TableMapping reads a file, anything else means /default-rack",
)
TOPOLOGY_TABLE_FILE = TextSetting(
    "net.topology.table.file.name", None, "TableMapping's file: a host and its rack in each line"
)
