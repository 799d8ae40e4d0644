"""SLS's jobs and nodes, as SLSRunner, AMDefinitionSLS and TaskContainerDefinition read them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from yarn.faults import ConfigurationException
from yarn.resource import Resource
from yarnling.workload.formats import read_nodes, read_workload
from yarnling.workload.model import Workload, WorkloadApplication


def task(**more: Any) -> dict[str, Any]:
    return {"container.duration.ms": 1000} | {key.replace("__", "."): value for key, value in more.items()}


def job(*tasks: dict[str, Any], **more: Any) -> dict[str, Any]:
    keys = {"job.id": "j", "job.user": "ann", "job.queue.name": "q", "job.start.ms": 0, "job.tasks": list(tasks)}
    return keys | {key.replace("__", "."): value for key, value in more.items()}


def read(tmp_path: Path, *jobs: dict[str, Any]) -> Workload:
    (tmp_path / "jobs.json").write_text("\n".join(json.dumps(each, indent=1) for each in jobs))
    return read_workload(tmp_path / "jobs.json")


def read_one(tmp_path: Path, *tasks: dict[str, Any], **more: Any) -> WorkloadApplication:
    (application,) = read(tmp_path, job(*tasks, **more)).applications
    return application


def test_reduces_wait_for_all_maps_and_have_hadoops_priorities(tmp_path: Path) -> None:
    maps = [task(container__host=f"/rack/n{i}", container__priority=3) for i in (1, 2, 1)]
    application = read_one(tmp_path, task(container__type="reduce"), *maps)
    assert [(group.name, group.priority, group.hosts, group.after) for group in application.groups] == [
        ("map", 20, ("n1",), None),
        ("map", 20, ("n2",), None),
        ("reduce", 10, (), 1),
    ]
    assert application.groups[0].durations_ms == (1000, 1000)


def test_a_dag_requests_all_tasks_at_their_delays(tmp_path: Path) -> None:
    tasks = [task(container__priority=5), task(container__request__delay=1500, container__type="other")]
    application = read_one(tmp_path, *tasks, yarn__sls__am__type="dag")
    assert application.kind == "dag"
    assert [(group.priority, group.delay_ms, group.after) for group in application.groups] == [
        (5, 0, None),
        (20, 1500, None),
    ]


def test_a_duration_counts_before_the_times_of_start_and_end(tmp_path: Path) -> None:
    times = {"container.start.ms": 100, "container.end.ms": 400}
    tasks = [times, times | {"duration.ms": 2}, times | {"duration.ms": 2, "container.duration.ms": 3}]
    assert read_one(tmp_path, *tasks).groups[0].durations_ms == (300, 2, 3)


def test_tasks_and_jobs_are_counted(tmp_path: Path) -> None:
    workload = read(tmp_path, job(task(count=3), job__count=2))
    assert [(each.name, each.containers) for each in workload.applications] == [("j-1", 3), ("j-2", 3)]


def test_amounts_of_resources_are_read_by_their_names(tmp_path: Path) -> None:
    sized = {"container.memory-mb": 4096, "container.vcores": "2", "container.yarn.io/gpu": 1}
    application = read_one(tmp_path, task() | sized, **{"am.memory-mb": 512})
    assert application.groups[0].resource == Resource(4096, 2, (("yarn.io/gpu", 1),))
    assert application.am_resource == Resource(512, 1)


def test_what_a_trace_does_not_say_is_listed(tmp_path: Path) -> None:
    bare = job(task(container__execution__type="OPPORTUNISTIC"), task(container__type="odd"))
    del bare["job.user"]
    text = " ".join(read(tmp_path, bare).assumptions)
    assert "2 entries of tasks do not say their memory: <memory:1024, vCores:1> is assumed." in text
    assert "1 jobs name no user" in text
    assert "1 tasks of MapReduce jobs are neither map nor reduce" in text
    assert "1 entries of tasks are opportunistic" in text


def test_times_since_1970_become_times_since_the_first_submission(tmp_path: Path) -> None:
    start = 1_700_000_000_000
    workload = read(tmp_path, job(task(), job__start__ms=start + 500), job(task(), job__start__ms=start))
    assert [each.submit_ms for each in workload.applications] == [0, 500]


def test_every_fault_names_its_job_and_line(tmp_path: Path) -> None:
    nowhere = job(task())
    del nowhere["job.queue.name"]
    wrong = job({"container.start.ms": 5, "container.end.ms": 5}, task() | {"container.memory-mb": "much"})
    with pytest.raises(ConfigurationException) as refused:
        read(tmp_path, job(), wrong, nowhere)
    assert [(fault.origin.line, fault.key) for fault in refused.value.faults] == [
        (1, "job 1.job.tasks"),
        (8, "job 2.job.tasks[1]"),
        (8, "job 2.job.tasks[2].container.memory-mb"),
        (24, "job 3"),
    ]


def test_nodes_have_racks_sizes_and_labels(tmp_path: Path) -> None:
    rack = {"rack": "r1", "nodes": [{"node": "a"}, {"node": "b", "memory-mb": 2048, "vcores": 3, "labels": "x, y"}]}
    (tmp_path / "nodes.json").write_text(json.dumps(rack) + json.dumps({"rack": "r2", "nodes": [{"node": "c"}]}))
    nodes = read_nodes(tmp_path / "nodes.json")
    assert [(node.host, node.rack, str(node.resource), node.label) for node in nodes] == [
        ("a", "/r1", "<memory:10240, vCores:10>", ""),
        ("b", "/r1", "<memory:2048, vCores:3>", "x"),
        ("c", "/r2", "<memory:10240, vCores:10>", ""),
    ]


def test_without_a_node_file_the_cluster_has_the_hosts_of_the_trace(tmp_path: Path) -> None:
    read(tmp_path, job(task(container__host="/r/n2"), task(container__host="/r/n1")))
    assert [node.host for node in read_nodes(tmp_path / "jobs.json")] == ["n1", "n2"]
