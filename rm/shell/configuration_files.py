"""Reads the files that settings name: mapping rules, and the lists of included and excluded hosts (HostsFileReader)."""

from __future__ import annotations

from pathlib import Path

import defusedxml
from defusedxml.ElementTree import fromstring

from rm.core.host_lists import HostLists
from rm.core.placement_rules.reading import FORMAT, JSON, JSON_FILE
from yarn.configuration import Configuration, Entry
from yarn.errors import YarnException
from yarn.faults import ConfigurationException, Fault, Origin
from yarn.settings import resourcemanager
from yarn.settings.kinds import TextSetting

RULES_BYTES_MAX = 4 * 1024 * 1024
"""The maximum size of the mapping rules, whose text is copied into the event log."""


def with_mapping_rules(configuration: Configuration) -> Configuration:
    """The configuration with the content of mapping-rule-json-file as mapping-rule-json, if the rules are in that file.

    Hadoop trims the name, but not the format. Raises ConfigurationException if the file cannot be read. Source:
    parseJSONMappingRules.
    """
    name = configuration.get_trimmed(JSON_FILE)
    if configuration.get(FORMAT) != "json" or configuration.get(JSON) or not name:
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


FILE_BYTES_MAX = 16 * 1024 * 1024
"""Room for half a million hosts."""


def read_hosts(setting: TextSetting, path: str) -> tuple[tuple[str, int | None], ...]:
    """The hosts in the file: (host, timeout in s or None); empty if `path` is empty. Raises YarnException naming the
    key.

    A `#` starts a comment. If the file's name ends in .xml: `<host><name>h1,h2</name><timeout>60</timeout></host>`.
    """
    if not path:
        return ()
    said = f"{setting.key} = {path}"
    try:
        if Path(path).stat().st_size > FILE_BYTES_MAX:
            raise YarnException(f"{said}: larger than {FILE_BYTES_MAX} bytes")
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise YarnException(f"{said}: {error.strerror} (name a file with one host per line)") from None
    except UnicodeDecodeError:
        raise YarnException(f"{said}: not UTF-8 (save it as UTF-8)") from None
    if path.endswith(".xml"):
        return _xml_hosts(text, said)
    return tuple((host, None) for line in text.splitlines() for host in line.partition("#")[0].split())


def _xml_hosts(text: str, said: str) -> tuple[tuple[str, int | None], ...]:
    try:
        root = fromstring(text)
    except (SyntaxError, defusedxml.DefusedXmlException) as error:
        raise YarnException(f"{said}: malformed or unsupported XML: {error}") from None
    return tuple(
        (host.strip(), _timeout_s(entry.findtext("timeout", "").strip(), said))
        for entry in root.iter("host")
        for host in entry.findtext("name", "").split(",")
        if host.strip()
    )


def _timeout_s(text: str, said: str) -> int | None:
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        raise YarnException(f"{said}: timeout {text!r} is not a number of seconds") from None
