"""`yarnling config`: what becomes of every key."""

from __future__ import annotations

import sys
from pathlib import Path

from rich import box
from rich.table import Table
from rich.text import Text

from rm.scheduler.configuration import check_scheduler
from wire.hadoop_keys import hadoop_keys
from wire.hadoop_xml import read_configuration
from yarn.faults import ConfigurationException, Severity
from yarn.settings.report import ConfigurationReport, describe
from yarnling.cli import json_form
from yarnling.cli.terminal import cell, in_line, terminal
from yarnling.cluster_configuration import definitions, with_defaults
from yarnling.cluster_state import find_cluster


def report(conf: Path | None, define: list[str], name: str | None, *, every: bool, as_json: bool) -> None:
    """Print the report; ConfigurationException at the end if the configuration would be refused."""
    if name is not None:
        conf = Path(find_cluster(name).conf_dir)
    configuration = with_defaults(read_configuration(conf, definitions(define)))
    found = describe(configuration, hadoop_keys(), check_scheduler(configuration))
    if as_json:
        sys.stdout.write(json_form.text(found) + "\n")
    else:
        _print(found, every=every)
    errors = [fault for fault in found.faults if fault.severity is Severity.ERROR]
    if errors:
        raise ConfigurationException(errors)


def _print(found: ConfigurationReport, *, every: bool) -> None:
    console = terminal()
    for title, rows in _lists(found, every=every):
        if rows:
            console.print(Text.assemble((title, "bold"), f" ({len(rows)})"))
            console.print(_table(rows))
    for fault in found.faults:
        if fault.severity is Severity.WARNING:
            console.print(Text.assemble(("warning:", "yellow"), f" {in_line(str(fault))}"))


def _lists(found: ConfigurationReport, *, every: bool) -> list[tuple[str, list[tuple[str, str, str, str]]]]:
    lists = [
        ("Read", [(key.key, key.value, str(key.origin), key.meaning) for key in found.read]),
        ("Ignored: Hadoop's, not yarnling's", [(key.key, key.value, str(key.origin), "") for key in found.ignored]),
        (
            "Unknown to all",
            [(k.key, k.value, str(k.origin), f"perhaps {k.nearest}" if k.nearest else "") for k in found.unknown],
        ),
    ]
    if every:
        lists.insert(1, ("Defaulted", [(key.key, key.value, "default", key.meaning) for key in found.defaulted]))
    return lists


def _table(rows: list[tuple[str, str, str, str]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("Key", "Value", "From", ""):
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*map(cell, row))
    return table
