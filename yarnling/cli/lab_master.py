"""`yarnling lab master`: judges an ApplicationMaster of one's own by many seeds, and shows the first that fails."""

from __future__ import annotations

import shlex
from collections import Counter
from contextlib import nullcontext
from pathlib import Path

from rich.console import Console
from rich.text import Text

from am.programs.custom.source import load_master, odd_methods
from yarn.errors import YarnException
from yarnling.cli.chaos import run_once
from yarnling.cli.run_summary import print_summary
from yarnling.cli.shared.arguments import check_output_directory, reading_arguments
from yarnling.cli.shared.output import notices, print_json, terminal
from yarnling.cli.shared.start_file import write_start_file
from yarnling.cli.simulate import seeds_progress
from yarnling.cluster.silent_logs import without_logs
from yarnling.faults.plan_text import plan_text
from yarnling.labs.failing_run import Failure, explained
from yarnling.labs.limits import LOAD_S, load_within
from yarnling.labs.master import (
    SeedResult,
    processes_plan,
    run_seeds,
    start_file,
)
from yarnling.report.escapes import in_line
from yarnling.report.listing import Listing

PASSED, FAILED = 0, 1
SEED_OF_PROCESSES = 1


def write_start(path: Path) -> None:
    """Write the file to start with; an existing file is not overwritten."""
    write_start_file(path, start_file(), "yarnling lab master")


def grade(file: Path, seeds: range, output: Path, *, on_processes: bool, as_json: bool) -> int:
    """Judge the AM in `file`; the exit status. The first run that fails is written into `output`."""
    check_output_directory(output)
    path = file.absolute()
    with reading_arguments():
        warnings = odd_methods(load_within(LOAD_S, path, load_master))
    for warning in warnings:
        notices().print(in_line(f"{file}: warning: {warning}"))
    results = _run(path, seeds)
    failed = [result for result in results if result.failed]
    failure: Failure | None = None
    if failed:
        failure = _explained(failed[0], path)
        _write(failure, output)
    if as_json:
        print_json({**_plain(results, failure, output), "warnings": warnings})
    else:
        _print(results, failure, file, output, terminal())
    if failed or not on_processes:
        return FAILED if failed else PASSED
    console = notices() if as_json else terminal()
    one = run_once(processes_plan(path), SEED_OF_PROCESSES, None, console)
    print_summary(one, f"yarnling lab master {shlex.quote(str(file))} --processes", console, is_only=True)
    return int(one.judgement.verdict)


def _run(path: Path, seeds: range) -> list[SeedResult]:
    """Judge by the seeds, and show how far it is."""
    with seeds_progress(notices(), is_shown=len(seeds) > 1 and notices().is_terminal) as progress, without_logs():
        task = progress.add_task(path.name, total=len(seeds))
        return run_seeds(path, seeds, lambda: progress.advance(task))


def _explained(result: SeedResult, path: Path) -> Failure:
    console = notices()
    waiting = console.status("making the first run that fails smaller") if console.is_terminal else nullcontext()
    with waiting, without_logs():
        return explained(result, path)


def _print(results: list[SeedResult], failure: Failure | None, file: Path, output: Path, console: Console) -> None:
    passed = sum(not result.failed for result in results)
    style = "green" if passed == len(results) else "red"
    if failure is not None:
        table = Listing("Check", "Seeds that fail", "First")
        for name, count in Counter(name for result in results for name in result.failed).most_common():
            table.add_row(name, str(count), str(next(one.seed for one in results if name in one.failed)))
        console.print(table, crop=False)
        console.print()
        console.print(Text(f"Seed {failure.seed}" + (f", made smaller in {failure.runs} runs" if failure.runs else "")))
        for sentence in failure.sentences:
            console.print(Text(f"  {sentence}"), soft_wrap=not console.is_terminal)
        for name in _files(failure):
            console.print(f"  {output / name}", soft_wrap=True)
        console.print(
            f"Run it again: yarnling lab master {shlex.quote(str(file))} --seed {failure.seed}", soft_wrap=True
        )
    console.print(Text(f"{passed} of {len(results)} seeds pass", f"bold {style}"))


def _files(failure: Failure) -> dict[str, str]:
    """{name: text} of the files about a run that fails."""
    files = {"plan.yaml": plan_text(failure.plan)}
    if failure.page:
        files |= {"timeline.html": failure.page, "messages.txt": failure.messages}
    return files


def _write(failure: Failure, output: Path) -> None:
    try:
        output.mkdir(parents=True, exist_ok=True)
        for name, text in _files(failure).items():
            (output / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise YarnException(f"{output}: the run cannot be written: {error.strerror}") from None


def _plain(results: list[SeedResult], failure: Failure | None, output: Path) -> dict[str, object]:
    plain: dict[str, object] = {
        "lab": "master",
        "seeds": len(results),
        "passed": sum(not result.failed for result in results),
        "failed": [{"seed": result.seed, "checks": list(result.failed)} for result in results if result.failed],
    }
    if failure is not None:
        plain["first"] = {
            "seed": failure.seed,
            "sentences": list(failure.sentences),
            "files": [str(output / name) for name in _files(failure)],
        }
    return plain
