"""Every file that a command, a cluster or an ApplicationMaster writes is named when its disk is full."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from am.client.launching import write_atomically
from am.programs.mapreduce.job_files import LineWriter
from am.programs.mapreduce.shuffle import MapOutputWriter, merged_lines
from tests.yarnling.whatif.outcomes import busy_day
from wire.files.full_disk import DiskFull
from yarnling.cli.app import _described
from yarnling.cluster.directory import _replace
from yarnling.cluster.nodes import ExcludedHosts
from yarnling.cluster.state import write_private
from yarnling.faults.history import History
from yarnling.faults.recorded_faults import write_faults
from yarnling.simulation.trace_file import TraceFile
from yarnling.whatif.report import write_report
from yarnling.whatif.tables import write_tables
from yarnling.workload.model import Workload, WorkloadNodes
from yarnling.workload.nodes_file import write_nodes
from yarnling.workload.workload_file import write_workload


def _write_trace(path: Path) -> None:
    with TraceFile(path, "title"):
        pass


def _append_a_line(path: Path) -> None:
    LineWriter(path).write(("record",))


def _write_map_output(path: Path) -> None:
    writer = MapOutputWriter(path.parent, reduces=1)
    writer.add(b"key\tvalue")
    writer.close()


def _merge(path: Path) -> None:
    runs = [path.parent / "one", path.parent / "two"]
    for run in runs:
        run.write_bytes(b"key\tvalue\n")
    list(merged_lines(runs, path.parent, files_max=1))


def _exclude(path: Path) -> None:
    ExcludedHosts(path, None).add("127.0.0.2")


@pytest.mark.parametrize(
    ("write", "name", "opened"),
    [
        (lambda path: write_report(busy_day(), path.parent), "result.json", "result.json"),
        (lambda path: write_tables(busy_day(), path.parent), "waits.csv", "waits.csv"),
        (lambda path: write_workload(Workload((), ("assumed",)), path), "workload.jsonl", "workload.jsonl"),
        (lambda path: write_nodes(WorkloadNodes(()), path), "nodes.json", "nodes.json"),
        (lambda path: write_faults(path.parent, History(), round), "faults.jsonl", "faults.jsonl"),
        (_write_trace, "run.trace", "run.trace"),
        (lambda path: write_private(path, b"x"), "state.json", ".state.json.PID"),
        (_exclude, "excluded", ".excluded.new"),
        (lambda path: _replace(path, "x"), "yarn-site.xml", ".yarn-site.xml.new"),
        (lambda path: write_atomically(path, b"x"), "job.json", ".job.json.PID.tmp"),
        (_append_a_line, "journal.jsonl", "journal.jsonl"),
        (_write_map_output, "file.out", "file.out"),
        (_merge, "merge-0", "merge-0"),
    ],
)
def test_a_full_disk_is_named(tmp_path: Path, write: Callable[[Path], object], name: str, opened: str) -> None:
    (tmp_path / opened.replace("PID", str(os.getpid()))).symlink_to("/dev/full")
    with pytest.raises(DiskFull) as caught:
        write(tmp_path / name)
    assert _described(caught.value) == f"{tmp_path / name}: No space left on device (free some space there)"
