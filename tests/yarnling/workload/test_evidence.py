"""The basis of a workload: shares of memory-hours that are recorded, determined and assumed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from yarnling.workload.evidence import Basis, Evidence, EvidenceAccount, share_of
from yarnling.workload.formats import read_workload
from yarnling.workload.scaling import scaled
from yarnling.workload.workload_file import write_workload

TASK = {"container.duration.ms": 60_000, "count": 3}
JOB = {"job.id": "j", "job.user": "ann", "job.queue.name": "etl", "job.start.ms": 0}


def sls(tmp_path: Path, *tasks: dict[str, Any], **more: object) -> Path:
    (tmp_path / "jobs.json").write_text(json.dumps({**JOB, **more, "job.tasks": list(tasks)}))
    return tmp_path / "jobs.json"


def test_shares_have_the_sum_of_one_and_the_best_known_part_is_first() -> None:
    account = EvidenceAccount()
    account.add(Basis.ASSUMED, "sizes", 25)
    account.add(Basis.RECORDED, "containers", 50)
    account.add(Basis.ASSUMED, "sizes", 25)
    account.add(Basis.DETERMINED, "nothing", 0)
    assert account.evidence() == (
        Evidence(Basis.RECORDED, 0.5, "containers"),
        Evidence(Basis.ASSUMED, 0.5, "sizes"),
    )
    assert share_of(account.evidence(), Basis.ASSUMED) == 0.5


def test_an_account_without_memory_has_no_parts() -> None:
    assert EvidenceAccount().evidence() == ()


def test_sizes_that_a_trace_lacks_are_assumed(tmp_path: Path) -> None:
    sized = TASK | {"container.memory-mb": 3072}
    workload = read_workload(sls(tmp_path, TASK, sized, **{"job.count": 2}))
    assert {each.basis: each.share for each in workload.evidence} == {Basis.RECORDED: 0.75, Basis.ASSUMED: 0.25}


@pytest.mark.parametrize(
    ("text", "basis"),
    [
        ("j\t0\t0\t100\t0\t0\n", Basis.ASSUMED),
        ("queues: [{queue: q, per_hour: 60, applications: [{tasks: [{duration: 1m}]}]}]", Basis.ASSUMED),
        (
            '{"appId": "a", "submitTime": 0, "resourceRequestSpecs": '
            '[{"runtimes": [1000], "resource": {"memoryMB": 1024}}]}',
            Basis.RECORDED,
        ),
    ],
)
def test_each_format_says_what_it_rests_on(tmp_path: Path, text: str, basis: Basis) -> None:
    (tmp_path / "trace").write_text(text)
    (part,) = read_workload(tmp_path / "trace").evidence
    assert (part.basis, part.share) == (basis, 1)


def test_a_report_of_totals_determines_ams_and_leaves_containers_assumed(tmp_path: Path) -> None:
    app = {"id": "application_1_1", "user": "ann", "queue": "etl", "startedTime": 1, "elapsedTime": 600_000}
    totals = {"memorySeconds": 2_457_600, "vcoreSeconds": 1_200}
    (tmp_path / "apps.json").write_text(json.dumps({"apps": {"app": [app | totals]}}))
    evidence = read_workload(tmp_path / "apps.json").evidence
    assert [each.basis for each in evidence] == [Basis.DETERMINED, Basis.ASSUMED]
    assert sum(each.share for each in evidence) == pytest.approx(1)


def test_the_evidence_stays_with_the_workload(tmp_path: Path) -> None:
    workload = read_workload(sls(tmp_path, TASK))
    write_workload(scaled(workload, 2.0), tmp_path / "w.jsonl")
    assert read_workload(tmp_path / "w.jsonl").evidence == workload.evidence


def test_a_workload_by_hand_has_none(tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text("applications: [{name: a, submit_ms: 0, user: ann, queue: etl}]")
    assert read_workload(tmp_path / "w.yaml").evidence == ()
