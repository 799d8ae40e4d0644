"""The settings that a node's core reads from the configuration, and the resources that the node offers to containers.

The rules are those of NodeManagerHardwareUtils. Each part of the shell reads its own settings.
"""

from __future__ import annotations

from msgspec import Struct

from nm.core.emulation import EmulationTable
from yarn.configuration import Configuration
from yarn.faults import ConfigurationException, Fault, refuse_if_faulty
from yarn.java.versions import HADOOP_VERSION
from yarn.resource import MEMORY_MB, VCORES, Extra, Resource
from yarn.settings import logs, nodemanager, resourcemanager, yarnling
from yarn.settings.release import RELEASE

_BYTES_PER_MB = 1 << 20
_SHUTDOWN_SLACK_MS = 1000
"""ContainerManagerImpl.SHUTDOWN_CLEANUP_SLOP_MS."""
DEFAULT_MEMORY_MB = 8192
DEFAULT_VCORES = 8
_SHARE_FOR_CONTAINERS = 0.8
"""The fraction of the detected memory that containers get, if the configuration reserves no amount for the system.

Hadoop first subtracts twice the NM's heap; the heap of this NM is too small to matter.
"""


class CoreSettings(Struct, frozen=True):
    """The limits and delays of one node, with Hadoop's defaults.

    `utc_offset_ms` is the time zone for times in diagnostics. `shutdown_wait_ms` is how long a stopping node waits for
    its containers to end. If `deletion_delay_ms` is negative, nothing is deleted. If `work_preserving`, a resync keeps
    the containers. `rm_minimum_version`: the node does not start with an RM of a lower version; None: with any. If
    `aggregate_logs`, the logs of an application are collected in the remote log directory when it
    ends. `auxiliary_services` is ((name, data that startContainers returns for it), ...). If `emulation` is None, every
    container runs as a process. If `check_invariants`, nm.core.invariants are checked after each step.
    If `recovery_enabled`, the node's state is stored for the next NodeManager; if it `is_supervised` too, its
    containers run on when it is stopped.
    """

    utc_offset_ms: int = 0
    heartbeat_interval_ms: int = 1000
    diagnostics_max_chars: int = 10_000
    stderr_tail_bytes: int = 4096
    sigkill_delay_ms: int = 250
    shutdown_wait_ms: int = 6250
    retry_minimum_interval_ms: int = 1000
    stopped_containers_kept_ms: int = 600_000
    virtual_memory_ratio: float = 2.1
    deletion_delay_ms: int = 0
    log_retain_ms: int = 10_800_000
    cache_target_bytes: int = 10_240 * _BYTES_PER_MB
    cache_cleanup_interval_ms: int = 600_000
    work_preserving: bool = True
    rm_minimum_version: str | None = None
    aggregate_logs: bool = False
    auxiliary_services: tuple[tuple[str, bytes], ...] = ()
    emulation: EmulationTable | None = None
    check_invariants: bool = False
    recovery_enabled: bool = False
    is_supervised: bool = False

    @property
    def leaves_containers(self) -> bool:
        """True if the node's containers run on when it is stopped, for the next NodeManager."""
        return self.recovery_enabled and self.is_supervised


class NodeFacts(Struct, frozen=True):
    """A node's report about itself when it registers. `physical` is the memory and CPU of the whole machine."""

    resource: Resource
    physical: Resource
    http_port: int = 0
    version: str = HADOOP_VERSION


def core_settings(conf: Configuration, utc_offset_ms: int, emulation: EmulationTable | None = None) -> CoreSettings:
    """The settings in `conf`. Raises ConfigurationException if one of them is not valid."""
    return CoreSettings(
        utc_offset_ms=utc_offset_ms,
        heartbeat_interval_ms=resourcemanager.NM_HEARTBEAT_INTERVAL.of(conf),
        diagnostics_max_chars=nodemanager.CONTAINER_DIAGNOSTICS_MAXIMUM_SIZE.of(conf),
        stderr_tail_bytes=nodemanager.STDERR_TAIL_BYTES.of(conf),
        sigkill_delay_ms=nodemanager.SLEEP_DELAY_BEFORE_SIGKILL.of(conf),
        shutdown_wait_ms=_shutdown_wait_ms(conf),
        retry_minimum_interval_ms=nodemanager.CONTAINER_RETRY_MINIMUM_INTERVAL.of(conf),
        stopped_containers_kept_ms=nodemanager.DURATION_TO_TRACK_STOPPED_CONTAINERS.of(conf),
        virtual_memory_ratio=nodemanager.VMEM_PMEM_RATIO.of(conf),
        deletion_delay_ms=nodemanager.DELETE_DEBUG_DELAY.of(conf),
        log_retain_ms=nodemanager.LOG_RETAIN.of(conf),
        cache_target_bytes=nodemanager.LOCALIZER_CACHE_TARGET_SIZE_MB.of(conf) * _BYTES_PER_MB,
        cache_cleanup_interval_ms=nodemanager.LOCALIZER_CACHE_CLEANUP_INTERVAL.of(conf),
        aggregate_logs=logs.AGGREGATION_ENABLED.of(conf),
        work_preserving=resourcemanager.WORK_PRESERVING_RECOVERY_ENABLED.of(conf),
        rm_minimum_version=nodemanager.RM_MINIMUM_VERSION.minimum(conf, RELEASE.of(conf).version),
        emulation=emulation,
        check_invariants=yarnling.CHECK_INVARIANTS.of(conf),
        recovery_enabled=nodemanager.RECOVERY_ENABLED.of(conf),
        is_supervised=nodemanager.RECOVERY_SUPERVISED.of(conf),
    )


def _shutdown_wait_ms(conf: Configuration) -> int:
    kill_ms = nodemanager.SLEEP_DELAY_BEFORE_SIGKILL.of(conf) + nodemanager.PROCESS_KILL_WAIT.of(conf)
    return kill_ms + _SHUTDOWN_SLACK_MS


class Hardware(Struct, frozen=True):
    """The machine's memory in MiB, its cores, and the number of threads that the cores can run at once."""

    memory_mb: int
    cores: int
    threads: int


def node_resource(conf: Configuration, hardware: Hardware) -> Resource:
    """The resources that the node registers with.

    Raises ConfigurationException if detection leaves none for containers, or for an amount of a resource type that
    cannot be read.
    """
    detect = nodemanager.DETECT_HARDWARE_CAPABILITIES.of(conf)
    memory_mb = nodemanager.RESOURCE_MEMORY_MB.of(conf)
    vcores = nodemanager.RESOURCE_CPU_VCORES.of(conf)
    if memory_mb < 0:
        memory_mb = _detected_memory_mb(conf, hardware) if detect else DEFAULT_MEMORY_MB
    if vcores < 0:
        vcores = _detected_vcores(conf, hardware) if detect else DEFAULT_VCORES
    return Resource(memory_mb, vcores, _amounts_of_types(conf))


def _amounts_of_types(conf: Configuration) -> Extra:
    """The amounts of resource types besides memory and vcores; of node-resources.xml in most clusters."""
    prefix = nodemanager.RESOURCE_TYPE.key.partition("<")[0]
    read = {key.removeprefix(prefix): conf.get_long(key, 0) for key in conf.keys(prefix)}
    faults = [
        Fault(prefix + name, str(amount), conf.origin(prefix + name), "is not an amount of a further type", "remove it")
        for name, amount in read.items()
        if amount < 0 or name in (MEMORY_MB, VCORES)
    ]
    refuse_if_faulty(faults)
    return tuple(read.items())


def physical_resource(hardware: Hardware) -> Resource:
    """The resources of the whole machine, which a registration contains beside those that the node offers."""
    return Resource(hardware.memory_mb, hardware.threads)


def _detected_memory_mb(conf: Configuration, hardware: Hardware) -> int:
    setting = nodemanager.SYSTEM_RESERVED_MEMORY_MB
    reserved_mb = setting.of(conf)
    if reserved_mb < 0:
        return int(hardware.memory_mb * _SHARE_FOR_CONTAINERS)
    left_mb = hardware.memory_mb - reserved_mb
    if left_mb <= 0:
        problem = f"leaves no memory of the machine's {hardware.memory_mb} MB for containers"
        raise ConfigurationException([setting.fault(conf, problem)])
    return left_mb


def _detected_vcores(conf: Configuration, hardware: Hardware) -> int:
    by_threads = nodemanager.COUNT_LOGICAL_PROCESSORS_AS_CORES.of(conf)
    processors = hardware.threads if by_threads else hardware.cores
    share = min(100, nodemanager.PERCENTAGE_PHYSICAL_CPU_LIMIT.of(conf)) / 100
    vcores = processors * share * nodemanager.PCORES_VCORES_MULTIPLIER.of(conf)
    return 1 if vcores < 1 else int(vcores + 0.5)
