"""`yarnling lab policy`: judges an ordering policy of one's own by many workloads, and shows who waits."""

from __future__ import annotations

import shlex
from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.text import Text

from yarnling.cli.shared.arguments import reading_arguments
from yarnling.cli.shared.output import notices, print_json, terminal
from yarnling.cli.shared.start_file import write_start_file
from yarnling.cli.simulate import seeds_progress
from yarnling.labs.limits import LOAD_S, load_within
from yarnling.labs.order import OrderMistake, load_order
from yarnling.labs.policy import (
    HADOOP_POLICIES,
    IN_TIME,
    SLOTS,
    URGENT,
    YOURS,
    PolicyFigures,
    PolicySeed,
    figures_of,
    judge_all,
    judge_seed,
    lab_nodes,
    start_file,
)
from yarnling.labs.waiting import WAITS, column_ms, rows_of
from yarnling.report.escapes import in_line
from yarnling.report.listing import Listing

PASSED, FAILED = 0, 1
_FIGURES = ("took_s", "urgent_took_s", "longest_wait_s")


def write_start(path: Path) -> None:
    """Write the file to start with; an existing file is not overwritten."""
    write_start_file(path, start_file(), "yarnling lab policy")


def grade(file: Path, seeds: range, against: str, *, as_json: bool) -> int:
    """Judge the order in `file`; the exit status. The picture compares it with Hadoop's policy `against`."""
    path = file.absolute()
    with reading_arguments():
        load_within(LOAD_S, path, load_order)
    results = _run(path, seeds)
    wrong = judge_all(results)
    failed = [result for result in results if result.failed]
    if as_json:
        print_json(_plain(results, wrong))
    else:
        _print(results, wrong, file, against, terminal())
    return FAILED if failed or wrong else PASSED


def _run(path: Path, seeds: range) -> list[PolicySeed]:
    """Judge by one seed after the other; no more after a run that had to be stopped."""
    results: list[PolicySeed] = []
    with seeds_progress(notices(), is_shown=len(seeds) > 1 and notices().is_terminal) as progress:
        task = progress.add_task(path.name, total=len(seeds))
        for seed in seeds:
            results.append(judge_seed(path, seed))
            progress.advance(task)
            if any(mistake.check == IN_TIME for mistake in results[-1].failed):
                break
    return results


def _print(
    results: list[PolicySeed], wrong: tuple[OrderMistake, ...], file: Path, against: str, console: Console
) -> None:
    failed = [result for result in results if result.failed]
    shown = failed[0] if failed else results[0]
    for policy in (against, YOURS):
        if policy in shown.runs:
            _print_picture(shown, policy, console)
    _print_figures(results, console)
    if failed:
        console.print(_table_of(failed), crop=False)
        console.print()
        console.print(Text(f"Seed {shown.seed}"))
        for mistake in shown.failed:
            console.print(Text(f"  {mistake.check}: {in_line(mistake.sentence)}"), soft_wrap=not console.is_terminal)
        console.print(f"Run it again: yarnling lab policy {shlex.quote(str(file))} --seed {shown.seed}", soft_wrap=True)
    for mistake in wrong:
        console.print(
            Text(f"All seeds: {mistake.check}: {in_line(mistake.sentence)}"), soft_wrap=not console.is_terminal
        )
    passed = len(results) - len(failed)
    both = f"{len(wrong)} of the checks over all seeds {'fails' if len(wrong) == 1 else 'fail'}"
    style = "red" if failed or wrong else "green"
    console.print(Text(f"{passed} of {len(results)} seeds pass{f', {both}' if wrong else ''}", f"bold {style}"))


def _table_of(failed: list[PolicySeed]) -> Listing:
    table = Listing("Check", "Seeds that fail", "First")
    counts = Counter(mistake.check for result in failed for mistake in result.failed)
    for check, count in counts.most_common():
        first = next(one.seed for one in failed if any(mistake.check == check for mistake in one.failed))
        table.add_row(check, str(count), str(first))
    return table


def _print_picture(shown: PolicySeed, policy: str, console: Console) -> None:
    """Draw who waits and who runs with a policy, on the scale of all runs of the seed."""
    run = shown.runs[policy]
    per_column_ms = column_ms(*(each.result for each in shown.runs.values()))
    slots = SLOTS * len(lab_nodes(shown.seed))
    console.print(
        Text(
            f"Seed {shown.seed}, {policy}: {WAITS} waits without a task, ▁ to █ runs 1 to {slots} containers; "
            f"{per_column_ms // 1000} s a column",
            "bold",
        ),
        soft_wrap=True,
    )
    table = Listing("Application", "Took", "Waited", "")
    for each, row in zip(run.applications, rows_of(run.result, slots, per_column_ms), strict=True):
        took = "-" if each.took_s is None else f"{each.took_s:.0f} s"
        table.add_row(each.name, took, f"{each.longest_wait_s:.0f} s", row)
    console.print(table, crop=False)
    console.print()


def _print_figures(results: list[PolicySeed], console: Console) -> None:
    """The figures of all policies over all seeds."""
    table = Listing("Policy", "Applications take", f"Those of priority {URGENT}", "Longest wait")
    for policy in (*HADOOP_POLICIES, YOURS):
        figures = figures_of(results, policy)
        cells = ("-", "-", "-") if figures is None else tuple(f"{value:.1f} s" for value in _values(figures))
        table.add_row(policy, *cells)
    console.print(table, crop=False)
    console.print()


def _values(figures: PolicyFigures) -> tuple[float, float, float]:
    return figures.took_s, figures.urgent_took_s, figures.longest_wait_s


def _plain(results: list[PolicySeed], wrong: tuple[OrderMistake, ...]) -> dict[str, object]:
    failed = [result for result in results if result.failed]
    plain: dict[str, object] = {
        "lab": "policy",
        "seeds": len(results),
        "passed": len(results) - len(failed),
        "failed": [{"seed": result.seed, "checks": [mistake.check for mistake in result.failed]} for result in failed],
        "failed_over_all": [{"check": mistake.check, "sentence": mistake.sentence} for mistake in wrong],
        "policies": {
            policy: None if figures is None else dict(zip(_FIGURES, _values(figures), strict=True))
            for policy in (*HADOOP_POLICIES, YOURS)
            for figures in (figures_of(results, policy),)
        },
    }
    if failed:
        plain["first"] = {
            "seed": failed[0].seed,
            "sentences": [f"{mistake.check}: {mistake.sentence}" for mistake in failed[0].failed],
        }
    return plain
