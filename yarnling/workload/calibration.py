"""The calibration of a workload on the run that was recorded: what was fitted, and the error that remains. Pure data.

It is written with the workload, so that a later prediction can say how far it is to be trusted.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from yarnling.workload.evidence import Basis


class FittedTime(Struct, frozen=True):
    """A time of the workload, in ms, that was fitted; or that was recorded or assumed. `about`: what it is, and what it
    follows from.
    """

    name: str
    value_ms: int
    about: str
    basis: Basis = Basis.DETERMINED


class PollingError(Struct, frozen=True):
    """The error that comes from the interval of the polls alone, as fractions: by so much a simulated run, recorded at
    this interval and replayed, differs from itself. `application_p50`: the median error of one run time.
    """

    every_ms: int
    makespan: float | None = None
    run_mean: float | None = None
    am_wait_p95: float | None = None
    memory: float | None = None
    application_p50: float | None = None

    def headline_errors(self) -> Iterator[tuple[str, float]]:
        """(name of a figure, its error), of the figures of all applications that are known."""
        return _named(self.makespan, self.run_mean, self.am_wait_p95, self.memory)


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
    `polling`: the part that comes from the interval of the polls; None: not known, or there was none.
    """

    record: str
    seeds: int
    errors: tuple[ReplayError, ...]
    fitted: tuple[FittedTime, ...] = ()
    makespan: float | None = None
    application_p50: float | None = None
    polling: PollingError | None = None

    @property
    def whole(self) -> ReplayError:
        """The error of all applications together."""
        return self.errors[0]

    def of_queue(self, queue: str) -> ReplayError:
        """The error in a queue; that of all applications for a queue without recorded ones."""
        return next((each for each in self.errors if each.queue == queue), self.whole)

    def headline_errors(self) -> Iterator[tuple[str, float]]:
        """(name of a figure, its error), of the figures of all applications that are known."""
        whole = self.whole
        return _named(self.makespan, whole.run_mean, whole.am_wait_p95, whole.memory)


def _named(
    makespan: float | None, run_mean: float | None, am_wait_p95: float | None, memory: float | None
) -> Iterator[tuple[str, float]]:
    named = {
        "the makespan": makespan,
        "the mean run time": run_mean,
        "the p95 wait of AMs": am_wait_p95,
        "the memory-hours": memory,
    }
    return ((name, error) for name, error in named.items() if error is not None)
