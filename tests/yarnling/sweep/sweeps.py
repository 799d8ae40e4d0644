"""A sweep of one small workload under two configurations, for tests."""

from __future__ import annotations

from pathlib import Path

from yarnling.sweep.runs import Sweep
from yarnling.sweep.spec_file import read_sweep

WORKLOAD = """
applications:
  - {name: a, submit_ms: 0, user: ann, queue: root.etl, groups: [{memory_mb: 1024, durations_ms: [[20000, 20]]}]}
  - {name: b, submit_ms: 5000, user: ann, queue: root.etl, groups: [{memory_mb: 1024, durations_ms: [[20000, 20]]}]}
"""
SPEC = """
seeds: 2
configurations: {narrow: narrow, wide: wide}
workloads: [work.yaml]
nodes: nodes.yaml
load_factors: [1, 2]
until: 30m
"""


def write_workload_sweep(directory: Path) -> Sweep:
    """Queue root.etl may use half of the cluster under `narrow`, and all of it under `wide`."""
    for name, most in (("narrow", 50), ("wide", 100)):
        (directory / name).mkdir()
        (directory / name / "capacity-scheduler.xml").write_text(_configuration(most))
    (directory / "work.yaml").write_text(WORKLOAD)
    (directory / "nodes.yaml").write_text("nodes: [{host: n, memory_mb: 8192, vcores: 8, count: 2}]\n")
    (directory / "sweep.yaml").write_text(SPEC)
    return read_sweep(directory / "sweep.yaml")


def _configuration(most: int) -> str:
    values = {
        "queues": "etl,default",
        "etl.capacity": "50",
        "etl.maximum-capacity": str(most),
        "etl.user-limit-factor": "10",
        "default.capacity": "50",
    }
    rows = (
        f"<property><name>yarn.scheduler.capacity.root.{key}</name><value>{value}</value></property>"
        for key, value in values.items()
    )
    return f"<configuration>{''.join(rows)}</configuration>"
