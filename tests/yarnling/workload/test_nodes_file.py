"""Files of nodes: the machines, and when they join, leave, are drained and are lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from yarn.errors import YarnException
from yarn.faults import ConfigurationException
from yarn.resource import Resource
from yarnling.workload.autoscaling import MemoryPolicy, NodeScaling, RulePolicy, ScalingMetric, ScalingRule
from yarnling.workload.formats import read_node_list, read_nodes
from yarnling.workload.model import NodeChange, NodeEvent, NodeSchedule, SpotNodes, WorkloadNode, WorkloadNodes
from yarnling.workload.nodes_file import write_nodes

HOUR = 3_600_000


def refusal_of(tmp_path: Path, text: str) -> str:
    (tmp_path / "n.yaml").write_text(text)
    with pytest.raises(ConfigurationException) as refused:
        read_node_list(tmp_path / "n.yaml")
    return str(refused.value)


def test_nodes_are_read_as_they_were_written(tmp_path: Path) -> None:
    nodes = (
        WorkloadNode("n1", Resource(8192, 8)),
        WorkloadNode("n2", Resource(65536, 16, (("yarn.io/gpu", 4),)), "/r2", "gpu"),
    )
    events = (
        NodeEvent(0, "n1", NodeChange.DRAIN, -1),
        NodeEvent(1_500, "n2", NodeChange.LOST),
        NodeEvent(HOUR, "n2", NodeChange.JOIN),
        NodeEvent(2 * HOUR, "n2", NodeChange.DRAIN, 90),
    )
    listed = WorkloadNodes(nodes, schedule=NodeSchedule(events))
    write_nodes(listed, tmp_path / "nodes.json")
    assert read_node_list(tmp_path / "nodes.json") == listed


def test_equal_nodes_may_be_counted(tmp_path: Path) -> None:
    (tmp_path / "n.yaml").write_text("nodes:\n  - {host: node, memory_mb: 8192, vcores: 8, rack: /r1, count: 3}\n")
    assert [node.host for node in read_nodes(tmp_path / "n.yaml")] == ["node-1", "node-2", "node-3"]


def test_all_nodes_of_an_entry_change_together(tmp_path: Path) -> None:
    (tmp_path / "n.yaml").write_text(
        "nodes:\n"
        "  - host: batch\n    memory: 8GB\n    vcores: 8\n    count: 2\n    events:\n"
        "      - {at: 2h, change: drain, timeout: 30m}\n      - {at: 90m, change: join}\n"
        "  - {host: n, memory: 8GB, vcores: 8, events: [{at: 1h, change: drain, timeout: unlimited}]}\n"
    )
    assert read_node_list(tmp_path / "n.yaml").schedule.events == (
        NodeEvent(HOUR, "n", NodeChange.DRAIN, -1),
        NodeEvent(90 * 60_000, "batch-1", NodeChange.JOIN),
        NodeEvent(90 * 60_000, "batch-2", NodeChange.JOIN),
        NodeEvent(2 * HOUR, "batch-1", NodeChange.DRAIN, 1800),
        NodeEvent(2 * HOUR, "batch-2", NodeChange.DRAIN, 1800),
    )


def test_two_nodes_of_one_name_are_refused(tmp_path: Path) -> None:
    node = "{host: n, memory_mb: 1, vcores: 1}"
    assert "the name of two nodes" in refusal_of(tmp_path, f"nodes: [{node}, {node}]")


def test_all_faults_of_events_are_named(tmp_path: Path) -> None:
    text = (
        "nodes:\n  - host: n\n    memory: 8GB\n    vcores: 8\n    events:\n"
        "      - {at: 5, change: join}\n"
        "      - {at: 400d, change: leave}\n"
        "      - {at: 1h, change: dies}\n"
        "      - {at: 1h, change: drain, timeout: 1500ms}\n"
        "      - {change: lost, when: 1h}\n"
    )
    message = refusal_of(tmp_path, text)
    for fault in (
        "events[1].at = '5': is not a valid time up to a year (write 250ms, 1.5s, 10m, 2h or 7d)",
        "events[2].at = '400d': is not a valid time",
        "events[3].change = 'dies': is not a valid choice (write 'join', 'leave', 'drain' or 'lost')",
        "events[4].timeout = '1500ms': is not a valid timeout in whole seconds (write 90s, 30m, 1h or unlimited)",
        ": has no at",
        "events[5].when = '1h': is not a valid key",
    ):
        assert fault in message


def test_a_timeout_belongs_to_a_drain(tmp_path: Path) -> None:
    node = "{host: n, memory: 8GB, vcores: 1, events: [{at: 1h, change: lost, timeout: 1h}]}"
    assert "nodes[1].events[1].timeout: has no effect on lost" in refusal_of(tmp_path, f"nodes: [{node}]")


def test_the_counts_of_nodes_and_events_are_bounded(tmp_path: Path) -> None:
    """Before anything is made of them: 60,000 nodes, twice, with two events each."""
    event = "{at: 1h, change: drain}, {at: 2h, change: join}"
    nodes = [f"{{host: {name}, memory: 8GB, vcores: 1, count: 60000, events: [{event}]}}" for name in "ab"]
    message = refusal_of(tmp_path, f"nodes: [{', '.join(nodes)}]")
    assert "nodes = '120000': are too many (write at most 100000, with all counts)" in message
    assert "nodes.events = '240000': are too many (write at most 200000" in message


SCALED = """
nodes:
  - {host: core, memory: 8GB, vcores: 8, count: 2}
  - host: task
    memory: 8GB
    vcores: 8
    count: 4
    spot: {lost_per_hour: 3%, share: 50%, replaced_after: 5m}
    scaling:
      min: 1
      initial: 2
      start: 90s
      drain_timeout: 1h
"""
INITIAL = "scaling.initial = '2': is out of bounds (write a number from 3 to 4)"
MIN = "scaling.min = '5': is out of bounds (write a number from 0 to 4)"
SECOND = "count: 2, scaling: {memory: {scale_up_factor: 1, scale_down_factor: 1}}}"
RULES = """
      period: 5m
      rules:
        - {metric: available_memory, below: 15%, add: 1}
        - {metric: pending_ratio, above: 0.75, add: 20%, cooldown: 10m}
        - {metric: available_memory, above: 75%, remove: 1, periods: 2}
"""


def test_autoscaling_by_memory_and_spot_nodes(tmp_path: Path) -> None:
    policy = "      cooldown: 4m\n      memory: {scale_up_factor: 0.5, scale_down_factor: 100%}\n"
    (tmp_path / "n.yaml").write_text(SCALED + policy + "spot: {lost_per_hour: 1%}\n")
    schedule = read_node_list(tmp_path / "n.yaml").schedule
    hosts = ("task-1", "task-2", "task-3", "task-4")
    assert schedule.scaling == NodeScaling(hosts, 8192, MemoryPolicy(0.5, 1.0), 1, 2, 90_000, 3600, 240_000)
    assert schedule.spots == (
        SpotNodes(("task-2", "task-4"), 0.03, 300_000),
        SpotNodes(("core-1", "core-2"), 0.01),
    )


def test_autoscaling_by_rules(tmp_path: Path) -> None:
    (tmp_path / "n.yaml").write_text(SCALED + RULES)
    scaling = read_node_list(tmp_path / "n.yaml").schedule.scaling
    assert scaling is not None
    assert scaling.policy == RulePolicy(
        (
            ScalingRule(ScalingMetric.AVAILABLE_MEMORY, False, 0.15, 1),
            ScalingRule(ScalingMetric.PENDING_RATIO, True, 0.75, fraction=0.2, cooldown_ms=600_000),
            ScalingRule(ScalingMetric.AVAILABLE_MEMORY, True, 0.75, -1, periods=2),
        ),
        300_000,
    )


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (SCALED, "nodes[2].scaling: needs one policy (write either memory, or rules)"),
        (
            SCALED.replace("min: 1", "min: 3") + RULES,
            "scaling.initial = '2': is out of bounds (write a number from 3 to 4)",
        ),
        (
            SCALED.replace("min: 1", "min: 5") + RULES,
            "scaling.min = '5': is out of bounds (write a number from 0 to 4)",
        ),
        (SCALED.replace("    count: 4\n", "") + RULES, "nodes[2]: has no count"),
        (SCALED + RULES.replace("below: 15%, ", ""), "rules[1]: needs either below, or above (write one of them)"),
        (SCALED + RULES.replace("add: 1}", "add: 1, remove: 1}"), "rules[1]: needs either add, or remove"),
        (SCALED + RULES.replace("add: 1}", "add: 1.5}"), "add = '1.5': is not a valid number of nodes"),
        (SCALED + RULES.replace("add: 1}", "add: 101%}"), "add = '101%': is not a valid number of nodes"),
        (SCALED + RULES.replace("period: 5m", "period: 30s"), "scaling.period = '30000ms': is out of bounds"),
        (SCALED.replace("3%", "100%") + RULES, "spot.lost_per_hour = '100%': is more than 0.999"),
        (SCALED + RULES + "      - {}", "is not valid YAML"),
        (
            SCALED.replace("count: 2}", "count: 2, scaling: {memory: {scale_up_factor: 1, scale_down_factor: 1}}}")
            + RULES,
            "nodes[2].scaling: is the second one, after nodes[1]",
        ),
        (
            SCALED.replace("    count: 4\n", "    count: 4\n    events: [{at: 1h, change: lost}]\n") + RULES,
            "nodes[2].events: are of nodes that an autoscaler adds and removes",
        ),
    ],
    ids=range(13),
)
def test_faults_of_autoscaling_are_named(tmp_path: Path, text: str, fault: str) -> None:
    assert fault in refusal_of(tmp_path, text)


def test_spot_nodes_are_written_one_by_one(tmp_path: Path) -> None:
    (tmp_path / "n.yaml").write_text(
        "nodes:\n  - {host: n, memory: 8GB, vcores: 8, count: 4}\n"
        "spot: {lost_per_hour: 3%, share: 50%, replaced_after: 5m}\n"
    )
    write_nodes(read_node_list(tmp_path / "n.yaml"), tmp_path / "n.json")
    spots = read_node_list(tmp_path / "n.json").schedule.spots
    assert spots == (SpotNodes(("n-2",), 0.03, 300_000), SpotNodes(("n-4",), 0.03, 300_000))


def test_an_autoscaler_is_not_lost_in_writing(tmp_path: Path) -> None:
    (tmp_path / "n.yaml").write_text(SCALED + RULES)
    with pytest.raises(YarnException, match="an autoscaler cannot be written as single nodes"):
        write_nodes(read_node_list(tmp_path / "n.yaml"), tmp_path / "n.json")
    assert not (tmp_path / "n.json").exists()
