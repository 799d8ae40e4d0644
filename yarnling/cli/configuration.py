"""`yarnling config`: what becomes of every key.

On a terminal a list for people. Elsewhere a line for each key, whose format programs may rely on:

    KEY=VALUE <tab> STATE <tab> ORIGIN [<tab> perhaps NEAREST KEY]

STATE is read, defaulted, ignored (known to Hadoop, not to yarnling) or unknown. Control characters of a value are
written out, so that a line has no other tabs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct
from rich.console import Console
from rich.text import Text

from rm.scheduler.config.configuration import check_scheduler
from wire.hadoop_keys import hadoop_keys
from wire.hadoop_xml import read_configuration
from yarn.faults import ConfigurationException, Severity
from yarn.settings.report import ConfigurationReport, describe
from yarnling.cli import json_form
from yarnling.cli.arguments import reading_arguments
from yarnling.cli.terminal import in_line, notices, print_indented, terminal
from yarnling.cluster.configuration import definitions, with_defaults
from yarnling.cluster.state import find_cluster

_TITLES = {
    "read": "Read",
    "defaulted": "Defaulted",
    "ignored": "Ignored: Hadoop's, not yarnling's",
    "unknown": "Unknown",
}
"""{state: heading on a terminal}, in the order of the lists."""


class _Row(Struct, frozen=True):
    """A key and what becomes of it. `remark`: its meaning, or the key that was perhaps meant."""

    state: str
    key: str
    value: str
    origin: str
    remark: str = ""


def report(conf: Path | None, define: list[str], name: str | None, *, every: bool, as_json: bool) -> None:
    """Print the report; ConfigurationException at the end if the configuration would be refused."""
    if name is not None:
        conf = Path(find_cluster(name).conf_dir)
    with reading_arguments():
        defined = definitions(define)
    configuration = with_defaults(read_configuration(conf, defined))
    found = describe(configuration, hadoop_keys(), check_scheduler(configuration))
    console = terminal()
    if as_json:
        sys.stdout.write(json_form.text(found) + "\n")
    elif console.is_terminal:
        _print_lists(list(_rows(found, every=every)), console)
    else:
        sys.stdout.writelines(f"{_line(row)}\n" for row in _rows(found, every=every))
    if not as_json:
        _print_warnings(found)
    errors = [fault for fault in found.faults if fault.severity is Severity.ERROR]
    if errors:
        raise ConfigurationException(errors)


def _rows(found: ConfigurationReport, *, every: bool) -> Iterator[_Row]:
    for read in found.read:
        yield _Row("read", read.key, read.value, str(read.origin), read.meaning)
    if every:
        for key in found.defaulted:
            yield _Row("defaulted", key.key, key.value, "default", key.meaning)
    for ignored in found.ignored:
        yield _Row("ignored", ignored.key, ignored.value, str(ignored.origin))
    for unknown in found.unknown:
        nearest = f"perhaps {unknown.nearest}" if unknown.nearest else ""
        yield _Row("unknown", unknown.key, unknown.value, str(unknown.origin), nearest)


def _line(row: _Row) -> str:
    cells = [f"{in_line(row.key)}={in_line(row.value)}", row.state, in_line(row.origin)]
    if row.state == "unknown" and row.remark:
        cells.append(in_line(row.remark))
    return "\t".join(cells)


def _print_lists(rows: list[_Row], console: Console) -> None:
    for state, title in _TITLES.items():
        listed = [row for row in rows if row.state == state]
        if listed:
            console.print(Text.assemble((title, "bold"), f" ({len(listed)})"))
        for row in listed:
            _print_row(row, console)


def _print_row(row: _Row, console: Console) -> None:
    """Key and value on a line, or each on its own; they are never split, so that they can be searched and copied."""
    key, value = in_line(row.key), in_line(row.value)
    one_line = f"  {key} = {value}"
    for line in [one_line] if len(one_line) <= console.width else [f"  {key}", f"    = {value}"]:
        console.print(Text(line), soft_wrap=True)
    about = f"{row.origin}: {row.remark}" if row.remark else row.origin
    print_indented(console, Text(f"      {in_line(about)}", "dim"))


def _print_warnings(found: ConfigurationReport) -> None:
    for fault in found.faults:
        if fault.severity is Severity.WARNING:
            notices().print(Text.assemble(("warning:", "yellow"), f" {in_line(str(fault))}"))
