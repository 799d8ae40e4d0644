"""The times of a recorded cluster's applications and their use of memory, for the comparison with a simulation.

Submissions, launches of AMs and ends are the ResourceManager's own times. Use is what each application held at each
poll, which changed in the middle between two polls.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from itertools import pairwise

from yarnling.workload.recorded_applications import first_submission_ms, is_used
from yarnling.workload.recorded_cluster import Level, RecordedCluster, TrackedApplication
from yarnling.workload.recorded_nodes import recorded_nodes
from yarnling.workload.run_times import ALL_QUEUES, STEP_MS, ApplicationTimes, RunTimes, Span, UseOverTime


def recorded_times(cluster: RecordedCluster) -> RunTimes:
    """The times of the applications that used anything, since the first submission of the recording."""
    base_ms = first_submission_ms(cluster)
    wanted = {name: each for name, each in sorted(cluster.applications.items()) if is_used(each)}
    spans: dict[str, list[Span]] = defaultdict(list)
    for application in wanted.values():
        for start_ms, end_ms, memory_mb in _spans(application):
            span = (start_ms - base_ms, end_ms - base_ms, memory_mb)
            spans[application.text("queue")].append(span)
            spans[ALL_QUEUES].append(span)
    return RunTimes(
        tuple(_application(name, each, cluster, base_ms) for name, each in wanted.items()),
        {queue: UseOverTime.of_containers(held) for queue, held in spans.items()},
        sum(node.resource.memory_mb for node in recorded_nodes(cluster).nodes),
        max(STEP_MS, 2 * _poll_ms(wanted.values())),
        cluster.ends_ms - base_ms,
    )


def mean_am_start_ms(cluster: RecordedCluster, least: int) -> int | None:
    """The mean time from the launch of an AM to its registration; None if fewer applications than `least` show it.

    The middle between the two polls in which an AM registered is wrong by up to half of their distance in either
    direction, which a mean over many AMs leaves out.
    """
    delays = [
        (before_ms + at_ms) / 2 - launched_ms
        for each in cluster.applications.values()
        if each.registered is not None and (launched_ms := each.number("launchTime"))
        for before_ms, at_ms in (each.registered,)
    ]
    return max(round(sum(delays) / len(delays)), 0) if len(delays) >= least else None


def _application(name: str, each: TrackedApplication, cluster: RecordedCluster, base_ms: int) -> ApplicationTimes:
    launched_ms = each.number("launchTime")
    has_ended = each.has_ended and each.number("finishedTime") > 0
    is_whole = not cluster.began_before(each)
    memory_mb_s = each.number("memorySeconds")
    return ApplicationTimes(
        name=name,
        queue=each.text("queue"),
        submitted_ms=cluster.submitted_ms(each) - base_ms,
        am_allocated_ms=launched_ms - base_ms if is_whole and launched_ms else None,
        ended_ms=each.number("finishedTime") - base_ms if has_ended else None,
        mb_ms=memory_mb_s * 1000 if has_ended and is_whole and memory_mb_s else None,
    )


def _spans(application: TrackedApplication) -> Iterator[Span]:
    """The memory of an application from each change to the next."""
    launched_ms = application.number("launchTime")
    ended_ms = application.number("finishedTime") if application.has_ended else 0
    end = Level(application.last_ms, application.last_ms, 0, 0, 0)
    for level, later in pairwise([*application.levels, end]):
        start_ms = max((level.before_ms + level.at_ms) // 2, launched_ms)
        end_ms = (later.before_ms + later.at_ms) // 2
        if later.before_ms <= ended_ms <= later.at_ms:
            end_ms = ended_ms
        if level.memory_mb > 0 and end_ms > start_ms:
            yield start_ms, end_ms, level.memory_mb


def _poll_ms(applications: Collection[TrackedApplication]) -> int:
    """The median distance of two polls."""
    distances = sorted(level.at_ms - level.before_ms for each in applications for level in each.levels)
    return distances[len(distances) // 2] if distances else 0
