"""The page of a comparison: both sides, parents of many queues, and which pictures are drawn."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from tests.yarnling.whatif.outcomes import HOUR, MINUTE, application, busy_day, container, page_of, result, sample
from yarnling.report.page import html_of
from yarnling.whatif.compare import Balance, ChangeVerdict, compare, ends_of
from yarnling.whatif.compare_report import comparison_page
from yarnling.whatif.compare_words import findings, headline
from yarnling.whatif.containers import End
from yarnling.whatif.expectations import Checked
from yarnling.whatif.figures import figures_of
from yarnling.whatif.measures import Scope
from yarnling.whatif.result import NodeCount, WhatIfResult


@pytest.mark.slow
def test_the_page_shows_both_sides_and_quotes_names() -> None:
    sides = (busy_day(), busy_day(etl_wait_min=41, preempted=0.08, configuration="</svg><script>"))
    comparison = compare([figures_of(sides[0])], [figures_of(sides[1])])
    checked = [Checked("no <b>", holds=False, value="3"), Checked("none late", holds=True, value="0", warning="2 of 3")]
    page = html_of(comparison_page(comparison, sides, checked))
    assert page.count("<svg") == 13, "five of waits and deadlines, the cluster and three queues on both sides"
    assert "Does not hold: no &lt;b&gt; (3)" in page
    assert "Holds, as far as it could be checked: none late: 2 of 3" in page
    assert "Who gains and who pays, by queue" in page
    assert "<script>" not in page


@pytest.mark.slow
def test_many_queues_are_grouped_by_their_parents() -> None:
    """Eight queues below root.sales pay, and seven below root.ops gain but for one: each parent is one line."""
    names = [f"root.{parent}.q{number}" for parent in ("sales", "ops") for number in range(8)]

    def side(waits: list[int]) -> WhatIfResult:
        apps = [application(queue=name) for name in names]
        containers = [container(0, wait * MINUTE, app=number) for number, wait in enumerate(waits)]
        samples = [sample(0, name, 100, 200, 400) for name in ("root", "root.sales", "root.ops", *names)]
        return result(apps, containers, samples, leaf_queues=tuple(names))

    sides = (side([10] * 16), side([40] * 8 + [2] * 7 + [12]))
    comparison = compare([figures_of(sides[0])], [figures_of(sides[1])])
    assert [(each.parent, each.paying, each.gaining) for each in comparison.parents()] == [
        ("root.sales", 8, 0),
        ("root.ops", 1, 7),
    ]
    assert headline(comparison) == (
        "Shorter waits below ops, longer waits below sales: sales waits p95 10 min -> 40 min; "
        "ops waits p50 10 min -> 2 min."
    )
    assert not any(f"q{number}" in finding for finding in findings(comparison) for number in range(8))
    numbers = "".join(f'<td class="number">{number}</td>' for number in ("1", "7", "-0.9"))
    row = f'<th scope="row">root.ops</th><td></td>{numbers}'
    assert row in page_of(*sides)


def test_the_queues_of_one_parent_are_not_grouped() -> None:
    names = [f"root.q{number}" for number in range(14)]
    sides = [
        result([application(queue=name) for name in names], [container(0, wait * MINUTE, app=i) for i in range(14)])
        for wait in (2, 40)
    ]
    assert compare([figures_of(sides[0])], [figures_of(sides[1])]).parents() == ()


def test_a_long_name_is_shortened_in_the_middle() -> None:
    names = [f"{'department_of_' * 3}{end}" for end in ("alpha", "beta")]

    def side(wait: int) -> WhatIfResult:
        apps = [application(queue=f"root.{name}") for name in names]
        found = [container(0, wait * MINUTE, app=number) for number in range(2)]
        return result(apps, found, leaf_queues=tuple(f"root.{name}" for name in names))

    page = page_of(side(2), side(40))
    assert re.search(">department_o\u2026[a-z_]*_alpha<", page)
    assert re.search(">department_o\u2026[a-z_]*_beta<", page)


@pytest.mark.slow
def test_only_queues_that_changed_are_drawn_if_there_are_many() -> None:
    """Two of thirty queues changed: they have pictures; with three queues all have."""

    def page(queues: int) -> str:
        names = [f"root.q{number:02}" for number in range(queues)]
        sides = []
        for wait in (2, 40):
            waits = [5] * (queues - 2) + [wait, 42 - wait]
            found = [container(0, each * MINUTE, app=number) for number, each in enumerate(waits)]
            samples = [sample(0, name, 100 / queues, 10, 400) for name in ("root", *names)]
            sides.append(result([application(queue=name) for name in names], found, samples, leaf_queues=tuple(names)))
        return page_of(*sides)

    many, few = page(30), page(3)
    assert re.findall("<figcaption>(q[^<]*)</figcaption>", many) == [
        "q28 before",
        "q28 after",
        "q29 before",
        "q29 after",
    ]
    assert "28 queues that changed less, or not at all, are left out." in many
    assert 'aria-label="p95 waits by queue: q28 2 min \u2192 40 min, q29 40 min \u2192 2 min"' in many
    assert "<figcaption>q00 before</figcaption>" in few


def test_those_who_pay_most_and_those_who_gain_most_are_listed() -> None:
    balances = [Balance(Scope("queue", str(change)), 0, change, 1, ChangeVerdict.WORSE) for change in (5, 4, 3, -1, -2)]
    assert ends_of(balances, 5) is balances
    assert [each.change_ms for each in ends_of(balances, 3)] == [5, -1, -2]


def test_the_pictures_show_what_the_headline_says() -> None:
    def side(am_min: int, late: int) -> WhatIfResult:
        """Containers of etl wait 2 minutes, its AMs `am_min`; `late` of its applications miss their deadline."""
        apps = [application(deadline_ms=(HOUR if number < late else 2 * HOUR) - 1) for number in range(9)]
        containers = [container(0, am_min * MINUTE, app=number, is_am=True) for number in range(9)]
        containers += [container(0, 2 * MINUTE, app=number) for number in range(9) for _ in range(30)]
        return result(apps, containers)

    sides = (side(23, 3), side(49, 7))
    comparison = compare([figures_of(sides[0])], [figures_of(sides[1])])
    assert headline(comparison).endswith("7 deadlines missed, were 3; AMs of etl wait p95 23 min -> 49 min.")
    page = html_of(comparison_page(comparison, sides, []))
    labels = re.findall('<svg[^>]* aria-label="([^"]*)"', page)
    assert "p95 waits by queue: etl 2 min \u2192 2 min, etl AMs 23 min \u2192 49 min" in labels
    assert "Applications that missed their deadline: etl 3 to 7" in labels
    waits, missed = (
        next(svg for svg in re.findall("<svg.*?</svg>", page, re.DOTALL) if label in svg)
        for label in ("p95 waits by queue", "missed their deadline")
    )
    assert "23 min \u2192 49 min, longer" in waits
    assert "p95 wait, from request to allocation (logarithmic)" in waits
    assert ">applications</text>" in missed


def test_what_scaling_costs_and_saves_is_compared() -> None:
    """Four nodes for two hours, then two to five for two hours, with a container that was lost."""
    before = replace(result([application()], [container(0, 1000)]), nodes=4, until_ms=2 * HOUR)
    after = replace(
        result([application()], [container(0, 1000, HOUR, end=End.LOST), container(0, 1000)]),
        nodes=8,
        until_ms=2 * HOUR,
        node_counts=(NodeCount(0, 2), NodeCount(HOUR, 5), NodeCount(HOUR + 30 * MINUTE, 2)),
    )
    comparison = compare([figures_of(before)], [figures_of(after)])
    said = {(str(each.scope), each.measure.name): each.verdict for each in comparison.differences}
    assert said["cluster", "node-hours"] is ChangeVerdict.BETTER
    assert said["cluster", "work of lost containers"] is ChangeVerdict.WORSE
    assert "cluster: node-hours 8 h -> 5.5 h" in " ".join((headline(comparison), *findings(comparison)))
    page = page_of(before, after)
    assert "Nodes over time: 4 to 4 before, 2 to 5 after" in page
    assert "2 to 5 of 8 nodes" in page


def test_node_hours_of_equal_clusters_are_not_compared() -> None:
    """Their difference only says which run ended first."""
    sides = [replace(result([application()], [container(0, 1000)]), until_ms=hours * HOUR) for hours in (2, 4)]
    comparison = compare([figures_of(sides[0])], [figures_of(sides[1])])
    assert not any(each.measure.name == "node-hours" for each in comparison.differences)
    assert "node-hours" not in page_of(*sides)
