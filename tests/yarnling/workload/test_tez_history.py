"""The workload of the history of Tez's AMs: containers with their starts and ends.

recorded/tez-history.txt was written by Tez's AM while it ran OrderedWordCount, as in tests/hadoop/test_applications.py,
with tasks of 768 MB. Records of DAGs, vertices and tasks were left out, and settings that are not about sizes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from yarn.faults import ConfigurationException
from yarn.resource import Resource
from yarnling.workload.evidence import Basis, share_of
from yarnling.workload.formats import read_workload
from yarnling.workload.model import WorkloadApplication

RECORDED = Path(__file__).parent / "recorded" / "tez-history.txt"
START_MS = 1_795_000_000_000


def record(kind: str, entity: str, *events: tuple[str, int], **others: Any) -> str:
    listed = [{"ts": START_MS + 1000 * at_s, "eventtype": name} for name, at_s in events]
    parts = {"entity": entity, "entitytype": f"TEZ_{kind}", "events": listed, "otherinfo": others}
    return json.dumps(parts, separators=(",", ":")) + "\x01\n"


def history(*records: str, **config: str) -> str:
    attempt = "tez_appattempt_1_0001_000001"
    return "".join(
        [
            record("APPLICATION", "tez_application_1_0001", user="ann", config=config),
            record("APPLICATION_ATTEMPT", attempt, ("AM_LAUNCHED", 4), appSubmitTime=START_MS),
            record("APPLICATION_ATTEMPT", attempt, ("AM_STARTED", 7)),
            *records,
        ]
    )


def container(number: int, *events: tuple[str, int]) -> str:
    return record("CONTAINER_ID", f"tez_container_e17_1_0001_01_{number:06}", *events)


def read(tmp_path: Path, text: str) -> WorkloadApplication:
    (tmp_path / "history").write_text(text)
    (application,) = read_workload(tmp_path / "history").applications
    return application


def test_the_history_of_a_dag_of_tez() -> None:
    """Two containers ran all five tasks of three vertices; its AM took 5.6 s to start."""
    workload = read_workload(RECORDED)
    (application,) = workload.applications
    assert (application.kind, application.user, application.am_start_ms) == ("TEZ", "ann", 5574)
    assert application.am_resource == Resource(512, 1)
    (group,) = application.groups
    assert (group.resource, group.durations_ms) == (Resource(768, 1), (16_151, 16_135))
    assert share_of(workload.evidence, Basis.DETERMINED) == pytest.approx(1)


def test_sizes_and_the_queue_come_from_the_configuration(tmp_path: Path) -> None:
    config = {"tez.task.resource.memory.mb": "4096", "tez.task.resource.cpu.vcores": "2", "tez.queue.name": "etl"}
    text = history(container(2, ("CONTAINER_LAUNCHED", 10)), container(2, ("CONTAINER_STOPPED", 40)), **config)
    application = read(tmp_path, text)
    assert (application.queue, application.am_resource) == ("etl", Resource(1024, 1))
    assert [(group.resource, group.durations_ms) for group in application.groups] == [(Resource(4096, 2), (30_000,))]


def test_a_container_without_its_end_runs_to_the_last_record(tmp_path: Path) -> None:
    later = record("TASK_ID", "task_1_0001_1_00_000000", ("TASK_STARTED", 90))
    application = read(tmp_path, history(container(2, ("CONTAINER_LAUNCHED", 10)), later, '{"entity":"tez_con'))
    assert application.groups[0].durations_ms == (80_000,)


def test_attempts_of_one_application_are_one(tmp_path: Path) -> None:
    for attempt in (1, 2):
        text = history(container(attempt, ("CONTAINER_LAUNCHED", 10 * attempt), ("CONTAINER_STOPPED", 50)))
        (tmp_path / f"history.txt.appattempt_1_0001_{attempt:06}").write_text(text)
    (application,) = read_workload(tmp_path).applications
    assert application.containers == 2


def test_a_history_without_an_application_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationException, match="has no application of Tez"):
        read(tmp_path, container(2, ("CONTAINER_LAUNCHED", 10)))
