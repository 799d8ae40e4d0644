"""The files in docs/workloads.md can be read."""

from __future__ import annotations

import re
from pathlib import Path

from yarnling.workload.formats import read_node_list, read_nodes, read_workload

DOCUMENT = Path(__file__).parents[3] / "docs" / "workloads.md"


def block(tmp_path: Path, containing: str) -> Path:
    """A file with the one block of the document that contains this text."""
    (text,) = [text for text in re.findall(r"```\w*\n(.*?)```", DOCUMENT.read_text(), re.DOTALL) if containing in text]
    (tmp_path / "file").write_text(text)
    return tmp_path / "file"


def test_the_summary(tmp_path: Path) -> None:
    workload = read_workload(block(tmp_path, "per_hour"))
    assert {application.kind for application in workload.applications} == {"MAPREDUCE", "yarnling"}
    assert len(workload.applications) > 200


def test_the_workload(tmp_path: Path) -> None:
    (application,) = read_workload(block(tmp_path, "yarnling-workload")).applications
    assert application.containers == 101


def test_the_nodes(tmp_path: Path) -> None:
    assert len(read_nodes(block(tmp_path, "host: gpu"))) == 41


def test_the_nodes_with_their_changes(tmp_path: Path) -> None:
    listed = read_node_list(block(tmp_path, "host: flaky"))
    assert len(listed.nodes) == 61
    assert len(listed.schedule.events) == 42
