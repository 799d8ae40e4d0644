"""A fault of each item of a list is one line."""

from __future__ import annotations

import pytest

from wire.files.yaml_file import parse_yaml
from yarn.faults import ConfigurationException, Fault, Origin, alike_in_lists
from yarnling.workload.nodes_file import NodeList


def test_a_fault_of_each_of_20_nodes_is_one_line() -> None:
    text = "nodes:\n" + "".join(f"  - {{host: n{number}, memory: 8GB}}\n" for number in range(20))
    with pytest.raises(ConfigurationException) as refused:
        parse_yaml(f"{text}  - {{host: last, memory: 8GB, vcores: 1, rak: /r}}\n", "nodes.yaml", NodeList)
    lines = refused.value.message.splitlines()
    assert lines[0] == (
        "nodes.yaml:2: nodes[1]: has no vcores (20 alike: nodes[1], nodes[2], nodes[3], ...) (write vcores: ...)"
    )
    assert [line.partition(":")[0] for line in lines] == ["nodes.yaml", "nodes.yaml"]
    assert "nodes[21].rak" in lines[1]


def test_values_of_one_key_are_named_by_their_values() -> None:
    faults = [Fault("host", f"n{number}", Origin("f"), "is the name of two nodes", "change it") for number in range(9)]
    assert (
        str(alike_in_lists(faults)[0])
        == "f: host = 'n0': is the name of two nodes (9 alike: n0, n1, n2, ...) (change it)"
    )
    assert alike_in_lists(faults[:3]) == faults[:3], "a few are listed"
