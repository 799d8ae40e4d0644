"""Applications made of what a ResourceManager reports: their totals agree with the answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yarn.faults import ConfigurationException
from yarn.resource import Resource
from yarnling.workload.container_sharing import AM_STEPS_MAX
from yarnling.workload.defaults import Defaults
from yarnling.workload.formats import read_node_list, read_workload
from yarnling.workload.model import Workload, WorkloadApplication

START = 1_795_222_738_391


def app(number: int = 1, **more: Any) -> dict[str, Any]:
    """An application as the answer has it, with the fields that matter and one that does not."""
    return {
        "id": f"application_1795222023200_{number:04}",
        "user": "ann",
        "name": "query",
        "queue": "root.etl",
        "state": "FINISHED",
        "progress": 100.0,
        "applicationType": "SPARK",
        "priority": 0,
        "startedTime": START + number * 1000,
        "launchTime": START + number * 1000 + 4000,
        "finishedTime": START + number * 1000 + 604_000,
        "elapsedTime": 604_000,
        "allocatedMB": -1,
        "allocatedVCores": -1,
        "runningContainers": -1,
        "memorySeconds": 2_457_600,
        "vcoreSeconds": 1_200,
        "resourceSecondsMap": {"entry": {"key": "vcores", "value": "1200"}},
        "unmanagedApplication": False,
    } | more


def read(tmp_path: Path, *apps: dict[str, Any], defaults: Defaults | None = None) -> Workload:
    (tmp_path / "apps.json").write_text(json.dumps({"apps": {"app": list(apps)}}))
    return read_workload(tmp_path / "apps.json", defaults=defaults or Defaults())


def read_one(tmp_path: Path, **more: Any) -> WorkloadApplication:
    (application,) = read(tmp_path, app(**more)).applications
    return application


def used(application: WorkloadApplication) -> tuple[float, float]:
    """(MB-seconds, vcore-seconds) of an application."""
    runs_s = application.am_lasts_ms / 1000
    memory, vcores = application.am_resource.memory_mb * runs_s, application.am_resource.vcores * runs_s
    for group in application.groups:
        seconds = sum(group.durations_ms) / 1000
        memory, vcores = memory + group.resource.memory_mb * seconds, vcores + group.resource.vcores * seconds
    return memory, vcores


def test_spark_has_executors_that_run_all_the_time(tmp_path: Path) -> None:
    application = read_one(tmp_path)
    (executors,) = application.groups
    assert (executors.resource, executors.durations_ms) == (Resource(2048, 1), (600_000,))
    assert (application.am_resource, application.am_lasts_ms) == (Resource(2048, 1), 600_000)


def test_mapreduce_has_short_tasks_and_reduces_after_its_maps(tmp_path: Path) -> None:
    maps, reduces = read_one(tmp_path, applicationType="MAPREDUCE").groups
    assert (maps.resource, maps.durations_ms, maps.priority) == (Resource(2048, 1), (60_000,) * 8, 20)
    assert (reduces.resource, reduces.durations_ms, reduces.priority) == (Resource(2048, 1), (60_000,) * 2, 10)
    assert (maps.after, reduces.after) == (None, 0)


@pytest.mark.parametrize("kind", ["SPARK", "MAPREDUCE"])
@pytest.mark.parametrize(
    ("memory_s", "vcore_s"),
    [(2_457_600, 1200), (123_456_789, 54_321), (700_000, 3_000), (1_000_000, 650), (1_228_800, 600), (40_000, 599)],
)
def test_the_totals_agree_with_the_answer(tmp_path: Path, kind: str, memory_s: int, vcore_s: int) -> None:
    application = read_one(tmp_path, applicationType=kind, memorySeconds=memory_s, vcoreSeconds=vcore_s)
    memory, vcores = used(application)
    assert memory == pytest.approx(memory_s, rel=0.005)
    assert vcores == pytest.approx(vcore_s, rel=0.1)


def test_an_application_of_one_container_is_an_am_that_lasts(tmp_path: Path) -> None:
    application = read_one(tmp_path, memorySeconds=1_228_800, vcoreSeconds=600)
    assert application.groups == ()
    assert (application.am_resource, application.am_lasts_ms) == (Resource(2048, 1), 600_000)


def test_one_that_still_runs_shows_the_size_of_its_containers(tmp_path: Path) -> None:
    held = {"state": "RUNNING", "allocatedMB": 2048 + 4 * 8192, "allocatedVCores": 17, "runningContainers": 5}
    application = read_one(tmp_path, memorySeconds=600 * (2048 + 4 * 8192), vcoreSeconds=600 * 17, **held)
    (executors,) = application.groups
    assert (executors.resource, executors.durations_ms) == (Resource(8192, 4), (600_000,) * 4)


def test_other_resources_follow_their_totals(tmp_path: Path) -> None:
    gpus = {"entry": [{"key": "yarn.io/gpu", "value": "1200"}, {"key": "memory-mb", "value": "2457600"}]}
    (executors,) = read_one(tmp_path, resourceSecondsMap=gpus).groups
    assert executors.resource.extra == (("yarn.io/gpu", 2),)


def test_the_am_of_an_unmanaged_application_used_nothing(tmp_path: Path) -> None:
    (executors,) = read_one(tmp_path, unmanagedApplication=True).groups
    assert (executors.resource, executors.durations_ms) == (Resource(2048, 1), (600_000, 600_000))


def test_applications_come_in_the_order_of_their_submission(tmp_path: Path) -> None:
    workload = read(tmp_path, app(5, user="bob", queue="root.b", priority=4), app(2))
    first, second = workload.applications
    assert (first.submit_ms, first.user, second.submit_ms, second.user) == (0, "ann", 3000, "bob")
    assert (second.queue, second.priority, second.kind) == ("root.b", 4, "SPARK")


def test_what_is_assumed_is_listed(tmp_path: Path) -> None:
    nothing = {"memorySeconds": 0, "vcoreSeconds": 0}
    workload = read(
        tmp_path,
        app(1),
        app(2, applicationType="TEZ", launchTime=-1),
        app(3, state="RUNNING"),
        app(4, state="ACCEPTED", **nothing),
        app(5, state="KILLED", **nothing),
        app(6, memorySeconds=600_000, vcoreSeconds=600),
    )
    assert len(workload.applications) == 4
    text = "\n".join(workload.assumptions)
    for sentence in (
        "1 applications are MapReduce or Tez: each of their containers runs for about 60 s.",
        "2 applications are of other types",
        "1 applications used no more than one container",
        "1 applications still ran",
        "1 applications have no launchTime",
        "1 applications were still waiting",
        "1 applications ended without using anything",
    ):
        assert sentence in text


def test_the_sizes_that_are_assumed_can_be_chosen(tmp_path: Path) -> None:
    defaults = Defaults(container=Resource(1024, 4), task_ms=30_000)
    (application,) = read(tmp_path, app(applicationType="TEZ"), defaults=defaults).applications
    (tasks,) = application.groups
    assert (tasks.resource, tasks.durations_ms) == (Resource(8192, 4), (30_000,) * 5)


@pytest.mark.parametrize("answer", ['{"apps": {}}', '{"apps": null}', '{"apps": {"app": []}}'])
def test_an_empty_answer_is_refused(tmp_path: Path, answer: str) -> None:
    (tmp_path / "apps.json").write_text(answer)
    with pytest.raises(ConfigurationException) as refused:
        read_workload(tmp_path / "apps.json")
    (fault,) = refused.value.faults
    assert fault.problem == "has no applications: there is nothing to import"
    assert "?states=FINISHED,FAILED,KILLED" in fault.remedy


def test_an_answer_of_applications_that_are_all_left_out_is_refused(tmp_path: Path) -> None:
    nothing = {"memorySeconds": 0, "vcoreSeconds": 0}
    with pytest.raises(ConfigurationException, match="has no application to import: 1 applications were still waiting"):
        read(tmp_path, app(state="ACCEPTED", **nothing))


@pytest.mark.parametrize("reported", [None, "", " ", "<Not set>", "<DEFAULT_PARTITION>"])
def test_an_application_of_the_default_partition_has_no_label(tmp_path: Path, reported: str | None) -> None:
    """RMAppImpl.getAppNodeLabelExpression: "<Not set>" without an expression, "<DEFAULT_PARTITION>" for a blank one."""
    application = read_one(tmp_path, appNodeLabelExpression=reported)
    assert (application.label, application.groups[0].label) == ("", "")


def test_an_application_keeps_its_label(tmp_path: Path) -> None:
    application = read_one(tmp_path, appNodeLabelExpression="gpu")
    assert (application.label, application.groups[0].label) == ("gpu", "gpu")


@pytest.mark.parametrize(
    "figures",
    [
        {"elapsedTime": 0, "memorySeconds": 36_000_000, "vcoreSeconds": 17_578},
        {"elapsedTime": 0, "memorySeconds": 36_000_000, "vcoreSeconds": 0},
        {"elapsedTime": 12_000, "launchTime": -1, "memorySeconds": 1 << 40, "vcoreSeconds": 200_000},
    ],
)
def test_an_application_with_too_short_a_time_for_its_totals_is_left_out(
    tmp_path: Path, figures: dict[str, Any]
) -> None:
    workload = read(tmp_path, app(1), app(2, **figures))
    assert [each.name for each in workload.applications] == [app(1)["id"]]
    assert "1 applications are left out because their times contradict their totals" in "\n".join(workload.assumptions)


def test_an_application_runs_for_at_least_a_second(tmp_path: Path) -> None:
    """Its totals are whole seconds: 2048 MB-seconds in 0 ms are 2048 MB for a second, not 2 TB for a millisecond."""
    application = read_one(tmp_path, elapsedTime=0, memorySeconds=2048, vcoreSeconds=1)
    assert (application.am_resource, application.am_lasts_ms) == (Resource(2048, 1), 1000)


def test_a_large_application_is_kept(tmp_path: Path) -> None:
    application = read_one(tmp_path, memorySeconds=600 * 20_000 * 4096, vcoreSeconds=600 * 20_000)
    assert application.containers in (19_999, 20_000)


def test_one_application_may_stand_alone(tmp_path: Path) -> None:
    for answer in ({"app": app()}, {"apps": {"app": app()}}):
        (tmp_path / "apps.json").write_text(json.dumps(answer))
        assert len(read_workload(tmp_path / "apps.json").applications) == 1


def test_every_fault_names_its_application_and_its_path_in_jq(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationException) as refused:
        read(tmp_path, app(1, elapsedTime=-5), app(2), app(3, user="", memorySeconds="many"), app(4, id=7))
    assert [fault.key for fault in refused.value.faults] == [
        "application_1795222023200_0001: apps.app[0].elapsedTime",
        "application_1795222023200_0003: apps.app[2].user",
        "application_1795222023200_0003: apps.app[2].memorySeconds",
        "apps.app[3].id",
    ]


def test_an_application_of_another_year_is_named(tmp_path: Path) -> None:
    started = START + 400 * 24 * 3_600_000
    with pytest.raises(ConfigurationException) as refused:
        read(tmp_path, app(1), app(2, startedTime=started))
    (fault,) = refused.value.faults
    assert (fault.key, fault.value) == ("application_1795222023200_0002: startedTime", str(started))


def test_another_answer_is_refused(tmp_path: Path) -> None:
    (tmp_path / "apps.json").write_text('{"apps": {"app": 7}}')
    with pytest.raises(ConfigurationException, match="not an answer to GET /ws/v1/cluster/apps"):
        read_workload(tmp_path / "apps.json")


# Files that are not an answer, and numbers that are not finite


@pytest.mark.parametrize("constant", ["INF", "-INF", "NaN", "Infinity", "-Infinity"])
def test_a_number_that_is_not_finite_does_not_matter_where_it_is_not_used(tmp_path: Path, constant: str) -> None:
    text = json.dumps({"apps": {"app": [app(1, name="say INF"), app(2, queueUsagePercentage=0.5)]}})
    (tmp_path / "apps.json").write_text(text.replace("0.5", constant))
    workload = read_workload(tmp_path / "apps.json")
    assert len(workload.applications) == 2
    (sentence,) = [each for each in workload.assumptions if "not finite" in each]
    assert sentence == f"queueUsagePercentage is not finite in {app(2)['id']}: it is not used."


def test_a_number_that_is_not_finite_is_named_where_it_is_used(tmp_path: Path) -> None:
    text = json.dumps({"apps": {"app": [app(1), app(2, memorySeconds="@")]}})
    (tmp_path / "apps.json").write_text(text.replace('"@"', "INF"))
    with pytest.raises(ConfigurationException) as refused:
        read_workload(tmp_path / "apps.json")
    (fault,) = refused.value.faults
    assert (fault.key, fault.value) == (f"{app(2)['id']}: apps.app[1].memorySeconds", "INF")


@pytest.mark.parametrize(
    ("text", "problem", "remedy"),
    [
        (
            "<html><head><meta http-equiv='refresh' content='0;url=/login'></head></html>",
            "is a login page",
            "curl --negotiate",
        ),
        ("<!DOCTYPE html><html><body>Nodes of the cluster</body></html>", "is a web page", "Accept: application/json"),
        ('<?xml version="1.0"?><apps><app/></apps>', "is XML", "Accept: application/json"),
        ("This is standby RM. The redirect url is: /ws/v1/cluster/apps\n", "a standby ResourceManager", "curl -L"),
        ("There is no active RM right now.\nHA Zookeeper", "no ResourceManager was active", "ask again"),
        ('{"RemoteException":{"message":"java.lang.Exception: no"}}', "is an error of the ResourceManager", "correct"),
        ('{"scheduler": {"schedulerInfo": {"type": "fairScheduler"}}}', "runs the FairScheduler", "yarn fs2cs"),
    ],
)
def test_a_text_that_is_not_an_answer_is_named_as_such(tmp_path: Path, text: str, problem: str, remedy: str) -> None:
    """RMWebAppFilter has the texts of a ResourceManager that is not active."""
    (tmp_path / "apps.json").write_text(text)
    for read_file in (read_workload, read_node_list):
        with pytest.raises(ConfigurationException, match=problem) as refused:
            read_file(tmp_path / "apps.json")
        assert remedy in refused.value.faults[0].remedy


# Conservation


def dumped(number: int, kind: str, am_mb: int, runs_ms: int, containers: list[tuple[int, int]]) -> dict[str, Any]:
    """An application as Hadoop reports it: `containers` are (MB, ms), with a vcore each; each container's amounts are
    truncated to whole seconds (RMContainerImpl.FinishedTransition.updateAttemptMetrics).
    """
    everything = [(am_mb, runs_ms), *containers]
    return app(
        number,
        applicationType=kind,
        launchTime=START + number * 1000,
        elapsedTime=runs_ms,
        memorySeconds=sum(memory_mb * ms // 1000 for memory_mb, ms in everything),
        vcoreSeconds=sum(ms // 1000 for _, ms in everything),
    )


def hours_of(workload: Workload, step_mb: int = 1024) -> float:
    """The GB-hours of a workload in a scheduler that rounds up to the step."""
    rounded = 0
    for one in workload.applications:
        rounded += -(-one.am_resource.memory_mb // step_mb) * step_mb * one.am_lasts_ms
        rounded += sum(-(-each.resource.memory_mb // step_mb) * step_mb * sum(each.durations_ms) for each in one.groups)
    return rounded / 1024 / 3_600_000


@pytest.mark.parametrize(
    ("kind", "count", "memory_mb", "lasts_ms", "runs_ms"),
    [
        ("SPARK", 10, 2048, 595_300, 602_700),
        ("MAPREDUCE", 40, 1024, 60_400, 171_300),
        ("SPARK", 4, 5120, 895_900, 903_100),
    ],
)
def test_an_import_keeps_memory_hours_and_sizes(
    tmp_path: Path, kind: str, count: int, memory_mb: int, lasts_ms: int, runs_ms: int
) -> None:
    """60 applications with an AM of 2048 MB and known containers. An import made 321 of 221 GB-hours of the first."""
    apps = [
        dumped(number, kind, 2048, runs_ms + 7 * number, [(memory_mb, lasts_ms + 11 * number)] * count)
        for number in range(60)
    ]
    workload = read(tmp_path, *apps)
    true_hours = sum(each["memorySeconds"] for each in apps) / 1024 / 3600
    assert hours_of(workload) == pytest.approx(true_hours, rel=0.02)
    sizes = {each.resource.memory_mb for one in workload.applications for each in one.groups}
    assert (sizes, {one.am_resource.memory_mb for one in workload.applications}) == ({memory_mb}, {2048})
    assert f"Recorded: {true_hours:,.1f} GB-hours; as imported: {hours_of(workload):,.1f}" in workload.assumptions[-1]
    assert "Warning" not in workload.assumptions[-1]


def test_an_import_with_the_wrong_step_is_warned_about(tmp_path: Path) -> None:
    small = dumped(1, "SPARK", 512, 600_000, [(512, 590_000)] * 10)
    workload = read(tmp_path, small)
    assert workload.assumptions[-1].startswith("Warning: Recorded: 0.9 GB-hours")
    assert "1 applications used less memory for a vcore" in " ".join(workload.assumptions)
    right = read(tmp_path, small, defaults=Defaults(step_mb=512))
    assert "Warning" not in right.assumptions[-1]
    assert right.applications[0].groups[0].resource == Resource(512, 1)


@given(
    kind=st.sampled_from(["SPARK", "MAPREDUCE", "TEZ"]),
    am_steps=st.integers(1, 4),
    steps=st.integers(1, 8),
    count=st.integers(3, 60),
    lasts_ms=st.integers(20_000, 900_000),
    later_ms=st.integers(1_000, 60_000),
    step_mb=st.sampled_from([256, 512, 1024, 2048]),
)
def test_any_workload_of_equal_containers_keeps_its_memory_hours(
    tmp_path_factory: pytest.TempPathFactory,
    kind: str,
    am_steps: int,
    steps: int,
    count: int,
    lasts_ms: int,
    later_ms: int,
    step_mb: int,
) -> None:
    """The size is determined where another multiple would make the vcore-seconds wrong by more than an AM may."""
    containers = [(steps * step_mb, lasts_ms)] * count
    one = dumped(1, kind, am_steps * step_mb, lasts_ms + later_ms, containers)
    workload = read(tmp_path_factory.mktemp("import"), one, defaults=Defaults(step_mb=step_mb))
    assert hours_of(workload, step_mb) == pytest.approx(one["memorySeconds"] / 1024 / 3600, rel=0.02)
    (application,) = workload.applications
    if count > 2 * AM_STEPS_MAX:
        assert {each.resource.memory_mb for each in application.groups} == {steps * step_mb}
