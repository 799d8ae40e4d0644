"""The workload of a ResourceManager's log: the containers that ran, as a log of Hadoop 3.4.1's shows them.

recorded/rm.log.gz was written by Hadoop's ResourceManager while recorded/workload.jsonl ran on it in real time: real
RPC and Hadoop's AMRMClient, nodes whose containers are timers. Most of the scheduler's own lines were left out.
"""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from yarn.faults import ConfigurationException
from yarn.resource import Resource
from yarnling.workload.evidence import Basis, share_of
from yarnling.workload.formats import read_node_list, read_recorded_times, read_workload
from yarnling.workload.model import Workload, WorkloadApplication

RECORDED = Path(__file__).parent / "recorded"
LOG = RECORDED / "rm.log.gz"
TRUE = {each.name: each for each in read_workload(RECORDED / "workload.jsonl").applications}
LINES = gzip.decompress(LOG.read_bytes()).decode().splitlines(keepends=True)
NAMES = dict(re.findall(r"appId=(application_\w+),name=([^,]*)", "".join(LINES)))


def read(tmp_path: Path, lines: list[str]) -> Workload:
    (tmp_path / "rm.log").write_text("".join(lines))
    return read_workload(tmp_path / "rm.log")


def durations(application: WorkloadApplication) -> list[tuple[Resource, int | None, list[int]]]:
    return [(group.resource, group.after, sorted(group.durations_ms)) for group in application.groups]


def audit(at: str, operation: str, **fields: str) -> str:
    """A line of the audit as log4j writes it."""
    more = "".join(f"\t{name}={value}" for name, value in fields.items())
    return f"{at} INFO RMAuditLogger: USER=ann\tOPERATION={operation}\tTARGET=SchedulerApp\tRESULT=SUCCESS{more}\n"


def life(container: str, start: str, end: str, size: str = "<memory:2048, vCores:2>") -> list[str]:
    """The lines of a container of the first application, from its allocation to its end."""
    of = {"APPID": "application_1_0001", "CONTAINERID": f"container_1_0001_01_{container}", "RESOURCE": size}
    of = {name: value for name, value in of.items() if value} | {"QUEUENAME": "etl"}
    return [audit(start, "AM Allocated Container", **of), audit(end, "AM Released Container", **of)]


SUBMITTED = audit("2026-01-01 00:00:00,000", "Submit Application Request", APPID="application_1_0001")


def test_it_has_all_containers_with_their_sizes_durations_and_phases() -> None:
    """An application that waited for its first container, then ran the others, looks as if it had two phases."""
    differences, in_phases = list[int](), 0
    for application in read_workload(LOG).applications:
        true = TRUE[NAMES[application.name]]
        assert (application.user, application.queue, application.kind) == (true.user, true.queue, true.kind)
        assert (application.am_resource, application.containers) == (true.am_resource, true.containers)
        assert {group.resource for group in application.groups} == {group.resource for group in true.groups}
        seen, meant = durations(application), durations(true)
        in_phases += [group[:2] for group in seen] == [group[:2] for group in meant]
        one, other = sorted(ms for _, _, each in seen for ms in each), sorted(ms for _, _, each in meant for ms in each)
        differences += [a - b for a, b in zip(one, other, strict=True)]
    assert len(differences) == sum(each.containers for each in TRUE.values())
    assert (min(differences), max(differences)) == (8, 167)
    assert in_phases == len(TRUE)


def test_it_has_submissions_and_the_starts_of_ams() -> None:
    """The AMs of that run take 200 ms to start, and some time to register; submissions were up to 0.2 s late."""
    applications = read_workload(LOG).applications
    late = [each.submit_ms - TRUE[NAMES[each.name]].submit_ms for each in applications]
    assert max(late) - min(late) < 400
    starts_ms = [each.am_start_ms for each in applications if isinstance(each.am_start_ms, int)]
    assert len(starts_ms) == len(applications)
    assert 200 < min(starts_ms) <= max(starts_ms) < 500


def test_it_is_recorded_whole() -> None:
    workload = read_workload(LOG)
    assert share_of(workload.evidence, Basis.RECORDED) == pytest.approx(1)
    assert any("containers never ran" in each for each in workload.assumptions)


def test_the_nodes_are_those_that_registered() -> None:
    nodes = read_node_list(LOG).nodes
    assert [(node.host, node.resource) for node in nodes] == [
        (f"127.0.1.{number}", Resource(16384, 16)) for number in range(1, 5)
    ]


def test_the_audit_alone_is_enough_but_for_starts(tmp_path: Path) -> None:
    """Without transitions a surplus container looks like work, and a start is half an AM's interval after placement."""
    workload = read(tmp_path, [line for line in LINES if "RMAuditLogger" in line])
    assert sum(each.containers for each in workload.applications) > sum(each.containers for each in TRUE.values())
    assert share_of(workload.evidence, Basis.DETERMINED) > 0.8
    assert any("no transitions" in each for each in workload.assumptions)


def test_the_order_of_the_files_of_a_rotated_log_does_not_matter(tmp_path: Path) -> None:
    half = len(LINES) // 2
    (tmp_path / "rm.log").write_text("".join(LINES[half:]))
    (tmp_path / "rm.log.1.gz").write_bytes(gzip.compress("".join(LINES[:half]).encode()))
    assert read_workload(tmp_path).applications == read_workload(LOG).applications


def test_a_log_that_begins_late_has_what_still_ran(tmp_path: Path) -> None:
    workload = read(tmp_path, LINES[len(LINES) // 2 :])
    assert 0 < share_of(workload.evidence, Basis.DETERMINED) < 0.5
    assert any("submitted before the log begins" in each for each in workload.assumptions)
    assert sum(each.submit_ms == 0 for each in workload.applications) > 2


def test_a_log_that_ends_early_counts_until_then(tmp_path: Path) -> None:
    workload = read(tmp_path, LINES[: len(LINES) // 2])
    (open_part,) = [each for each in workload.evidence if "still ran" in each.about]
    assert open_part.basis is Basis.DETERMINED


def test_a_phase_begins_a_second_after_the_last_end(tmp_path: Path) -> None:
    lines = [SUBMITTED, *life("000001", "2026-01-01 00:00:01,000", "2026-01-01 00:01:00,000")]
    lines += life("000002", "2026-01-01 00:00:10,000", "2026-01-01 00:00:20,000")
    lines += life("000003", "2026-01-01 00:00:20,500", "2026-01-01 00:00:30,000")
    lines += life("000004", "2026-01-01 00:00:31,000", "2026-01-01 00:00:40,000")
    (application,) = read(tmp_path, lines).applications
    assert durations(application) == [(Resource(2048, 2), None, [9_000, 9_500]), (Resource(2048, 2), 0, [8_500])]


def test_mapreduce_has_two_phases_at_most(tmp_path: Path) -> None:
    lines = [SUBMITTED]
    for number in range(1, 5):
        lines += life(f"00000{number}", f"2026-01-01 00:0{number}:00,000", f"2026-01-01 00:0{number}:30,000")
    lines.append(
        "2026-01-01 00:06:00,000 INFO ApplicationSummary: appId=application_1_0001,applicationType=MAPREDUCE\n"
    )
    (application,) = read(tmp_path, lines).applications
    assert [(len(group.durations_ms), group.after) for group in application.groups] == [(1, None), (2, 0)]


def test_an_application_without_containers_is_an_am_that_runs_as_long(tmp_path: Path) -> None:
    lines = [SUBMITTED, *life("000001", "2026-01-01 00:00:01,000", "2026-01-01 00:01:00,000")]
    registered = {"APPID": "application_1_0001", "APPATTEMPTID": "appattempt_1_0001_000001"}
    lines.append(audit("2026-01-01 00:00:04,500", "Register App Master", **registered))
    (application,) = read(tmp_path, lines).applications
    assert (application.am_start_ms, application.am_lasts_ms, application.groups) == (3_500, 55_500, ())


def test_an_unmanaged_am_has_no_container(tmp_path: Path) -> None:
    registered = {"APPID": "application_1_0001", "APPATTEMPTID": "appattempt_1_0001_000001"}
    lines = [SUBMITTED, audit("2026-01-01 00:00:00,500", "Register App Master", **registered)]
    lines += life("000001", "2026-01-01 00:00:01,000", "2026-01-01 00:01:00,000")
    (application,) = read(tmp_path, lines).applications
    assert application.containers == 1


def test_sizes_come_from_the_node_where_the_audit_has_none(tmp_path: Path) -> None:
    """The scheduler logs the size, too, when it gives a container to a node."""
    lines = [SUBMITTED]
    for number in ("000001", "000002"):
        lines += life(number, "2026-01-01 00:00:01,000", "2026-01-01 00:01:00,000", size="")
    assigned = "Assigned container container_1_0001_01_000002 of capacity <memory:3072, vCores:1> on host n1:8041"
    lines.append(f"2026-01-01 00:00:01,000 INFO SchedulerNode: {assigned}\n")
    workload = read(tmp_path, lines)
    assert workload.applications[0].groups[0].resource == Resource(3072, 1)
    assert any("does not say" in each.about for each in workload.evidence if each.basis is Basis.ASSUMED)


def test_all_types_of_resources_are_kept(tmp_path: Path) -> None:
    lines = [SUBMITTED, *life("000001", "2026-01-01 00:00:01,000", "2026-01-01 00:01:00,000")]
    size = "<memory:8192, vCores:4, yarn.io/gpu: 2>"
    lines += life("000002", "2026-01-01 00:00:10,000", "2026-01-01 00:00:20,000", size)
    (application,) = read(tmp_path, lines).applications
    assert application.groups[0].resource == Resource(8192, 4, (("yarn.io/gpu", 2),))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("INFO RMAuditLogger: ", "INFO  resourcemanager.RMAuditLogger (RMAuditLogger.java:logSuccess(195)) - "),
        (
            "INFO RMAuditLogger: ",
            "INFO org.apache.hadoop.yarn.server.resourcemanager.RMAuditLogger: [IPC Server handler 3] ",
        ),
        ("2026-01-01 ", "2026-01-01T"),
        ("2026-01-01 ", "26/01/01 "),
        (",000", ""),
    ],
)
def test_layouts_of_log4j(tmp_path: Path, old: str, new: str) -> None:
    lines = [SUBMITTED, *life("000001", "2026-01-01 00:00:01,000", "2026-01-01 00:01:00,000")]
    lines += life("000002", "2026-01-01 00:00:10,000", "2026-01-01 00:00:20,000")
    (application,) = read(tmp_path, [line.replace(old, new) for line in lines]).applications
    assert durations(application) == [(Resource(2048, 2), None, [9_500])]


def test_a_log_without_dates_is_refused(tmp_path: Path) -> None:
    lines = life("000001", "2026-01-01 00:00:01,000", "2026-01-01 00:01:00,000")
    with pytest.raises(ConfigurationException, match="2 lines to read, but none begins with a date"):
        read(tmp_path, [line[24:] for line in lines])


def test_a_log_without_containers_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationException, match="no container that was allocated or released"):
        read(tmp_path, [SUBMITTED])
    with pytest.raises(ConfigurationException, match="no registration of a node"):
        read_node_list(tmp_path / "rm.log")


def test_lines_that_are_not_whole_are_ignored(tmp_path: Path) -> None:
    lines = [SUBMITTED, *life("000001", "2026-01-01 00:00:01,000", "2026-01-01 00:01:00,000")]
    broken = [line[:length] for line in [*lines, *LINES[:40]] for length in (30, 60, 90)]
    workload = read(tmp_path, [*lines, *[f"{line}\n" for line in broken]])
    assert [each.name for each in workload.applications] == ["application_1_0001"]


def test_the_times_of_the_run_are_those_of_the_log() -> None:
    recorded = read_recorded_times(LOG)
    assert recorded is not None
    workload = {each.name: each for each in read_workload(LOG).applications}
    assert {each.name for each in recorded.applications} == set(workload)
    for each in recorded.applications:
        assert each.submitted_ms == workload[each.name].submit_ms
        assert each.am_wait_ms is not None
        assert each.run_ms is not None
        assert each.am_wait_ms < each.run_ms
    assert sum(each.mb_ms or 0 for each in recorded.applications) == sum(
        used_mb * (end_ms - start_ms)
        for start_ms, end_ms, used_mb in zip(
            recorded.use[""].times_ms, recorded.use[""].times_ms[1:], recorded.use[""].used_mb, strict=False
        )
    )
