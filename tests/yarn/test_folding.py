"""Faults of one kind are folded into one line, with the first of them and the count."""

from __future__ import annotations

from yarn.faults import Fault, Origin, Severity
from yarn.settings.folding import folded, general_key

PREFIX = "yarn.scheduler.capacity."


def warning(key: str, problem: str, *, line: int = 1, effect: str = "") -> Fault:
    return Fault(PREFIX + key, "x", Origin("q.xml", line), problem, "change it", Severity.WARNING, effect)


def test_the_same_rule_for_many_queues_is_one_line() -> None:
    faults = [
        warning(f"root.a.q{n}.maximum-capacity", f"the maximum is {n}.5%, below root.a.q{n}'s capacity", line=n)
        for n in range(1, 579)
    ]
    (kind,) = folded(faults)
    assert (kind.first, kind.count) == (faults[0], 578)
    assert str(kind) == f"{faults[0]} (and 577 more of this kind)"


def test_other_rules_and_effects_stay_apart() -> None:
    faults = [
        warning("root.a.capacity", "is odd"),
        warning("root.a.capacity", "is even"),
        warning("root.a.maximum-capacity", "is odd"),
        warning("root.b.capacity", "is odd", effect="nothing runs"),
    ]
    assert [str(kind) for kind in folded(faults)] == [str(fault) for fault in faults]


def test_an_unknown_key_of_a_queue_is_named_by_its_last_part() -> None:
    assert general_key(PREFIX + "root.a.b.maximum-capactiy") == PREFIX + "<queue>.maximum-capactiy"
    assert general_key(PREFIX + "root.a.b.capacity") == "capacity"
    assert general_key("yarn.other") == "yarn.other"
