"""The time that the trials of explanations may take."""

from __future__ import annotations

import pytest

from rm.core.events import Asker
from rm.shell.inspection_service import TRIAL_BURST_S, TRIAL_SHARE, InspectionService, TrialTime
from tests.rm.builders import RM
from yarn.ids import ApplicationId
from yarn.protocols.inspection import Explanation
from yarn.resource import Resource

ANN: Asker = ("ann", ())
NOTE = "changes were not tried"


def test_trials_may_take_a_share_of_the_time_and_a_burst() -> None:
    time = TrialTime(100.0)
    assert time.wait_s(100.0) == 0
    time.spend(TRIAL_BURST_S + 1.0)
    assert time.wait_s(100.0) == pytest.approx(1.0 / TRIAL_SHARE)
    assert time.wait_s(102.0) == pytest.approx(1.0 / TRIAL_SHARE - 2.0)
    assert time.wait_s(106.0) == 0


def test_a_long_pause_saves_no_more_than_a_burst() -> None:
    time = TrialTime(0.0)
    assert time.wait_s(1_000_000.0) == 0
    time.spend(TRIAL_BURST_S + 0.2)
    assert time.wait_s(1_000_000.0) == pytest.approx(0.2 / TRIAL_SHARE)


class Timer:
    """A timer on which each reading takes `step_s`."""

    def __init__(self) -> None:
        self.now_s, self.step_s = 0.0, 0.0

    def __call__(self) -> float:
        self.now_s += self.step_s
        return self.now_s


def waiting() -> tuple[InspectionService, Timer, ApplicationId]:
    """A service for a cluster whose node is too small for an application's AM."""
    rm, timer = RM({"yarn.scheduler.maximum-allocation-mb": "8192"}), Timer()
    rm.node("n1", 1024, 8)
    app_id = rm.submit("ann", "default", resource=Resource(4096, 1))
    rm.beat("n1")
    return InspectionService(rm.core, lambda: rm.now_ms, timer), timer, app_id


def notes(found: Explanation) -> list[str]:
    return [note for verdict in found.verdicts for note in verdict.notes if note.startswith(NOTE)]


def test_an_explanation_without_time_left_says_so_and_has_its_verdict() -> None:
    service, timer, app_id = waiting()
    timer.step_s = TRIAL_BURST_S + 1.0
    first = service.explained(app_id, ANN, what_if=True)
    assert first.verdicts[0].changes
    assert not notes(first)
    timer.step_s = 0.0
    second = service.explained(app_id, ANN, what_if=True)
    assert second.verdicts[0].sentence == first.verdicts[0].sentence
    assert not second.verdicts[0].changes
    assert notes(second) == [f"{NOTE}: trials take at most 20% of the ResourceManager's time; ask again in 2.0 s"]
    assert not notes(service.explained(app_id, ANN, what_if=False)), "no trial was wanted"
    timer.now_s += 2.0
    assert service.explained(app_id, ANN, what_if=True).verdicts[0].changes
