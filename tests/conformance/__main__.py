"""Step the ResourceManager's core through recordings of Hadoop's own, and report where it first differs.

For each recording `same`, or the first difference: step, what was done, key, Hadoop's value, ours. Then a count.
"""

from __future__ import annotations

import json
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress

from tests.conformance.comparison import Difference, Outcome, compare_file
from yarn.settings.release import RELEASES, known_releases

SHOWN_MAX = 25
"""Differences of one step that --verbose shows."""


def main(
    recordings: Annotated[list[Path], typer.Argument(help="Recordings (.jsonl.gz), or folders of them.")],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object instead of lines.")] = False,
    verbose: Annotated[bool, typer.Option(help="Every difference of the step, and where ours crashed.")] = False,
    jobs: Annotated[int, typer.Option(min=1, help="Processes to use.")] = os.cpu_count() or 1,
    release: Annotated[str | None, typer.Option(help="The release of Hadoop to follow, not the recording's.")] = None,
) -> None:
    """Step the ResourceManager's core through recordings of Hadoop's own; exit 0 only if all are the same."""
    paths = [file for path in recordings for file in _files(path)]
    missing = [str(path) for path in paths if not path.is_file()]
    if missing or not paths:
        raise typer.BadParameter(f"no such recording: {', '.join(missing) or 'none in the folder'}")
    if release is not None and release not in RELEASES:
        raise typer.BadParameter(f"--release {release}: write {known_releases()}")
    outcomes = _compare_all(paths, jobs, release)
    failed = sum(not outcome.same for outcome in outcomes)
    if as_json:
        report = {
            "passed": len(outcomes) - failed,
            "failed": failed,
            "recordings": [outcome.as_json() for outcome in outcomes],
        }
        print(json.dumps(report, indent=2))
    else:
        for outcome in outcomes:
            _tell(outcome, verbose=verbose)
        print(f"{len(outcomes) - failed} passed, {failed} failed")
    raise typer.Exit(1 if failed else 0)


def _files(path: Path) -> list[Path]:
    return sorted(path.glob("**/*.jsonl.gz")) if path.is_dir() else [path]


def _compare_all(paths: list[Path], jobs: int, release: str | None) -> list[Outcome]:
    """The results in the order of `paths`, with a progress bar on a terminal."""
    console, compared = Console(stderr=True), partial(compare_file, release=release)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        if jobs == 1 or len(paths) == 1:
            return [compared(path) for path in progress.track(paths, description="comparing")]
        with ProcessPoolExecutor(min(jobs, len(paths))) as pool:
            return list(progress.track(pool.map(compared, paths), total=len(paths), description="comparing"))


def _tell(outcome: Outcome, *, verbose: bool) -> None:
    if outcome.same:
        print(f"{outcome.name}: same ({outcome.steps} steps)")
        return
    shown = outcome.differences if verbose else outcome.differences[:1]
    first = shown[0]
    print(f"{outcome.name}: differs at step {first.step} of {outcome.steps}: {json.dumps(first.action)}")
    for difference in shown[:SHOWN_MAX]:
        _tell_difference(difference)
    if len(shown) > SHOWN_MAX:
        print(f"  and {len(shown) - SHOWN_MAX} more")
    if verbose and outcome.trace:
        print(outcome.trace, file=sys.stderr)


def _tell_difference(difference: Difference) -> None:
    print(f"  {difference.key}: Hadoop {_value(difference.hadoop)}, ours {_value(difference.ours)}")


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)


if __name__ == "__main__":
    typer.run(main)
