"""The settings that the ResourceManager's core reads at its start.

Keys and defaults are those of yarn-default.xml 3.4.1. The scheduler reads its own keys.
"""

from __future__ import annotations

from msgspec import Struct

from yarn.configuration import Configuration
from yarn.settings import logs, resourcemanager, scheduler, yarnling
from yarn.settings.release import RELEASE, HadoopRelease


class RMSettings(Struct, frozen=True):
    """Limits and intervals of the core. Intervals in ms, sizes in MiB.

    `am_blacklist_threshold`: None if hosts on which AMs failed are not avoided. `work_preserving`: containers and AMs
    keep running while the RM restarts. `tag_placement_users`: may name another user, for whom the queue of
    their application is chosen, in a tag. `node_minimum_version`: None if NMs of any version may register.
    """

    node_expiry_ms: int
    am_expiry_ms: int
    allocation_expiry_ms: int
    node_heartbeat_interval_ms: int
    release: HadoopRelease
    node_minimum_version: str | None
    lifetime_check_interval_ms: int
    decommissioning_poll_interval_ms: int
    max_attempts: int
    global_max_attempts: int
    am_blacklist_threshold: float | None
    completed_applications_max: int
    stored_completed_applications_max: int
    tags_max: int
    tag_length_max: int
    tag_placement_users: frozenset[str]
    application_priority_max: int
    attempt_diagnostics_chars_max: int
    minimum_memory_mb: int
    minimum_vcores: int
    web_address: str
    check_invariants: bool
    am_default_label: str
    exclusive_partitions: frozenset[str]
    recovery_enabled: bool
    work_preserving: bool
    log_aggregation_enabled: bool
    log_aggregation_timeout_ms: int

    @classmethod
    def of(cls, conf: Configuration) -> RMSettings:
        """The settings in `conf`. Raises ConfigurationException for a value that cannot be read."""
        release = RELEASE.of(conf)
        return cls(
            node_expiry_ms=resourcemanager.NM_EXPIRY_INTERVAL.of(conf),
            am_expiry_ms=resourcemanager.AM_EXPIRY_INTERVAL.of(conf),
            allocation_expiry_ms=resourcemanager.CONTAINER_ALLOCATION_EXPIRY_INTERVAL.of(conf),
            node_heartbeat_interval_ms=resourcemanager.NM_HEARTBEAT_INTERVAL.of(conf),
            release=release,
            node_minimum_version=resourcemanager.NM_MINIMUM_VERSION.minimum(conf, release.version),
            lifetime_check_interval_ms=resourcemanager.APPLICATION_TIMEOUTS_MONITOR_INTERVAL.of(conf),
            decommissioning_poll_interval_ms=resourcemanager.DECOMMISSIONING_POLL_INTERVAL.of(conf),
            max_attempts=resourcemanager.AM_MAX_ATTEMPTS.of(conf),
            global_max_attempts=resourcemanager.AM_GLOBAL_MAX_ATTEMPTS.of(conf),
            am_blacklist_threshold=_am_blacklist_threshold(conf),
            completed_applications_max=resourcemanager.MAX_COMPLETED_APPLICATIONS.of(conf),
            stored_completed_applications_max=min(
                resourcemanager.STORED_COMPLETED_APPLICATIONS_MAX.of(conf),
                resourcemanager.MAX_COMPLETED_APPLICATIONS.of(conf),
            ),
            tags_max=resourcemanager.APPLICATION_MAX_TAGS.of(conf),
            tag_length_max=resourcemanager.APPLICATION_MAX_TAG_LENGTH.of(conf),
            tag_placement_users=_tag_placement_users(conf),
            application_priority_max=scheduler.MAX_APPLICATION_PRIORITY.of(conf),
            attempt_diagnostics_chars_max=resourcemanager.ATTEMPT_DIAGNOSTICS_LIMIT.of(conf) * 1024,
            minimum_memory_mb=scheduler.MINIMUM_ALLOCATION_MB.of(conf),
            minimum_vcores=scheduler.MINIMUM_ALLOCATION_VCORES.of(conf),
            web_address=_web_address(conf),
            check_invariants=yarnling.CHECK_INVARIANTS.of(conf),
            am_default_label=resourcemanager.AM_DEFAULT_NODE_LABEL.maybe_of(conf) or "",
            exclusive_partitions=frozenset(resourcemanager.EXCLUSIVE_ENFORCED_PARTITIONS.of(conf)),
            recovery_enabled=resourcemanager.RECOVERY_ENABLED.of(conf),
            work_preserving=resourcemanager.RECOVERY_ENABLED.of(conf)
            and resourcemanager.WORK_PRESERVING_RECOVERY_ENABLED.of(conf),
            log_aggregation_enabled=logs.AGGREGATION_ENABLED.of(conf),
            log_aggregation_timeout_ms=logs.STATUS_TIMEOUT.of(conf),
        )


def _am_blacklist_threshold(conf: Configuration) -> float | None:
    """The threshold of the AM blacklist; None if it is off. A number outside 0..1 means the default (RMAppImpl)."""
    if not resourcemanager.AM_BLACKLISTING_ENABLED.of(conf):
        return None
    setting = resourcemanager.AM_BLACKLISTING_DISABLE_THRESHOLD
    threshold = setting.of(conf)
    return threshold if 0 <= threshold <= 1 else setting.of(Configuration.of({}))


def _tag_placement_users(conf: Configuration) -> frozenset[str]:
    """The whitelist of tag-based placement; empty if it is off."""
    if not resourcemanager.TAG_PLACEMENT_ENABLED.of(conf):
        return frozenset()
    return frozenset(resourcemanager.TAG_PLACEMENT_USERS.of(conf))


def _web_address(conf: Configuration) -> str:
    """`host:port` of the RM's web pages for links; the wildcard address is replaced by localhost."""
    host, port = resourcemanager.WEBAPP_ADDRESS.of(conf)
    return f"{'localhost' if host == '0.0.0.0' else host}:{port}"
