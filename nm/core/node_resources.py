"""How much a node offers to containers: what is configured, or what the machine has (NodeManagerHardwareUtils)."""

from __future__ import annotations

from msgspec import Struct

from yarn.configuration import Configuration
from yarn.faults import ConfigurationException
from yarn.resource import Resource
from yarn.settings import nodemanager

DEFAULT_MEMORY_MB = 8192
DEFAULT_VCORES = 8
_SHARE_FOR_CONTAINERS = 0.8
"""Of the detected memory, if nothing says how much the system needs. Hadoop takes twice its own heap off before;
this NM has no heap worth taking off."""


class Hardware(Struct, frozen=True):
    """What the machine has: memory in MiB, cores, and threads that the cores run at once."""

    memory_mb: int
    cores: int
    threads: int


def node_resource(conf: Configuration, hardware: Hardware) -> Resource:
    """What the node registers with. Raises ConfigurationException if detection leaves nothing for containers."""
    detect = nodemanager.DETECT_HARDWARE_CAPABILITIES.of(conf)
    memory_mb = nodemanager.RESOURCE_MEMORY_MB.of(conf)
    vcores = nodemanager.RESOURCE_CPU_VCORES.of(conf)
    if memory_mb < 0:
        memory_mb = _detected_memory_mb(conf, hardware) if detect else DEFAULT_MEMORY_MB
    if vcores < 0:
        vcores = _detected_vcores(conf, hardware) if detect else DEFAULT_VCORES
    return Resource(memory_mb, vcores)


def physical_resource(hardware: Hardware) -> Resource:
    """What the machine has, as a registration tells it beside what the node offers."""
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
