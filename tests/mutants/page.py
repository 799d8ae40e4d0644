"""The page docs/planted-bugs.md, made from what searches have found."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from tests.mutants.bug import PlantedBug
from tests.mutants.catalogue import BUGS, GROUPS
from tests.mutants.search import Finding

_HEAD = """# Planted bugs

Each bug removes one safeguard for the length of a run. `tests/mutants` changes a function of the product in memory;
the product itself has no switches for this. A run that fails has found the bug. So the table shows how well simulated
runs and the [invariants](design/invariants.md) detect mistakes.

    scripts/planted --again epoch-not-raised    # search for this bug, and print why a run with it fails
    scripts/planted --seeds 1000                # search for the bugs that are not found yet, and update this page

*Seeds*: the number of seeds of the plan until the first run that failed; `random` is the random plan of each seed, and
`workloads` its random workload, whose run with played nodes must be the full run.
*Found by*: the violated invariant, or the check of the history that failed.
"""
_IDS = re.compile(r"\b(application|appattempt|container)_[0-9_e]+\b")
_NUMBER = re.compile(r"^(?:(rm|nm-\d+|am)[: ]+)?([IANT]-\d\d)")


def page(findings: Mapping[str, Finding]) -> str:
    """The text of the page. `findings` {name of a bug: what was found}."""
    found = [one for one in findings.values() if one.is_found]
    missing = [name for name in BUGS if name not in findings or not findings[name].is_found]
    lines = [_HEAD, f"{len(found)} of {len(BUGS)} are found.{_not_found(missing)}"]
    for group, bugs in GROUPS.items():
        lines += ["", f"## {group}", "", "| name | what it breaks | plan | seeds | found by |", "|---|---|---|---|---|"]
        lines += [_row(bug, findings.get(bug.name)) for bug in bugs]
    return "\n".join((*lines, ""))


def _not_found(missing: list[str]) -> str:
    return "" if not missing else f" Not found: {', '.join(f'`{name}`' for name in missing)}."


def _row(bug: PlantedBug, finding: Finding | None) -> str:
    if finding is None:
        return f"| `{bug.name}` | {bug.breaks} | {', '.join(bug.plans)} | | not looked for |"
    if not finding.is_found:
        ran = f"its code ran {finding.reached} times" if finding.reached else "its code never ran"
        why = f"not found; {ran}{f'. {bug.unseen}' if bug.unseen else ''}"
        return f"| `{bug.name}` | {bug.breaks} | {', '.join(bug.plans)} | > {finding.seeds} | {why} |"
    return f"| `{bug.name}` | {bug.breaks} | {finding.plan} | {finding.seeds} | {found_by(finding.reason)} |"


def found_by(reason: str) -> str:
    """The invariant or the check, from the reason of a failed run."""
    if (number := _NUMBER.match(reason)) is not None:
        return number.group(2)
    if (number := re.search(r"\b([IANT]-\d\d):", reason)) is not None:
        return number.group(1)
    return next(_parts(_IDS.sub(r"\1", reason))).replace("|", "/").replace("\n", " ")


def _parts(reason: str) -> Iterator[str]:
    yield from reason.split(": ")
