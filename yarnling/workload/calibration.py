"""The calibration of a workload on the run that was recorded: what was fitted, and the error that remains. Pure data.

It is written with the workload, so that a later prediction can say how far it is to be trusted.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct


class FittedTime(Struct, frozen=True):
    """A time of the workload that was fitted, in ms. `about`: what it is, and what it follows from."""

    name: str
    value_ms: int
    about: str


class ReplayError(Struct, frozen=True):
    """The difference of the replay from the recorded run in a queue, as fractions of the recorded figures, negative if
    the replay has less; None: not recorded. `queue`: its path; "": all. `use_points`: the mean difference of the memory
    in use over time, in percent of the cluster's memory.
    """

    queue: str
    applications: int
    run_mean: float | None = None
    am_wait_p50: float | None = None
    am_wait_p95: float | None = None
    memory: float | None = None
    use_points: float | None = None


class Calibration(Struct, frozen=True):
    """The calibration of a workload. `record`: the name of the recording. `seeds`: how many runs each figure is a mean
    of. `errors`: of all applications, then of each queue. `application_p50`: the median error of one run time.
    """

    record: str
    seeds: int
    errors: tuple[ReplayError, ...]
    fitted: tuple[FittedTime, ...] = ()
    makespan: float | None = None
    application_p50: float | None = None

    @property
    def whole(self) -> ReplayError:
        """The error of all applications together."""
        return self.errors[0]

    def of_queue(self, queue: str) -> ReplayError:
        """The error in a queue; that of all applications for a queue without recorded ones."""
        return next((each for each in self.errors if each.queue == queue), self.whole)

    def headline_errors(self) -> Iterator[tuple[str, float]]:
        """(name of a figure, its error), of the figures of all applications that are known."""
        named = {
            "the makespan": self.makespan,
            "the mean run time": self.whole.run_mean,
            "the p95 wait of AMs": self.whole.am_wait_p95,
            "the memory-hours": self.whole.memory,
        }
        return ((name, error) for name, error in named.items() if error is not None)
