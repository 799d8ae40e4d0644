"""Amounts of memory have the same keys and the same spelling in all files that people write."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nm.emulation.table_file import parse_table
from wire.files.yaml_file import parse_yaml
from yarn.faults import ConfigurationException
from yarnling.faults.plan import ClusterPlan
from yarnling.workload.defaults import Defaults
from yarnling.workload.nodes_file import NodeList
from yarnling.workload.summary_file import read_summary
from yarnling.workload.workload_file import parse_workload_yaml

APPLICATION = "applications: [{name: a, submit_ms: 0, user: ann, queue: q, %s}]"
SUMMARY = """
lasts: 1h
queues:
  - {queue: q, users: ann, per_hour: 1, applications: [{tasks: [{duration: 1s, containers: 1%s}]%s}]}
"""
TABLE = "rules: [{match: {%s}, stages: [{lasts: 1s%s}]}]"


def node(written: str) -> int:
    return parse_yaml(f"nodes: [{{host: n, vcores: 1, {written}}}]", "f", NodeList).nodes[0].memory_mb


def group(written: str) -> int:
    text = APPLICATION % f"groups: [{{durations_ms: [1], {written}}}]"
    return parse_workload_yaml(text, "f").applications[0].groups[0].resource.memory_mb


def master(written: str) -> int:
    found = parse_workload_yaml(APPLICATION % f"am_{written}", "f").applications[0]
    return found.am_resource.memory_mb


def master_of_rates(written: str) -> int:
    return _first_of_rates("", f", am: {{{written}}}").am_resource.memory_mb


def tasks_of_rates(written: str) -> int:
    return _first_of_rates(f", {written}", "").groups[0].resource.memory_mb


def _first_of_rates(tasks, am):  # type: ignore[no-untyped-def]
    return read_summary(SUMMARY % (tasks, am), "f", Defaults()).applications[0]


def emulated(written: str) -> int:
    least = parse_table(TABLE % (written, "")).rules[0].match.memory_mb.least
    assert least is not None
    return least


def plan(written: str) -> int:
    return parse_yaml(written.replace(", ", "\n"), "f", ClusterPlan).memory_mb


FILES: list[Callable[[str], int]] = [node, group, master, master_of_rates, tasks_of_rates, emulated, plan]


@pytest.mark.parametrize("of", FILES)
@pytest.mark.parametrize("value", ["2048", "2048MB", "2GB", "2 GB"])
@pytest.mark.parametrize("key", ["memory", "memory_mb"])
def test_each_file_accepts_each_spelling(of: Callable[[str], int], key: str, value: str) -> None:
    assert of(f"{key}: {value}") == 2048


@pytest.mark.parametrize("of", FILES)
def test_another_unit_is_refused_with_the_same_remedy(of: Callable[[str], int]) -> None:
    with pytest.raises(ConfigurationException, match=r"write 2048, 2048MB or 2GB"):
        of("memory: 2GiB")


@pytest.mark.parametrize("of", [node, group, master_of_rates, tasks_of_rates, emulated, plan])
def test_an_amount_is_written_once(of: Callable[[str], int]) -> None:
    with pytest.raises(ConfigurationException, match="memory_mb"):
        of("memory: 2GB, memory_mb: 2048")


def test_a_stage_of_an_emulated_container_accepts_the_same_amounts() -> None:
    for value in ("512", "512MB", "0.5GB"):
        assert parse_table(TABLE % ("", f", memory: {value}")).rules[0].stages[0].memory_first.value == 512


def test_a_missing_amount_is_named_by_its_key() -> None:
    with pytest.raises(ConfigurationException, match=r"has no memory \(write memory: \.\.\.\)"):
        node("rack: /r")
