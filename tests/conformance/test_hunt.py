"""The counts of a hunt."""

from __future__ import annotations

from tests.conformance.hunt import Finding, steps_compared, summary
from tests.conformance.scenario import Json

FIRST = {"conf": {}, "ready": True}
STEP: Json = {"step": {"op": "heartbeat", "node": "h1"}, "reply": {}, "delta": {}}


def test_only_steps_that_could_be_compared_count() -> None:
    stumbled = {**STEP, "reply": {"error": {"class": "NullPointerException", "message": ""}}}
    refused = {**STEP, "reply": {"error": {"class": "YarnException", "message": ""}}}
    assert steps_compared([FIRST, STEP, refused, STEP]) == 3
    assert steps_compared([FIRST, STEP, stumbled, STEP]) == 1
    assert steps_compared([FIRST, STEP, STEP, {"hang": True, "at": STEP["step"]}]) == 2
    assert steps_compared([{**FIRST, "error": {"class": "IOException"}}]) == 0


def test_the_summary_says_how_many_were_shorter() -> None:
    found = [Finding(1, "same", 220), Finding(2, "same", 0), Finding(3, "differs", 220, "allocate: reply/*")]
    assert summary(found) == [
        "3 scenarios, 440 steps: 2 same, 1 differs (1 shorter than 220 steps)",
        "    1 allocate: reply/*",
    ]
    assert summary(found[:1]) == ["1 scenarios, 220 steps: 1 same"]
