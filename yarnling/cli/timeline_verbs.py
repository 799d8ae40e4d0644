"""The options of `yarnling timeline`, `plot` and `traffic`, which are implemented in `yarnling.cli.timeline` and
`yarnling.cli.traffic`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from yarnling.cli.shared.arguments import Json

Run = Annotated[
    Path,
    typer.Argument(
        metavar="RUN",
        exists=True,
        help="A trace of yarnling simulate --trace, an event log or a directory of them, the directory of a chaos run, "
        "or the output of yarnling watch --json.",
    ),
]

Application = Annotated[
    str, typer.Option("--app", metavar="ID", help="Only this application; the last part of its id is enough.")
]
Start = Annotated[float, typer.Option("--from", metavar="S", help="From this second of the run.", min=0)]
Until = Annotated[float | None, typer.Option("--to", metavar="S", help="Up to this second of it.", min=0)]


def add_to(app: typer.Typer) -> None:
    """Register the verbs."""
    app.command("timeline", epilog="Example: yarnling timeline trace.jsonl -o page.html")(_timeline)
    app.command("plot", epilog="Example: yarnling plot trace.jsonl -o plot.html")(_plot)
    app.command("traffic", epilog="Example: yarnling traffic trace.jsonl --containers")(_traffic)


def _traffic(
    run: Run,
    application: Application = "",
    containers: Annotated[bool, typer.Option("--containers", help="Also list each container.")] = False,
    start: Start = 0,
    until: Until = None,
    as_json: Json = False,
) -> None:
    """Count the RPCs and the bytes that each application and each container of a run cost."""
    from yarnling.cli import traffic as verb
    from yarnling.timeline.selection import Selection

    selection = Selection((), (), application, _ms(start), None if until is None else _ms(until))
    verb.show(run, selection, containers=containers, as_json=as_json)


def _plot(
    run: Annotated[
        Path,
        typer.Argument(metavar="RUN", exists=True, help="As for yarnling timeline, or a result.json of a simulation."),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="Page (.html) or picture (.svg) to write.")],
) -> None:
    """Draw Gantt charts of a run's containers, and the use of its queues."""
    from yarnling.cli import timeline as verb

    verb.write_plot(run, out)


def _timeline(
    run: Run,
    page: Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write a page (HTML).")] = None,
    svg: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a picture of a short run (SVG).")] = None,
    host: Annotated[
        list[str], typer.Option(metavar="PATTERN", help="Only these hosts: rm, nm-1, 'nm-*', client...")
    ] = [],  # noqa: B006  typer copies it
    rpc: Annotated[list[str], typer.Option(metavar="PATTERN", help="Only these calls: allocate, '*Heartbeat'...")] = [],  # noqa: B006
    application: Application = "",
    start: Start = 0,
    until: Until = None,
) -> None:
    """Draw who sent what to whom in a run: a space-time diagram as a page or a picture."""
    from yarnling.cli import timeline as verb
    from yarnling.timeline.selection import Selection

    selection = Selection(tuple(host), tuple(rpc), application, _ms(start), None if until is None else _ms(until))
    verb.write_timeline(run, page, svg, selection)


def _ms(seconds: float) -> int:
    return round(1000 * seconds)
