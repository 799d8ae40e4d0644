"""The minimiser finds what a difference needs, and nothing else is left."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.conformance.minimiser import Minimiser, shrink
from tests.conformance.scenario import Scenario


@pytest.mark.parametrize("needed", [{0}, {99}, {3, 50}, {0, 1, 2, 97, 98}, set(range(40))])
def test_exactly_what_is_needed_is_left(needed: set[int]) -> None:
    left = shrink(range(100), lambda items: needed <= set(items))
    assert list(left) == sorted(needed)


def test_items_that_go_only_in_pairs_go() -> None:
    """5 without 6 is no good, nor 6 without 5; without both it is as before."""
    left = shrink(range(16), lambda items: 0 in items and ((5 in items) == (6 in items)))
    assert set(left) <= {0, 5, 6}


def test_no_item_can_be_taken_out_alone() -> None:
    """Also where what is superfluous depends on what is left."""

    def still(items: Sequence[int]) -> bool:
        return sum(items) >= 50

    left = shrink(range(20), still)
    assert still(left)
    assert not any(still([other for other in left if other != item]) for item in left)


def _scenario() -> Scenario:
    steps = [{"op": "heartbeat", "node": f"h{number}"} for number in range(30)]
    return Scenario("made-up", {"key": "1", "other": "2", "third": "3"}, steps)


def _needs_two_steps_and_a_key(scenario: Scenario) -> bool:
    nodes = [step["node"] for step in scenario.steps]
    return "h3" in nodes and "h17" in nodes and "other" in scenario.configuration


def test_steps_and_keys_are_taken_out() -> None:
    small = Minimiser(_needs_two_steps_and_a_key).minimise(_scenario())
    assert [step["node"] for step in small.steps] == ["h3", "h17"]
    assert small.configuration == {"other": "2"}


def test_steps_after_the_difference_go_at_once() -> None:
    seen: list[int] = []

    def differs(scenario: Scenario) -> bool:
        seen.append(len(scenario.steps))
        return _needs_two_steps_and_a_key(scenario)

    Minimiser(differs).minimise(_scenario(), last_step=18)
    assert seen[0] == 18
    assert max(seen) == 18


def test_tries_are_limited() -> None:
    minimiser = Minimiser(_needs_two_steps_and_a_key, tries_max=5)
    small = minimiser.minimise(_scenario())
    assert minimiser.tries == 5
    assert _needs_two_steps_and_a_key(small)
