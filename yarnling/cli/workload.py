"""`yarnling workload`: turn a trace into a workload that can be simulated, and show what a workload contains."""

from __future__ import annotations

import os
from pathlib import Path

from rich.console import Console
from rich.text import Text

from wire.files.full_disk import full_disk_named
from yarn.errors import YarnException
from yarn.times import duration
from yarnling.cli.options.simulate import ImportOptions
from yarnling.cli.shared.arguments import TRACES, check_output_directory, check_output_file, reading_arguments
from yarnling.cli.shared.output import notices, print_indented, print_json, terminal
from yarnling.report.escapes import shown
from yarnling.report.listing import Listing
from yarnling.report.wording import counted
from yarnling.workload.defaults import Defaults
from yarnling.workload.documents import read_text
from yarnling.workload.evidence import Basis, share_of
from yarnling.workload.formats import all_formats, read_node_list, read_recorded_cluster, read_workload
from yarnling.workload.model import Workload, WorkloadNodes
from yarnling.workload.nodes_file import refuse_unwritable, write_nodes
from yarnling.workload.recorded_cluster import RecordedCluster
from yarnling.workload.recorded_conditions import RecordedFiles, RecordedWaits, recorded_files, recorded_waits
from yarnling.workload.rest_scheduler import as_xml, read_queues
from yarnling.workload.scaling import scaled
from yarnling.workload.statistics import (
    Percentiles,
    WorkloadFigures,
    figures_by_user,
    figures_of_all,
    lasts_ms,
)
from yarnling.workload.workload_file import write_workload

ROWS_MAX = 40
"""The number of queues and users that are shown on a terminal, those with the most memory; --json shows all."""
NODE_LISTS = (".json", ".yaml", ".yml")
"""JSON is YAML as well."""


def list_formats() -> None:
    """Print the formats that can be read."""
    table = Listing("format", "file")
    for name, about in all_formats().items():
        table.add_row(name, about)
    terminal().print(table, crop=False)


def import_file(options: ImportOptions) -> None:
    """Read a file in any format and write yarnling's own. Nothing is written if anything is wrong with the input."""
    with reading_arguments():
        _refuse_overwriting(options)
        check_output_file(options.out, *TRACES)
        check_output_file(options.nodes_out, *NODE_LISTS)
        if options.nodes is not None and options.nodes_out is None:
            raise YarnException("--nodes is where --nodes-out is read from: give --nodes-out as well, or neither")
        workload = read_workload(options.file, options.format_name, options.defaults)
        if not options.scale:
            raise YarnException("--scale 0 leaves no application (name a larger factor)")
        workload = scaled(workload, options.scale, options.defaults.seed)
        nodes = read_node_list(options.nodes or options.file) if options.nodes_out else WorkloadNodes(())
        refuse_unwritable(nodes)
        check_output_directory(options.conf_out)
        cluster = read_recorded_cluster(options.file)
        files = _configuration(options, cluster)
        workload = workload.with_assumptions((*nodes.assumptions, *files.notes))
    write_workload(workload, options.out)
    if options.nodes_out:
        write_nodes(nodes, options.nodes_out)
    if options.conf_out is not None:
        write_files(files, options.conf_out)
    if options.as_json:
        print_json(_plain(workload))
        return
    console = terminal()
    console.print(Text(shown(f"{options.out}: {heading(workload)}")), soft_wrap=True)
    if options.nodes_out:
        console.print(Text(shown(f"{options.nodes_out}: {counted(len(nodes.nodes), 'node')}")), soft_wrap=True)
    for name in files.files:
        console.print(Text(shown(f"{options.conf_out}/{name}: as it was when the recording began")), soft_wrap=True)
    print_evidence(workload, console)
    _print_waits(recorded_waits(cluster) if cluster else [], console)
    _print_assumptions(workload, console)


def _configuration(options: ImportOptions, cluster: RecordedCluster | None) -> RecordedFiles:
    """The files of --conf-out. Raises YarnException if the input has none."""
    if options.conf_out is None:
        return RecordedFiles({}, ())
    if cluster is None:
        raise YarnException(f"{options.file}: only a recording has a configuration for --conf-out")
    return recorded_files(cluster)


def write_files(files: RecordedFiles, directory: Path) -> None:
    """Write the files of a configuration into a directory, which is made."""
    for name, text in files.files.items():
        directory.mkdir(parents=True, exist_ok=True)
        with full_disk_named(directory / name):
            (directory / name).write_text(text, encoding="utf-8")


def _print_waits(waits: list[RecordedWaits], console: Console) -> None:
    """Print how long AMs really waited, for the comparison with a simulation."""
    if not waits:
        return
    console.print("\nWaits of AMs that were recorded, from submission to launch:")
    table = Listing("queue", "applications", "p50", "p95")
    for each in waits:
        table.add_row(each.queue, f"{each.applications:,}", _time(each.p50_ms), _time(each.p95_ms))
    console.print(table, crop=False)


def show(file: Path, format_name: str, defaults: Defaults, *, as_json: bool) -> None:
    """Print what a workload contains, in any format."""
    with reading_arguments():
        workload = read_workload(file, format_name, defaults)
    if as_json:
        print_json(_plain(workload))
        return
    console = terminal()
    console.print(heading(workload), soft_wrap=True)
    console.print()
    rows = sorted(figures_by_user(workload), key=lambda row: -row.memory_gb_hours)
    console.print(_table(rows[:ROWS_MAX]), crop=False)
    if len(rows) > ROWS_MAX:
        notices().print(f"{len(rows) - ROWS_MAX} more queues and users with less memory: --json shows all")
    print_evidence(workload, console)
    _print_assumptions(workload, console)


def write_queues(file: Path, out: Path) -> None:
    """Write the capacity-scheduler.xml that an answer to GET /ws/v1/cluster/scheduler describes."""
    with reading_arguments():
        refuse_input(out, "--out", file)
        check_output_file(out, ".xml")
        queues = read_queues(read_text(file), str(file))
    with full_disk_named(out):
        out.write_text(as_xml(queues), encoding="utf-8")
    console = terminal()
    count = sum(key.endswith(".capacity") and ".accessible-node-labels." not in key for key in queues.properties)
    console.print(Text(shown(f"{out}: {counted(count, 'queue')}")), soft_wrap=True)
    for sentence in queues.lacks:
        print_indented(console, Text(shown(f"  {sentence}")))


def _refuse_overwriting(options: ImportOptions) -> None:
    """Raise YarnException if the import would overwrite its input, or one output the other."""
    for out, option in ((options.out, "--out"), (options.nodes_out, "--nodes-out")):
        for given in (options.file, options.nodes):
            if out is not None and given is not None:
                refuse_input(out, option, given)
    if options.nodes_out is not None and _is_same_file(options.out, options.nodes_out):
        raise YarnException(f"{options.nodes_out}: --out and --nodes-out are the same file (name two files)")


def refuse_input(out: Path, option: str, given: Path) -> None:
    """Raise YarnException if writing `out` would overwrite an input."""
    if _is_same_file(out, given):
        raise YarnException(f"{out}: {option} is also an input, and would overwrite it (name another file)")


def _is_same_file(one: Path, other: Path) -> bool:
    """True if writing one overwrites the other, under any name. A device, for example /dev/null, keeps nothing."""
    if os.path.isfile(one) and os.path.isfile(other):
        return os.path.samefile(one, other)
    return os.path.realpath(one) == os.path.realpath(other) and not os.path.exists(one)


def _plain(workload: Workload) -> dict[str, object]:
    return {
        "lasts_ms": lasts_ms(workload),
        "total": figures_of_all(workload),
        "users": figures_by_user(workload),
        "evidence": [
            {"basis": each.basis.value, "share": each.share, "about": each.about} for each in workload.evidence
        ],
        "assumptions": workload.assumptions,
    }


def heading(workload: Workload) -> str:
    """Describe a workload in a line."""
    total, span_ms = figures_of_all(workload), lasts_ms(workload)
    within = f" submitted within {duration(span_ms)}" if span_ms else ""
    return (
        f"{counted(total.applications, 'application')}{within}, "
        f"{counted(total.containers, 'container')}, "
        f"{total.memory_gb_hours:,.1f} GB-hours, {total.vcore_hours:,.1f} vcore-hours"
    )


def _table(rows: list[WorkloadFigures]) -> Listing:
    table = Listing(
        "queue", "user", "applications", "containers", "in each", "MB", "vcores", "duration p50 p95 max", "GB-hours"
    )
    for row in rows:
        durations = row.duration_ms
        table.add_row(
            row.queue,
            row.user,
            f"{row.applications:,}",
            f"{row.containers:,}",
            _range(row.containers_each),
            _range(row.memory_mb),
            _range(row.vcores),
            " ".join(_time(value) for value in (durations.p50, durations.p95, durations.most)),
            f"{row.memory_gb_hours:,.1f}",
        )
    return table


def _range(of: Percentiles) -> str:
    """The median and the largest value, or the only one."""
    return f"{of.p50:,}" if of.p50 == of.most else f"{of.p50:,} to {of.most:,}"


def _time(ms: int) -> str:
    for unit, name in ((3_600_000, "h"), (60_000, "m"), (1000, "s")):
        if ms >= unit:
            return f"{ms / unit:.3g}{name}"
    return f"{ms}ms"


def print_evidence(workload: Workload, console: Console) -> None:
    """Print which share of the memory-hours is recorded, determined by what is recorded, and assumed."""
    if not workload.evidence:
        return
    console.print()
    console.print("The memory-hours rest on:")
    for basis in Basis:
        parts = [each for each in workload.evidence if each.basis is basis]
        console.print(f"  {share_of(parts, basis):6.1%}  {basis.value}", highlight=False)
        for each in parts:
            print_indented(console, Text(shown(f"          {each.share:6.1%}  {each.about}")))


def _print_assumptions(workload: Workload, console: Console) -> None:
    if workload.assumptions:
        console.print()
        console.print("Assumed, because the file does not say it:")
        for sentence in workload.assumptions:
            print_indented(console, Text(shown(f"  {sentence}")))
