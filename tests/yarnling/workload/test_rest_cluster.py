"""Nodes from the answer to GET /ws/v1/cluster/nodes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from yarn.faults import ConfigurationException
from yarn.resource import Resource
from yarnling.workload.formats import read_node_list, read_nodes


def node(host: str, **more: Any) -> dict[str, Any]:
    gpus = [{"name": "memory-mb", "value": 8192}, {"name": "yarn.io/gpu", "value": 2, "units": ""}]
    total = {"memory": 8192, "vCores": 8, "resourceInformations": {"resourceInformation": gpus}}
    return {
        "id": f"{host}:8041",
        "nodeHostName": host,
        "rack": "/r1",
        "state": "RUNNING",
        "totalResource": total,
    } | more


def read(tmp_path: Path, nodes: object) -> list[tuple[str, str, Resource, str]]:
    (tmp_path / "nodes.json").write_text(json.dumps({"nodes": nodes}))
    return [(each.host, each.rack, each.resource, each.label) for each in read_nodes(tmp_path / "nodes.json")]


def test_nodes_have_their_total_rack_and_label(tmp_path: Path) -> None:
    size = Resource(8192, 8, (("yarn.io/gpu", 2),))
    nodes = [node("a"), node("b", nodeLabels=["gpu"]), node("c", state="LOST")]
    assert read(tmp_path, {"node": nodes}) == [("a", "/r1", size, ""), ("b", "/r1", size, "gpu")]


def test_nodes_that_are_left_out_are_listed_by_state(tmp_path: Path) -> None:
    """A node that is being decommissioned may still run containers."""
    states = ["RUNNING", "UNHEALTHY", "LOST", "LOST", "DECOMMISSIONED", "DECOMMISSIONING"]
    nodes = [node(f"h{number}", state=state) for number, state in enumerate(states)]
    empty = node("x", totalResource={"memory": 0, "vCores": 0})
    (tmp_path / "nodes.json").write_text(json.dumps({"nodes": {"node": [*nodes, empty]}}))
    found = read_node_list(tmp_path / "nodes.json")
    assert [each.host for each in found.nodes] == ["h0", "h1"]
    assert found.assumptions == (
        "5 of 7 nodes are left out: 1 DECOMMISSIONED, 1 DECOMMISSIONING, 2 LOST, 1 without memory and vcores. Nodes "
        "that are being decommissioned may still run containers.",
        "1 of 7 nodes are UNHEALTHY: they are kept as if they were healthy.",
    )


def test_nothing_is_assumed_of_nodes_that_run(tmp_path: Path) -> None:
    (tmp_path / "nodes.json").write_text(json.dumps({"nodes": {"node": [node("a")]}}))
    assert read_node_list(tmp_path / "nodes.json").assumptions == ()


def test_a_node_of_the_default_partition_has_no_label(tmp_path: Path) -> None:
    nodes = [node("a", nodeLabels=["<DEFAULT_PARTITION>"]), node("b", nodeLabels=[])]
    assert [each[3] for each in read(tmp_path, {"node": nodes})] == ["", ""]


def test_the_path_of_a_fault_is_that_of_jq(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationException) as refused:
        read(tmp_path, {"node": [node("a"), node("")]})
    assert [fault.key for fault in refused.value.faults] == ["nodes.node[1].nodeHostName"]


def test_older_answers_have_what_is_used_and_what_is_free(tmp_path: Path) -> None:
    used = {"usedMemoryMB": 1024, "availMemoryMB": 3072, "usedVirtualCores": 1, "availableVirtualCores": 3}
    assert read(tmp_path, {"node": node("a", totalResource=None, **used)}) == [("a", "/r1", Resource(4096, 4), "")]


def test_nodes_of_one_host_are_told_apart(tmp_path: Path) -> None:
    nodes = [node("a"), node("a", id="a:9")]
    assert [each[0] for each in read(tmp_path, {"node": nodes})] == ["a-8041", "a-9"]


@pytest.mark.parametrize("nodes", [{}, {"node": []}, {"node": [node("a", state="LOST")]}, {"node": [{"id": "x"}]}])
def test_an_answer_without_nodes_is_refused(tmp_path: Path, nodes: object) -> None:
    with pytest.raises(ConfigurationException):
        read(tmp_path, nodes)
