"""Words about how far a prediction is to be trusted: what the replay of the recorded run was off by, and what the load
rests on. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from yarn.times import duration
from yarnling.report.wording import share, short_names
from yarnling.workload.calibration import Calibration, PollingError
from yarnling.workload.evidence import Basis, Evidence, share_of

OFF_LIMIT = 0.15
"""With a larger error of the replay, a report begins with it."""
QUEUES_NAMED = 4


def errors_in_words(calibration: Calibration | PollingError) -> str:
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


def polling_sentence(polling: PollingError) -> str:
    """State the error that comes from the interval of the polls."""
    each = polling.application_p50
    of_one = "" if each is None else f", one application by {share(each)} in the median"
    return (
        f"Polls each {duration(polling.every_ms)} alone cause this error (a simulated run, recorded so and replayed): "
        f"{errors_in_words(polling)}{of_one}."
    )


def trust(calibration: Calibration | None, evidence: Sequence[Evidence]) -> tuple[str, ...]:
    """Sentences about how far a prediction is to be trusted; none for a workload that rests on nothing recorded."""
    sentences = [replay_sentence(calibration), *_waits_by_queue(calibration)] if calibration is not None else []
    if share_of(evidence, Basis.ASSUMED) < 1:
        sentences += [sentence for sentence in (load_sentence(evidence),) if sentence]
    return tuple(sentences)


def doubt(calibration: Calibration | None) -> str:
    """The words with which a comparison begins if the replay was far off; "" otherwise."""
    if calibration is None or not is_far_off(calibration):
        return ""
    return f"The replay of {calibration.record} was off by up to {share(largest_error(calibration))}. "


def _waits_by_queue(calibration: Calibration) -> list[str]:
    """A sentence about the waits of AMs in the queues with the largest errors."""
    known = [(each.queue, each.am_wait_p95) for each in calibration.errors[1:] if each.am_wait_p95 is not None]
    known.sort(key=lambda each: -abs(each[1]))
    names = short_names(queue for queue, _ in known)
    worst = ", ".join(f"{names[queue]} {_signed(error)}" for queue, error in known[:QUEUES_NAMED])
    return [f"Its p95 waits of AMs were off, by queue: {worst}."] if worst else []


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
