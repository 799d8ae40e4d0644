"""What the ResourceManager's core reads from its configuration, once, at its start.

Keys and defaults are those of yarn-default.xml 3.4.1; the scheduler reads its own keys itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from yarn.configuration import Configuration

_RM = "yarn.resourcemanager"


@dataclass(frozen=True, slots=True)
class RMSettings:
    """Limits and intervals of the core. Intervals in ms, sizes in MiB."""

    node_expiry_ms: int
    master_expiry_ms: int
    allocation_expiry_ms: int
    node_heartbeat_interval_ms: int
    lifetime_check_interval_ms: int
    max_attempts: int
    global_max_attempts: int
    completed_applications_max: int
    tags_max: int
    tag_length_max: int
    application_priority_max: int
    attempt_diagnostics_chars_max: int
    minimum_memory_mb: int
    minimum_vcores: int
    web_address: str

    @classmethod
    def of(cls, conf: Configuration) -> RMSettings:
        """Read from `conf`. Raises ConfigurationException for a value that cannot be read."""
        max_attempts = conf.get_int(f"{_RM}.am.max-attempts", 2)
        return cls(
            node_expiry_ms=conf.get_time_ms("yarn.nm.liveness-monitor.expiry-interval-ms", 600_000),
            master_expiry_ms=conf.get_time_ms("yarn.am.liveness-monitor.expiry-interval-ms", 900_000),
            allocation_expiry_ms=conf.get_time_ms(f"{_RM}.rm.container-allocation.expiry-interval-ms", 600_000),
            node_heartbeat_interval_ms=conf.get_time_ms(f"{_RM}.nodemanagers.heartbeat-interval-ms", 1000),
            lifetime_check_interval_ms=conf.get_time_ms(f"{_RM}.application-timeouts.monitor.interval-ms", 3000),
            max_attempts=max_attempts,
            global_max_attempts=conf.get_int(f"{_RM}.am.global.max-attempts", max_attempts),
            completed_applications_max=conf.get_int(f"{_RM}.max-completed-applications", 1000),
            tags_max=conf.get_int(f"{_RM}.application.max-tags", 10),
            tag_length_max=conf.get_int(f"{_RM}.application.max-tag.length", 100),
            application_priority_max=conf.get_int("yarn.cluster.max-application-priority", 0),
            attempt_diagnostics_chars_max=conf.get_int("yarn.app.attempt.diagnostics.limit.kc", 64) * 1024,
            minimum_memory_mb=conf.get_int("yarn.scheduler.minimum-allocation-mb", 1024),
            minimum_vcores=conf.get_int("yarn.scheduler.minimum-allocation-vcores", 1),
            web_address=_web_address(conf),
        )


def _web_address(conf: Configuration) -> str:
    """host:port of the RM's web pages as links name it; the wildcard address is no name for a link."""
    host = conf.get_trimmed(f"{_RM}.hostname", "0.0.0.0")
    address = conf.get_trimmed(f"{_RM}.webapp.address", f"{host}:8088")
    return address.replace("0.0.0.0", "localhost", 1)
