"""Files that settings name and the shell reads for the core: host lists and mapping rules."""

from __future__ import annotations

from pathlib import Path

from rm.core.host_lists import HostLists
from rm.core.placement_rules.reading import FORMAT, JSON, JSON_FILE
from wire.host_files import read_hosts
from yarn.configuration import Configuration, Entry
from yarn.faults import ConfigurationException, Fault, Origin
from yarn.settings import resourcemanager

RULES_BYTES_MAX = 4 * 1024 * 1024
"""A bound on the size of the rules, whose text is copied into the event log."""


def with_mapping_rules(configuration: Configuration) -> Configuration:
    """The configuration with the text of mapping-rule-json-file as mapping-rule-json, if the rules are in that file.

    Raises ConfigurationException if it cannot be read. Source: CapacitySchedulerConfiguration.parseJSONMappingRules.
    """
    name = configuration.get_trimmed(JSON_FILE)
    if configuration.get_trimmed(FORMAT) != "json" or configuration.get(JSON) or not name:
        return configuration
    try:
        text = _read(Path(name))
    except (OSError, ValueError) as error:
        origin = configuration.origin(JSON_FILE)
        fault = Fault(JSON_FILE, name, origin, f"cannot be read: {error}", f"write the rules there, or into {JSON}")
        raise ConfigurationException([fault]) from None
    return configuration.with_entries({JSON: Entry(text, Origin(name))})


def host_lists(conf: Configuration) -> HostLists:
    """The host lists that `conf` names. Raises YarnException if a file cannot be read."""
    included, excluded = (
        read_hosts(setting, setting.of(conf))
        for setting in (resourcemanager.NODES_INCLUDE_PATH, resourcemanager.NODES_EXCLUDE_PATH)
    )
    return HostLists(tuple(host for host, _ in included), excluded)


def _read(path: Path) -> str:
    with path.open("rb") as file:
        raw = file.read(RULES_BYTES_MAX + 1)
    if len(raw) > RULES_BYTES_MAX:
        raise ValueError(f"the file has more than {RULES_BYTES_MAX} bytes")
    return raw.decode()
