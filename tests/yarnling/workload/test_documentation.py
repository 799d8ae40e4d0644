"""The files in docs/workloads.md and docs/autoscaling.md can be read."""

from __future__ import annotations

import re
from pathlib import Path

from yarnling.workload.formats import read_node_list, read_nodes, read_workload

DOCUMENTS = Path(__file__).parents[3] / "docs"


def block(tmp_path: Path, containing: str, document: str = "workloads.md") -> Path:
    """A file with the one block of the document that contains this text."""
    written = (DOCUMENTS / document).read_text()
    (text,) = [text for text in re.findall(r"```\w*\n(.*?)```", written, re.DOTALL) if containing in text]
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


def test_autoscaling_and_spot_nodes(tmp_path: Path) -> None:
    schedules = [
        read_node_list(block(tmp_path, containing, "autoscaling.md")).schedule
        for containing in ("scale_up_factor: 0.5", "pending_ratio", "host: worker")
    ]
    assert [schedule.scaling is None for schedule in schedules] == [False, False, True]
    assert [sum(len(spot.hosts) for spot in schedule.spots) for schedule in schedules] == [20, 0, 20]
