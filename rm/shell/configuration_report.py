"""The report on a configuration with the faults of all checks: of settings, queues, placement rules and keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rm.core.administration import ConfiguredQueues
from rm.core.placement_rules.mapping import MappingPlacement
from rm.scheduler.config.configuration import CapacitySchedulerConfiguration
from rm.shell.configuration_files import with_mapping_rules
from wire.files.hadoop_xml import hadoop_keys
from yarn.configuration import Configuration
from yarn.faults import OVERRIDE, ConfigurationException, Fault, Severity
from yarn.settings import check_settings, with_further
from yarn.settings.report import ConfigurationReport, HadoopKeys, KeyUnknown, describe
from yarn.settings.scheduler import PREFIX
from yarn.settings.yarnling import HADOOP_RPC_ENABLED, STRICT

MAPREDUCE_PREFIXES = ("mapreduce.", "mapred.", "yarn.app.mapreduce.")
KEYS_OF_CLIENTS = (*MAPREDUCE_PREFIXES, "yarn.service.")
"""Beginnings of keys that are not in Hadoop's list for YARN, and that a cluster passes on to Hadoop's own clients."""


def configuration_report(conf: Configuration, further: Iterable[Fault] = ()) -> ConfigurationReport:
    """Every key with its origin, and every fault and warning. `further`: faults that the caller has found."""
    settings, faults = CapacitySchedulerConfiguration.read_with_faults(conf)
    report = describe(conf, HadoopKeys(hadoop_keys()), ())
    found = [*with_further(check_settings(conf), faults), *_faults_of_unknown(conf, report.unknown)]
    # Placement rules that name a queue which could not be read would get an error of their own.
    if settings.is_whole:
        found = with_further(found, _placement_faults(conf, settings))
    return report.with_faults([*found, *further, *conf.notes])


def _placement_faults(conf: Configuration, settings: CapacitySchedulerConfiguration) -> Iterable[Fault]:
    try:
        return MappingPlacement(with_mapping_rules(conf), ConfiguredQueues(settings.queues)).warnings
    except ConfigurationException as refusal:
        return refusal.faults


def _faults_of_unknown(conf: Configuration, unknown: Iterable[KeyUnknown]) -> Iterator[Fault]:
    """The faults of keys of the capacity scheduler, or that resemble one of its keys, and of options (-D).

    Other keys of files may be used in values, as `${...}`, and Hadoop has some that are not in its list of defaults.
    """
    severity = Severity.ERROR if STRICT.of(conf) else Severity.WARNING
    of_others = KEYS_OF_CLIENTS if HADOOP_RPC_ENABLED.of(conf) else ()
    for each in unknown:
        if each.key.startswith(of_others):
            continue
        nearest = each.nearest
        is_option = each.origin == OVERRIDE and (nearest is not None or each.key.startswith("yarn."))
        if is_option or (nearest or each.key).startswith(PREFIX):
            remedy = f"write {nearest}, or remove it" if nearest else "remove it"
            yield Fault(each.key, each.value, each.origin, "is not a known key, and has no effect", remedy, severity)
