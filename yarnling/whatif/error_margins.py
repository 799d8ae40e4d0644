"""The error beside a figure of a prediction: from the replay of the recorded run, and from the seeds. Pure.

A figure is taken to be as far off as the figure nearest to it that was recorded, in the same queue: waits as the waits
of AMs, because no ResourceManager records when a task was requested, run times as run times, and use as the
memory-hours. Where the seeds
differ by more, their spread counts. Counts, of which nothing similar is recorded, have the spread alone.
"""

from __future__ import annotations

from yarn.settings.scheduler import ROOT
from yarnling.whatif.measures import Kind, Measure, Scope, Value
from yarnling.workload.calibration import Calibration, ReplayError

MEDIAN = "p50"
MEAN_RUN_TIME = "mean run time"


def margin_of(
    measure: Measure, scope: Scope, value: Value | None, calibration: Calibration | None, spread: float = 0.0
) -> float | None:
    """The error of a value, in its unit and without sign; None if the workload was not calibrated."""
    if calibration is None or value is None:
        return None
    is_queue = scope.kind == "queue" and scope.name != ROOT
    share = _error(measure, calibration.of_queue(scope.name) if is_queue else calibration.whole)
    return max(abs(share or 0.0) * value.number, spread)


def _error(measure: Measure, replay: ReplayError) -> float | None:
    """The error of the recorded figure that is nearest to the measure."""
    if measure.kind is Kind.SHARE:
        return replay.memory
    if measure.name == MEAN_RUN_TIME:
        return replay.run_mean
    if measure.name.endswith("wait"):
        return replay.am_wait_p50 if measure.name.startswith(MEDIAN) else replay.am_wait_p95
    return None


def with_margin(measure: Measure, value: Value | None, margin: float | None) -> str:
    """The value with its error: "49 min ± 4 min"; without it if there is none, or it is nothing."""
    text = measure.written(value)
    return f"{text} ± {measure.written(Value(margin))}" if margin else text
