"""Everything that is wrong with a configuration, and its warnings as sentences: what a result does not show.

for sentence in configuration_warnings(conf): ...
"""

from __future__ import annotations

from collections.abc import Iterator

from rm.core.administration import ConfiguredQueues
from rm.core.placement_rules.mapping import MappingPlacement
from rm.scheduler.config.configuration import CapacitySchedulerConfiguration
from rm.shell.configuration_files import with_mapping_rules
from wire.hadoop_xml import hadoop_keys
from yarn.configuration import Configuration
from yarn.faults import ConfigurationException, Fault, Severity, refuse_if_faulty
from yarn.settings import check_settings, with_further
from yarn.settings.folding import folded
from yarn.settings.report import HadoopKeys, describe
from yarn.settings.scheduler import PREFIX
from yarn.settings.yarnling import STRICT


def configuration_faults(conf: Configuration) -> list[Fault]:
    """Every fault and warning of the settings, the queues and the placement rules."""
    settings, faults = CapacitySchedulerConfiguration.read_with_faults(conf)
    found = with_further(check_settings(conf), faults)
    if any(fault.severity is Severity.ERROR for fault in faults):
        # Placement rules that name a queue with an error would get an error of their own.
        return found
    try:
        further = MappingPlacement(with_mapping_rules(conf), ConfiguredQueues(settings.queues)).warnings
    except ConfigurationException as refusal:
        further = refusal.faults
    return with_further(found, further)


def configuration_warnings(conf: Configuration) -> tuple[str, ...]:
    """One sentence for each kind of warning; those of one kind are folded (see yarn.settings.folding).

    First what yarnling does not do, with what that means for the result, that which changes placement before the rest;
    then what is probably a mistake, for example a misspelled key. Raises ConfigurationException with every fault if the
    configuration is refused.
    """
    found = [*configuration_faults(conf), *_misspelled(conf), *conf.notes]
    refuse_if_faulty(found)
    kinds = folded(found)
    return tuple(
        str(kind) for kind in sorted(kinds, key=lambda kind: (not kind.first.effect, kind.first.concern.value))
    )


def _misspelled(conf: Configuration) -> Iterator[Fault]:
    """Keys that nobody knows and that resemble one of the capacity scheduler.

    Other keys may be used in values, as `${...}`, and Hadoop has some that are not in its list of defaults.
    """
    severity = Severity.ERROR if STRICT.of(conf) else Severity.WARNING
    for unknown in describe(conf, HadoopKeys(hadoop_keys()), ()).unknown:
        if unknown.nearest is not None and unknown.nearest.startswith(PREFIX):
            problem, remedy = "is not a known key, and has no effect", f"write {unknown.nearest}, or remove it"
            yield Fault(unknown.key, unknown.value, unknown.origin, problem, remedy, severity)
