"""Words about how far a prediction is to be trusted: what the replay of the recorded run was off by, and what the load
rests on. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from yarnling.report.wording import share
from yarnling.workload.calibration import Calibration
from yarnling.workload.evidence import Basis, Evidence, share_of

OFF_LIMIT = 0.15
"""With a larger error of the replay, a report begins with it."""
NOT_CALIBRATED = "The error of this prediction is not known: the workload was not calibrated on a recorded run."


def errors_in_words(calibration: Calibration) -> str:
    """The errors of the figures of all applications: "the makespan +8 %, the memory-hours -0.1 %"."""
    return ", ".join(f"{name} {_signed(error)}" for name, error in calibration.headline_errors())


def largest_error(calibration: Calibration) -> float:
    """The largest error of these figures, without sign."""
    return max((abs(error) for _, error in calibration.headline_errors()), default=0.0)


def is_far_off(calibration: Calibration) -> bool:
    """True if the replay was off by more than OFF_LIMIT."""
    return largest_error(calibration) > OFF_LIMIT


def replay_sentence(calibration: Calibration) -> str:
    """State what the replay was off by; a warning if that is more than OFF_LIMIT."""
    words = errors_in_words(calibration)
    if is_far_off(calibration):
        return (
            f"The replay of {calibration.record} was off by up to {share(largest_error(calibration))} ({words}): "
            "trust only differences that are much larger."
        )
    return f"The replay of {calibration.record} was off by at most {share(largest_error(calibration))} ({words})."


def load_sentence(evidence: Sequence[Evidence]) -> str:
    """State which share of the load is recorded, determined and assumed; "" if that is not known."""
    if not evidence:
        return ""
    recorded, determined, assumed = (share(share_of(evidence, basis)) for basis in Basis)
    return (
        f"Of the load's memory-hours {recorded} are recorded, {determined} follow from the record, and {assumed} are "
        "assumed."
    )


def _signed(error: float) -> str:
    return f"{'+' if error >= 0 else '-'}{share(abs(error))}"
