"""Lesson 20 shows one large container placed, reserved for, preempted for, and waiting in vain (mission case B7)."""

from __future__ import annotations

from yarnling.lessons.catalogue import find_lesson
from yarnling.report.curves import Bars

NEVER = -1
LARGE = find_lesson("large")


def test_the_container_waits_in_vain_unless_something_clears_a_node() -> None:
    """Recorded: b7-big-container-preempting-plain.txt takes nothing, -surgical.txt takes the node's containers."""
    measured = LARGE.play(6144).measured
    assert (measured["waits_ms"], measured["waits_killed"]) == (NEVER, 0)
    assert 0 <= int(measured["placed_ms"]) < 1000, "the next heartbeat of the larger node"
    assert int(measured["reserved_ms"]) > 10_000
    assert measured["reserved_killed"] == 0
    assert int(measured["preempted_ms"]) > 15_000, "the wait before a kill"
    assert measured["preempted_killed"] == 4, "6144 MB, of which 2048 MB were free"


def test_preemption_takes_nothing_if_what_it_may_take_is_less_than_the_node_lacks() -> None:
    """4096 MB: with free memory elsewhere b needs only 1024 MB of a, while the reserved node lacks 2048 MB."""
    story = LARGE.play(4096)
    assert (story.measured["preempted_ms"], story.measured["preempted_killed"]) == (NEVER, 0)
    assert any("would therefore take 1024 MB" in reason for reason in story.question.why)


def test_a_container_that_fits_into_a_gap_needs_none_of_this() -> None:
    measured = LARGE.play(2048).measured
    assert {measured[f"{way}_killed"] for way in ("waits", "placed", "reserved", "preempted")} == {0}
    assert {measured[f"{way}_ms"] for way in ("waits", "placed", "reserved", "preempted")} == {measured["placed_ms"]}


def test_the_picture_compares_the_four_ways() -> None:
    (bars,) = [part for part in LARGE.play(6144).parts if isinstance(part, Bars)]
    assert [bar.name for bar in bars.bars] == ["waits (never)", "placed", "reserved", "preempted for"]
    assert bars.bars[0].value == bars.top == 60.0
