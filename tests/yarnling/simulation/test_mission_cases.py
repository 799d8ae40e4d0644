"""Claims about a whole cluster that also hold in simulation: queues, users, preemption, memory, life and death.

They run as chaos plans; the others are in test_cases_*.py. docs/design/mission-cases.md lists all.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from tests.yarnling.simulation.intruder import simulate
from yarn.states import FinalApplicationStatus, YarnApplicationState
from yarnling.faults.history import ProcessRole
from yarnling.faults.plan import Plan
from yarnling.faults.plan_file import parse_plan
from yarnling.simulation.runner import Options, SimulatedRun

CAPACITY = "yarn.scheduler.capacity."
ENGINEERING = {
    "root.queues": "engineering,support,marketing",
    "root.engineering.capacity": "60",
    "root.support.capacity": "10",
    "root.marketing.capacity": "30",
    "root.engineering.queues": "development,qa",
    "root.engineering.development.capacity": "20",
    "root.engineering.qa.capacity": "80",
    "root.engineering.development.user-limit-factor": "10",
    "queue-mappings": "u:sid:root.engineering.development,u:gupta:root.engineering.qa,"
    "u:mary:root.marketing,u:sue:root.support",
}
POLICY = "yarn.resourcemanager.monitor.capacity.preemption."
MONITORED = {
    "yarn.resourcemanager.scheduler.monitor.enable": "true",
    POLICY + "total_preemption_per_round": "1.0",
    POLICY + "natural_termination_factor": "1.0",
    POLICY + "max_ignored_over_capacity": "0.0",
}
SECONDS = 12
QUIET = f"{{fault: slow-store, at: 0, for: {SECONDS}, delay: 0}}"
"""A fault without effect: services run until the last fault is over."""


def run_of(text: str, seed: int = 1, settings: dict[str, str] | None = None) -> SimulatedRun:
    return simulate(with_settings(parse_plan(text, "case", "case"), settings or {}), seed)


def with_settings(plan: Plan, settings: dict[str, str]) -> Plan:
    cluster = plan.cluster.model_copy(update={"settings": {**plan.cluster.settings, **settings}})
    return Plan(plan.name, plan.about, cluster, plan.work, plan.faults, plan.lasts, plan.expect, plan.awaits_work)


def running(run: SimulatedRun, after_s: float) -> Counter[str]:
    """{user: containers, AMs included} that run so many seconds after the first container."""
    users = {one.application_id: one.user for one in run.history.submissions}
    at_s = run.history.started_s + after_s
    spans = [
        span for span in run.history.spans if span.role is not ProcessRole.TASK and span.start_s <= at_s < span.last_s
    ]
    return Counter(users[span.application_id] for span in spans)


def engineering(*, preemption: bool) -> SimulatedRun:
    """The cluster of 1 TB in small: 50 units of 128 MB; 30 for engineering, of which 6 development's and 24 qa's."""
    text = f"""
cluster: {{nodes: 10, memory_mb: 640}}
work:
  - {{program: service, tasks: 14, users: mary, may_fail: true}}
  - {{program: service, tasks: 4, users: sue, may_fail: true}}
  - {{program: service, tasks: 29, users: sid, may_fail: true, at: 1}}
  - {{program: service, tasks: 23, users: gupta, may_fail: true, at: 4}}
faults: [{QUIET}]
lasts: {SECONDS + 1}
"""
    settings = {
        key if key.startswith("yarn.") else CAPACITY + key: value
        for key, value in {**ENGINEERING, **(MONITORED if preemption else {})}.items()
    }
    run = run_of(text, settings=settings)
    assert run.judgement.reasons == ()
    return run


@pytest.mark.slow
@pytest.mark.case("A3", "A5", "E1")
def test_an_idle_guarantee_is_lent_and_returned_by_preemption() -> None:
    run = engineering(preemption=True)
    assert running(run, 3.5)["sid"] == 30, "development has all of engineering"
    end = running(run, SECONDS - 1)
    assert end["gupta"] == 24, "qa has its guarantee"
    assert end["sid"] <= 6
    assert (end["mary"], end["sue"]) == (15, 5), "other queues lose nothing"


@pytest.mark.slow
@pytest.mark.case("A3", "E1")
def test_without_preemption_the_guarantee_waits_for_containers_to_end() -> None:
    end = running(engineering(preemption=False), SECONDS - 1)
    assert (end["sid"], end["gupta"]) == (30, 0)


@pytest.mark.case("C1")
def test_above_the_maximum_of_applications_the_next_one_is_refused() -> None:
    text = """
work:
  - {program: batch, applications: 4, tasks: 1, seconds: 3, every: 0, users: ann, may_fail: true}
lasts: 1
"""
    run = run_of(text, settings={CAPACITY + "maximum-applications": "2"})
    assert run.judgement.reasons == ()
    states = Counter(run.history.outcomes[one.application_id].state for one in run.history.submissions)
    assert states == {YarnApplicationState.FINISHED: 2, YarnApplicationState.FAILED: 2}
    diagnostics = [outcome.diagnostics for outcome in run.history.outcomes.values()]
    assert sum("Maximum system application limit reached" in text for text in diagnostics) == 2


@pytest.mark.case("C2")
def test_above_the_share_of_ams_applications_wait_and_run_one_after_the_other() -> None:
    text = """
cluster: {nodes: 1}
work:
  - {program: batch, applications: 3, tasks: 1, seconds: 0.5, every: 0, users: ann}
lasts: 1
"""
    run = run_of(text, settings={CAPACITY + "maximum-am-resource-percent": "0.01"})
    assert run.judgement.reasons == ()
    masters = sorted((span.start_s, span.last_s) for span in run.history.spans if span.role is ProcessRole.MASTER)
    assert len(masters) == 3
    assert all(later[0] >= earlier[1] for earlier, later in pairwise(masters))


@pytest.mark.case("H3")
def test_an_elastic_application_gives_containers_back_and_another_one_proceeds() -> None:
    text = """
cluster: {nodes: 1, memory_mb: 896}
work:
  - {program: tasks, tasks: 10, seconds: 0.5, users: ann}
  - {program: batch, tasks: 4, seconds: 0.5, at: 0.2, users: bob}
lasts: 1
"""
    run = run_of(text)
    assert run.judgement.reasons == ()
    assert all(one.final_status is FinalApplicationStatus.SUCCEEDED for one in run.history.outcomes.values())


@pytest.mark.case("H4")
def test_a_container_above_its_memory_is_killed_and_its_task_runs_again() -> None:
    text = """
work: [{program: tasks, tasks: 6, seconds: 0.5, users: ann}]
faults: [{fault: exceed-memory, at: 0.3}]
lasts: 2
"""
    lines: list[str] = []
    plan = parse_plan(text, "case", "case")
    run = simulate(plan, 1, Options(traced=True, line=lines.append))
    assert run.judgement.reasons == ()
    assert any("NodeHeartbeat" in line and "is running beyond its memory limit" in line for line in lines)


ROUND_TRIP = (
    "rm.core.events.SubmitApplication",
    "rm.core.effects.LaunchAM",
    "nm.core.events.StartContainers",
    "rm.core.events.RegisterApplicationMaster",
    "rm.core.events.Allocate",
    "nm.core.events.ContainerExited",
    "rm.core.events.FinishApplicationMaster",
)


@pytest.mark.case("I1")
def test_each_step_of_the_round_trip_is_in_the_trace() -> None:
    lines: list[str] = []
    plan = parse_plan("work: [{program: batch, tasks: 1, seconds: 0.2, users: ann}]\nlasts: 1", "case", "case")
    assert simulate(plan, 1, Options(traced=True, line=lines.append)).judgement.reasons == ()
    first = {step: next((i for i, line in enumerate(lines) if f'"{step}"' in line), None) for step in ROUND_TRIP}
    assert None not in first.values(), first
    assert list(first.values()) == sorted(number for number in first.values() if number is not None)


@pytest.mark.case("I2")
def test_a_killed_node_is_lost_within_its_expiry_and_a_third() -> None:
    text = """
work: [{program: tasks, tasks: 12, seconds: 0.5, users: ann}]
faults: [{fault: kill-node, node: 1, at: 0.5, for: 6}]
lasts: 7
expect: {nodes_lost: 1, lost_within: 4.1}
"""
    assert run_of(text).judgement.reasons == ()


@pytest.mark.slow
@pytest.mark.case("I3")
@pytest.mark.parametrize("is_kept", [False, True])
def test_a_killed_am_has_a_second_attempt_and_keeps_its_containers_if_it_wants(is_kept: bool) -> None:
    text = f"""
work: [{{program: service, tasks: 3, users: ann, may_fail: true, keep_containers: {str(is_kept).lower()}}}]
faults:
  - {{fault: kill-master, at: 1}}
  - {QUIET}
lasts: {SECONDS + 1}
"""
    run = run_of(text)
    assert run.judgement.reasons == ()
    first = [span for span in run.history.spans if span.role is ProcessRole.CONTAINER and span.attempt == 1]
    masters = [span for span in run.history.spans if span.role is ProcessRole.MASTER]
    assert [span.attempt for span in masters] == [1, 2]
    outlive = [span.last_s > masters[1].start_s + 5 for span in first]
    assert outlive == [is_kept] * 3


@pytest.mark.case("I4")
def test_after_a_restart_of_the_rm_containers_run_on_and_new_ids_have_the_epoch() -> None:
    text = f"""
work:
  - {{program: service, tasks: 3, users: ann, may_fail: true}}
  - {{program: batch, tasks: 2, seconds: 0.5, at: 4, users: bob}}
faults:
  - {{fault: kill-rm, at: 1, for: 1}}
  - {QUIET}
lasts: {SECONDS + 1}
"""
    run = run_of(text)
    assert run.judgement.reasons == ()
    service, batch = run.history.submissions
    spans = run.history.spans_of(service.application_id)
    assert [span.start_s < run.history.started_s + 1 < 10 < span.last_s for span in spans] == [True] * 4
    assert all("_e01_" in str(span.container_id) for span in run.history.spans_of(batch.application_id))


@pytest.mark.case("I5")
def test_half_of_the_cluster_fails_at_once_and_nothing_is_lost_or_runs_twice() -> None:
    text = """
cluster: {nodes: 6, racks: 2}
work:
  - {program: tasks, tasks: 20, seconds: 0.5, users: ann}
  - {program: batch, applications: 2, tasks: 3, seconds: 1, users: bob, may_fail: true}
faults:
  - {fault: kill-node, node: half, at: 0.5, for: 2}
  - {fault: partition-node, node: rack-2, at: 1, for: 5}
  - {fault: pause-node, at: 1, for: 1, optional: true}
lasts: 7
"""
    assert run_of(text).judgement.reasons == ()
