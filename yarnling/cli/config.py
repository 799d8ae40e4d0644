"""`yarnling config`: how each configuration key is treated.

The module also prints notices about keys when a cluster starts. On a terminal it prints a list for people. In a pipe it
prints one line for each key, in a format for programs:

    KEY=VALUE <tab> STATE <tab> ORIGIN [<tab> perhaps NEAREST KEY]

STATE is read, defaulted, ignored (known to Hadoop but not to yarnling) or unknown. Control characters in a value are
escaped, so a line has no other tabs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct
from rich.console import Console
from rich.text import Text

from yarn.faults import ConfigurationException, Severity
from yarn.settings.folding import folded
from yarn.settings.report import ConfigurationReport
from yarnling.cli.shared.arguments import reading_arguments
from yarnling.cli.shared.output import notices, print_indented, print_json, terminal
from yarnling.cluster.configuration import ClusterConfiguration, compose, definitions
from yarnling.cluster.state import find_cluster
from yarnling.report.escapes import in_line

_TITLES = {
    "read": "Read",
    "defaulted": "Defaulted",
    "ignored": "Ignored: Hadoop reads them, yarnling does not",
    "unknown": "Unknown",
}
"""{state: heading on a terminal}, in the order of printing."""
LONG_LIST = 30
"""With more keys than this the beginning of the output is easily missed, or its end is: faults are printed at both."""


class _Row(Struct, frozen=True):
    """A key and how it is treated. `remark` is the meaning of the key, or the nearest known key."""

    state: str
    key: str
    value: str
    origin: str
    remark: str = ""


def report(conf: Path | None, define: list[str], name: str | None, *, every: bool, as_json: bool) -> None:
    """Print the report. Afterwards raises ConfigurationException if a cluster would refuse the configuration."""
    if name is not None:
        conf = Path(find_cluster(name).conf_dir)
    with reading_arguments():
        defined = definitions(define)
    found = compose(conf, defined).report
    errors = [fault for fault in found.faults if fault.severity is Severity.ERROR]
    if as_json:
        print_json(found)
    else:
        _print_report(found, list(_rows(found, every=every)))
    if errors:
        raise ConfigurationException(errors)


def _print_report(found: ConfigurationReport, rows: list[_Row]) -> None:
    """Print the keys, and after them the warnings and the counts. Before a long list both are printed as well."""
    console = terminal()
    if len(rows) > LONG_LIST:
        for kind in folded(fault for fault in found.faults if fault.severity is Severity.ERROR):
            notices().print(Text.assemble(("error:", "red"), f" {in_line(str(kind))}"))
        _print_warnings(found)
        _print_counts(found)
    if console.is_terminal:
        _print_lists(rows, console)
    else:
        sys.stdout.writelines(f"{_line(row)}\n" for row in rows)
        sys.stdout.flush()
    _print_warnings(found)
    if len(rows) > LONG_LIST or len(found.faults) > 1:
        _print_counts(found)


def print_key_notices(configuration: ClusterConfiguration) -> None:
    """Print to standard error how many of the user's keys are read, and which are unknown or suspicious.

    Prints nothing if there are no keys. Raises ConfigurationException with every error.
    """
    console = notices()
    for notice in configuration.accepted().notices():
        console.print(in_line(notice))


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
    """Print a key and its value on one line, or each on its own line.

    Keys and values are never split over lines, so that they can be copied.
    """
    key, value = in_line(row.key), in_line(row.value)
    one_line = f"  {key} = {value}"
    for line in [one_line] if len(one_line) <= console.width else [f"  {key}", f"    = {value}"]:
        console.print(Text(line), soft_wrap=True)
    about = f"{row.origin}: {row.remark}" if row.remark else row.origin
    print_indented(console, Text(f"      {in_line(about)}", "dim"))


def _print_warnings(found: ConfigurationReport) -> None:
    """Print the warnings, each kind once."""
    for kind in folded(fault for fault in found.faults if fault.severity is Severity.WARNING):
        notices().print(Text.assemble(("warning:", "yellow"), f" {in_line(str(kind))}"))


def _print_counts(found: ConfigurationReport) -> None:
    errors = sum(fault.severity is Severity.ERROR for fault in found.faults)
    counts = f"{len(found.read)} keys read, {len(found.ignored)} ignored, {len(found.unknown)} unknown"
    notices().print(f"Configuration: {counts}; {errors} errors, {len(found.faults) - errors} warnings")
