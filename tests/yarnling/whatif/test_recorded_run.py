"""A simulated run is recorded as `yarnling record` would have, and comes back."""

from __future__ import annotations

from tests.yarnling.whatif.small_clusters import application, group, run
from yarnling.whatif.recorded_run import recorded_again
from yarnling.workload.defaults import Defaults
from yarnling.workload.model import Workload
from yarnling.workload.recorded_applications import recorded_workload


def test_a_recorded_run_has_its_times_and_containers() -> None:
    work = application(group(4, 60, memory_mb=2048), group(2, 60, memory_mb=2048, after=0), name="job")
    result = run(work)
    true, cluster = recorded_again(result, Workload((work,)), 5_000)
    assert cluster.every_ms == 5_000
    (one,), ((name, recorded),) = true.applications, cluster.applications.items()
    started_ms = recorded.number("startedTime")
    assert (name, recorded.number("finishedTime") - started_ms) == (one.name, one.run_ms)
    assert recorded.number("launchTime") - started_ms == one.am_wait_ms
    (again,) = recorded_workload(cluster, Defaults()).applications
    assert [(group.after, len(group.durations_ms)) for group in again.groups] == [(None, 4), (0, 2)]
    durations_ms = [duration for group in again.groups for duration in group.durations_ms]
    assert all(abs(duration - 60_000) < 2_500 for duration in durations_ms)
