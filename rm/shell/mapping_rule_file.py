"""The file that mapping-rule-json-file names: the shell reads it, since the core reads nothing."""

from __future__ import annotations

from pathlib import Path

from rm.core.placement_rules.reading import FORMAT, JSON, JSON_FILE
from yarn.configuration import Configuration, Entry
from yarn.faults import ConfigurationException, Fault, Origin

RULES_BYTES_MAX = 4 * 1024 * 1024
"""A file that is larger is not one of rules; the event log keeps its text."""


def with_mapping_rules(configuration: Configuration) -> Configuration:
    """The configuration with the file's text as mapping-rule-json, if that is where the rules are.

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


def _read(path: Path) -> str:
    with path.open("rb") as file:
        raw = file.read(RULES_BYTES_MAX + 1)
    if len(raw) > RULES_BYTES_MAX:
        raise ValueError(f"more than {RULES_BYTES_MAX} bytes")
    return raw.decode()
