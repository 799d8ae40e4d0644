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
from yarn.faults import OVERRIDE, ConfigurationException, Fault, Severity, refuse_if_faulty
from yarn.settings import check_settings, with_further
from yarn.settings.folding import folded
from yarn.settings.report import HadoopKeys, describe
from yarn.settings.scheduler import PREFIX
from yarn.settings.yarnling import HADOOP_RPC_ENABLED, STRICT

MAPREDUCE_PREFIXES = ("mapreduce.", "mapred.", "yarn.app.mapreduce.")
KEYS_OF_CLIENTS = (*MAPREDUCE_PREFIXES, "yarn.service.")
"""Beginnings of keys that are not in Hadoop's list for YARN, and that a cluster passes on to Hadoop's own clients."""


def configuration_faults(conf: Configuration) -> list[Fault]:
    """Every fault and warning of the settings, the queues, the placement rules, and keys that nobody knows."""
    settings, faults = CapacitySchedulerConfiguration.read_with_faults(conf)
    found = [*with_further(check_settings(conf), faults), *_unknown(conf)]
    if not settings.is_whole:
        # Placement rules that name a queue which could not be read would get an error of their own.
        return found
    try:
        further = MappingPlacement(with_mapping_rules(conf), ConfiguredQueues(settings.queues)).warnings
    except ConfigurationException as refusal:
        further = refusal.faults
    return with_further(found, further)


def configuration_warnings(conf: Configuration) -> tuple[str, ...]:
    """A sentence for each kind of warning; those of one kind are folded (see yarn.settings.folding).

    First what yarnling does not do, with what that means for the result, that which changes placement before the rest;
    then what is probably a mistake, for example a misspelled key. Raises ConfigurationException with every fault if the
    configuration is refused.
    """
    found = [*configuration_faults(conf), *conf.notes]
    refuse_if_faulty(found)
    kinds = folded(found)
    return tuple(
        str(kind) for kind in sorted(kinds, key=lambda kind: (not kind.first.effect, kind.first.concern.value))
    )


def _unknown(conf: Configuration) -> Iterator[Fault]:
    """Keys that nobody knows: those of the capacity scheduler, or that resemble one of its keys, and options (-D).

    Other keys of files may be used in values, as `${...}`, and Hadoop has some that are not in its list of defaults.
    """
    severity = Severity.ERROR if STRICT.of(conf) else Severity.WARNING
    of_others = KEYS_OF_CLIENTS if HADOOP_RPC_ENABLED.of(conf) else ()
    for unknown in describe(conf, HadoopKeys(hadoop_keys()), ()).unknown:
        if unknown.key.startswith(of_others):
            continue
        nearest = unknown.nearest
        is_option = unknown.origin == OVERRIDE and (nearest is not None or unknown.key.startswith("yarn."))
        if is_option or (nearest or unknown.key).startswith(PREFIX):
            remedy = f"write {nearest}, or remove it" if nearest else "remove it"
            problem = "is not a known key, and has no effect"
            yield Fault(unknown.key, unknown.value, unknown.origin, problem, remedy, severity)
