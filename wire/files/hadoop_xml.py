"""Reads Hadoop's configuration files, yarn-site.xml and the like, with the file and line of each value.

    conf = load_configuration(Path("conf"), {"yarn.nodemanager.resource.memory-mb": "4096"})

A file is `<configuration>` of `<property>` with `<name>`, `<value>` and perhaps `<final>`. What comes in is not
trusted: no DOCTYPE, no entities, no XInclude, bounded size and depth. A file that cannot be read is refused with
file, line and reason. Mistakes that Hadoop ignores (a property without a name, a key set twice) become warnings.
Source: org.apache.hadoop.conf.Configuration.Parser.
"""

from __future__ import annotations

import getpass
import os
import re
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from xml.parsers import expat  # noqa: TID251  a DOCTYPE, and so any entity, is refused; SAX is slow to import

import yarn.settings
from yarn.configuration import Configuration, Entry, find_variable
from yarn.faults import ConfigurationException, Fault, Origin, Severity, refuse_if_faulty
from yarn.settings import check_settings, defaults, scaled
from yarn.settings.registry import setting_of

FILE_BYTES_MAX = 8 * 1024 * 1024
"""The maximum size of a file. A capacity-scheduler.xml of ten thousand queues has some 4 MB."""

DEPTH_MAX = 16
"""The maximum depth of nested elements; a configuration needs three."""

FILES = ("core-site.xml", "yarn-site.xml", "capacity-scheduler.xml", "resource-types.xml", "node-resources.xml")
"""The files that are read from a configuration directory; each overrides those before it."""

DYNAMIC_RESOURCES = "dynamic-resources.xml"
"""The file with sizes of nodes that Hadoop's ResourceManager reads for `rmadmin -refreshNodesResources`."""

# Like Hadoop's own capacity-scheduler.xml: one queue for everything.
BUILT_IN = {
    "yarn.scheduler.capacity.root.queues": "default",
    "yarn.scheduler.capacity.root.default.capacity": "100",
}

_TEXT_ELEMENTS = ("name", "value", "final", "source", "tag")
_KNOWN_ELEMENTS = (*_TEXT_ELEMENTS, "configuration", "property", "description")


def load_configuration(
    source: Path | Iterable[Path] | None = None,
    overrides: Mapping[str, str] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Configuration:
    """The configuration for a daemon: read, checked, with all intervals multiplied by the time factor.

    Raises ConfigurationException with every fault of every file.
    """
    conf = read_configuration(source, overrides, environ)
    refuse_if_faulty(check_settings(conf))
    return scaled(conf)


def read_configuration(
    source: Path | Iterable[Path] | None = None,
    overrides: Mapping[str, str] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Configuration:
    """The configuration as written, without checking the values.

    `source` is a directory (its FILES are read), files in order, or None. `overrides` take precedence over all files.
    `${env.NAME}` is replaced from `environ` (default: this process's). Without a capacity-scheduler.xml, and without
    keys of queues elsewhere, the configuration gets the built-in tree, with a single queue `default`. Raises
    ConfigurationException with every fault if a file cannot be read.
    """
    conf = Configuration({}, defaults={**defaults(), **_system_properties()})
    faults: list[Fault] = []
    files = list(_files(source))
    for path in files:
        try:
            conf = conf.overlaid(read_file(path))
        except ConfigurationException as refusal:
            faults += refusal.faults
    refuse_if_faulty(faults)
    if isinstance(source, Path) and (source / DYNAMIC_RESOURCES).exists():
        conf = conf.overlaid(Configuration(notes=(_dynamic_resources(),)))
    has_tree = any(path.name == "capacity-scheduler.xml" for path in files)
    if not has_tree and not conf.keys("yarn.scheduler.capacity.root."):
        conf = conf.overlaid(Configuration.of(BUILT_IN, "built-in"))
    conf = conf.overridden(overrides or {})
    return _with_environment(conf, os.environ if environ is None else environ)


def read_file(path: Path) -> Configuration:
    """The properties of one file. Duplicates and unusual elements are in its `notes`."""
    try:
        with path.open("rb") as file:
            content = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        remedy = "give a readable file"
        raise ConfigurationException(
            [Fault("", None, Origin(str(path)), error.strerror or str(error), remedy)]
        ) from None
    if len(content) > FILE_BYTES_MAX:
        problem = f"larger than {FILE_BYTES_MAX} bytes"
        raise ConfigurationException([Fault("", None, Origin(path.name), problem, "split it")])
    return parse(content, path.name)


def parse(content: bytes, name: str) -> Configuration:
    """The properties in `content`; `name` is their origin.

    Raises ConfigurationException if `content` is not such a file.
    """
    handler = _Handler(name)
    fault: Fault | None = None
    try:
        handler.read(content)
    except expat.ExpatError as error:
        problem = f"malformed XML: {expat.ErrorString(error.code)}"
        fault = Fault("", None, Origin(name, error.lineno), problem, "correct it there or just before")
    except (ValueError, LookupError) as error:
        fault = handler.fault(f"cannot be decoded: {error}", "save it as UTF-8")
    except _Abandoned:
        pass
    faults = [*handler.faults, *([fault] if fault else [])]
    refuse_if_faulty(faults)
    return Configuration(handler.entries, notes=tuple(faults))


def to_xml(values: Mapping[str, str]) -> str:
    """The text of a configuration file. Raises ValueError for characters that XML cannot represent.

    An empty value is written as an attribute: to Hadoop and to `parse`, `<value></value>` leaves the key unset.
    """
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', "<configuration>"]
    for key, value in values.items():
        if re.search(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", key + value):
            raise ValueError(f"{key} = {value!r}: contains a character that XML cannot represent (remove it)")
        written = f"><name>{_escaped(key)}</name><value>{_escaped(value)}</value>"
        if not value:
            written = f' value=""><name>{_escaped(key)}</name>'
        lines.append(f"  <property{written}</property>")
    return "\n".join([*lines, "</configuration>", ""])


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


class _Abandoned(Exception):
    """Raised to stop reading the file after a fault was recorded."""


class _Handler:
    """Collects properties: `entries` has the values, `faults` the errors and notes."""

    def __init__(self, name: str) -> None:
        self.entries: dict[str, Entry] = {}
        self.faults: list[Fault] = []
        self._file = name
        self._line: int | None = None
        self._path: list[str] = []
        self._text: list[str] = []
        self._property: dict[str, str] = {}
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartDoctypeDeclHandler = self._refuse_doctype
        self._parser.StartElementHandler = self._start_element
        self._parser.EndElementHandler = self._end_element
        self._parser.CharacterDataHandler = self._text.append

    def read(self, content: bytes) -> None:
        """Read the file.

        Raises ExpatError, ValueError or LookupError for invalid XML, _Abandoned for refused content.
        """
        self._parser.Parse(content, True)

    def fault(self, problem: str, remedy: str, *, severity: Severity = Severity.ERROR, key: str = "") -> Fault:
        """Record a fault at the current element."""
        return Fault(key, None, Origin(self._file, self._parser.CurrentLineNumber), problem, remedy, severity)

    def _refuse_doctype(self, *declaration: object) -> None:
        """Refuse a DOCTYPE: without one only the five entities of XML itself exist."""
        self._give_up("has a DOCTYPE or entities, which are refused", "write the values out")

    def _start_element(self, name: str, attributes: dict[str, str]) -> None:
        self._path.append(name)
        if len(self._path) > DEPTH_MAX:
            self._give_up(f"more than {DEPTH_MAX} nested elements", "write name and value only")
        if len(self._path) == 1 and name != "configuration":
            self._give_up(f"begins with <{name}>", "begin it with <configuration>")
        if name.rpartition(":")[2] in ("include", "fallback"):
            self.faults.append(self.fault(f"<{name}> is not supported", "write the included properties here"))
        elif name not in _KNOWN_ELEMENTS:
            self.faults.append(self.fault(f"<{name}> is not understood", "remove it", severity=Severity.WARNING))
        if name == "property":
            self._line = self._parser.CurrentLineNumber
            self._property = {key: value for key, value in attributes.items() if key in _TEXT_ELEMENTS}
        if name in _TEXT_ELEMENTS:
            self._text.clear()

    def _end_element(self, name: str) -> None:
        self._path.pop()
        if name in _TEXT_ELEMENTS and (text := "".join(self._text)):
            self._property[name] = text
        if name == "property":
            self._end_property()

    def _end_property(self) -> None:
        key = self._property.get("name", "").strip()
        value = self._property.get("value")
        if not key:
            self._note("", "a property without a name sets nothing", "add <name>, or remove it")
        elif value is None:
            self._note_empty(key)
        else:
            entry = Entry(value, Origin(self._file, self._line), self._property.get("final") == "true")
            self._set(key, entry)

    def _note_empty(self, key: str) -> None:
        """Note an empty value, which sets nothing, unless nothing is also the default, as in Hadoop's own files."""
        setting = setting_of(key)
        if setting is not None and setting.default:
            problem = f"has no value, so the default applies: {setting.default}"
        elif setting is None and key not in hadoop_keys():
            problem = "has no value, so it is not set"
        else:
            return
        self._note(key, problem, "add <value>, or remove the property")

    def _set(self, key: str, entry: Entry) -> None:
        """Set a property.

        The last value of a key counts, unless an earlier one is final (Configuration.loadProperty).
        """
        present = self.entries.get(key)
        if present is not None:
            kept, lost = (present, entry) if present.final else (entry, present)
            problem = f"set again: {kept.value!r} of line {kept.origin.line} is used, {lost.value!r} is ignored"
            self._note(key, problem, "remove one of the two")
            entry = kept
        self.entries[key] = entry

    def _note(self, key: str, problem: str, remedy: str) -> None:
        origin = Origin(self._file, self._line)
        self.faults.append(Fault(key, None, origin, problem, remedy, Severity.WARNING))

    def _give_up(self, problem: str, remedy: str) -> None:
        self.faults.append(self.fault(problem, remedy))
        raise _Abandoned


def _files(source: Path | Iterable[Path] | None) -> list[Path]:
    """The files to read.

    Raises ConfigurationException if a directory has none of FILES, or a named file does not exist.
    """
    if source is None:
        return []
    if not isinstance(source, Path):
        return list(source)
    if source.is_dir():
        present = [source / name for name in FILES if (source / name).exists()]
        if not present:
            problem, remedy = f"contains none of {', '.join(FILES)}", "name the directory that does"
            raise ConfigurationException([Fault("", None, Origin(str(source)), problem, remedy)])
        return present
    if not source.exists():
        remedy = f"name a directory with {' or '.join(FILES[1:3])}"
        raise ConfigurationException([Fault("", None, Origin(str(source)), "No such file or directory", remedy)])
    return [source]


def _dynamic_resources() -> Fault:
    problem = "is not read: nodes keep the sizes with which they register"
    remedy = "change a node with `yarnling rmadmin -updateNodeResource`"
    return Fault("", None, Origin(DYNAMIC_RESOURCES), problem, remedy, Severity.WARNING)


def _system_properties() -> dict[str, str]:
    """The Java system properties that Hadoop's default values use."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return {"user.name": user, "user.home": str(Path.home()), "java.io.tmpdir": tempfile.gettempdir()}


def _with_environment(conf: Configuration, environ: Mapping[str, str]) -> Configuration:
    """The configuration with `${env.NAME}`, `${env.NAME-default}` and `${env.NAME:-default}` replaced."""
    changed: dict[str, Entry] = {}
    for key in conf:
        entry = conf.entry(key)
        if entry is not None and "${env." in entry.value:
            changed[key] = Entry(_resolved(entry.value, environ), entry.origin, entry.final)
    return conf.with_entries(changed) if changed else conf


def _resolved(text: str, environ: Mapping[str, str]) -> str:
    """Replace variables in one pass from left to right; values from the environment are not expanded again."""
    done, rest = "", text
    while (bounds := find_variable(rest)) is not None:
        start, end = bounds
        name = rest[start + 2 : end - 1]
        value = _variable(name[4:], environ) if name.startswith("env.") and len(name) > 4 else None
        done += rest[:start] + (rest[start:end] if value is None else value)
        rest = rest[end:]
    return done + rest


def _variable(expression: str, environ: Mapping[str, str]) -> str | None:
    """The value of `NAME`, of `NAME-default` if NAME is unset, or of `NAME:-default` if NAME is unset or empty."""
    match = re.match(r"(.*?)(:-|-)(.*)\Z", expression, re.DOTALL)
    if match is None:
        return environ.get(expression)
    name, operator, default = match.groups()
    value = environ.get(name)
    missing = value is None or (operator == ":-" and value == "")
    return default if missing else value


def hadoop_keys() -> tuple[str, ...]:
    """The configuration keys that Hadoop 3.4.1 to 3.5.0 know, listed in yarn/settings/hadoop_keys.txt."""
    text = Path(yarn.settings.__file__).with_name("hadoop_keys.txt").read_text()
    return tuple(line for line in text.splitlines() if line and not line.startswith("#"))
