"""The workload of history files of MapReduce: jobs with their task attempts.

recorded/mapreduce has what the AM of Hadoop 3.4.1 wrote while it ran WordCount, as in tests/hadoop/test_mapreduce.py,
with maps of 640 MB and reduces of 768 MB: once in Avro's binary form, Hadoop's default, and once as JSON. Of the
configurations only the sizes are kept.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from yarn.faults import ConfigurationException
from yarn.resource import Resource
from yarnling.workload.avro import avro_records
from yarnling.workload.evidence import Basis, share_of
from yarnling.workload.formats import read_workload
from yarnling.workload.model import Workload

RECORDED = Path(__file__).parent / "recorded" / "mapreduce"
START_MS = 1_795_000_000_000
JOB = "job_1_0001"


def event(kind: str, **fields: Any) -> str:
    return json.dumps({"type": kind, "event": {f"org.apache.hadoop.mapreduce.jobhistory.{kind}": fields}})


def submitted() -> str:
    return event("JOB_SUBMITTED", jobid=JOB, userName="ann", submitTime=START_MS, jobQueueName={"string": "root.etl"})


def attempt(number: int, start_s: int, end_s: int | None, *, kind: str = "MAP", how: str = "FINISHED") -> list[str]:
    name = f"attempt_1_0001_{kind[0].lower()}_{number:06}_0"
    began = event(f"{kind}_ATTEMPT_STARTED", attemptId=name, taskType=kind, startTime=START_MS + 1000 * start_s)
    if end_s is None:
        return [began]
    return [began, event(f"{kind}_ATTEMPT_{how}", attemptId=name, finishTime=START_MS + 1000 * end_s)]


def finished(at_s: int) -> str:
    return event("JOB_FINISHED", jobid=JOB, finishTime=START_MS + 1000 * at_s)


def read(tmp_path: Path, *events: str) -> Workload:
    text = "\n".join(("Avro-Json", '{"type":"record"}', *events))
    (tmp_path / f"{JOB}-1.jhist").write_text(text)
    return read_workload(tmp_path)


def test_the_history_of_two_jobs_of_hadoop() -> None:
    """Three maps and two reduces each, in both forms."""
    workload = read_workload(RECORDED)
    assert len(workload.applications) == 2
    for each in workload.applications:
        assert (each.kind, each.user, each.queue) == ("MAPREDUCE", "root", "default")
        assert each.am_resource == Resource(512, 1)
        sizes = {group.resource.memory_mb: len(group.durations_ms) for group in each.groups}
        assert sizes == {640: 3, 768: 2}
        assert all(1_000 < ms < 30_000 for group in each.groups for ms in group.durations_ms)
    assert share_of(workload.evidence, Basis.DETERMINED) == 1


def test_attempts_that_failed_ran_too_and_unfinished_ones_run_to_the_last_event(tmp_path: Path) -> None:
    events = [*attempt(1, 10, 40), *attempt(2, 10, 20, how="FAILED"), *attempt(3, 10, None), finished(50)]
    (application,) = read(tmp_path, submitted(), *events).applications
    (group,) = application.groups
    assert group.durations_ms == (30_000, 10_000, 40_000)
    assert (application.user, application.queue, application.submit_ms) == ("ann", "root.etl", 0)


def test_reduces_after_maps_are_a_second_group(tmp_path: Path) -> None:
    events = [*attempt(1, 10, 40), *attempt(1, 42, 60, kind="REDUCE"), finished(60)]
    (application,) = read(tmp_path, submitted(), *events).applications
    assert [group.after for group in application.groups] == [None, 0]


def test_sizes_are_those_of_the_configuration_beside_it(tmp_path: Path) -> None:
    keys = {"mapreduce.map.memory.mb": 3072, "mapreduce.map.cpu.vcores": 2, "yarn.app.mapreduce.am.resource.mb": 2048}
    written = (f"<property><name>{key}</name><value>{value}</value></property>" for key, value in keys.items())
    (tmp_path / f"{JOB}_conf.xml").write_text("\n".join(written))
    workload = read(tmp_path, submitted(), *attempt(1, 10, 40), finished(50))
    (application,) = workload.applications
    assert application.groups[0].resource == Resource(3072, 2)
    assert application.am_resource == Resource(2048, 1)
    assert share_of(workload.evidence, Basis.ASSUMED) == 0


def test_without_a_configuration_the_sizes_are_assumed(tmp_path: Path) -> None:
    workload = read(tmp_path, submitted(), *attempt(1, 10, 40), finished(50))
    assert workload.applications[0].groups[0].resource == Resource(1024, 1)
    assert share_of(workload.evidence, Basis.ASSUMED) == 1
    assert any("1 jobs have no job_..._conf.xml" in text for text in workload.assumptions)


def test_an_uberized_job_has_only_its_am(tmp_path: Path) -> None:
    uber = event("JOB_INITED", jobid=JOB, launchTime=START_MS + 1000, uberized=True)
    workload = read(tmp_path, submitted(), uber, *attempt(1, 10, 40), finished(50))
    assert workload.applications[0].groups == ()
    assert any("1 jobs ran all tasks in their AM" in text for text in workload.assumptions)


def test_lines_that_are_not_whole_change_nothing(tmp_path: Path) -> None:
    workload = read(tmp_path, submitted(), *attempt(1, 10, 40), finished(50), '{"type":', '{"type": 5, "event": [1]}')
    assert workload.applications[0].containers == 1


def test_a_file_without_a_job_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationException, match="has no job of MapReduce"):
        read(tmp_path, *attempt(1, 10, 40))


def binary(tmp_path: Path) -> Path:
    (found,) = (path for path in RECORDED.glob("*.jhist") if path.read_bytes().startswith(b"Avro-Binary"))
    copied = tmp_path / found.name
    copied.write_bytes(found.read_bytes())
    return copied


def test_a_binary_file_that_breaks_off_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    """Its writer was killed. Each cut in the last part leaves the job, with the tasks that had started."""
    path = binary(tmp_path)
    whole = path.read_bytes()
    for left in range(len(whole) - 400, len(whole), 23):
        path.write_bytes(whole[:left])
        assert read_workload(path).applications[0].containers == 5


def test_a_binary_file_with_wrong_content_is_refused(tmp_path: Path) -> None:
    path = binary(tmp_path)
    schema = path.read_bytes().split(b"\n")[1]
    for content in (b"Avro-Binary\n{]\n123", b"Avro-Binary\n" + schema + b"\n" + b"\xff" * 100):
        path.write_bytes(content)
        with pytest.raises(ConfigurationException, match="is not a valid history file"):
            read_workload(path)


def test_avro_has_all_its_types() -> None:
    """The encodings are those of Avro's specification: zigzag, blocks with and without their size, unions by index."""
    fields = {
        "long": ("long", b"\x80\x01", 64),
        "negative": ("int", b"\x03", -2),
        "text": ({"type": "string", "avro.java.string": "String"}, b"\x06foo", "foo"),
        "one": (["null", "string"], b"\x02\x02x", "x"),
        "none": (["null", "string"], b"\x00", None),
        "yes": ("boolean", b"\x01", True),
        "half": ("double", b"\x00\x00\x00\x00\x00\x00\xe0\x3f", 0.5),
        "many": ({"type": "array", "items": "long"}, b"\x04\x02\x04\x01\x02\x06\x00", [1, 2, 3]),
        "map": ({"type": "map", "values": "long"}, b"\x02\x02a\x02\x00", {"a": 1}),
        "kind": ({"type": "enum", "name": "Kind", "symbols": ["A", "B"]}, b"\x02", "B"),
        "again": ("Kind", b"\x00", "A"),
    }
    schema = {"type": "record", "name": "R", "fields": [{"name": n, "type": each[0]} for n, each in fields.items()]}
    data = b"".join(encoded for _, encoded, _ in fields.values())
    assert list(avro_records(schema, data * 2)) == [{name: value for name, (_, _, value) in fields.items()}] * 2


@pytest.mark.parametrize(
    ("schema", "data"),
    [
        ({"type": "array", "items": "null"}, b"\xfe\xff\xff\xff\xff\x7f\x00"),
        ({"type": "record", "name": "R", "fields": [{"name": "self", "type": "R"}]}, b"\x00"),
        ("long", b"\xff" * 11),
        ("string", b"\x02\xff"),
        (["null"], b"\x04"),
        ("unknown", b"\x00"),
    ],
    ids=["endless", "recursive", "long", "utf-8", "union", "type"],
)
def test_what_cannot_be_avro_is_refused(schema: Any, data: bytes) -> None:
    with pytest.raises(ValueError, match="at byte"):
        list(avro_records(schema, data))
