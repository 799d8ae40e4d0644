"""Recordings of Hadoop's own ResourceManager: make them, read them, and search for differences of the core.

A maintainer's tool. It needs a JDK (17 or newer) and Maven; running and testing yarnling does not.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress

from tests.conformance.generated.features import parse
from tests.conformance.generator import STEPS_DEFAULT, generate
from tests.conformance.hunt import Finding, Hunt, compare_lines, look_through, minimised, summary, without_messages
from tests.conformance.oracle import hadoop
from tests.conformance.scenario import RECORDING_SUFFIX, Json, Scenario, read, read_lines, write_lines
from yarn.java.versions import HADOOP_VERSION

app = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
progress_console = Console(stderr=True)

Files = Annotated[
    list[Path], typer.Argument(exists=True, help="Scenarios (.json), recordings, Hadoop's files (.xml), or folders.")
]
OneFile = Annotated[Path, typer.Argument(exists=True, dir_okay=False, metavar="RECORDING", help="A recording.")]
Out = Annotated[Path, typer.Option("--out", "-o", help="The folder for what is made.")]
Features = Annotated[str, typer.Option(help="A set of features, or features with commas. A wrong name lists them all.")]
Seeds = Annotated[str, typer.Option(help="FIRST:LAST, the last not among them.")]
Steps = Annotated[int, typer.Option(min=1, help="How many steps each scenario has.")]
Release = Annotated[str, typer.Option(help="The release of Hadoop.")]
OtherRelease = Annotated[str | None, typer.Option("--release", help="Another release of Hadoop than before.")]
Every = Annotated[bool, typer.Option("--every", help="All features in each scenario, not some by its seed.")]


@app.command()
def build(release: Release = HADOOP_VERSION) -> None:
    """Download Hadoop's artifacts and compile the driver, unless done. Other commands do this themselves."""
    typer.echo(hadoop.build(release))


@app.command()
def record(files: Files, out: Out, release: OtherRelease = None) -> None:
    """Record scenarios, or the scenarios of recordings once more."""
    scenarios = (read(path) for path in _found(files))
    _record((scenario.on_release(release or scenario.release) for scenario in scenarios), out)


@app.command()
def random(
    out: Out,
    seeds: Seeds,
    features: Features = "random",
    steps: Steps = STEPS_DEFAULT,
    every: Every = False,
    release: Release = HADOOP_VERSION,
) -> None:
    """Record random scenarios."""
    allowed = _allowed(features)
    _record((generate(seed, steps, allowed, every=every).on_release(release) for seed in _seeds(seeds)), out)


@app.command()
def configs(files: Files) -> None:
    """Compare how Hadoop and the core take configuration files: both load or refuse them. Exit 1 if they differ."""
    parted = 0
    with hadoop.Hadoop() as oracle:
        for path in _found(files):
            lines = list(oracle.record(read(path)))
            outcome = compare_lines(path.stem, lines)
            parted += not outcome.same
            error = lines[0].get("error")
            hadoops = "loads" if error is None else f"{error['class']}: {error['message']}"
            ours = (
                ""
                if outcome.same
                else f"\n     ours parts at step {outcome.differences[0].step}: {outcome.differences[0].ours}"
            )
            typer.echo(f"{path.name}: {hadoops}{ours}")
    raise typer.Exit(1 if parted else 0)


@app.command()
def verify(files: Files) -> None:
    """Record recordings again and list those that differ; error messages may. Exit 1 if any differs."""
    changed = 0
    with hadoop.Hadoop() as oracle:
        for path in _found(files):
            before, after = without_messages(read_lines(path)), without_messages(list(oracle.record(read(path))))
            if before != after:
                changed += 1
                pairs = enumerate(zip(before, after, strict=False))
                step = next((number for number, (old, new) in pairs if old != new), min(len(before), len(after)))
                typer.echo(f"{path}: line {step} is not the same")
    typer.echo(f"{changed} changed")
    raise typer.Exit(1 if changed else 0)


@app.command()
def show(recording: OneFile) -> None:
    """Print a recording: each step, its reply, and what changed."""
    for number, line in enumerate(_lines(recording)):
        head = {key: value for key, value in line.items() if key not in ("delta", "reply", "step", "ready")}
        typer.echo(f"{number:4} {json.dumps(line.get('step', head))}")
        if line.get("reply"):
            typer.echo(f"     reply {json.dumps(line['reply'])}")
        for key, value in line.get("delta", {}).items():
            typer.echo(f"     {key} = {json.dumps(value)}")


@app.command()
def hunt(
    out: Out,
    seeds: Seeds,
    features: Features = "random",
    steps: Steps = STEPS_DEFAULT,
    every: Every = False,
    minimise: Annotated[bool, typer.Option(help="Make what differs as small as possible.")] = True,
    release: Release = HADOOP_VERSION,
    jobs: Annotated[int, typer.Option(min=1, help="Processes, each with a JVM.")] = os.cpu_count() or 1,
) -> None:
    """Record random scenarios, compare the core with them, keep the smallest that differ. Exit 1 if any."""
    hadoop.build(release)
    plan = Hunt(out, _allowed(features), steps, every=every, minimise=minimise, release=release)
    chosen, findings = _seeds(seeds), list[Finding]()
    with Progress(console=progress_console, transient=True, disable=not progress_console.is_terminal) as progress:
        for finding in progress.track(look_through(plan, chosen, jobs), len(chosen), description="hunting"):
            findings.append(finding)
            if finding.verdict != "same":
                typer.echo(finding.line())
    typer.echo("\n".join(summary(findings)))
    raise typer.Exit(1 if any(finding.verdict == "differs" for finding in findings) else 0)


@app.command()
def minimise(recording: OneFile, out: Out) -> None:
    """Make a recording that differs as small as possible."""
    outcome, scenario = compare_lines("given", _lines(recording)), read(recording)
    if outcome.same:
        raise typer.BadParameter(f"{recording} does not differ")
    with hadoop.Hadoop() as oracle:
        small = minimised(oracle, scenario, outcome)
        path = out / f"{scenario.name}-small{RECORDING_SUFFIX}"
        write_lines(path, oracle.record(small))
    typer.echo(f"{path}: {len(small.steps)} steps of {len(scenario.steps)}")


def _lines(recording: Path) -> list[Json]:
    """The lines of a recording. Raises BadParameter for another file."""
    try:
        return read_lines(recording)
    except (OSError, EOFError, ValueError) as error:
        raise typer.BadParameter(f"{recording} is not a recording, gzipped lines of JSON ({error})") from error


def _record(scenarios: Iterable[Scenario], out: Path) -> None:
    with hadoop.Hadoop() as oracle:
        for scenario in scenarios:
            path = out / f"{scenario.name}{RECORDING_SUFFIX}"
            write_lines(path, oracle.record(scenario))
            typer.echo(path)


def _found(files: list[Path]) -> list[Path]:
    def inside(path: Path) -> list[Path]:
        kinds = ("*.json", f"*{RECORDING_SUFFIX}", "*.xml")
        return sorted(file for kind in kinds for file in path.rglob(kind)) if path.is_dir() else [path]

    return [found for path in files for found in inside(path)]


def _seeds(text: str) -> range:
    first, colon, last = text.partition(":")
    if not (colon and first.isdecimal() and last.isdecimal()):
        raise typer.BadParameter(f"--seeds {text}: two numbers with a colon between, such as 0:100")
    return range(int(first), int(last))


def _allowed(features: str) -> frozenset[str]:
    try:
        return parse(features)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


if __name__ == "__main__":
    try:
        app()
    except hadoop.OracleError as error:
        raise SystemExit(f"oracle: {error}") from error
