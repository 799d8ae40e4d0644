"""`yarnling traffic`: the RPCs and the bytes that each application and each container of a run cost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec.structs import replace
from rich.console import Console
from rich.text import Text

from yarnling.cli.shared.arguments import reading_arguments
from yarnling.cli.shared.output import print_json, terminal
from yarnling.report.escapes import shown
from yarnling.report.listing import Listing
from yarnling.run.reader import read_run
from yarnling.timeline.selection import Selection
from yarnling.timeline.traffic import ApplicationTraffic, ContainerTraffic, Tally, Traffic, methods_of, traffic_of

METHODS_MAX = 6
"""The number of methods that have a column of their own; the calls of the others are added up in one column."""
UNKNOWN = "-"


def show(run: Path, selection: Selection, *, containers: bool, as_json: bool) -> None:
    """Print the traffic of a run, or of a part of it. `containers`: also that of each container."""
    with reading_arguments():
        timeline = read_run(run)
        application = selection.application_in(timeline)
        part = replace(selection, application="").of(timeline)
    traffic = traffic_of(part)
    traffic = traffic.only(application) if application else traffic
    if as_json:
        print_json(_as_json(traffic))
        return
    console = terminal()
    parts = [_of_methods(traffic), _of_applications(traffic)]
    for table in [*parts, _of_containers(traffic)] if containers else parts:
        console.print(table, crop=False)
        console.print()
    for line in _notes(traffic):
        _print_line(console, line)


def _print_line(console: Console, line: str) -> None:
    console.print(Text(shown(line)), soft_wrap=True)


def _of_methods(traffic: Traffic) -> Listing:
    table = Listing("method", "calls", "bytes", "bytes a call")
    total = traffic.total
    for rpc in methods_of([total]):
        calls, size = total.calls[rpc], total.bytes[rpc]
        table.add_row(rpc, str(calls), _size(size, traffic), _size(size / calls, traffic))
    calls = total.all_calls
    table.add_row("all", str(calls), _size(total.all_bytes, traffic), _size(total.all_bytes / max(1, calls), traffic))
    return table


def _of_applications(traffic: Traffic) -> Listing:
    table = Listing("application", "containers", "calls", "bytes", "calls a container", "bytes a container")
    for one in traffic.applications:
        calls = sum(container.tally.all_calls for container in one.containers)
        size = sum(container.tally.all_bytes for container in one.containers)
        each = f"{one.per_container(calls):.1f}", _size(one.per_container(size), traffic)
        counts = str(len(one.containers)), str(one.tally.all_calls), _size(one.tally.all_bytes, traffic)
        table.add_row(one.application, *counts, *each)
    others = traffic.others
    if others.calls:
        table.add_row("(none)", "0", str(others.all_calls), _size(others.all_bytes, traffic), "", "")
    return table


def _of_containers(traffic: Traffic) -> Listing:
    entries = [container for one in traffic.applications for container in one.containers]
    methods = methods_of([one.tally for one in entries])
    named, rest = methods[:METHODS_MAX], methods[METHODS_MAX:]
    table = Listing("container", "node", "calls", "bytes", *named, *(["others"] if rest else []))
    for one in entries:
        calls = one.tally.calls
        counts = [str(calls.get(rpc, 0)) for rpc in named]
        counts += [str(sum(calls.get(rpc, 0) for rpc in rest))] if rest else []
        own = str(one.tally.all_calls), _size(one.tally.all_bytes, traffic)
        table.add_row(one.container, one.node or UNKNOWN, *own, *counts)
    return table


def _size(size: float, traffic: Traffic) -> str:
    return f"{size:.0f}" if traffic.has_bytes else UNKNOWN


def _notes(traffic: Traffic) -> list[str]:
    notes = [
        "A call counts for each container that it names, and its bytes are divided equally between them."
        + (
            " (none): calls that name no application, for example heartbeats of idle nodes."
            * bool(traffic.others.calls)
        )
    ]
    if not traffic.has_bytes:
        notes.append(
            "This run does not have the length of its messages: traces of yarnling simulate --trace and the output of "
            "yarnling watch --all --json have it."
        )
    return notes


def _as_json(traffic: Traffic) -> dict[str, Any]:
    def tally(one: Tally) -> dict[str, Any]:
        methods = {
            rpc: {"calls": one.calls[rpc], "bytes": round(one.bytes[rpc], 1) if traffic.has_bytes else None}
            for rpc in methods_of([one])
        }
        return {
            "calls": one.all_calls,
            "bytes": round(one.all_bytes, 1) if traffic.has_bytes else None,
            "methods": methods,
        }

    def container(one: ContainerTraffic) -> dict[str, Any]:
        return {"container": one.container, "node": one.node, **tally(one.tally)}

    def application(one: ApplicationTraffic) -> dict[str, Any]:
        return {"application": one.application, **tally(one.tally), "containers": list(map(container, one.containers))}

    return {
        "run": traffic.title,
        **tally(traffic.total),
        "applications": list(map(application, traffic.applications)),
        "without_application": tally(traffic.others),
    }
