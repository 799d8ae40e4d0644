"""Planted bugs: the code that they change is there, it runs, and a run with one fails."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec
import pytest

from rm.core.durability import divided
from tests.mutants.bug import (
    CannotPlant,
    Change,
    always,
    bug,
    drop,
    instead,
    never,
    planted,
    skip_all,
    version_of,
)
from tests.mutants.catalogue import BUGS, GROUPS, find_bug
from tests.mutants.page import found_by, page
from tests.mutants.played_nodes import PLAYED_NODE_BUGS, WORKLOADS
from tests.mutants.search import RANDOM, Finding, search
from tests.yarnling.simulation.intruder import simulate
from yarn.errors import YarnException
from yarnling.faults.plan_file import find_plan, plan_names
from yarnling.faults.verdict import RunVerdict
from yarnling.simulation.runner import Options

ROOT = Path(__file__).parents[2]
FINDINGS = msgspec.json.decode((ROOT / "docs" / "planted-bugs.json").read_bytes(), type=dict[str, Finding])
QUICK = ("settle-window-ignored", "am-started-before-its-attempt-is-stored", "end-delivered-twice-to-the-application")
"""Runs of the ready-made plan kill-rm find them with the first seed."""


def limit(value: int) -> int:
    if value > 3:
        value = 3
    return value


def bounded(values: list[int], *, most: int = 9) -> list[int]:
    kept = []
    for value in values:
        if value > 0 and value < most:
            kept.append(value)
    return kept


class Shelf:
    def __init__(self) -> None:
        self.books = 1

    def add(self, count: int) -> None:
        self.books = self.books + count
        self.books = min(self.books, 8)


HARMLESS = bug("harmless", "", instead(divided, lambda original, *given, **named: original(*given, **named)))
LIMITED = bug("limited", "A bug of this test.", never(limit, "value"))


def test_a_planted_bug_changes_a_function_for_every_reference_and_only_for_a_while() -> None:
    reference = limit
    with planted(LIMITED) as planting:
        assert reference(9) == 9
        assert planting.count == 1
    assert reference(9) == 3
    before = dict(divided.__globals__)
    with planted(HARMLESS):
        assert divided.__globals__ != before
    assert divided.__globals__ == before


@pytest.mark.parametrize(
    ("changes", "kept"),
    [
        ((drop(bounded, "append"),), []),
        ((drop(bounded, "append", when="value == 2"),), [1]),
        ((never(bounded, "most"),), []),
        ((always(bounded, "most"),), [1, 2, 9]),
        ((never(bounded, "most"), drop(bounded, "append")), []),
        ((skip_all(bounded, "values"),), []),
        ((skip_all(bounded, "values", when="len(kept) == 0"),), []),
        ((instead(bounded, lambda original, values, **named: original(values[:2], **named)),), [1]),
    ],
)
def test_each_rule_changes_the_smallest_place_with_all_words(changes: tuple[Change, ...], kept: list[int]) -> None:
    with planted(bug("one", "", *changes)) as planting:
        assert bounded([0, 1, 2, 9]) == kept
        assert planting.count > 0
    assert bounded([0, 1, 2, 9]) == [1, 2]


def test_methods_are_changed_in_all_objects_and_may_call_the_original() -> None:
    shelf = Shelf()
    with planted(bug("two", "", instead(Shelf.add, lambda original, shelf, count: original(shelf, 2 * count)))):
        shelf.add(3)
    assert shelf.books == 7


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (never(limit, "count"), "limit has 0 places for never with the words count, and must have 1"),
        (drop(Shelf.add, "books"), "add has 2 places for drop"),
        (drop(limit, "value", when="count > 3"), "limit has no count"),
        (instead(limit, lambda original: None), "limit has other arguments than"),
        (instead(limit, lambda original, value, other: None), "limit has other arguments than"),
        (instead(bounded, lambda original, values, *, least: None), "bounded has other arguments than"),
        (drop(len, "value"), "is not a Python function. If its module is compiled, run without the compiled build"),
    ],
)
def test_a_change_that_does_not_fit_is_refused_before_anything_is_changed(change: Change, message: str) -> None:
    with pytest.raises(CannotPlant, match=message), planted(bug("odd", "", *LIMITED.changes, change)):
        pass
    assert limit(9) == 3


def test_the_version_of_a_bug_is_about_what_it_changes() -> None:
    versions = {
        version_of(bug("one", "", *changes))
        for changes in ((drop(limit, "value"),), (never(limit, "value"),), (drop(limit, "value", when="value > 9"),))
    }
    assert len(versions) == 3
    assert version_of(bug("one", "", drop(limit, "value"))) == version_of(bug("two", "x", drop(limit, "value")))


def test_there_are_enough_bugs_with_names_of_their_own_and_plans_that_exist() -> None:
    names = Counter(bug.name for bugs in GROUPS.values() for bug in bugs)
    assert len(names) >= 40
    assert set(names.values()) == {1}
    assert {plan for bug in BUGS.values() for plan in bug.plans} <= {RANDOM, WORKLOADS, *plan_names()}


@pytest.mark.parametrize("name", BUGS)
def test_the_code_that_a_bug_changes_is_still_there(name: str) -> None:
    with planted(BUGS[name]) as planting:
        assert planting.count == 0


def test_an_unknown_bug_is_refused_with_all_names() -> None:
    with pytest.raises(YarnException, match=r"there is no planted bug 'x' \(docs/planted-bugs.md lists all\)"):
        find_bug("x")


@pytest.mark.parametrize("name", QUICK)
def test_a_run_with_a_bug_fails_and_the_same_run_without_it_passes(name: str) -> None:
    finding = FINDINGS[name]
    plan = find_plan(finding.plan)
    with planted(BUGS[name]) as planting:
        run = simulate(plan, finding.seed, Options(encode=False))
    assert planting.count > 0
    assert run.judgement.verdict is RunVerdict.FAIL
    assert simulate(plan, finding.seed, Options(encode=False)).judgement.reasons == ()


@pytest.mark.slow
@pytest.mark.unmeasured
@pytest.mark.parametrize("name", [bug.name for bug in PLAYED_NODE_BUGS])
def test_a_played_run_with_a_bug_is_another_than_the_full_run(name: str) -> None:
    seed = FINDINGS[name].seed
    found = search(BUGS[name], range(seed, seed + 1))
    assert found.is_found
    assert found.reached > 0


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", [name for name, finding in FINDINGS.items() if finding.is_found])
def test_every_found_bug_is_found_again_within_the_seeds_of_the_page(name: str) -> None:
    assert search(BUGS[name], range(1, FINDINGS[name].seeds + 1)).is_found


def test_the_page_is_made_from_findings_about_the_bugs_as_they_are() -> None:
    assert (ROOT / "docs" / "planted-bugs.md").read_text() == page(FINDINGS)
    assert FINDINGS.keys() <= BUGS.keys()
    stale = [name for name, finding in FINDINGS.items() if finding.version != version_of(BUGS[name])]
    assert stale == [], "scripts/planted looks for them again"


def test_every_bug_that_was_found_was_reached() -> None:
    assert [name for name, finding in FINDINGS.items() if finding.is_found and not finding.reached] == []


@pytest.mark.parametrize(
    ("reason", "found"),
    [
        ("rm: I-04: root.default: its applications have 1", "I-04"),
        ("I-33: container_1_0001_01_000001 was started twice", "I-33"),
        ("InternalError after 1.2 s: invariants broken: A-04: x", "A-04"),
        ("one ApplicationMaster at a time: container_1_2 on nm-1 ran on", "one ApplicationMaster at a time"),
    ],
)
def test_the_page_names_the_invariant_or_the_check(reason: str, found: str) -> None:
    assert found_by(reason) == found


def test_a_search_without_a_finding_says_how_many_seeds_it_ran() -> None:
    found = search(HARMLESS, range(1, 2), run=lambda plan, seed, options: simulate(find_plan("kill-node"), 1, options))
    assert (found.is_found, found.seeds) == (False, 1)
    assert found.reached > 100
