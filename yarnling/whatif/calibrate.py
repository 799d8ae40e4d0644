"""Fits a workload to the run that it was recorded from, by simulating that run again. Pure.

A recording does not say everything: the run time of a container contains the time until its AM has fetched it, and an
AM does not say how long it thinks between two phases. Two such times, the same for all applications, can be told apart
by what they change, so each is fitted to its own figure:

- `held_ms`, which the replay adds to each container: to the memory-hours;
- `phase_delay_ms`, before the containers of each later phase are requested: to the run times of applications with
  several phases, less the waits of their AMs.

A change of `held_ms` is kept if it makes the error of the memory-hours smaller, and one of `phase_delay_ms` if the
replay as a whole becomes better (`badness`). There are few rounds, because the seeds of a simulation differ by more
than a later round gains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import fmean

from msgspec import Struct
from msgspec.structs import replace

from yarnling.whatif.prediction_error import Compared, GroupError, PredictionError, prediction_error
from yarnling.workload.calibration import Calibration, FittedTime, PollingError, ReplayError
from yarnling.workload.evidence import Basis
from yarnling.workload.model import TaskGroup, Workload, WorkloadApplication
from yarnling.workload.observed import REACTION_MS
from yarnling.workload.run_times import ApplicationTimes, RunTimes
from yarnling.workload.start_times import with_mean

HELD_ROUNDS = 3
REPLAYS_MOST = HELD_ROUNDS + 2
"""The first replay, then those for `held_ms`, then one for `phase_delay_ms`."""
MEMORY_ENOUGH = 0.005
"""A smaller error of the memory-hours is not worth another replay."""
DELAY_LEAST_MS = 100
DELAY_MOST_MS = 60_000
HELD_MOST_MS = 10_000
APPLICATIONS_LEAST = 5
"""With fewer applications of several phases nothing is fitted to them."""
WAIT_FLOOR_MS = 10_000
"""Differences of shorter AM waits are judged as if the recorded wait was this long."""


AM_HEARTBEAT_MS = REACTION_MS
AM_HEARTBEAT_ABOUT = (
    "the interval at which AMs call and release what they do not use; no ResourceManager reports when an AM has called"
)


class Parameters(Struct, frozen=True):
    """Times that are fitted, in ms. `am_start_ms`: the mean of all AMs; None: each application has its own."""

    am_start_ms: int | None = None
    held_ms: int = 0
    phase_delay_ms: int = 0


class Replay(Struct, frozen=True):
    """A replay with some parameters, and its error."""

    parameters: Parameters
    workload: Workload
    runs: tuple[RunTimes, ...]
    error: PredictionError


Simulate = Callable[[Workload], Sequence[RunTimes]]
"""Runs the workload under the recorded configuration, once with each seed."""


def fitted(workload: Workload, recorded: RunTimes, start: Parameters, simulate: Simulate) -> tuple[Replay, Replay]:
    """(The first replay, the best one). `start`: with what is known before."""

    def trial(parameters: Parameters) -> Replay:
        changed = with_parameters(workload, parameters)
        runs = tuple(simulate(changed))
        return Replay(parameters, changed, runs, prediction_error(recorded, runs))

    first = best = tried = trial(start)
    for _ in range(HELD_ROUNDS):
        if _memory_error(best) <= MEMORY_ENOUGH:
            break
        tried = trial(replace(start, held_ms=_held_ms(tried, workload)))
        best = min(best, tried, key=_memory_error)
    delay_ms = best.parameters.phase_delay_ms + _missing_delay_ms(workload, recorded, best.runs)
    if delay_ms >= DELAY_LEAST_MS:
        tried = trial(replace(best.parameters, phase_delay_ms=min(delay_ms, DELAY_MOST_MS)))
        best = tried if badness(tried.error) < badness(best.error) else best
    return first, best


def with_parameters(workload: Workload, parameters: Parameters) -> Workload:
    """The workload with these times."""
    return replace(workload, applications=tuple(_with_parameters(each, parameters) for each in workload.applications))


def _with_parameters(application: WorkloadApplication, parameters: Parameters) -> WorkloadApplication:
    groups = tuple(
        replace(
            group,
            durations_ms=tuple(max(duration - parameters.held_ms, 1) for duration in group.durations_ms),
            delay_ms=group.delay_ms if group.after is None else group.delay_ms + parameters.phase_delay_ms,
        )
        for group in application.groups
    )
    mean_ms = parameters.am_start_ms
    start = application.am_start_ms if mean_ms is None else with_mean(mean_ms)
    return replace(application, groups=groups, am_start_ms=start)


def badness(error: PredictionError) -> float:
    """A number that is smaller for a better replay: the sum of the errors of the figures that people ask for."""
    queues = [(group, group.applications) for group in error.queues if group.applications]
    applications = sum(count for _, count in queues) or 1
    by_queue = sum(count * (_size(group.run_mean_ms) + _of_wait(group.am_wait_p95_ms)) for group, count in queues)
    whole = _size(error.makespan_ms) + 3 * _size(error.whole.mb_ms) + (error.whole.use_points or 0) / 100
    return whole + by_queue / applications


def _size(compared: Compared | None) -> float:
    return abs(compared.error or 0.0) if compared is not None else 0.0


def _of_wait(compared: Compared | None) -> float:
    if compared is None:
        return 0.0
    return abs(compared.simulated - compared.recorded) / max(compared.recorded, WAIT_FLOOR_MS)


def _memory_error(trial: Replay) -> float:
    """The size of the error of the memory-hours."""
    return _size(trial.error.whole.mb_ms)


def _held_ms(trial: Replay, workload: Workload) -> int:
    """The time that makes the memory-hours equal if nothing else changes."""
    memory = trial.error.whole.mb_ms
    containers_mb = sum(len(group.durations_ms) * group.resource.memory_mb for group in _groups(workload))
    if memory is None or not containers_mb:
        return trial.parameters.held_ms
    change_ms = (memory.simulated - memory.recorded) / containers_mb
    return min(max(round(trial.parameters.held_ms + change_ms), 0), HELD_MOST_MS)


def _groups(workload: Workload) -> Iterator[TaskGroup]:
    return (group for application in workload.applications for group in application.groups)


def _missing_delay_ms(workload: Workload, recorded: RunTimes, runs: Sequence[RunTimes]) -> int:
    """The time that the replay lacks for each later phase, on average; 0 if few applications have several."""
    later = {each.name: count for each in workload.applications if (count := _later_phases(each))}
    simulated = [{each.name: each for each in run.applications} for run in runs]
    lacking, phases = 0.0, 0
    found = 0
    for one in recorded.applications:
        others = [run[one.name] for run in simulated if one.name in run]
        spans = [_busy_ms(each) for each in (one, *others)]
        if one.name in later and len(others) == len(runs) and None not in spans:
            known = [span for span in spans if span is not None]
            lacking += known[0] - fmean(known[1:])
            phases += later[one.name]
            found += 1
    return round(lacking / phases) if found >= APPLICATIONS_LEAST else 0


def _later_phases(application: WorkloadApplication) -> int:
    return len({group.after for group in application.groups if group.after is not None})


def _busy_ms(times: ApplicationTimes) -> int | None:
    """The time from the placement of the AM to the end."""
    if times.ended_ms is None or times.am_allocated_ms is None:
        return None
    return times.ended_ms - times.am_allocated_ms


def polling_error(every_ms: int, error: PredictionError) -> PollingError:
    """The error of the replay of a simulated run that was recorded at this interval."""
    whole = error.whole
    return PollingError(
        every_ms,
        _rounded(error.makespan_ms),
        _rounded(whole.run_mean_ms),
        _rounded(whole.am_wait_p95_ms),
        _rounded(whole.mb_ms),
        _round(error.application_p50),
    )


def calibration_of(record: str, trial: Replay, am_start_about: str, polling: PollingError | None = None) -> Calibration:
    """The calibration that is written with the workload. `am_start_about`: what the start time of AMs follows from."""
    error, now = trial.error, trial.parameters
    times = [
        FittedTime("held_ms", now.held_ms, "from the placement of a container to its start, from the memory-hours"),
        FittedTime("phase_delay_ms", now.phase_delay_ms, "before each later phase of an application, from run times"),
    ]
    if now.am_start_ms is not None:
        times.insert(0, FittedTime("am_start_ms", now.am_start_ms, am_start_about, Basis.RECORDED))
    times.append(FittedTime("am_heartbeat_ms", AM_HEARTBEAT_MS, AM_HEARTBEAT_ABOUT, Basis.ASSUMED))
    return Calibration(
        record,
        len(trial.runs),
        tuple(_replay_error(group) for group in (error.whole, *error.queues)),
        tuple(times),
        _rounded(error.makespan_ms),
        _round(error.application_p50),
        polling,
    )


def _replay_error(group: GroupError) -> ReplayError:
    return ReplayError(
        group.name,
        group.applications,
        _rounded(group.run_mean_ms),
        _rounded(group.am_wait_p50_ms),
        _rounded(group.am_wait_p95_ms),
        _rounded(group.mb_ms),
        None if group.use_points is None else round(group.use_points, 2),
    )


def _rounded(compared: Compared | None) -> float | None:
    return None if compared is None else _round(compared.error)


def _round(error: float | None) -> float | None:
    return None if error is None else round(error, 4)
