"""Summary files: applications drawn from rates and distributions."""

from __future__ import annotations

from pathlib import Path

import pytest

from yarn.faults import ConfigurationException
from yarn.resource import Resource
from yarnling.workload import tally
from yarnling.workload.defaults import Defaults
from yarnling.workload.distribution import Lognormal, Uniform
from yarnling.workload.formats import read_workload
from yarnling.workload.model import Workload
from yarnling.workload.start_times import REAL_AM_START

SUMMARY = """
lasts: 4h
queues:
  - queue: root.etl
    users: {ann: 3, bob: 1}
    per_hour: [300, 0]
    applications:
      - name: join
        kind: MAPREDUCE
        deadline: 30m
        am: {memory: 2GB, vcores: 2}
        tasks:
          - {name: map, containers: {uniform: [2, 6]}, memory: 4GB, duration: {lognormal: {median: 60s, p95: 5m}}}
          - {name: reduce, memory: 2048MB, vcores: 2, duration: 10s, priority: 10, waits: true}
  - queue: root.ad-hoc
    per_hour: 10
    applications:
      - tasks: [{duration: {exponential: {mean: 2m}}}]
"""


def read(tmp_path: Path, text: str, seed: int = 0) -> Workload:
    (tmp_path / "s.yaml").write_text(text)
    return read_workload(tmp_path / "s.yaml", defaults=Defaults(seed=seed))


def test_applications_arrive_at_the_rate_of_their_hour(tmp_path: Path) -> None:
    workload = read(tmp_path, SUMMARY)
    hours = [each.submit_ms // 3_600_000 for each in workload.applications if each.queue == "root.etl"]
    assert {hour: 240 < hours.count(hour) < 360 for hour in set(hours)} == {0: True, 2: True}
    ad_hoc = [each for each in workload.applications if each.queue == "root.ad-hoc"]
    assert 20 < len(ad_hoc) < 60
    assert {each.user for each in ad_hoc} == {"default"}


def test_applications_ask_for_what_the_summary_says(tmp_path: Path) -> None:
    joins = [each for each in read(tmp_path, SUMMARY).applications if each.queue == "root.etl"]
    for join in joins:
        maps, reduces = join.groups
        assert (join.am_resource, join.kind, join.deadline_ms) == (Resource(2048, 2), "MAPREDUCE", 1_800_000)
        assert 2 <= len(maps.durations_ms) <= 6
        assert (maps.resource, maps.after, maps.name) == (Resource(4096, 1), None, "map")
        assert (reduces.resource, reduces.after, reduces.durations_ms) == (Resource(2048, 2), 0, (10_000,))
    anns = sum(join.user == "ann" for join in joins)
    assert 0.65 < anns / len(joins) < 0.85
    durations = sorted(ms for join in joins for ms in join.groups[0].durations_ms)
    assert 50_000 < durations[len(durations) // 2] < 70_000


def test_start_times_are_those_of_jvms_unless_the_summary_has_them(tmp_path: Path) -> None:
    one, *_ = read(tmp_path, SUMMARY).applications
    assert (one.am_start_ms, one.task_start_ms) == (REAL_AM_START, 1000)
    assert one.am_start_ms == Lognormal.of_percentiles(3000, 5000)
    one, *_ = read(tmp_path, "am_start: 1.5s\ntask_start: {uniform: [0s, 1m]}" + SUMMARY).applications
    assert (one.am_start_ms, one.task_start_ms) == (1500, Uniform(0, 60_000))
    with pytest.raises(ConfigurationException, match="write 250ms"):
        read(tmp_path, "am_start: 1500" + SUMMARY)


def test_the_seed_decides_and_each_queue_has_its_own_stream(tmp_path: Path) -> None:
    first = read(tmp_path, SUMMARY)
    assert read(tmp_path, SUMMARY) == first
    assert read(tmp_path, SUMMARY, seed=1) != first
    more = read(tmp_path, SUMMARY.replace("per_hour: 10", "per_hour: 20"))
    etl = [each for each in first.applications if each.queue == "root.etl"]
    assert [each for each in more.applications if each.queue == "root.etl"] == etl


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("soon", "is not a valid value"),
        ("{uniform: [9s, 3s]}", "bounds in the wrong order"),
        ("{uniform: [9s]}", "does not have two bounds"),
        ("{lognormal: {median: 60s, p95: 1s}}", "percentiles in the wrong order"),
        ("{lognormal: {mean: 0s, stddev: 1s}}", "has a mean of 0"),
        ("{normal: {mean: 60s}}", "does not have the parameters of normal"),
        ("{percentiles: {50: 9s, 90: 3s}}", "percentiles that do not rise"),
        ("{percentiles: {150: 9s}}", "not from 0 to 100"),
        ("{gamma: 3}", "is not a distribution"),
    ],
)
def test_a_wrong_distribution_is_refused_with_its_line(tmp_path: Path, written: str, problem: str) -> None:
    with pytest.raises(ConfigurationException, match=problem) as refused:
        read(tmp_path, SUMMARY.replace("duration: 10s", f"duration: {written}"))
    assert [(fault.origin.line, fault.key) for fault in refused.value.faults] == [
        (14, "queues[1].applications[1].tasks[2].duration")
    ]


def test_too_many_containers_are_refused_while_they_are_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tally, "CONTAINERS_MAX", 100)
    with pytest.raises(ConfigurationException, match="more than 100 containers"):
        read(tmp_path, SUMMARY.replace("{uniform: [2, 6]}", "10000000"))
