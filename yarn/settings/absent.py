"""What a configuration may ask of Hadoop and yarnling has not: told as a warning, so that nobody waits for it.

Only what a configuration switches on is told. What the scheduler lacks is refused by rm.scheduler.config.checks
instead: a queue without its rules would be another queue.
"""

from __future__ import annotations

from yarn.configuration import Configuration
from yarn.faults import Fault, Severity

_SWITCHES = {
    "yarn.resourcemanager.ha.enabled": "there is one ResourceManager: no other takes over yet",
    "yarn.nodemanager.recovery.enabled": "a NodeManager does not recover yet: it reaps what a killed one left",
    "yarn.log-aggregation-enable": "logs are not gathered yet: they stay on their nodes",
    "yarn.timeline-service.enabled": "there is no timeline service",
    "yarn.nodemanager.container-log-monitor.enable": "the size of logs is not watched",
}
_PATHS = {
    "yarn.nodemanager.aux-services": "there are no auxiliary services",
}


def check_absent(conf: Configuration) -> list[Fault]:
    """A warning for each thing that is switched on and not there."""
    switched = [(key, reason, "set it to false") for key, reason in _SWITCHES.items() if conf.get_bool(key, False)]
    named = [(key, reason, "remove it") for key, reason in _PATHS.items() if conf.get_trimmed(key)]
    return [
        Fault(key, conf.get(key), conf.origin(key), f"has no effect: {reason}", remedy, Severity.WARNING)
        for key, reason, remedy in (*switched, *named)
    ]
