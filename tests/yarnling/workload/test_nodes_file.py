"""Files of nodes: the machines, and when they join, leave, are drained and are lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from yarn.faults import ConfigurationException
from yarn.resource import Resource
from yarnling.workload.formats import read_node_list, read_nodes
from yarnling.workload.model import NodeChange, NodeEvent, NodeSchedule, WorkloadNode, WorkloadNodes
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
