"""The workload, the nodes and the configuration of a recording.

recorded/2026-11-27.jsonl.gz is a recording of Hadoop 3.4.1's ResourceManager, polled each 2 s while
recorded/workload.jsonl ran on it in real time, after some applications that warmed it up. The others are recordings of
answers that a test made up.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.yarnling.recorder.fake_cluster import START_MS, Clock, FakeCluster, app, node, recorder_of
from yarn.faults import ConfigurationException
from yarn.resource import Resource
from yarnling.workload.defaults import Defaults
from yarnling.workload.evidence import Basis, share_of
from yarnling.workload.formats import read_node_list, read_recorded_cluster, read_recorded_times, read_workload
from yarnling.workload.model import NodeChange, NodeEvent, WorkloadApplication
from yarnling.workload.recorded_cluster import RecordedCluster
from yarnling.workload.recorded_conditions import RecordedWaits, recorded_files, recorded_waits

RECORDED = Path(__file__).parent / "recorded"
RECORDING = RECORDED / "2026-11-27.jsonl.gz"
NAMES = json.loads((RECORDED / "recording-names.json").read_text())
TRUE = {each.name: each for each in read_workload(RECORDED / "workload.jsonl").applications}


class Day:
    """A cluster that is recorded into a directory, one poll each 15 s."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory / "recording"
        self.cluster, self.clock = FakeCluster(), Clock()
        self.recorder = recorder_of(self.cluster, self.directory, self.clock)

    def poll(self, *live: dict[str, Any], ended: tuple[dict[str, Any], ...] = (), count: int = 1) -> None:
        self.cluster.live, self.cluster.ended = list(live), list(ended)
        for _ in range(count):
            asyncio.run(self.recorder.poll())
            self.clock.now_ms += 15_000

    def list_containers(self, *numbers: int, memory_mb: int = 2048, start_ms: int | None = None) -> None:
        """The containers that the first application has, its AM of 1024 MB among them.

        `start_ms`: when they began, since the first poll; None: the release does not say it.
        """
        rows = [
            {
                "containerId": f"container_1_0001_01_{number:06}",
                "allocatedMB": str(memory_mb if number > 1 else 1024),
                "allocatedVCores": "1",
                "priority": "1",
                "startedTime": "5" if start_ms is None else str(START_MS + start_ms),
            }
            for number in (1, *numbers)
        ]
        path = "/apps/application_1_0001/appattempts/appattempt_1_0001_000001/containers"
        self.cluster.answers[path] = {"container": rows}

    def application(self, **defaults: Any) -> WorkloadApplication:
        (application,) = read_workload(self.directory, defaults=Defaults(**defaults)).applications
        return application

    def read(self) -> RecordedCluster:
        cluster = read_recorded_cluster(self.directory)
        assert cluster is not None
        return cluster


@pytest.fixture
def day(tmp_path: Path) -> Day:
    return Day(tmp_path)


def holds(containers: int, memory_mb: int, **more: Any) -> dict[str, Any]:
    """The first application with so many containers, an AM of 1024 MB among them; what it used so far is not
    reported.
    """
    entry = app(1, runningContainers=containers, allocatedMB=memory_mb, allocatedVCores=containers, **more)
    return {key: value for key, value in entry.items() if key in more or key not in ("memorySeconds", "elapsedTime")}


def ended(at_ms: int, memory_seconds: int, **more: Any) -> dict[str, Any]:
    return holds(
        -1, -1, state="FINISHED", finishedTime=START_MS + at_ms, elapsedTime=at_ms, memorySeconds=memory_seconds, **more
    )


def test_hadoops_cluster_has_all_applications_with_their_sizes() -> None:
    workload = read_workload(RECORDING)
    applications = [each for each in workload.applications if NAMES[each.name] != "warm"]
    assert len(applications) == len(TRUE)
    for each in applications:
        true = TRUE[NAMES[each.name]]
        assert (each.user, each.queue, each.kind) == (true.user, true.queue, true.kind)
        assert each.am_resource == true.am_resource
        assert {group.resource for group in each.groups} == {group.resource for group in true.groups}
    assert share_of(workload.evidence, Basis.ASSUMED) < 0.03


def test_hadoops_cluster_has_the_memory_hours_that_it_reports() -> None:
    """Memory-hours are a seventh more than the tasks had: surplus containers count, and the times until tasks start."""

    def mb_s(application: WorkloadApplication) -> float:
        return sum(group.resource.memory_mb * sum(group.durations_ms) for group in application.groups) / 1000

    applications = [each for each in read_workload(RECORDING).applications if NAMES[each.name] != "warm"]
    assert sum(map(mb_s, applications)) / sum(map(mb_s, TRUE.values())) == pytest.approx(1.13, abs=0.01)


def test_hadoops_nodes_and_configuration_are_written() -> None:
    nodes = read_node_list(RECORDING).nodes
    assert [(each.host, each.resource) for each in nodes] == [
        (f"127.0.1.{n}", Resource(16384, 16)) for n in range(1, 5)
    ]
    cluster = read_recorded_cluster(RECORDING)
    assert cluster is not None
    files = recorded_files(cluster).files
    assert "<name>yarn.scheduler.capacity.root.etl.capacity</name><value>60</value>" in files["capacity-scheduler.xml"]
    assert "CapacityScheduler" in files["yarn-site.xml"]
    etl = next(each for each in recorded_waits(cluster) if each.queue == "root.etl")
    assert etl.applications == 10
    assert 1000 < etl.p50_ms < etl.p95_ms < 20_000


def test_executors_run_from_their_poll_to_the_end(day: Day) -> None:
    day.poll(holds(1, 1024))
    day.poll(holds(3, 5120), count=4)
    day.poll(ended=(ended(70_000, 250_000),))
    application = day.application()
    (group,) = application.groups
    assert (group.resource, len(group.durations_ms)) == (Resource(2048, 1), 2)
    # Seen from 7.5 to 70 s; the ResourceManager counted less: 250,000 MB-s, of which the AM had 69,632.
    assert sum(group.durations_ms) * 2.048 == pytest.approx(250_000 - 68 * 1024, abs=4)
    assert (application.submit_ms, application.am_resource) == (0, Resource(1024, 1))


def test_containers_that_end_are_the_oldest(day: Day) -> None:
    day.poll(holds(1, 1024))
    day.poll(holds(3, 5120), count=2)
    day.poll(holds(2, 3072), count=2)
    day.poll(holds(3, 5120), count=2)
    day.poll(ended=(ended(105_000, 0),))
    (group,) = day.application().groups
    assert sorted(group.durations_ms) == [29_000, 37_500, 96_500]


def test_a_list_of_containers_that_have_just_begun_does_not_say_how_long_they_run(day: Day) -> None:
    day.poll(holds(1, 1024))
    day.list_containers(2, 3)
    day.poll(holds(3, 5120))
    day.cluster.answers.clear()
    day.poll(holds(3, 5120), count=5)
    day.poll(ended=(ended(105_000, 0),))
    (group,) = day.application().groups
    assert len(group.durations_ms) == 2


def test_a_list_tells_how_many_ran_one_after_another(day: Day) -> None:
    """Two containers at each of 20 polls, and the last one has number 41: 40 containers of 15 s."""
    day.poll(holds(1, 1024))
    day.list_containers(2, 3)
    day.poll(holds(3, 5120), count=19)
    day.list_containers(40, 41)
    day.poll(holds(3, 5120))
    day.poll(holds(1, 1024))
    day.poll(ended=(ended(330_000, 0),))
    (group,) = day.application().groups
    assert len(group.durations_ms) == pytest.approx(40, abs=2)
    assert sum(group.durations_ms) == 2 * 299_000


def test_tasks_without_a_list_are_assumed(day: Day) -> None:
    day.poll(holds(1, 1024, applicationType="MAPREDUCE"))
    day.poll(holds(3, 5120, applicationType="MAPREDUCE", amContainerLogs=""), count=8)
    day.poll(ended=(ended(135_000, 0, applicationType="MAPREDUCE"),))
    workload = read_workload(day.directory, defaults=Defaults(task_ms=15_000))
    assert sum(each.containers for each in workload.applications) == 16
    assert share_of(workload.evidence, Basis.ASSUMED) > 0.5


def test_sizes_of_two_kinds_of_containers_are_told_apart(day: Day) -> None:
    day.poll(holds(1, 1024))
    day.poll(holds(3, 5120), count=2)
    day.poll(holds(4, 5120 + 8192), count=2)
    day.poll(ended=(ended(75_000, 0),))
    assert {group.resource.memory_mb for group in day.application().groups} == {2048, 8192}


def test_short_applications_are_made_of_their_totals(day: Day) -> None:
    day.poll(holds(1, 1024), count=2)
    day.poll(ended=(ended(40_000, 200_000, vcoreSeconds=100, applicationType="TEZ"),))
    workload = read_workload(day.directory)
    assert [each.name for each in workload.applications] == ["application_1_0001"]
    assert any("1 applications ended before a poll saw a container" in each for each in workload.assumptions)
    assert sum(each.share for each in workload.evidence) == pytest.approx(1)


def test_a_recording_that_goes_on_after_the_recorder_was_stopped(tmp_path: Path) -> None:
    day = Day(tmp_path)
    day.poll(holds(3, 5120), count=3)
    day.recorder._files.close()
    day.clock.now_ms += 60_000
    day.recorder = recorder_of(day.cluster, day.directory, day.clock)
    day.poll(holds(3, 5120), count=2)
    day.poll(ended=(ended(135_000, 0),))
    (group,) = day.application().groups
    assert sum(group.durations_ms) > 2 * 100_000


def test_an_application_that_was_not_seen_again_ended_before(tmp_path: Path) -> None:
    day = Day(tmp_path)
    day.poll(holds(3, 5120), count=3)
    day.recorder._files.close()
    day.clock.now_ms += 3_600_000
    day.recorder = recorder_of(day.cluster, day.directory, day.clock)
    day.poll(app(2), count=3)
    first = next(each for each in read_workload(day.directory).applications if each.name.endswith("1"))
    assert max(first.groups[0].durations_ms) <= 45_000


def waits_for(memory_mb: int) -> dict[str, Any]:
    return {"resourceInfo": {"resourceUsagesByPartition": [{"pending": {"memory": memory_mb}}]}}


@pytest.mark.parametrize("pending_mb", [0, 4096])
def test_containers_that_were_requested_after_the_earlier_ones_are_a_phase(day: Day, pending_mb: int) -> None:
    """Between two polls two containers end and two begin: the poll before says whether these had been requested."""
    lists = (2, 3, 10_000), (2, 3, 10_000), (4, 5, 70_000)
    day.poll(holds(1, 1024, **waits_for(4096)))
    for first, second, start_ms in lists:
        day.list_containers(first, second, start_ms=start_ms)
        day.poll(holds(3, 5120, **waits_for(pending_mb)), count=2)
    day.poll(ended=(ended(100_000, 0, applicationType="TEZ"),))
    application = day.application()
    assert [group.after for group in application.groups] == ([None, 0] if not pending_mb else [None])
    assert application.containers == 4


def test_containers_that_are_requested_later_than_their_phase_begins_have_a_delay(day: Day) -> None:
    """The AM registered in the first 15 s, about in the middle; nothing was wanted before 45 s, when two more began."""
    day.poll(holds(1, 1024, state="ACCEPTED", **waits_for(0)))
    day.poll(holds(3, 5120, **waits_for(0)), count=3)
    day.poll(holds(5, 9216, **waits_for(0)), count=2)
    day.poll(ended=(ended(90_000, 0, applicationType="TEZ"),))
    found = [(group.after, group.delay_ms, len(group.durations_ms)) for group in day.application().groups]
    assert found == [(None, 0, 2), (None, 44_000, 2)]


def have_nodes(day: Day, *nodes: dict[str, Any]) -> None:
    day.cluster.answers["/nodes"] = {"nodes": {"node": list(nodes)}}


def test_nodes_that_came_and_went_have_their_times(day: Day) -> None:
    key = "yarn.nm.liveness-monitor.expiry-interval-ms"
    day.cluster.answers["/conf"] = {"properties": [{"key": key, "value": "30000", "resource": "yarn-site.xml"}]}
    have_nodes(day, node("n1"), node("n2"), node("n3"), node("n5", state="LOST"))
    day.poll(holds(3, 5120), count=4)
    have_nodes(day, node("n1", state="LOST"), node("n2", state="DECOMMISSIONING"), node("n4"))
    day.poll(holds(3, 5120), count=2)
    have_nodes(day, node("n2", state="DECOMMISSIONED"), node("n4"), node("n1"))
    day.poll(holds(3, 5120), count=4)
    listed = read_node_list(day.directory)
    assert [each.host for each in listed.nodes] == ["n1", "n2", "n3", "n4"]
    assert listed.schedule.events == (
        NodeEvent(30_000, "n1", NodeChange.LOST),
        NodeEvent(60_000, "n2", NodeChange.DRAIN, -1),
        NodeEvent(60_000, "n3", NodeChange.LEAVE),
        NodeEvent(60_000, "n4", NodeChange.JOIN),
        NodeEvent(90_000, "n1", NodeChange.JOIN),
        NodeEvent(90_000, "n2", NodeChange.LEAVE),
    )
    assert listed.assumptions == (
        "Nodes changed during the recording (join 2, leave 2, drain 1, lost 1), at the times of the polls that saw it.",
        "Lost nodes are taken to have failed 30 s before, which is how long it takes to notice it.",
    )


def test_a_drained_node_keeps_its_size(day: Day) -> None:
    """While it is drained, the ResourceManager reports what it still uses as its size."""
    have_nodes(day, node("n1"))
    day.poll(holds(3, 5120))
    have_nodes(day, node("n1", state="DECOMMISSIONING", totalResource={"memory": 1024, "vCores": 1}))
    day.poll(holds(3, 5120))
    (listed,) = read_node_list(day.directory).nodes
    assert listed.resource == Resource(8192, 4)


def test_an_application_from_before_the_recording_begins_with_it(day: Day) -> None:
    """The application had run for an hour, so the memory-seconds at its end say nothing about what was recorded."""
    started = {"startedTime": START_MS - 3_600_000, "launchTime": START_MS - 3_599_000}
    day.poll(holds(3, 5120, **started), count=4)
    day.poll(ended=(ended(52_500, 9_000_000, **started),))
    application = day.application()
    assert application.submit_ms == 0
    assert max(application.groups[0].durations_ms) < 60_000
    recorded = read_recorded_times(day.directory)
    assert recorded is not None
    (times,) = recorded.applications
    assert (times.submitted_ms, times.run_ms, times.am_wait_ms, times.mb_ms) == (0, 52_500, None, None)


def test_times_of_nodes_are_since_the_first_submission(day: Day) -> None:
    """The first submission came a minute after the recording had begun."""
    have_nodes(day, node("n1"), node("n2"))
    day.poll(count=2)
    have_nodes(day, node("n1"), node("n3"))
    day.poll(count=2)
    have_nodes(day, node("n3"))
    day.poll(holds(3, 5120, startedTime=START_MS + 50_000), count=2)
    listed = read_node_list(day.directory)
    assert [each.host for each in listed.nodes] == ["n1", "n3"]
    assert listed.schedule.events == (NodeEvent(10_000, "n1", NodeChange.LEAVE),)


def test_a_node_that_restarts_with_another_port_is_one_node(day: Day) -> None:
    have_nodes(day, node("n1"))
    day.poll(holds(3, 5120), count=2)
    have_nodes(day, {**node("n1"), "id": "n1:2"}, {**node("n2"), "id": "n2:1"}, {**node("n2"), "id": "n2:2"})
    day.poll(holds(3, 5120), count=2)
    listed = read_node_list(day.directory)
    assert [each.host for each in listed.nodes] == ["n1", "n2-1", "n2-2"]
    assert [(each.time_ms, each.host, each.change.value) for each in listed.schedule.events] == [
        (30_000, "n1", "leave"),
        (30_000, "n1", "join"),
        (30_000, "n2-1", "join"),
        (30_000, "n2-2", "join"),
    ]


def test_a_node_that_went_while_nobody_recorded_is_not_there_afterwards(day: Day) -> None:
    have_nodes(day, node("n1"), node("n2"))
    day.poll(holds(3, 5120), count=2)
    day.recorder._files.close()
    day.clock.now_ms += 600_000
    day.recorder = recorder_of(day.cluster, day.directory, day.clock)
    have_nodes(day, node("n1"))
    day.poll(holds(3, 5120), count=2)
    events = read_node_list(day.directory).schedule.events
    assert [(each.host, each.change) for each in events] == [("n2", NodeChange.LEAVE)]


def test_a_recorded_minimum_allocation_decides_about_sizes(day: Day) -> None:
    key = "yarn.scheduler.minimum-allocation-mb"
    day.cluster.answers["/conf"] = {"properties": [{"key": key, "value": "512", "resource": "yarn-site.xml"}]}
    day.poll(holds(1, 1024))
    day.poll(holds(3, 1024 + 2 * 1536), count=4)
    day.poll(ended=(ended(75_000, 0),))
    assert day.application(step_mb=1024).groups[0].resource.memory_mb == 1536


def test_changes_of_the_configuration_are_listed_and_the_first_is_written(day: Day) -> None:
    key = "yarn.scheduler.minimum-allocation-mb"
    conf = {"properties": [{"key": key, "value": "512", "resource": "yarn-site.xml"}]}
    day.cluster.answers["/conf"] = conf
    day.poll(holds(3, 5120), count=2)
    day.cluster.started_ms = 2
    conf["properties"][0]["value"] = "1024"
    day.poll(holds(3, 5120), count=2)
    del day.cluster.answers["/conf"]
    cluster = day.read()
    cluster.queues.clear()
    found = recorded_files(cluster)
    assert f"<name>{key}</name><value>512</value>" in found.files["yarn-site.xml"]
    assert any(f"30 s after the beginning: {key}" in note for note in found.notes)


def test_waits_of_ams_are_those_that_the_resource_manager_reports(day: Day) -> None:
    live = [app(number, launchTime=START_MS + 1000 * number) for number in range(1, 21)]
    day.poll(*live, app(21, launchTime=0))
    assert recorded_waits(day.read()) == [RecordedWaits("root.etl", 20, 10_000, 19_000)]


def test_lines_that_cannot_be_read_are_counted(day: Day, tmp_path: Path) -> None:
    day.poll(holds(3, 5120), count=2)
    lines = [
        "",
        "nonsense",
        "[" * 5000,
        '{"what":"new","at":1}',
        '{"what":"apps","at":"x"}',
        '{"what":"recording","at":1}',
    ]
    (tmp_path / "recording" / "9.jsonl").write_text("\n".join(lines))
    assert day.read().unreadable == 4


def test_a_recording_without_applications_is_refused(day: Day) -> None:
    day.poll()
    with pytest.raises(ConfigurationException, match="has no application to import"):
        read_workload(day.directory)
