"""Workloads in virtual time: what applications get, and what the result says of it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from msgspec.structs import replace

from rm.view import RMView
from tests.yarnling.whatif.small_clusters import (
    AN_HOUR,
    CS,
    MINUTE_MS,
    TWO_QUEUES,
    application,
    configuration,
    group,
    nodes,
    run,
    tasks,
    wait_ms,
)
from yarn.errors import YarnException
from yarn.ids import ApplicationId
from yarn.resource import MEMORY_MB, VCORES, Resource
from yarnling.whatif.checks import names_of_run
from yarnling.whatif.containers import End
from yarnling.whatif.figures import figures_of
from yarnling.whatif.headlines import findings
from yarnling.whatif.result import WhatIfResult
from yarnling.whatif.run import HowFar, RunOptions, run_what_if
from yarnling.workload.distribution import KnownPercentiles, Uniform
from yarnling.workload.model import RequestStyle, TaskGroup, Workload, WorkloadApplication, WorkloadNode

LABELS = {
    **TWO_QUEUES,
    "yarn.node-labels.enabled": "true",
    f"{CS}root.accessible-node-labels.gpu.capacity": "100",
    f"{CS}root.etl.accessible-node-labels": "gpu",
    f"{CS}root.adhoc.accessible-node-labels": " ",
    f"{CS}root.etl.accessible-node-labels.gpu.capacity": "100",
}
DOMINANT = {f"{CS}resource-calculator": "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"}
GPU_TASK = Resource(512, 1, (("gpu", 1),))
PREEMPTION = {
    **TWO_QUEUES,
    "yarn.resourcemanager.scheduler.monitor.enable": "true",
    "yarn.resourcemanager.monitor.capacity.preemption.total_preemption_per_round": "1.0",
    "yarn.resourcemanager.monitor.capacity.preemption.natural_termination_factor": "1.0",
}


MANY_SMALL = nodes(8, memory_mb=2048)


def contention(client: RequestStyle) -> tuple[WorkloadApplication, WorkloadApplication]:
    """Two applications that take turns on MANY_SMALL."""
    one = application(group(60, 20), client=client)
    return one, application(group(30, 7), name="two", queue="adhoc", at_s=3, client=client)


def test_every_task_runs_once_and_for_its_time() -> None:
    durations_ms = (5_000, 20_000, 61_000)
    result = run(application(TaskGroup(Resource(1024, 1), durations_ms)))
    found = tasks(result)
    assert [one.end for one in found] == [End.COMPLETED] * 3
    ran_ms = sorted(one.ended_ms - one.allocated_ms for one in found if one.ended_ms and one.allocated_ms)
    # A container starts at the AM's next heartbeat.
    assert all(0 <= ran - lasts <= 1500 for ran, lasts in zip(ran_ms, durations_ms, strict=True))
    (outcome,) = result.applications
    assert (outcome.state, outcome.queue) == ("FINISHED", "root.etl")
    assert result.is_complete
    assert result.until_ms < 5 * MINUTE_MS


def test_a_group_is_requested_after_those_before_it_and_its_delay() -> None:
    result = run(application(group(2, 10), group(1, 5, after=0, delay_ms=30_000)))
    first, second, later = tasks(result)
    assert first.ended_ms
    assert second.ended_ms
    assert later.requested_ms >= max(first.ended_ms, second.ended_ms) + 30_000


def test_ams_ask_again_as_hadoops_client_does_and_release_the_surplus() -> None:
    """AMRMClientImpl sends a lowered request each time, and so undoes what the ResourceManager has placed since."""
    hadoop, exact = (
        run(*contention(client), machines=MANY_SMALL) for client in (RequestStyle.HADOOP, RequestStyle.EXACT)
    )
    surplus = sum(one.surplus for one in hadoop.applications)
    assert surplus > 0
    assert not any(one.surplus for one in exact.applications)
    assert len(hadoop.containers) == len(exact.containers) == 92
    figures = figures_of(hadoop)
    assert figures.cluster.surplus == surplus
    assert f"{surplus} of {surplus + 92} allocated containers" in " ".join(findings(figures))
    assert "surplus" not in " ".join(findings(figures_of(exact)))


@pytest.mark.slow
def test_surplus_containers_are_the_same_if_no_heartbeat_is_left_out() -> None:
    observed = replace(AN_HOUR, hashed=True, observe=lambda cluster, trace: None)
    quiet, every = (
        run(*contention(RequestStyle.HADOOP), machines=MANY_SMALL, options=options) for options in (AN_HOUR, observed)
    )
    assert quiet.containers == every.containers
    assert quiet.applications == every.applications
    assert quiet.applications[0].surplus


def test_what_an_am_and_a_task_take_to_start_is_a_setting_and_an_assumption() -> None:
    usual, slow = (run(application(group(1, 5), **more)) for more in ({}, {"am_start_ms": 3000, "task_start_ms": 1000}))
    (fast_am, slow_am) = (result.applications[0].am_started_ms for result in (usual, slow))
    assert fast_am is not None
    assert slow_am is not None
    assert 2500 <= slow_am - fast_am <= 3500
    (task,) = tasks(slow)
    assert task.allocated_ms is not None
    assert task.ended_ms is not None
    assert 6000 <= task.ended_ms - task.allocated_ms <= 7500
    assert any("An AM takes 200 ms to start, and a task 0 s" in line for line in usual.assumptions)
    assert any("An AM takes 3 s to start, and a task 1 s" in line for line in slow.assumptions)
    assert any("client: hadoop" in line for line in usual.assumptions)
    assert any("true run" in line for line in usual.assumptions)


def test_each_am_and_task_has_a_start_time_of_its_own_that_only_the_seed_changes() -> None:
    starts = {"am_start_ms": Uniform(1000, 9000), "task_start_ms": KnownPercentiles(((0, 0), (1, 60_000)))}
    work = [application(group(5, 20), name=f"a{number}", **starts) for number in range(3)]
    wide, narrow, other = (
        run(*work, machines=nodes(count), options=replace(AN_HOUR, seed=seed))
        for count, seed in ((9, 1), (1, 1), (9, 2))
    )

    def started_ms(result: WhatIfResult) -> list[int]:
        """The start times of the tasks, in ms. An AM gets its container up to a second after the placement."""
        found = (one for number in range(3) for one in tasks(result, number))
        return sorted((one.ended_ms or 0) - (one.allocated_ms or 0) - 20_000 for one in found)

    assert started_ms(wide)[-1] > started_ms(wide)[0] + 20_000
    assert started_ms(wide) == pytest.approx(started_ms(narrow), abs=1100)
    assert started_ms(wide) != pytest.approx(started_ms(other), abs=1100)
    assert any("An AM takes 5 s (p95 8.6 s) to start, and a task 30 s (p95 57 s)" in line for line in wide.assumptions)


def test_an_application_lasts_as_long_as_its_am_at_least() -> None:
    (outcome,) = run(application(group(1, 5), am_lasts_ms=90_000)).applications
    assert outcome.ended_ms
    assert outcome.am_started_ms is not None
    assert 90_000 <= outcome.ended_ms - outcome.am_started_ms < 95_000


def test_containers_wait_for_free_capacity_and_the_longest_wait_is_explained() -> None:
    result = run(application(group(14, 150)))
    waits_ms = [wait_ms(one) for one in tasks(result)]
    assert sum(wait > 120_000 for wait in waits_ms) == 7
    longest = result.longest_waits[0]
    assert wait_ms(result.containers[longest.container]) == max(waits_ms)
    assert longest.explanation.startswith("waits because the cluster is full")
    used = [sample.used.memory_mb for sample in result.samples if sample.queue == "root.etl"]
    assert max(used) == 512 + 7 * 1024


def test_a_wait_is_explained_once_in_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """The longest wait is also the oldest one of its queue and user."""
    explained: list[object] = []
    reason = RMView.reason

    def noted(view: RMView, application_id: ApplicationId, key: tuple[int, int] | None, now_ms: int) -> object:
        explained.append((now_ms, application_id, key))
        return reason(view, application_id, key, now_ms)

    monkeypatch.setattr(RMView, "reason", noted)
    run(application(group(14, 150)))
    assert explained
    assert len(set(explained)) == len(explained)


@pytest.mark.parametrize(("lasts_s", "interval_ms"), [(20, 1000), (500, 5000), (2000, 15_000), (5000, MINUTE_MS)])
def test_samples_of_a_run_have_one_distance_that_suits_its_length(lasts_s: int, interval_ms: int) -> None:
    result = run(application(group(4, lasts_s)), options=RunOptions(until_ms=120 * MINUTE_MS))
    times = [sample.time_ms for sample in result.samples if sample.queue == "root"]
    assert result.sample_interval_ms == interval_ms
    assert times == [interval_ms * number for number in range(1, len(times) + 1)]
    assert times[-1] == result.until_ms
    assert 1000 * lasts_s < result.until_ms < 1000 * lasts_s + 5000 + interval_ms


def test_an_am_that_waits_for_the_am_limit_is_recorded() -> None:
    settings = {**TWO_QUEUES, f"{CS}maximum-am-resource-percent": "0.01"}
    result = run(application(group(1, 200)), application(group(1, 10), name="two", at_s=5), settings=settings)
    first, second = result.applications
    assert (first.am_limit_wait_ms, first.user_limit_wait_ms) == (0, 0)
    assert second.am_limit_wait_ms >= 3 * MINUTE_MS
    am = next(one for one in result.containers if one.application == 1 and one.is_am)
    assert wait_ms(am) > 3 * MINUTE_MS
    explained = next(one for one in result.longest_waits if result.containers[one.container] == am)
    assert "at its limit for AMs" in explained.explanation
    [reason] = [one for one in result.wait_reasons if one.is_am and one.cause == "AM_QUEUE_LIMIT"]
    assert reason.container_ms >= 3 * MINUTE_MS
    assert "at its limit for AMs" in reason.sentence


def test_the_wait_for_a_user_limit_is_recorded() -> None:
    settings = {**TWO_QUEUES, f"{CS}root.etl.user-limit-factor": "0.5"}
    (outcome,) = run(application(group(4, 130)), settings=settings).applications
    assert outcome.user_limit_wait_ms >= 2 * MINUTE_MS
    assert outcome.am_limit_wait_ms == 0


def test_preempted_tasks_run_again() -> None:
    first = application(group(7, 300))
    result = run(first, application(group(3, 20), name="two", queue="adhoc", at_s=60), settings=PREEMPTION)
    ends = [one.end for one in tasks(result)]
    lost = ends.count(End.PREEMPTED)
    assert lost >= 2
    assert ends.count(End.COMPLETED) == 7
    assert len(ends) == 7 + lost
    assert [one.state for one in result.applications] == ["FINISHED", "FINISHED"]


def test_the_requests_of_a_preempted_am_are_withdrawn_and_those_of_the_next_one_count() -> None:
    """The AM is larger than what its queue is guaranteed, so it is preempted; so is the second one."""
    first = replace(application(group(4, 100)), am_resource=Resource(5120, 1))
    second = application(group(7, 20, memory_mb=512), name="two", queue="adhoc", at_s=60)
    result = run(first, second, settings=PREEMPTION, machines=nodes(1, 8192))
    assert [one.state for one in result.applications] == ["FINISHED", "FINISHED"]
    ams = [one for one in result.containers if one.application == 0 and one.is_am]
    assert [one.end for one in ams] == [End.PREEMPTED, End.PREEMPTED, End.COMPLETED]
    assert all(wait_ms(am) < 1000 for am in ams)
    found = tasks(result)
    assert sum(one.end is End.COMPLETED for one in found) == 4
    withdrawn = [one for one in found if one.allocated_ms is None]
    # Each AM was requested when the attempt before it ended.
    assert {one.withdrawn_ms for one in withdrawn} == {am.requested_ms for am in ams[1:]}
    assert all(one.requested_ms < (one.withdrawn_ms or 0) for one in withdrawn)


def test_a_task_may_last_no_time() -> None:
    result = run(application(group(2, 0)))
    assert [one.end for one in tasks(result)] == [End.COMPLETED] * 2


def test_an_application_that_the_resource_manager_forgets_at_once_has_its_outcome() -> None:
    settings = {**TWO_QUEUES, "yarn.resourcemanager.max-completed-applications": "0"}
    result = run(application(group(1, 5)), application(group(1, 5), name="two", at_s=60), settings=settings)
    assert [one.state for one in result.applications] == ["FINISHED", "FINISHED"]


def test_locality_is_that_of_the_wanted_hosts() -> None:
    result = run(
        application(group(1, 5, hosts=("h1",))),
        application(group(1, 5, hosts=("elsewhere",)), name="two"),
        application(group(1, 5), name="three"),
    )
    assert [tasks(result, number)[0].locality for number in range(3)] == ["NODE_LOCAL", "OFF_SWITCH", ""]
    assert tasks(result)[0].host == "h1"
    assert result.warnings == ("containers are wanted on hosts that are not among the nodes: 1, for example elsewhere",)


def test_containers_with_a_label_run_on_nodes_that_have_it() -> None:
    machines = (*nodes(), WorkloadNode("g1", Resource(4096, 8), "/r0", "gpu"))
    result = run(application(group(3, 5, label="gpu")), settings=LABELS, machines=machines)
    assert {one.host for one in tasks(result)} == {"g1"}
    labels = {sample.label for sample in result.samples if sample.queue == "root.etl"}
    assert labels == {"", "gpu"}
    assert {sample.label for sample in result.samples if sample.queue == "root.adhoc"} == {""}


def test_machines_have_their_own_sizes() -> None:
    machines = (*nodes(1, 1024), WorkloadNode("large", Resource(6144, 8), "/r0"))
    result = run(application(group(2, 5, memory_mb=3072)), machines=machines)
    assert {one.host for one in tasks(result)} == {"large"}
    assert result.cluster == Resource(7168, 16)


def test_applications_beyond_the_limit_are_refused_and_reported() -> None:
    settings = {**TWO_QUEUES, f"{CS}root.etl.maximum-applications": "1"}
    result = run(application(group(1, 60)), application(group(1, 60), name="two", at_s=10), settings=settings)
    first, second = result.applications
    assert first.state == "FINISHED"
    assert second.state in ("FAILED", "REFUSED")
    assert "already has 1 applications" in second.diagnostics


def test_what_does_not_fit_is_refused_with_all_faults() -> None:
    applications = (
        application(group(1), queue="elt"),
        application(group(1), queue="root"),
        application(group(1), queue="root.none"),
        application(group(1, label="gpu")),
    )
    machines = (*nodes(), nodes()[0])
    with pytest.raises(YarnException) as refusal:
        run(*applications, machines=machines)
    faults = refusal.value.message.splitlines()
    assert [fault.partition(" (")[0] for fault in faults] == [
        "node h1 is listed twice",
        "label gpu is requested, but no node has it",
        "queue elt does not exist, which ann would submit to",
        "queue root is not a leaf queue, which ann would submit to",
        "queue root.none does not exist, which ann would submit to",
    ]
    assert "--queue-map elt=root.etl" in faults[2]


def test_resource_types_that_the_configuration_lacks_are_refused() -> None:
    machines = (WorkloadNode("h1", Resource(4096, 8, (("fpga", 1),)), "/r0"),)
    with pytest.raises(YarnException) as refusal:
        run(application(TaskGroup(GPU_TASK, (1000,))), machines=machines)
    assert refusal.value.message.splitlines() == [
        "nodes have the resource type fpga, but the configuration does not (add it to yarn.resource-types)",
        "containers request the resource type gpu, but the configuration does not (add it to yarn.resource-types)",
    ]


def test_a_task_gets_what_it_requests_of_each_resource_type() -> None:
    settings = {**TWO_QUEUES, **DOMINANT, "yarn.resource-types": "fpga,gpu"}
    settings["yarn.resource-types.fpga.maximum-allocation"] = "1"
    machines = (WorkloadNode("h1", Resource(4096, 8, (("gpu", 4),)), "/r0"),)
    work = application(TaskGroup(Resource(512, 1, (("gpu", 2),)), (1000,)))
    [task] = tasks(run(work, settings=settings, machines=machines))
    assert (task.end, task.resource.amounts()["gpu"]) == (End.COMPLETED, 2)


def test_the_remedy_for_a_queue_whose_name_has_a_space_can_be_pasted() -> None:
    with pytest.raises(YarnException, match=r"queue my q does not exist.* --queue-map 'my q=root\.adhoc'"):
        run(application(group(1), queue="my q"))


def test_queue_mappings_of_the_configuration_apply() -> None:
    settings = {
        **TWO_QUEUES,
        f"{CS}queue-mappings": "u:ann:adhoc",
        f"{CS}queue-mappings-override.enable": "true",
    }
    (outcome,) = run(application(group(1, 5), queue="unknown"), settings=settings).applications
    assert (outcome.queue, outcome.state) == ("root.adhoc", "FINISHED")


def test_queues_are_created_on_demand_below_a_parent_that_creates_them() -> None:
    settings = {
        f"{CS}root.queues": "etl",
        f"{CS}root.etl.capacity": "1w",
        f"{CS}root.auto-queue-creation-v2.enabled": "true",
    }
    work = application(group(1, 5), queue="root.ann")
    (outcome,) = run(work, settings=settings).applications
    assert (outcome.queue, outcome.state) == ("root.ann", "FINISHED")
    known = names_of_run(configuration(settings), Workload((work,)))
    assert (sorted(known.queues), known.users) == (["root", "root.ann", "root.etl"], ("ann",))


def test_the_result_has_the_deadlines_and_the_types_that_the_scheduler_compares() -> None:
    """The use of a cluster is that of the dominant type: here all vcores and a quarter of the memory."""
    dominant = {**TWO_QUEUES, **DOMINANT}
    work = application(group(15, 300, memory_mb=512), deadline_ms=MINUTE_MS)
    machines = tuple(WorkloadNode(f"h{n}", Resource(16_384, 8), "/r0") for n in range(2))
    by_memory, by_both = (run(work, settings=settings, machines=machines) for settings in (TWO_QUEUES, dominant))
    assert [one.deadline_ms for one in by_both.applications] == [MINUTE_MS]
    assert (by_memory.counted, by_both.counted) == ((MEMORY_MB,), (MEMORY_MB, VCORES))
    figures = figures_of(by_both)
    assert (figures.measured, figures.cluster.missed) == (VCORES, 1)
    assert figures.cluster_use is not None
    assert figures.cluster_use.peak == 16
    assert figures_of(by_memory).measured == MEMORY_MB


@pytest.mark.parametrize("until_ms", [60 * MINUTE_MS, MINUTE_MS])
def test_how_far_a_run_is_goes_by_its_containers_unless_the_time_is_over_sooner(until_ms: int) -> None:
    workload, seen = Workload((application(group(4, 30), group(4, 30, after=0)),)), list[HowFar]()

    def progress(how_far: HowFar) -> bool:
        seen.append(how_far)
        return True

    run_what_if(configuration(), workload, nodes(), RunOptions(until_ms=until_ms), progress)
    fractions = [each.fraction for each in seen]
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1
    assert any(0.4 < fraction < 0.7 for fraction in fractions)
    assert {each.containers for each in seen} == {9}


def test_a_run_that_is_interrupted_is_marked() -> None:
    options = RunOptions(until_ms=60 * MINUTE_MS)
    times: list[int] = []

    def progress(how_far: HowFar) -> bool:
        times.append(how_far.now_ms)
        return how_far.now_ms < 3 * MINUTE_MS

    workload = Workload((application(group(1, 1000)), application(group(1, 10), name="late", at_s=1000)))
    result = run_what_if(configuration(), workload, nodes(), options, progress)
    assert times == list(range(1000, 3 * MINUTE_MS + 1, 1000))
    assert not result.is_complete
    assert result.until_ms == 3 * MINUTE_MS
    assert [one.state for one in result.applications] == ["RUNNING", "NOT_SUBMITTED"]
    assert tasks(result)[0].end is End.RUNNING


@pytest.mark.slow
def test_the_same_seed_is_the_same_result_under_any_order_of_hashes() -> None:
    code = (
        "from tests.yarnling.whatif.test_run import mixed_run; import msgspec\n"
        "result = mixed_run(7); print(result.trace, hash(msgspec.json.encode(result.trace)) * 0)\n"
        "from yarnling.whatif.result_file import encode_result; import hashlib\n"
        "from msgspec.structs import replace\n"
        "print(hashlib.sha256(encode_result(replace(result, wall_s=0.0))).hexdigest())"
    )
    outputs = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        ).stdout
        for seed in ("1", "2")
    ]
    assert outputs[0] == outputs[1]
    assert len(outputs[0].split()[0]) == 64


@pytest.mark.slow
def test_another_seed_is_another_run_with_the_same_work() -> None:
    first, second = (replace(mixed_run(seed), wall_s=0.0) for seed in (7, 8))
    assert first != replace(second, seed=7)
    assert [one.state for one in first.applications] == [one.state for one in second.applications]


def mixed_run(seed: int) -> WhatIfResult:
    """Two queues with preemption, hosts, and stages."""
    applications = [
        application(group(5, 60, hosts=("h1", "h2")), group(2, 10, after=0), name=f"a{n}", at_s=7 * n) for n in range(4)
    ] + [application(group(3, 45), name=f"b{n}", queue="adhoc", at_s=40 + n) for n in range(3)]
    return run(*applications, settings=PREEMPTION, options=RunOptions(seed, 60 * MINUTE_MS, hashed=True))
