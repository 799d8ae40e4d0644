"""Descriptions of sweeps."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.yarnling.sweep.sweeps import write_workload_sweep
from yarn.faults import ConfigurationException
from yarn.settings.release import RELEASE
from yarnling.sweep.runs import Sweep, SweepRun
from yarnling.sweep.spec_file import read_sweep

PLAN = "work: [{program: batch, tasks: 1}]\nlasts: 1\n"


def read(tmp_path: Path, text: str) -> Sweep:
    (tmp_path / "sweep.yaml").write_text(text)
    return read_sweep(tmp_path / "sweep.yaml")


def test_every_plan_runs_with_every_seed(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(PLAN)
    sweep = read(tmp_path, "seeds: 5-6\nplans: [mine.yaml, kill-node, random]\nhash: true\n")
    assert sweep.runs == tuple(
        SweepRun(plan, seed=seed) for plan in ("mine.yaml", "kill-node", "random") for seed in (5, 6)
    )
    assert set(sweep.inputs.plans) == {"mine.yaml", "kill-node"}
    assert sweep.inputs.hashed
    assert sweep.inputs.encode


def test_seeds_may_be_counted(tmp_path: Path) -> None:
    assert [run.seed for run in read(tmp_path, "seeds: 3\nplans: [flap]").runs] == [1, 2, 3]


def test_the_digest_of_a_plan_follows_its_content(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(PLAN)
    before = read(tmp_path, "seeds: 1\nplans: [mine.yaml]").digests
    (tmp_path / "mine.yaml").write_text(f"# a comment\n{PLAN}")
    assert read(tmp_path, "seeds: 1\nplans: [mine.yaml]").digests == before
    (tmp_path / "mine.yaml").write_text(PLAN.replace("lasts: 1", "lasts: 2"))
    assert read(tmp_path, "seeds: 1\nplans: [mine.yaml]").digests != before


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("seeds: 0\nplans: [flap]", "not a valid range of seeds"),
        ("seeds: 9-3\nplans: [flap]", "not a valid range of seeds"),
        ("seeds: 99999999\nplans: [flap]", "not a valid range of seeds"),
        ("seeds: 900000\nplans: [flap, storm]", "make more than 1000000 runs"),
        ("seeds: 1\nplans: []", "neither plans nor workloads"),
        ("seeds: 1\nplans: [flap, flap]", "names something twice"),
        ("seeds: 1\nplans: [none]", "neither a file nor a ready-made plan"),
        ("seeds: 1", "neither plans nor workloads"),
        ("seeds: 1\nworkloads: [w.yaml]", "workloads need configurations and nodes"),
    ],
)
def test_a_wrong_sweep_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ConfigurationException, match=problem):
        read(tmp_path, text)


def test_a_load_factor_out_of_bounds_is_the_only_fault(tmp_path: Path) -> None:
    """Not also "has 0 items", because the list without its invalid item would be too short."""
    with pytest.raises(ConfigurationException) as refused:
        read(tmp_path, "seeds: 1\nplans: [flap]\nload_factors: [-1]")
    assert [(fault.key, fault.value) for fault in refused.value.faults] == [("load_factors[1]", "-1")]
    with pytest.raises(ConfigurationException, match="has 0 items"):
        read(tmp_path, "seeds: 1\nplans: [flap]\nload_factors: []")


def test_workloads_run_under_each_configuration_and_load(tmp_path: Path) -> None:
    sweep = write_workload_sweep(tmp_path)
    assert sweep.runs[:3] == (
        SweepRun("", "narrow", "work.yaml", 1.0, 1),
        SweepRun("", "wide", "work.yaml", 1.0, 1),
        SweepRun("", "narrow", "work.yaml", 1.0, 2),
    )
    assert len(sweep.runs) == 8
    assert sorted(sweep.digests) == ["configuration narrow", "configuration wide", "nodes", "workload work.yaml"]
    assert sweep.inputs.until_ms == 30 * 60_000


def test_a_workload_that_does_not_fit_a_configuration_is_refused(tmp_path: Path) -> None:
    write_workload_sweep(tmp_path)
    (tmp_path / "work.yaml").write_text((tmp_path / "work.yaml").read_text().replace("root.etl", "nosuch"))
    with pytest.raises(ConfigurationException, match="queue nosuch does not exist") as refused:
        read_sweep(tmp_path / "sweep.yaml")
    assert [(fault.key, fault.value) for fault in refused.value.faults] == [
        ("configurations", "narrow"),
        ("configurations", "wide"),
    ]


def test_the_faults_of_all_inputs_are_reported_together(tmp_path: Path) -> None:
    write_workload_sweep(tmp_path)
    (tmp_path / "work.yaml").write_text("applications: 3")
    (tmp_path / "nodes.yaml").write_text("nodes: []")
    with pytest.raises(ConfigurationException) as refused:
        read_sweep(tmp_path / "sweep.yaml")
    assert {Path(fault.origin.source).name for fault in refused.value.faults} == {"work.yaml", "nodes.yaml"}


def test_the_release_is_that_of_all_configurations(tmp_path: Path) -> None:
    before = write_workload_sweep(tmp_path)
    sweep = read_sweep(tmp_path / "sweep.yaml", "3.5.0")
    assert {values[RELEASE.key] for values in sweep.inputs.configurations.values()} == {"3.5.0"}
    assert sweep.inputs.release == "3.5.0"
    assert sweep.digests["configuration wide"] != before.digests["configuration wide"]


def test_a_missing_key_hides_no_fault_of_other_inputs(tmp_path: Path) -> None:
    text = "seeds: 1\nplans: [flapp]\nworkloads: [nosuch.jsonl]\nconfigurations: [nosuch]"
    with pytest.raises(ConfigurationException) as refused:
        read(tmp_path, text)
    assert "flapp: neither a file nor a ready-made plan" in refused.value.message
    assert "workloads need configurations and nodes" in refused.value.message
    assert "nosuch.jsonl: cannot be read" in refused.value.message
    assert "nosuch: No such file or directory" in refused.value.message
