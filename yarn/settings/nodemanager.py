"""The settings of the NodeManager. Defaults are yarn-default.xml's of Hadoop 3.4.1, but for those said."""

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
from yarn.settings.resourcemanager import CONNECT_MAX_WAIT, CONNECT_RETRY_INTERVAL

HOSTNAME = TextSetting("yarn.nodemanager.hostname", "127.0.0.1", "host of the node (Hadoop: 0.0.0.0)")
ADDRESS = AddressSetting(
    "yarn.nodemanager.address", "${yarn.nodemanager.hostname}:0", "where AMs call", refers=(HOSTNAME,)
)
BIND_HOST = TextSetting(
    "yarn.nodemanager.bind-host",
    None,
    "host that the NM listens on, at the port of its address, if it is another than AMs call",
)

HADOOP_TMP_DIR = TextSetting("hadoop.tmp.dir", "/tmp/hadoop-${user.name}", "what other directories stand under")
LOG_DIR = TextSetting(
    "yarn.log.dir", "${hadoop.tmp.dir}/logs", "what yarn.nodemanager.log-dirs stands under", refers=(HADOOP_TMP_DIR,)
)
LOCAL_DIRS = ListSetting(
    "yarn.nodemanager.local-dirs",
    "${hadoop.tmp.dir}/nm-local-dir",
    "directories for local resources and work",
    needed=True,
    refers=(HADOOP_TMP_DIR,),
)
LOG_DIRS = ListSetting(
    "yarn.nodemanager.log-dirs",
    "${yarn.log.dir}/userlogs",
    "directories for containers' logs",
    needed=True,
    refers=(LOG_DIR, HADOOP_TMP_DIR),
)

RESOURCE_MEMORY_MB = IntSetting(
    "yarn.nodemanager.resource.memory-mb",
    "-1",
    "memory for containers; -1: 8192, or the machine's if detection is on",
    unit="MB",
    minimum=1,
    special=(-1,),
)
RESOURCE_CPU_VCORES = IntSetting(
    "yarn.nodemanager.resource.cpu-vcores",
    "-1",
    "vcores for containers; -1: 8, or the machine's if detection is on",
    minimum=1,
    special=(-1,),
)
DETECT_HARDWARE_CAPABILITIES = BoolSetting(
    "yarn.nodemanager.resource.detect-hardware-capabilities", "false", "whether -1 means what the machine has"
)
SYSTEM_RESERVED_MEMORY_MB = IntSetting(
    "yarn.nodemanager.resource.system-reserved-memory-mb",
    "-1",
    "detected memory that is not for containers; -1: a fifth",
    unit="MB",
    minimum=0,
    special=(-1,),
)
COUNT_LOGICAL_PROCESSORS_AS_CORES = BoolSetting(
    "yarn.nodemanager.resource.count-logical-processors-as-cores", "false", "whether detection counts threads"
)
PCORES_VCORES_MULTIPLIER = FloatSetting(
    "yarn.nodemanager.resource.pcores-vcores-multiplier", "1.0", "detected vcores of a core", minimum=0.01
)
PERCENTAGE_PHYSICAL_CPU_LIMIT = IntSetting(
    "yarn.nodemanager.resource.percentage-physical-cpu-limit",
    "100",
    "share of the machine's cores that detection counts, and that cgroups leave to containers",
    unit="%",
    minimum=1,
    maximum=100,
)

RESOURCE_CPU_ENABLED = BoolSetting(
    "yarn.nodemanager.resource.cpu.enabled", "false", "whether cgroups hold containers to their vcores"
)
RESOURCES_HANDLER = TextSetting(
    "yarn.nodemanager.linux-container-executor.resources-handler.class",
    "org.apache.hadoop.yarn.server.nodemanager.util.DefaultLCEResourcesHandler",
    "CgroupsLCEResourcesHandler is the older way to switch on resource.cpu.enabled",
)
CGROUPS_HIERARCHY = TextSetting(
    "yarn.nodemanager.linux-container-executor.cgroups.hierarchy",
    "/hadoop-yarn",
    "the cgroup below which each container has its own; made if it can be",
)
CGROUPS_MOUNT = BoolSetting(
    "yarn.nodemanager.linux-container-executor.cgroups.mount",
    "false",
    "true asks to mount cgroups, which yarnling does not: they are used where they are",
)
CGROUPS_MOUNT_PATH = TextSetting(
    "yarn.nodemanager.linux-container-executor.cgroups.mount-path",
    None,
    "where cgroups are mounted; unset: /proc/mounts tells",
)
CGROUPS_STRICT_RESOURCE_USAGE = BoolSetting(
    "yarn.nodemanager.linux-container-executor.cgroups.strict-resource-usage",
    "false",
    "whether a container is held to its vcores even where CPU is idle",
)
CGROUPS_DELETE_DELAY = TimeSetting(
    "yarn.nodemanager.linux-container-executor.cgroups.delete-delay-ms",
    "20",
    "between two tries to remove an ended container's cgroup",
    minimum=1,
    paced=False,
)
CGROUPS_DELETE_TIMEOUT = TimeSetting(
    "yarn.nodemanager.linux-container-executor.cgroups.delete-timeout-ms",
    "1000",
    "how long that is tried",
    minimum=0,
    paced=False,
)

PMEM_CHECK_ENABLED = BoolSetting(
    "yarn.nodemanager.pmem-check-enabled", "true", "whether a container over its memory is killed (-104)"
)
VMEM_CHECK_ENABLED = BoolSetting(
    "yarn.nodemanager.vmem-check-enabled", "true", "whether one over its virtual memory is killed (-103)"
)
VMEM_PMEM_RATIO = FloatSetting(
    "yarn.nodemanager.vmem-pmem-ratio", "2.1", "virtual memory allowed for each MB of memory", minimum=1.0
)
RESOURCE_MEMORY_ENFORCED = BoolSetting(
    "yarn.nodemanager.resource.memory.enforced",
    "false",
    "true leaves the memory to cgroups, which hold only CPU here: nothing is then checked (Hadoop: true)",
)
LOOK_LEAST_MS = 1000
"""What the pace of a cluster never goes below: a look reads every process of the machine, for each node."""
RESOURCE_MONITOR_INTERVAL = TimeSetting(
    "yarn.nodemanager.resource-monitor.interval-ms",
    "3000",
    "between two looks at the node's use",
    minimum=1,
    least_ms=LOOK_LEAST_MS,
)
CONTAINER_MONITOR_INTERVAL = TimeSetting(
    "yarn.nodemanager.container-monitor.interval-ms",
    None,
    "between two looks at containers' use",
    minimum=1,
    least_ms=LOOK_LEAST_MS,
    fallback=RESOURCE_MONITOR_INTERVAL,
)
CONTAINER_MONITOR_ENABLED = BoolSetting(
    "yarn.nodemanager.container-monitor.enabled", "true", "whether containers are watched at all"
)

SLEEP_DELAY_BEFORE_SIGKILL = TimeSetting(
    "yarn.nodemanager.sleep-delay-before-sigkill.ms",
    "250",
    "what a container has between TERM and KILL",
    minimum=0,
    least_ms=100,
)
PROCESS_KILL_WAIT = TimeSetting(
    "yarn.nodemanager.process-kill-wait.ms",
    "5000",
    "how long a kill waits for a container that is just starting",
    minimum=0,
    paced=False,
)
CONTAINER_RETRY_MINIMUM_INTERVAL = TimeSetting(
    "yarn.nodemanager.container-retry-minimum-interval-ms",
    "1000",
    "least wait before a container is started again by its retry policy",
    minimum=0,
)
DURATION_TO_TRACK_STOPPED_CONTAINERS = TimeSetting(
    "yarn.nodemanager.duration-to-track-stopped-containers",
    "600000",
    "how long an ended container is remembered, so that it is not started again",
    minimum=0,
)
CONTAINER_DIAGNOSTICS_MAXIMUM_SIZE = IntSetting(
    "yarn.nodemanager.container-diagnostics-maximum-size",
    "10000",
    "characters kept of a container's diagnostics, the last ones",
    minimum=1,
)
DELETE_DEBUG_DELAY = TimeSetting(
    "yarn.nodemanager.delete.debug-delay-sec",
    "0",
    "how long the directories of ended containers and applications stay; negative: for ever",
    written_in="s",
    paced=False,
)
LOG_RETAIN = TimeSetting(
    "yarn.nodemanager.log.retain-seconds",
    "10800",
    "how long an ended application's logs stay",
    written_in="s",
    minimum=0,
    paced=False,
)
STDERR_TAIL_BYTES = IntSetting(
    "yarn.nodemanager.container.stderr.tail.bytes", "4096", "bytes of stderr in diagnostics", minimum=0
)
STDERR_PATTERN = TextSetting(
    "yarn.nodemanager.container.stderr.pattern", "{*stderr*,*STDERR*}", "names of files taken for stderr"
)
LOG_CONTAINER_DEBUG_INFO = BoolSetting(
    "yarn.nodemanager.log-container-debug-info.enabled", "true", "whether scripts are copied beside the logs"
)

ENV_WHITELIST = ListSetting(
    "yarn.nodemanager.env-whitelist",
    "JAVA_HOME,HADOOP_COMMON_HOME,HADOOP_HDFS_HOME,HADOOP_CONF_DIR,CLASSPATH_PREPEND_DISTCACHE,"
    "HADOOP_YARN_HOME,HADOOP_HOME,PATH,LANG,TZ",
    "variables that a container may take over from the NM",
)
ADMIN_ENV = TextSetting(
    "yarn.nodemanager.admin-env", "MALLOC_ARENA_MAX=$MALLOC_ARENA_MAX", "variables that every container gets"
)
USER_HOME_DIR = TextSetting("yarn.nodemanager.user-home-dir", "/home/", "HOME of every container")

DISK_HEALTH_CHECKER_INTERVAL = TimeSetting(
    "yarn.nodemanager.disk-health-checker.interval-ms", "120000", "between two looks at disks", minimum=1
)
DISK_HEALTH_CHECKER_ENABLE = BoolSetting(
    "yarn.nodemanager.disk-health-checker.enable", "true", "whether disks are looked at"
)
MIN_HEALTHY_DISKS = FloatSetting(
    "yarn.nodemanager.disk-health-checker.min-healthy-disks",
    "0.25",
    "share of local or log directories below which the node is unhealthy",
    minimum=0.0,
    maximum=1.0,
)
MAX_DISK_UTILIZATION_PERCENTAGE = FloatSetting(
    "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage",
    "90.0",
    "use above which a disk takes no more work",
    unit="%",
    minimum=0.0,
    maximum=100.0,
)
MIN_FREE_SPACE_PER_DISK_MB = IntSetting(
    "yarn.nodemanager.disk-health-checker.min-free-space-per-disk-mb",
    "0",
    "free space below which a disk takes no more work",
    unit="MB",
    minimum=0,
)

DISK_UTILIZATION_WATERMARK_LOW = FloatSetting(
    "yarn.nodemanager.disk-health-checker.disk-utilization-watermark-low-per-disk-percentage",
    None,
    "use that a full disk must come down to; unset: the one above which it was full",
    unit="%",
    minimum=0.0,
    maximum=100.0,
    fallback=MAX_DISK_UTILIZATION_PERCENTAGE,
)
MIN_FREE_SPACE_WATERMARK_HIGH_MB = IntSetting(
    "yarn.nodemanager.disk-health-checker.min-free-space-per-disk-watermark-high-mb",
    None,
    "free space that a full disk must come up to; unset: the one below which it was full",
    unit="MB",
    minimum=0,
    fallback=MIN_FREE_SPACE_PER_DISK_MB,
)

LOCALIZER_CACHE_TARGET_SIZE_MB = IntSetting(
    "yarn.nodemanager.localizer.cache.target-size-mb",
    "10240",
    "size down to which unused PUBLIC and PRIVATE resources are deleted",
    unit="MB",
    minimum=0,
    long=True,
)
LOCALIZER_CACHE_CLEANUP_INTERVAL = TimeSetting(
    "yarn.nodemanager.localizer.cache.cleanup.interval-ms", "600000", "between two such cleanings", minimum=1
)
LOCALIZER_FETCH_THREAD_COUNT = IntSetting(
    "yarn.nodemanager.localizer.fetch.thread-count", "4", "PUBLIC resources fetched at once", minimum=1
)

NM_CONNECT_MAX_WAIT = TimeSetting(
    "yarn.nodemanager.resourcemanager.connect.max-wait.ms",
    None,
    "how long the NM tries to reach the RM before it shuts down",
    minimum=0,
    special=(-1,),
    paced=False,
    fallback=CONNECT_MAX_WAIT,
)
NM_CONNECT_RETRY_INTERVAL = TimeSetting(
    "yarn.nodemanager.resourcemanager.connect.retry-interval.ms",
    None,
    "wait between two such tries",
    minimum=1,
    fallback=CONNECT_RETRY_INTERVAL,
)
