"""Writes the files of a configuration with other values: comments and order stay as they are.

Only the text of values is replaced, so a diff shows nothing else. A key that no file has is added at the end.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from xml.sax.saxutils import escape, unescape  # noqa: TID251  quotes text; nothing is parsed

from wire.files.full_disk import full_disk_named
from wire.files.hadoop_xml import FILES, read_file
from yarn.settings.scheduler import PREFIX

CAPACITY_SCHEDULER, YARN_SITE = "capacity-scheduler.xml", "yarn-site.xml"
_PARTS = re.compile(r"<!--.*?-->|<property\b.*?</property>", re.DOTALL)
_NAME = re.compile(r"<name>(.*?)</name>", re.DOTALL)
_VALUE = re.compile(r"(<value>)(.*?)(</value>)|<value\s*/>", re.DOTALL)
_END = re.compile(r"([ \t]*)</configuration>\s*\Z")


def write_changed(directory: Path, settings: Mapping[str, str], out: Path) -> tuple[str, list[str]]:
    """Write the configuration of a directory with other values of some keys into `out`.

    Returns the difference as a diff, and the keys whose value could not be replaced, which have to be written by hand.
    """
    out.mkdir(parents=True, exist_ok=True)
    places = {key: _file_of(directory, key) for key in settings}
    diffs: list[str] = []
    for name in FILES:
        before, after = directory / name, out / name
        wanted = {key: value for key, value in settings.items() if places[key] == name}
        if not before.is_file() and not wanted:
            after.unlink(missing_ok=True)
            continue
        text = _read(before) if before.is_file() else "<configuration>\n</configuration>\n"
        changed = with_values(text, wanted)
        with full_disk_named(after):
            after.write_bytes(changed.encode("utf-8", "surrogateescape"))
        diffs += _diff(text, changed, before, after)
    return "".join(diffs), [key for key in settings if _value_in(out / places[key], key) != settings[key]]


def with_values(text: str, settings: Mapping[str, str]) -> str:
    """The text of a file with other values of some keys."""
    left = dict(settings)

    def changed(found: re.Match[str]) -> str:
        part = found[0]
        name = None if part.startswith("<!--") else _NAME.search(part)
        key = unescape(name[1].strip()) if name else ""
        if key not in settings:
            return part
        left.pop(key, None)
        return _VALUE.sub(lambda _: f"<value>{escape(settings[key])}</value>", part, count=1)

    text = _PARTS.sub(changed, text)
    added = "".join(map(_property, left.items()))
    return _END.sub(lambda end: f"{added}{end[0]}", text) if added else text


def _property(item: tuple[str, str]) -> str:
    key, value = map(escape, item)
    return f"  <property>\n    <name>{key}</name>\n    <value>{value}</value>\n  </property>\n"


def _file_of(directory: Path, key: str) -> str:
    """The name of the last file that has the key, or of the one that it belongs into."""
    having = [name for name in FILES if (directory / name).is_file() and key in read_file(directory / name)]
    return having[-1] if having else CAPACITY_SCHEDULER if key.startswith(PREFIX) else YARN_SITE


def _value_in(path: Path, key: str) -> str | None:
    entry = read_file(path).entry(key)
    return None if entry is None else entry.value


def _read(path: Path) -> str:
    """The text of a file; bytes that are not UTF-8 are kept."""
    return path.read_bytes().decode("utf-8", "surrogateescape")


def _diff(text: str, changed: str, before: Path, after: Path) -> Iterator[str]:
    lines, new_lines = text.splitlines(keepends=True), changed.splitlines(keepends=True)
    for line in difflib.unified_diff(lines, new_lines, str(before), str(after)):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
