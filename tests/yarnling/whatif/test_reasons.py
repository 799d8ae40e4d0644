"""Reasons of waits: the cause of most of their waiting time, and how a comparison shows it."""

from __future__ import annotations

from rm.core.explain.verdict import Cause
from tests.yarnling.whatif.outcomes import MINUTE, application, container, page_of, result
from yarnling.whatif.compare import compare
from yarnling.whatif.figures import figures_of
from yarnling.whatif.measures import CLUSTER, MEASURES, Scope
from yarnling.whatif.reasons import (
    GROUPS_EXPLAINED_MAX,
    MainReason,
    WaitingGroup,
    WaitingTime,
    main_reason,
    reason_of_measure,
)
from yarnling.whatif.result import WaitReason, WhatIfResult

ETL = WaitingGroup("root.ops.etl", "ann", is_am=False)
FULL = "waits because the cluster is full"
LIMIT = "waits because queue root.ops.etl is at its limit for AMs"


def test_waiting_time_is_put_down_to_the_cause_that_is_found_next() -> None:
    waited = WaitingTime()
    for _ in range(9):
        waited.add(ETL, 1000)
    assert waited.due([ETL]) == [ETL]
    waited.explain(ETL, "AM_QUEUE_LIMIT", LIMIT)
    waited.add(ETL, 900)
    assert waited.due([ETL]) == [], "a tenth more is not worth another explanation"
    waited.add(ETL, 100)
    assert waited.due([ETL]) == [ETL]
    waited.explain(ETL, "NODE_FULL", FULL)
    assert waited.reasons() == (
        WaitReason(*ETL, "AM_QUEUE_LIMIT", 9000, LIMIT),
        WaitReason(*ETL, "NODE_FULL", 1000, FULL),
    )


def test_the_groups_with_the_most_waiting_time_are_explained_first() -> None:
    waited = WaitingTime()
    groups = [WaitingGroup(f"root.q{number}", "ann", is_am=False) for number in range(GROUPS_EXPLAINED_MAX + 3)]
    for number, group in enumerate(groups):
        waited.add(group, number)
    assert waited.due(groups) == groups[:2:-1]
    assert waited.due(groups[:3]) == [groups[2], groups[1]], "only those that wait now can be explained"


def test_the_main_reason_holds_for_most_of_the_time_and_not_last() -> None:
    reasons = (
        WaitReason(*ETL, "AM_QUEUE_LIMIT", 700, LIMIT),
        WaitReason(*ETL, "NODE_FULL", 300, FULL),
        WaitReason("root.ops.etl", "ann", True, "USER_LIMIT", 50, "waits because user ann is at its limit"),
        WaitReason("root.opsx", "bob", False, "PLACE", 5000, "waits because of its place"),
    )
    etl = MainReason("AM_QUEUE_LIMIT", 700 / 1050, LIMIT)
    for scope in (Scope("queue", "root.ops.etl"), Scope("queue", "root.ops"), Scope("user", "ann")):
        assert main_reason(reasons, scope) == etl
    assert (etl.short(), etl.long()) == (
        "AM limit of the queue (67 %)",
        "67 %: queue root.ops.etl is at its limit for AMs",
    )
    for everything in (CLUSTER, Scope("queue", "root")):
        found = main_reason(reasons, everything)
        assert found is not None
        assert found.cause == "PLACE"
    of_ams = reason_of_measure(reasons, Scope("user", "ann"), MEASURES["p95 AM wait"])
    assert of_ams is not None
    assert of_ams.cause == "USER_LIMIT"
    assert reason_of_measure(reasons, CLUSTER, MEASURES["missed deadlines"]) is None
    assert main_reason(reasons, Scope("user", "eve")) is None


def test_each_cause_has_a_few_words() -> None:
    assert all(MainReason(cause.name, 1, "").short() for cause in Cause)


def test_a_comparison_shows_the_reason_on_the_side_that_waits_longer() -> None:
    def side(wait: int, cause: str, sentence: str) -> WhatIfResult:
        reasons = (WaitReason("root.etl", "ann", False, cause, wait * MINUTE, sentence),)
        return result([application()], [container(0, wait * MINUTE)], wait_reasons=reasons)

    few, many = side(2, "NODE_FULL", FULL), side(40, "QUEUE_MAXIMUM", "waits because queue root.etl is at its maximum")
    for sides in ((few, many), (many, few)):
        comparison = compare([figures_of(sides[0])], [figures_of(sides[1])])
        changed = [each for each in comparison.differences if each.measure.name == "p95 wait"]
        reasons = [*map(comparison.reason, changed), *map(comparison.reason, comparison.balances)]
        assert {reason and reason.cause for reason in reasons} == {"QUEUE_MAXIMUM"}
        page = page_of(*sides)
        assert page.count("<td>100 %: queue root.etl is at its maximum</td>") == 8, (
            "what differs, and who gains and pays"
        )
        assert "cluster is full" not in page
