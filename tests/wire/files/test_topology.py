"""Racks of hosts, from TableMapping's file."""

from __future__ import annotations

from pathlib import Path

import pytest

from wire.files.topology import Topology
from yarn.configuration import Configuration
from yarn.errors import YarnException
from yarn.nodes import DEFAULT_RACK

TABLE = {"net.topology.node.switch.mapping.impl": "org.apache.hadoop.net.TableMapping"}
FILE = "net.topology.table.file.name"


def test_hosts_are_in_the_rack_of_their_line(tmp_path: Path) -> None:
    """TableMapping skips lines that do not have two words."""
    (tmp_path / "table").write_text("n1 /r1\n  n2\t/r2  \n# n3 /r3\nn4\nn5 /r5 more\n\n")
    topology = Topology.read(Configuration.of({**TABLE, FILE: str(tmp_path / "table")}))
    racks = {host: topology.rack_of(host) for host in ("n1", "n2", "n3", "n4", "n5", "unknown")}
    assert racks == {
        "n1": "/r1",
        "n2": "/r2",
        "n3": DEFAULT_RACK,
        "n4": DEFAULT_RACK,
        "n5": DEFAULT_RACK,
        "unknown": DEFAULT_RACK,
    }


@pytest.mark.parametrize("values", [{}, TABLE, {FILE: "/no/such/file"}])
def test_without_a_table_there_is_one_rack(values: dict[str, str]) -> None:
    assert Topology.read(Configuration.of(values)).rack_of("n1") == DEFAULT_RACK


def test_a_table_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(YarnException, match=f"{FILE} = .*/none: No such file or directory .name a file of"):
        Topology.read(Configuration.of({**TABLE, FILE: str(tmp_path / "none")}))
    (tmp_path / "latin").write_bytes(b"n\xe9 /r1\n")
    with pytest.raises(YarnException, match="not UTF-8"):
        Topology.read(Configuration.of({**TABLE, FILE: str(tmp_path / "latin")}))
