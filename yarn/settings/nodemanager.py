"""The settings of the NodeManager. Defaults are those of yarn-default.xml of Hadoop 3.4.1, except where noted."""

from __future__ import annotations

from yarn.settings.kinds import (
    AddressSetting,
    BoolSetting,
    FloatSetting,
    IntSetting,
    ListSetting,
    TextSetting,
    TimeSetting,
    VersionSetting,
)
from yarn.settings.resourcemanager import CONNECT_MAX_WAIT, CONNECT_RETRY_INTERVAL

HOSTNAME = TextSetting("yarn.nodemanager.hostname", "127.0.0.1", "host of the node (Hadoop: 0.0.0.0)")
ADDRESS = AddressSetting(
    "yarn.nodemanager.address", "${yarn.nodemanager.hostname}:0", "address for ApplicationMasters", refers=(HOSTNAME,)
)
WEBAPP_ADDRESS = AddressSetting(
    "yarn.nodemanager.webapp.address",
    "${yarn.nodemanager.hostname}:8042",
    "address of the NM's web services",
    refers=(HOSTNAME,),
)
BIND_HOST = TextSetting(
    "yarn.nodemanager.bind-host",
    None,
    "host that the NM listens on, if not that of its address",
)

HADOOP_TMP_DIR = TextSetting("hadoop.tmp.dir", "/tmp/hadoop-${user.name}", "base of other directories")
LOG_DIR = TextSetting(
    "yarn.log.dir", "${hadoop.tmp.dir}/logs", "base of yarn.nodemanager.log-dirs", refers=(HADOOP_TMP_DIR,)
)
LOCAL_DIRS = ListSetting(
    "yarn.nodemanager.local-dirs",
    "${hadoop.tmp.dir}/nm-local-dir",
    "directories for localized resources and containers' work",
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

RECOVERY_ENABLED = BoolSetting(
    "yarn.nodemanager.recovery.enabled",
    "false",
    "whether a NodeManager that starts again finds its running containers",
)
RECOVERY_DIR = TextSetting(
    "yarn.nodemanager.recovery.dir",
    "${hadoop.tmp.dir}/yarn-nm-recovery",
    "directory of the state that a NodeManager recovers; it contains keys and users' credentials",
    refers=(HADOOP_TMP_DIR,),
)
RECOVERY_SUPERVISED = BoolSetting(
    "yarn.nodemanager.recovery.supervised",
    "false",
    "whether a recovering NodeManager leaves its containers running when it is stopped",
)
EXIT_CODE_FILE_TIMEOUT = TimeSetting(
    "yarn.nodemanager.container-executor.exit-code-file.timeout-ms",
    "2000",
    "time to wait for the exit code of a recovered container that has ended",
    paced=False,
)

RESOURCE_MEMORY_MB = IntSetting(
    "yarn.nodemanager.resource.memory-mb",
    "-1",
    "memory for containers; -1: 8192, or the machine's if detection is enabled",
    unit="MB",
    minimum=1,
    special=(-1,),
)
RESOURCE_CPU_VCORES = IntSetting(
    "yarn.nodemanager.resource.cpu-vcores",
    "-1",
    "vcores for containers; -1: 8, or the machine's if detection is enabled",
    minimum=1,
    special=(-1,),
)
RESOURCE_TYPE = IntSetting(
    "yarn.nodemanager.resource-type.<type>",
    None,
    "amount of a resource type that the node has, without a unit",
    long=True,
    minimum=0,
)
DETECT_HARDWARE_CAPABILITIES = BoolSetting(
    "yarn.nodemanager.resource.detect-hardware-capabilities",
    "false",
    "whether -1 means the memory and cores of the machine",
)
SYSTEM_RESERVED_MEMORY_MB = IntSetting(
    "yarn.nodemanager.resource.system-reserved-memory-mb",
    "-1",
    "detected memory not used for containers; -1: a fifth",
    unit="MB",
    minimum=0,
    special=(-1,),
)
COUNT_LOGICAL_PROCESSORS_AS_CORES = BoolSetting(
    "yarn.nodemanager.resource.count-logical-processors-as-cores",
    "false",
    "whether detection counts hardware threads as cores",
)
PCORES_VCORES_MULTIPLIER = FloatSetting(
    "yarn.nodemanager.resource.pcores-vcores-multiplier", "1.0", "vcores per detected core", minimum=0.01
)
PERCENTAGE_PHYSICAL_CPU_LIMIT = IntSetting(
    "yarn.nodemanager.resource.percentage-physical-cpu-limit",
    "100",
    "percentage of the machine's CPU for containers, with detection and with cgroups",
    unit="%",
    minimum=1,
    maximum=100,
)

RESOURCE_CPU_ENABLED = BoolSetting(
    "yarn.nodemanager.resource.cpu.enabled", "false", "whether cgroups limit containers to their vcores"
)
RESOURCES_HANDLER = TextSetting(
    "yarn.nodemanager.linux-container-executor.resources-handler.class",
    "org.apache.hadoop.yarn.server.nodemanager.util.DefaultLCEResourcesHandler",
    "CgroupsLCEResourcesHandler is the older way to enable resource.cpu.enabled",
)
CGROUPS_HIERARCHY = TextSetting(
    "yarn.nodemanager.linux-container-executor.cgroups.hierarchy",
    "/hadoop-yarn",
    "the cgroup that contains one for each container; created if possible",
)
CGROUPS_MOUNT = BoolSetting(
    "yarn.nodemanager.linux-container-executor.cgroups.mount",
    "false",
    "true requests mounting cgroups, which yarnling does not do: it uses existing mounts",
)
CGROUPS_MOUNT_PATH = TextSetting(
    "yarn.nodemanager.linux-container-executor.cgroups.mount-path",
    None,
    "where cgroups are mounted; unset: as in /proc/mounts",
)
CGROUPS_STRICT_RESOURCE_USAGE = BoolSetting(
    "yarn.nodemanager.linux-container-executor.cgroups.strict-resource-usage",
    "false",
    "whether a container is limited to its vcores even if CPU is idle",
)
CGROUPS_DELETE_DELAY = TimeSetting(
    "yarn.nodemanager.linux-container-executor.cgroups.delete-delay-ms",
    "20",
    "time between two attempts to remove a completed container's cgroup",
    minimum=1,
    paced=False,
)
CGROUPS_DELETE_TIMEOUT = TimeSetting(
    "yarn.nodemanager.linux-container-executor.cgroups.delete-timeout-ms",
    "1000",
    "how long removing a cgroup is attempted",
    minimum=0,
    paced=False,
)

PMEM_CHECK_ENABLED = BoolSetting(
    "yarn.nodemanager.pmem-check-enabled", "true", "whether a container above its memory is killed (exit status -104)"
)
VMEM_CHECK_ENABLED = BoolSetting(
    "yarn.nodemanager.vmem-check-enabled", "true", "whether a container above its virtual memory is killed (-103)"
)
VMEM_PMEM_RATIO = FloatSetting(
    "yarn.nodemanager.vmem-pmem-ratio", "2.1", "virtual memory allowed per MB of memory", minimum=1.0
)
RESOURCE_MEMORY_ENFORCED = BoolSetting(
    "yarn.nodemanager.resource.memory.enforced",
    "false",
    "true leaves memory to cgroups, which limit only CPU here: then it is unchecked (Hadoop: true)",
)
LOOK_LEAST_MS = 1000
"""The time factor never goes below this: a check reads all processes of the machine, or all logs of the containers."""
RESOURCE_MONITOR_INTERVAL = TimeSetting(
    "yarn.nodemanager.resource-monitor.interval-ms",
    "3000",
    "time between two measurements of the node's usage",
    minimum=1,
    least_ms=LOOK_LEAST_MS,
)
CONTAINER_MONITOR_INTERVAL = TimeSetting(
    "yarn.nodemanager.container-monitor.interval-ms",
    None,
    "time between two measurements of containers' usage",
    minimum=1,
    least_ms=LOOK_LEAST_MS,
    fallback=RESOURCE_MONITOR_INTERVAL,
)
CONTAINER_MONITOR_ENABLED = BoolSetting(
    "yarn.nodemanager.container-monitor.enabled", "true", "whether containers are monitored"
)
CONTAINER_LOG_MONITOR_ENABLED = BoolSetting(
    "yarn.nodemanager.container-log-monitor.enable",
    "false",
    "whether a container with too many bytes of logs is killed (exit status -109)",
)
CONTAINER_LOG_MONITOR_INTERVAL = TimeSetting(
    "yarn.nodemanager.container-log-monitor.interval-ms",
    "60000",
    "time between two measurements of containers' logs",
    minimum=1,
    least_ms=LOOK_LEAST_MS,
)
CONTAINER_LOG_DIR_SIZE_LIMIT = IntSetting(
    "yarn.nodemanager.container-log-monitor.dir-size-limit-bytes",
    "1000000000",
    "how large one log directory of a container may be",
    unit="bytes",
    minimum=0,
    long=True,
)
CONTAINER_LOG_TOTAL_SIZE_LIMIT = IntSetting(
    "yarn.nodemanager.container-log-monitor.total-size-limit-bytes",
    "10000000000",
    "how large all log directories of a container together may be",
    unit="bytes",
    minimum=0,
    long=True,
)

SLEEP_DELAY_BEFORE_SIGKILL = TimeSetting(
    "yarn.nodemanager.sleep-delay-before-sigkill.ms",
    "250",
    "time between TERM and KILL for a container",
    minimum=0,
    least_ms=100,
)
PROCESS_KILL_WAIT = TimeSetting(
    "yarn.nodemanager.process-kill-wait.ms",
    "5000",
    "how long a kill waits for a container that is starting",
    minimum=0,
    paced=False,
)
CONTAINER_RETRY_MINIMUM_INTERVAL = TimeSetting(
    "yarn.nodemanager.container-retry-minimum-interval-ms",
    "1000",
    "minimum time before a failed container is restarted by its retry policy",
    minimum=0,
)
DURATION_TO_TRACK_STOPPED_CONTAINERS = TimeSetting(
    "yarn.nodemanager.duration-to-track-stopped-containers",
    "600000",
    "how long a completed container is remembered, so that it is not started again",
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
    "how long directories of completed containers and applications are kept; negative: forever",
    written_in="s",
    paced=False,
)
LOG_RETAIN = TimeSetting(
    "yarn.nodemanager.log.retain-seconds",
    "10800",
    "how long a completed application's logs are kept",
    written_in="s",
    minimum=0,
    paced=False,
)
STDERR_TAIL_BYTES = IntSetting(
    "yarn.nodemanager.container.stderr.tail.bytes", "4096", "bytes of stderr in diagnostics", minimum=0
)
STDERR_PATTERN = TextSetting(
    "yarn.nodemanager.container.stderr.pattern", "{*stderr*,*STDERR*}", "names of files treated as stderr"
)
LOG_CONTAINER_DEBUG_INFO = BoolSetting(
    "yarn.nodemanager.log-container-debug-info.enabled",
    "true",
    "whether launch scripts are copied to the log directory",
)

MAPREDUCE_SHUFFLE = "mapreduce_shuffle"
AUX_SERVICES = ListSetting(
    "yarn.nodemanager.aux-services",
    "",
    f"auxiliary services of the node; {MAPREDUCE_SHUFFLE} sends map outputs to reduces",
)

ENV_WHITELIST = ListSetting(
    "yarn.nodemanager.env-whitelist",
    "JAVA_HOME,HADOOP_COMMON_HOME,HADOOP_HDFS_HOME,HADOOP_CONF_DIR,CLASSPATH_PREPEND_DISTCACHE,"
    "HADOOP_YARN_HOME,HADOOP_HOME,PATH,LANG,TZ",
    "environment variables that a container may inherit from the NM",
)
ADMIN_ENV = TextSetting(
    "yarn.nodemanager.admin-env", "MALLOC_ARENA_MAX=$MALLOC_ARENA_MAX", "environment variables set in every container"
)
USER_HOME_DIR = TextSetting("yarn.nodemanager.user-home-dir", "/home/", "HOME of every container")

DISK_HEALTH_CHECKER_INTERVAL = TimeSetting(
    "yarn.nodemanager.disk-health-checker.interval-ms", "120000", "time between two checks of the disks", minimum=1
)
DISK_HEALTH_CHECKER_ENABLE = BoolSetting(
    "yarn.nodemanager.disk-health-checker.enable", "true", "whether disks are checked"
)
MIN_HEALTHY_DISKS = FloatSetting(
    "yarn.nodemanager.disk-health-checker.min-healthy-disks",
    "0.25",
    "fraction of good local or log directories below which the node is unhealthy",
    minimum=0.0,
    maximum=1.0,
)
MAX_DISK_UTILIZATION_PERCENTAGE = FloatSetting(
    "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage",
    "90.0",
    "utilization above which a disk is full",
    unit="%",
    minimum=0.0,
    maximum=100.0,
)
MIN_FREE_SPACE_PER_DISK_MB = IntSetting(
    "yarn.nodemanager.disk-health-checker.min-free-space-per-disk-mb",
    "0",
    "free space below which a disk is full",
    unit="MB",
    minimum=0,
)

DISK_UTILIZATION_WATERMARK_LOW = FloatSetting(
    "yarn.nodemanager.disk-health-checker.disk-utilization-watermark-low-per-disk-percentage",
    None,
    "utilization below which a full disk is used again; unset: the limit above which it is full",
    unit="%",
    minimum=0.0,
    maximum=100.0,
    fallback=MAX_DISK_UTILIZATION_PERCENTAGE,
)
MIN_FREE_SPACE_WATERMARK_HIGH_MB = IntSetting(
    "yarn.nodemanager.disk-health-checker.min-free-space-per-disk-watermark-high-mb",
    None,
    "free space above which a full disk is used again; unset: the limit below which it is full",
    unit="MB",
    minimum=0,
    fallback=MIN_FREE_SPACE_PER_DISK_MB,
)

LOCALIZER_CACHE_TARGET_SIZE_MB = IntSetting(
    "yarn.nodemanager.localizer.cache.target-size-mb",
    "10240",
    "size to which unused PUBLIC and PRIVATE resources are reduced",
    unit="MB",
    minimum=0,
    long=True,
)
LOCALIZER_CACHE_CLEANUP_INTERVAL = TimeSetting(
    "yarn.nodemanager.localizer.cache.cleanup.interval-ms",
    "600000",
    "time between two cleanups of the cache",
    minimum=1,
)
LOCALIZER_FETCH_THREAD_COUNT = IntSetting(
    "yarn.nodemanager.localizer.fetch.thread-count", "4", "PUBLIC resources fetched at the same time", minimum=1
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
    "time between two attempts to reach the RM",
    minimum=1,
    fallback=CONNECT_RETRY_INTERVAL,
)
RM_MINIMUM_VERSION = VersionSetting(
    "yarn.nodemanager.resourcemanager.minimum.version",
    VersionSetting.NO_MINIMUM,
    "the NM does not start with an RM of a lower version; EqualToNM: the NM's version, NONE: with any",
    equal="EqualToNM",
)
