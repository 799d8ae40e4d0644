"""SYNTH: jobs are drawn from the distributions of a file, the same ones for the same seed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from yarn.faults import ConfigurationException
from yarn.resource import Resource
from yarnling.workload.defaults import Defaults
from yarnling.workload.formats import read_nodes, read_workload

TASK = {"type": "map", "count": {"val": 4}, "time": {"val": 1000, "std": 100}, "max_memory": {"val": 2048}}
REDUCE = {"type": "reduce", "count": {"val": 1}, "time": {"val": 5}, "max_vcores": {"val": 3}, "priority": 10}
CLASS = {"class_name": "c", "user_name": "ann", "class_weight": 1, "type": "mapreduce", "tasks": [REDUCE, TASK]}
TIMES = [{"time": 60, "weight": 1}, {"time": 120, "weight": 0}]


def trace(**job: Any) -> dict[str, Any]:
    workload = {"queue_name": "q", "job_classes": [CLASS | job], "time_distribution": TIMES}
    return {"num_nodes": 4, "nodes_per_rack": 2, "num_jobs": 50, "rand_seed": 2, "workloads": [workload]}


def write(path: Path, document: object) -> Path:
    path.write_text(json.dumps(document))
    return path


def test_jobs_have_what_their_class_says(tmp_path: Path) -> None:
    workload = read_workload(write(tmp_path / "s.json", trace(duration={"val": 60}, deadline_factor={"val": 10})))
    assert len(workload.applications) == 50
    for job in workload.applications:
        maps, reduces = job.groups
        assert (maps.name, len(maps.durations_ms), maps.resource) == ("map", 4, Resource(2048, 1))
        assert (reduces.after, reduces.resource, reduces.durations_ms) == (0, Resource(1024, 3), (5,))
        assert 60_000 <= job.submit_ms < 120_000
        assert (job.user, job.queue, job.kind, job.deadline_ms) == ("ann", "q", "mapreduce", None)
    durations = [ms for job in workload.applications for ms in job.groups[0].durations_ms]
    assert 950 < sum(durations) / len(durations) < 1050
    assert len(set(durations)) > 50


def test_the_seed_decides(tmp_path: Path) -> None:
    path = write(tmp_path / "s.json", trace())
    assert read_workload(path) == read_workload(path)
    assert read_workload(path, defaults=Defaults(seed=1)).applications != read_workload(path).applications


def test_the_older_form_means_the_same(tmp_path: Path) -> None:
    older = {
        "mtasks_avg": 4,
        "mtime_avg": 10,
        "map_max_memory_avg": 2048,
        "map_max_vcores_avg": 1,
        "rtasks_avg": 2,
        "rtime_avg": 20,
        "reduce_max_memory_avg": 100,
        "reduce_max_vcores_avg": 2,
        "dur_avg": 60,
        "chance_of_reservation": 1,
        "deadline_factor_avg": 10,
    }
    document = trace()
    document["workloads"][0]["job_classes"] = [{"class_name": "c", "class_weight": 1, **older}]
    jobs = read_workload(write(tmp_path / "s.json", document)).applications
    maps, reduces = jobs[0].groups
    # A deviation of 0 means a sixth of the average, so that even the memory differs a little.
    assert 1500 < maps.resource.memory_mb < 3500
    assert reduces.resource.memory_mb == 1024
    assert all(job.deadline_ms is not None and 100_000 < job.deadline_ms < 3_600_000 for job in jobs)
    assert {len(job.groups[0].durations_ms) for job in jobs} <= {2, 3, 4, 5, 6, 7}


def test_times_are_milliseconds_as_in_sls_or_seconds_on_request(tmp_path: Path) -> None:
    path = write(tmp_path / "s.json", trace(tasks=[TASK | {"time": {"val": 30}}]))
    assert read_workload(path).applications[0].groups[0].durations_ms == (30,) * 4
    in_seconds = read_workload(path, defaults=Defaults(synth_times_in_seconds=True))
    assert in_seconds.applications[0].groups[0].durations_ms == (30_000,) * 4


def test_the_tasks_of_a_stream_run_as_long_as_the_job(tmp_path: Path) -> None:
    path = write(tmp_path / "s.json", trace(type="stream", duration={"val": 30}, tasks=[TASK | {"type": "stream"}]))
    workload = read_workload(path)
    assert workload.applications[0].groups[0].durations_ms == (30_000,) * 4
    assert any("stream" in text for text in workload.assumptions)


def test_discrete_values_are_drawn_by_weight(tmp_path: Path) -> None:
    count = {"discrete": [1, 7], "weights": [0, 1]}
    path = write(tmp_path / "s.json", trace(tasks=[TASK | {"count": count}]))
    assert {job.containers for job in read_workload(path).applications} == {7}


def test_nodes_are_counted_on_racks(tmp_path: Path) -> None:
    nodes = read_nodes(write(tmp_path / "s.json", trace()))
    assert [(node.host, node.rack) for node in nodes] == [
        ("node0", "/rack0"),
        ("node1", "/rack1"),
        ("node2", "/rack0"),
        ("node3", "/rack1"),
    ]


def test_every_fault_is_reported(tmp_path: Path) -> None:
    document = trace(class_weight=0, tasks=[TASK | {"count": {"val": -1}, "time": {"val": 1, "std": 1, "dist": "X"}}])
    with pytest.raises(ConfigurationException) as refused:
        read_workload(write(tmp_path / "s.json", document))
    assert [fault.key for fault in refused.value.faults] == [
        "workloads[1].job_classes[1].tasks[1].count.val",
        "workloads[1].job_classes[1].tasks[1].time.dist",
    ]
    with pytest.raises(ConfigurationException, match="only weights of 0"):
        read_workload(write(tmp_path / "s.json", trace(class_weight=0)))
