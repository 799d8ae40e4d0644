"""yarnling's own files: what is written is read again, and a wrong file is refused with all its faults."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from yarn.faults import ConfigurationException
from yarn.resource import Resource
from yarnling.workload.distribution import Exponential, KnownPercentiles, Lognormal, Normal, Uniform
from yarnling.workload.formats import read_workload
from yarnling.workload.limits import CONTAINERS_MAX
from yarnling.workload.model import RequestStyle, TaskGroup, Workload, WorkloadApplication
from yarnling.workload.workload_file import write_workload

HEADER = '{"yarnling-workload": 1}\n'

MAPS = TaskGroup(Resource(2048, 1), (10, 10, 10, 7), hosts=("n1", "n2"), name="map")
REDUCES = TaskGroup(Resource(4096, 2, (("yarn.io/gpu", 1),)), (9,), 10, after=0, label="fast", delay_ms=5)
ETL = WorkloadApplication("etl", 0, "ann", "root.etl", (MAPS, REDUCES), Resource(1024, 2), "MAPREDUCE", 3, "x", 600_000)
LAUNCHER = WorkloadApplication("launcher", 60_000, "bob", "root.b", (), am_lasts_ms=5_000)
WORKLOAD = Workload((ETL, LAUNCHER), ("An assumption.",))


def test_a_workload_is_read_as_it_was_written(tmp_path: Path) -> None:
    write_workload(WORKLOAD, tmp_path / "w.jsonl")
    assert read_workload(tmp_path / "w.jsonl") == WORKLOAD


def test_equal_durations_are_written_as_one_pair(tmp_path: Path) -> None:
    many = WorkloadApplication("a", 0, "u", "q", (TaskGroup(Resource(1024, 1), (60_000,) * 1_000_000),))
    write_workload(Workload((many,)), tmp_path / "w.jsonl")
    assert (tmp_path / "w.jsonl").stat().st_size < 300
    assert read_workload(tmp_path / "w.jsonl").applications == (many,)


def test_a_person_may_write_a_workload_as_yaml(tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    path.write_text(
        """
applications:
  - {name: late, submit_ms: 5000, user: bob, queue: root.b}
  - name: early
    submit_ms: 0
    user: ann
    queue: root.a
    groups:
      - {memory_mb: 1024, durations_ms: [[1000, 3], 500]}
      - {memory_mb: 1024, durations_ms: [7], after: 0}
"""
    )
    early, late = read_workload(path).applications
    assert (early.name, late.name) == ("early", "late")
    assert early.groups[0].durations_ms == (1000, 1000, 1000, 500)
    assert early.groups[1].after == 0


def test_clients_and_start_times_are_those_of_the_application_or_of_the_workload(tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    path.write_text(
        """
client: exact
am_start_ms: 3000
applications:
  - {name: one, submit_ms: 0, user: ann, queue: root.a}
  - {name: two, submit_ms: 1, user: ann, queue: root.a, client: hadoop, am_start_ms: 200, task_start_ms: 500}
"""
    )
    workload = read_workload(path)
    one, two = workload.applications
    assert (one.client, one.am_start_ms, one.task_start_ms) == (RequestStyle.EXACT, 3000, 0)
    assert (two.client, two.am_start_ms, two.task_start_ms) == (RequestStyle.HADOOP, 200, 500)
    write_workload(workload, tmp_path / "w.jsonl")
    assert read_workload(tmp_path / "w.jsonl") == workload
    path.write_text("client: best\napplications: [{name: one, submit_ms: 0, user: ann, queue: root.a}]")
    with pytest.raises(ConfigurationException, match="client"):
        read_workload(path)


def test_start_times_may_be_distributions(tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    path.write_text(
        """
am_start_ms: {lognormal: {median: 3s, p95: 5000}}
task_start_ms: {percentiles: {50: 800, 99.9: 2s}}
applications:
  - {name: one, submit_ms: 0, user: ann, queue: root.a}
  - {name: two, submit_ms: 1, user: ann, queue: root.a, am_start_ms: 2s, task_start_ms: {uniform: [0, 750ms]}}
  - {name: three, submit_ms: 2, user: ann, queue: root.a, am_start_ms: {exponential: {mean: 900}}}
  - {name: four, submit_ms: 3, user: ann, queue: root.a, am_start_ms: {normal: {mean: 900, stddev: 100.5}}}
"""
    )
    workload = read_workload(path)
    assert [one.am_start_ms for one in workload.applications] == [
        Lognormal.of_percentiles(3000, 5000),
        2000,
        Exponential(900),
        Normal(900, 100.5),
    ]
    assert workload.applications[0].task_start_ms == KnownPercentiles(((0.5, 800), (0.999, 2000)))
    assert workload.applications[1].task_start_ms == Uniform(0, 750)
    write_workload(workload, tmp_path / "w.jsonl")
    assert read_workload(tmp_path / "w.jsonl") == workload


def test_every_start_time_that_is_not_valid_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "w.jsonl"
    bad = (
        -1,
        1e18,
        True,
        "3 weeks",
        {"lognormal": {"median": 5000, "p95": 3000}},
        {"uniform": [1]},
        {"percentiles": {"101": 5}},
        {"often": 3},
    )
    application = {"name": "a", "submit_ms": 0, "user": "u", "queue": "q"}
    lines = [json.dumps({**application, "am_start_ms": each, "task_start_ms": each}) for each in bad]
    path.write_text(HEADER + "\n".join(lines))
    with pytest.raises(ConfigurationException) as refused:
        read_workload(path)
    assert [fault.key for fault in refused.value.faults] == [
        f"application {number}.{key}" for number in range(1, len(bad) + 1) for key in ("am_start_ms", "task_start_ms")
    ]
    assert "write a number of milliseconds, or 250ms" in refused.value.faults[0].remedy


def test_every_fault_is_reported_with_its_line_and_entry(tmp_path: Path) -> None:
    path = tmp_path / "w.jsonl"
    path.write_text(
        HEADER
        + '{"name": "a", "submit_ms": -1, "user": "u", "queue": "q"}\n'
        + '{"name": "b", "submit_ms": 0, "user": "", "queue": "q", "sumbit": 3}\n'
        + '{"name":"c","submit_ms":0,"user":"u","queue":"q","groups":[{"memory_mb":1,"durations_ms":[1],"after":0}]}\n'
    )
    with pytest.raises(ConfigurationException) as refused:
        read_workload(path)
    faults = refused.value.faults
    assert [(fault.origin.line, fault.key) for fault in faults] == [
        (2, "application 1.submit_ms"),
        (3, "application 2.user"),
        (3, "application 2.sumbit"),
        (4, "application 3.groups[1].after"),
    ]
    assert "did you mean submit_ms?" in faults[2].remedy


def test_more_containers_than_the_bound_are_refused_before_they_are_made(tmp_path: Path) -> None:
    group = f'{{"memory_mb": 1, "durations_ms": [[1, {CONTAINERS_MAX}]]}}'
    application = f'{{"name": "a", "submit_ms": 0, "user": "u", "queue": "q", "groups": [{group}, {group}]}}'
    (tmp_path / "w.jsonl").write_text(HEADER + application)
    with pytest.raises(ConfigurationException, match=f"more than {CONTAINERS_MAX} containers"):
        read_workload(tmp_path / "w.jsonl")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is empty"),
        (HEADER + "{", "is not valid JSON"),
        (HEADER + '{"name": NaN}', "NaN is not a JSON number"),
        (HEADER + "[" * 100_000, "too many levels"),
        ('{"yarnling-workload": 2}', "is not a valid choice"),
        ("what: is this", "has none of the known formats"),
    ],
)
def test_a_file_that_is_not_a_workload_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "w").write_text(text)
    with pytest.raises(ConfigurationException, match=problem):
        read_workload(tmp_path / "w")


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\xfa")
    for name, problem in (("none", "No such file"), ("binary", "not UTF-8")):
        with pytest.raises(ConfigurationException, match=problem):
            read_workload(tmp_path / name)


def test_only_the_first_hundred_faults_are_listed(tmp_path: Path) -> None:
    (tmp_path / "w").write_text(HEADER + "{}\n" * 1000)
    with pytest.raises(ConfigurationException) as refused:
        read_workload(tmp_path / "w")
    assert len(refused.value.faults) == 101
    assert "more faults than the 100 listed" in str(refused.value.faults[-1])
