"""The workload of Spark's event logs: executors with their sizes, starts and ends.

recorded/spark-3.5.9.jsonl and recorded/spark-4.3.0.jsonl were written by Spark in a job with dynamic allocation
(tests/spark/jobs/bursts.py), whose executors came and went twice. Events of jobs, stages and tasks were left out, and
settings with paths.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from yarn.faults import ConfigurationException
from yarn.resource import Resource
from yarnling.workload.evidence import Basis, share_of
from yarnling.workload.formats import read_workload
from yarnling.workload.model import WorkloadApplication

RECORDED = Path(__file__).parent / "recorded"
START_MS = 1_795_000_000_000


def event(kind: str, **fields: Any) -> str:
    return json.dumps({"Event": f"SparkListener{kind}", **fields}, separators=(",", ":"))


def added(name: str, at_s: int, cores: int = 1, profile: int = 0) -> str:
    info = {"Host": "n1", "Total Cores": cores, "Resource Profile Id": profile}
    return event("ExecutorAdded", **{"Timestamp": START_MS + at_s * 1000, "Executor ID": name, "Executor Info": info})


def removed(name: str, at_s: int) -> str:
    return event("ExecutorRemoved", **{"Timestamp": START_MS + at_s * 1000, "Executor ID": name})


def log(settings: dict[str, str], *events: str, end_s: int | None = 100, number: int = 1) -> str:
    start = {"App ID": f"application_1_{number:04}", "Timestamp": START_MS, "User": "ann"}
    lines = [
        event("LogStart", **{"Spark Version": "3.5.9"}),
        event("EnvironmentUpdate", **{"Spark Properties": settings}),
        event("ApplicationStart", **start),
        *events,
    ]
    end = [event("ApplicationEnd", Timestamp=START_MS + end_s * 1000)] if end_s else []
    return "\n".join([*lines, *end])


def read(tmp_path: Path, text: str) -> WorkloadApplication:
    (tmp_path / "log").write_text(text)
    (application,) = read_workload(tmp_path / "log").applications
    return application


@pytest.mark.parametrize("version", ["3.5.9", "4.3.0"])
def test_executors_of_a_log_of_spark(version: str) -> None:
    """512 MB of heap and 384 MB of overhead each. One executor stayed, and two came and went in each burst."""
    workload = read_workload(RECORDED / f"spark-{version}.jsonl")
    (application,) = workload.applications
    assert (application.kind, application.queue, application.user) == ("SPARK", "default", "ann")
    assert application.am_resource == Resource(896, 1)
    assert {group.resource for group in application.groups} == {Resource(896, 1)}
    assert application.containers == EXECUTORS[version]
    assert share_of(workload.evidence, Basis.DETERMINED) == pytest.approx(1)


EXECUTORS = {"3.5.9": 5, "4.3.0": 5}


def test_executors_last_until_they_are_removed_or_their_application_ends(tmp_path: Path) -> None:
    settings = {"spark.executor.memory": "4g", "spark.executor.cores": "2", "spark.yarn.queue": "root.ml"}
    application = read(tmp_path, log(settings, added("1", 10, 2), added("2", 12, 2), removed("1", 50)))
    (group,) = application.groups
    assert (application.queue, group.resource) == ("root.ml", Resource(4096 + 409, 2))
    assert sorted(group.durations_ms) == [40_000, 88_000]


@pytest.mark.parametrize(
    ("settings", "memory_mb"),
    [
        ({}, 1024 + 384),
        ({"spark.executor.memory": "8g"}, 8192 + 819),
        ({"spark.executor.memory": "2048"}, 2048 + 384),
        ({"spark.executor.memory": "2g", "spark.executor.memoryOverhead": "1g"}, 3072),
        ({"spark.executor.memory": "10g", "spark.executor.memoryOverheadFactor": "0.4"}, 10240 + 4096),
        ({"spark.executor.memory": "1g", "spark.executor.pyspark.memory": "512m"}, 1024 + 384 + 512),
        ({"spark.memory.offHeap.enabled": "true", "spark.memory.offHeap.size": "1073741824"}, 1024 + 384 + 1024),
        ({"spark.memory.offHeap.enabled": "true", "spark.memory.offHeap.size": "2g"}, 1024 + 384 + 2048),
        ({"spark.memory.offHeap.size": "2g"}, 1024 + 384),
        ({"spark.executor.memory": "nonsense", "spark.executor.memoryOverheadFactor": "x"}, 1024 + 384),
    ],
)
def test_sizes_are_those_that_spark_requests(tmp_path: Path, settings: dict[str, str], memory_mb: int) -> None:
    application = read(tmp_path, log(settings, added("1", 1)))
    assert application.groups[0].resource == Resource(memory_mb, 1)


def test_executors_of_a_resource_profile(tmp_path: Path) -> None:
    amounts = {"memory": 2048, "memoryOverhead": 512, "cores": 4, "gpu": 1}
    requests = {name: {"Resource Name": name, "Amount": amount} for name, amount in amounts.items()}
    profile = event("ResourceProfileAdded", **{"Resource Profile Id": 1, "Executor Resource Requests": requests})
    application = read(tmp_path, log({}, profile, added("1", 1, 4, 1), added("2", 1)))
    assert {group.resource for group in application.groups} == {
        Resource(2560, 4, (("yarn.io/gpu", 1),)),
        Resource(1408, 1),
    }


@pytest.mark.parametrize(("mode", "memory_mb"), [("cluster", 4096 + 409), ("client", 512 + 384)])
def test_an_am_is_the_driver_in_cluster_mode(tmp_path: Path, mode: str, memory_mb: int) -> None:
    settings = {"spark.submit.deployMode": mode, "spark.driver.memory": "4g"}
    assert read(tmp_path, log(settings, added("1", 1))).am_resource == Resource(memory_mb, 1)


def test_a_log_without_its_end(tmp_path: Path) -> None:
    text = log({}, added("1", 10), event("JobStart", **{"Job ID": 1, "Submission Time": START_MS + 70_000}), end_s=None)
    application = read(tmp_path, f"{text}\n" + '{"Event":"SparkListenerExecutorAdd')
    assert application.groups[0].durations_ms == (60_000,)


def test_a_directory_has_a_log_of_each_application_and_rolling_logs(tmp_path: Path) -> None:
    whole = log({}, added("1", 1)).splitlines(keepends=True)
    rolling = tmp_path / "eventlog_v2_application_1_0001"
    rolling.mkdir()
    for number, part in ((1, whole[:3]), (2, whole[3:4]), (10, whole[4:])):
        (rolling / f"events_{number}_application_1_0001").write_text("".join(part))
    (rolling / "appstatus_application_1_0001").write_text("")
    (tmp_path / "application_1_0002").write_text(log({}, added("1", 1), added("2", 2), number=2))
    names = {each.name: each.containers for each in read_workload(tmp_path).applications}
    assert names == {"application_1_0001": 1, "application_1_0002": 2}


def test_a_compressed_log_is_refused_with_the_command(tmp_path: Path) -> None:
    (tmp_path / "log.zstd").write_bytes(b"\x28\xb5\x2f\xfd1234")
    with pytest.raises(ConfigurationException, match="decompress it: zstd -d"):
        read_workload(tmp_path / "log.zstd")


def test_a_log_without_an_application_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationException, match="has no application of Spark"):
        read(tmp_path, event("LogStart"))
