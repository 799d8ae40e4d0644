"""SWIM, Rumen and DynoYARN."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from yarn.faults import ConfigurationException
from yarn.resource import Resource
from yarnling.workload.formats import read_nodes, read_workload

MIB = 1 << 20


def test_swim_bytes_become_tasks(tmp_path: Path) -> None:
    rows = [("small", 10, 10, 0, 0, 0), ("large", 5, 0, 129 * MIB, 64 * MIB, 64 * MIB)]
    (tmp_path / "t.tsv").write_text("".join("\t".join(map(str, row)) + "\n" for row in rows))
    large, small = read_workload(tmp_path / "t.tsv").applications
    assert (large.name, large.submit_ms, small.submit_ms) == ("large", 5_000, 10_000)
    maps, reduces = large.groups
    # 3 maps move 193 MiB and 2 reduces 128 MiB, at 10 MiB a second after 5 s.
    assert maps.durations_ms == (5_000 + 193 * 1000 // 30,) * 3
    assert reduces.durations_ms == (5_000 + 6_400,) * 2
    assert reduces.after == 0
    assert small.containers == 2


def test_a_swim_trace_has_no_nodes(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text("job0\t0\t0\t64\t64\t64\n")
    with pytest.raises(ConfigurationException, match=r"is a SWIM trace, which has no nodes \(.* with --nodes\)"):
        read_nodes(tmp_path / "t.tsv")


def test_swim_faults_name_line_and_column(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text("a\t1\t1\t1\t1\t1\nb\t1\n\nc\t1\t1\t-5\t1\tx\n")
    with pytest.raises(ConfigurationException) as refused:
        read_workload(tmp_path / "t.tsv")
    assert [(fault.origin.line, fault.key) for fault in refused.value.faults] == [
        (2, ""),
        (4, "input bytes"),
        (4, "output bytes"),
    ]


def test_the_last_attempt_of_a_rumen_task_counts(tmp_path: Path) -> None:
    start = 1_371_222_054_499
    attempts = [
        {"hostName": "/r/bad", "startTime": start, "finishTime": start + 1},
        {"hostName": "/r/good", "startTime": start + 10, "finishTime": start + 40},
    ]
    job = {
        "jobID": "job_1",
        "user": "ann",
        "queue": "q",
        "submitTime": start,
        "mapTasks": [{"attempts": attempts}, {"attempts": []}],
        "reduceTasks": [{"attempts": attempts[:1]}],
    }
    later = job | {"jobID": "job_2", "submitTime": start + 2000}
    (tmp_path / "r.json").write_text(json.dumps(later, indent=2) + json.dumps(job, indent=2))
    workload = read_workload(tmp_path / "r.json")
    first, second = workload.applications
    assert (first.name, first.submit_ms, second.submit_ms) == ("job_1", 0, 2000)
    assert [(group.durations_ms, group.hosts, group.after) for group in first.groups] == [
        ((30,), ("good",), None),
        ((1,), ("bad",), 0),
    ]
    assert workload.assumptions[0].startswith("2 tasks have no attempt")
    assert [node.host for node in read_nodes(tmp_path / "r.json")] == ["bad", "good"]


def test_dynoyarn_run_times_repeat(tmp_path: Path) -> None:
    spec = {"runtimes": [10, 20], "numInstances": 4, "resource": {"memoryMB": 2048, "vcores": 1}, "priority": 5}
    application = {
        "appId": "app_1",
        "appType": "SPARK",
        "queue": "q",
        "user": "ann",
        "submitTime": 1_607_151_674_543,
        "amResourceRequest": {"memoryMB": 4096, "vcores": 2},
        "resourceRequestSpecs": [spec, spec],
    }
    (tmp_path / "d.json").write_text(json.dumps(application))
    (only,) = read_workload(tmp_path / "d.json").applications
    assert (only.submit_ms, only.kind, only.am_resource) == (0, "SPARK", Resource(4096, 2))
    assert [(group.durations_ms, group.after) for group in only.groups] == [
        ((10, 20, 20, 20), None),
        ((10, 20, 20, 20), 0),
    ]
