"""Each fault that only the simulation has: it has its effect, and the cluster gets over it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.compiled import only_interpreted
from tests.mutants.bug import planted
from tests.mutants.catalogue import find_bug
from tests.yarnling.simulation.intruder import simulate
from yarn.errors import YarnException
from yarn.java.versions import HADOOP_VERSION
from yarnling.faults.history import ProcessRole
from yarnling.faults.plan import Plan
from yarnling.faults.plan_file import find_plan, parse_plan, plan_names
from yarnling.faults.verdict import RunVerdict, effect_of
from yarnling.simulation import runner
from yarnling.simulation.engine import START_MS
from yarnling.simulation.faults import OLD_VERSION
from yarnling.simulation.runner import Options, SimulatedRun

ONLY_SIMULATED = [name for name in plan_names() if find_plan(name).only_simulated]
WORK = """
cluster: {nodes: 2, same_ports: true}
work:
  - {program: tasks, tasks: 6, seconds: 0.4, users: dan, may_fail: true}
  - {program: batch, tasks: 2, seconds: 1, users: ann, may_fail: true}
lasts: 6
faults:
"""


def plan_with(fault: str) -> Plan:
    return parse_plan(f"{WORK}  - {fault}", "one", "one")


def traced(plan: Plan, seed: int = 1) -> tuple[SimulatedRun, list[str]]:
    """The run, which must pass, and the text of all steps."""
    lines: list[str] = []
    run = runner.simulate(plan, seed, Options(encode=False, traced=True, line=lines.append))
    assert run.judgement.reasons == ()
    assert all(one.target for one in run.history.injected)
    return run, lines


def any_with(lines: list[str], *texts: str) -> bool:
    return any(all(text in line for text in texts) for line in lines)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [*ONLY_SIMULATED, "full-disk", "full-disk-while-leaving", "reconnect-all", "rolling-restart", "storm-of-requests"],
)
def test_plans_of_new_faults_pass(name: str) -> None:
    run = simulate(find_plan(name), 1, Options(encode=False))
    assert run.judgement.reasons == ()
    assert run.judgement.verdict is RunVerdict.PASS


@pytest.mark.parametrize("name", ONLY_SIMULATED)
def test_processes_refuse_them_by_name_with_the_reason(name: str) -> None:
    plan = find_plan(name)
    with pytest.raises(YarnException, match="only `yarnling simulate` has these faults: ") as refusal:
        plan.check_processes_have_it()
    assert all(f"{one.kind.name}: " in refusal.value.message for one in plan.faults if one.kind.only_simulated)


def test_without_its_store_the_resource_manager_forgets_applications_and_nothing_is_left() -> None:
    run, _ = traced(plan_with("{fault: lose-store, at: 0.5, for: 0.3}"))
    assert [run.history.outcomes[one.application_id].state for one in run.history.submissions] == [None, None]


def test_an_application_that_is_forgotten_for_no_reason_is_a_violation() -> None:
    plan = plan_with("{fault: lose-store, at: 0.5, for: 0.3}")
    run = simulate(plan, 1, Options(encode=False))
    submitted = run.history.submissions[0]
    assert run.history.is_forgotten(submitted)
    run.history.injected.clear()
    assert not run.history.is_forgotten(submitted)


def test_a_full_disk_makes_a_node_unhealthy_also_after_a_restart() -> None:
    plan = parse_plan(
        f"{WORK}  - {{fault: full-disk, node: 1, at: 0.5, for: 3}}\n  - {{fault: kill-node, node: 1, at: 1, for: 0.3}}",
        "two",
        "two",
    )
    run, _ = traced(plan)
    changes = list(run.history.changes_of("nm-1"))
    assert [change.state for change in changes] == ["RUNNING", "UNHEALTHY", "RUNNING"]
    assert changes[-1].at_s >= run.history.started_s + 3.5


def test_a_clock_that_is_ahead_makes_tokens_expire() -> None:
    _, lines = traced(plan_with("{fault: wrong-clock, node: 1, at: 0.1, for: 5, ahead: 3600}"))
    assert any_with(lines, '"nm-1"', "This token is expired")


def test_a_clock_that_is_behind_changes_nothing() -> None:
    _, lines = traced(plan_with("{fault: wrong-clock, node: 1, at: 0.1, for: 5, ahead: -3600}"))
    assert not any_with(lines, "This token is expired")


@pytest.mark.parametrize(("drift", "beats"), [(0.5, (80, 95)), (0, (50, 62)), (-0.5, (27, 36))])
def test_the_timers_of_a_machine_follow_its_clock(drift: float, beats: tuple[int, int]) -> None:
    """A heartbeat every 50 ms, and the replies' way, in the three seconds of the fault and a little more."""
    run, lines = traced(plan_with(f"{{fault: drifting-clock, node: 1, at: 0, for: 3, drift: {drift}}}"))
    (fault,) = run.history.injected
    until_ms = START_MS + round((fault.recovered_s or 0) * 1000)
    sent = [line for line in lines if '"nm-1"' in line and "SendHeartbeat" in line]
    during = [line for line in sent if START_MS + fault.start_s * 1000 <= int(line[1:14]) < until_ms]
    least, most = beats
    assert least <= len(during) <= most


def test_after_a_late_heartbeat_of_a_killed_node_the_next_one_registers_again_once() -> None:
    """The response id of the late one does not fit (ResourceTrackerService.nodeHeartbeat)."""
    _, lines = traced(plan_with("{fault: late-heartbeat, node: 1, at: 1.5, for: 2}"))
    registrations = [line for line in lines if '"nm-1"' in line and "SendRegistration" in line]
    assert len(registrations) == 3


def test_a_late_heartbeat_is_never_taken_for_one_of_the_next_node_manager() -> None:
    """The plan of a random run in which the response ids of the two were equal."""
    plan = parse_plan(
        """
cluster: {nodes: 1, same_ports: true}
work:
  - {program: batch, tasks: 1, seconds: 2, every: 0, users: [ann], may_fail: true}
faults:
  - {fault: late-heartbeat, at: 0.5, for: 0, node: 1}
  - {fault: kill-rm, at: 2.4, for: 0}
  - {fault: late-heartbeat, at: 2.5, for: 1.9, node: 1}
lasts: 4.5
""",
        "late",
        "late",
    )
    assert traced(plan, 600671)[0].judgement.reasons == ()


def test_a_container_fails_with_the_status_of_the_plan() -> None:
    _, lines = traced(plan_with("{fault: fail-container, at: 0.3, exit: 42}"))
    assert any_with(lines, "ContainerExited", "42")


def test_a_container_above_its_memory_limit_is_killed() -> None:
    _, lines = traced(plan_with("{fault: exceed-memory, at: 0.3}"))
    assert any_with(lines, '"rm"', "KILLED_EXCEEDED_PMEM")


def test_a_container_with_too_many_logs_is_killed() -> None:
    _, lines = traced(plan_with("{fault: exceed-logs, at: 0.3}"))
    assert any_with(lines, '"rm"', "KILLED_FOR_EXCESS_LOGS")


def test_an_old_node_registers_if_no_minimum_version_is_set() -> None:
    _, lines = traced(plan_with("{fault: old-node, node: 1, at: 0.3, for: 2}"))
    assert versions_of_node_1(lines) == [HADOOP_VERSION, OLD_VERSION, HADOOP_VERSION]
    assert not any_with(lines, "EndNode")


def test_an_old_node_is_refused_until_it_is_upgraded() -> None:
    """Its NodeManager exits. The applications continue on other nodes, so the run passes."""
    plan = plan_with("{fault: old-node, node: 1, at: 0.3, for: 2}")
    settings = {"yarn.resourcemanager.nodemanager.minimum.version": "EqualToRM"}
    plan = replace(plan, cluster=plan.cluster.model_copy(update={"settings": settings}))
    _, lines = traced(plan)
    refusal = f"Disallowed NodeManager Version {OLD_VERSION}, is less than the minimum version {HADOOP_VERSION} sending"
    assert any_with(lines, '"nm-1"', "EndNode", refusal)
    assert versions_of_node_1(lines) == [HADOOP_VERSION, OLD_VERSION, HADOOP_VERSION]


def versions_of_node_1(lines: list[str]) -> list[str]:
    """The versions with which its NodeManagers register."""
    sent = [line for line in lines if '"nm-1"' in line and "SendRegistration" in line]
    return [line.partition('"nm_version":"')[2].partition('"')[0] for line in sent]


def test_nodes_get_new_keys() -> None:
    _, lines = traced(plan_with("{fault: roll-keys, at: 0.2}"))
    assert any_with(lines, '"nm-1"', "MasterKey")


@pytest.mark.parametrize(("file", "has_queue"), [("good", True), ("bad", False)])
def test_only_a_good_file_changes_the_queues(file: str, has_queue: bool) -> None:
    _, lines = traced(plan_with(f"{{fault: refresh-queues, at: 0.3, file: {file}}}"))
    (refreshed,) = [line for line in lines if "RefreshQueues" in line]
    assert ("Refuse" in refreshed) != has_queue


@pytest.mark.soak
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_kill_at_every_write_of_the_store_loses_nothing(when: str) -> None:
    """Until the run has fewer writes than that: the fault then kills nobody, and the ResourceManager never stops."""
    for nth in range(1, 100):
        run = simulate(plan_with(f"{{fault: kill-rm-at-write, at: 0, for: 5, write: {when}, nth: {nth}}}"), nth)
        assert run.judgement.reasons == (), nth
        if not any(change.state == "SILENT" for change in run.history.changes_of("rm")):
            assert nth > 5
            return
    raise AssertionError("the run has more writes than that")


REFUSED_BY_A_WRONG_CLOCK = """
cluster: {nodes: 2, same_ports: true}
work:
  - {program: batch, applications: 2, tasks: 2, seconds: 0, every: 0, users: [ann], may_fail: true}
  - {program: service, tasks: 2, seconds: 0, users: [cleo], may_fail: true}
  - {program: tasks, tasks: 1, seconds: 0.8, users: [dan], may_fail: true}
  - {program: wordcount, tasks: 1, seconds: 0, users: [eve], may_fail: true}
  - {program: gang, tasks: 7, seconds: 1.3, at: 0.2, users: [finn], may_fail: true}
faults:
  - {fault: wrong-clock, at: 1.9, for: 6.1, node: [1, 2]}
  - {fault: slow-node, at: 0, for: 4.3, node: 2, delay: 0.1498647677881234, loss: 0.05}
  - {fault: slow-node, at: 5.4, for: 2.6, node: 1, delay: 0.27119920594644653}
lasts: 8
expect: {heal: 20, drain: 20}
"""


@pytest.mark.slow
def test_a_start_that_a_wrong_clock_refused_may_be_sent_again() -> None:
    """The refusal reaches the AM launcher after the clock is right again: what is sent again is a first start."""
    plan = parse_plan(REFUSED_BY_A_WRONG_CLOCK, "refused", "refused")
    assert simulate(plan, 3302214).judgement.reasons == ()


STARTED_BEFORE_ITS_DISK_WAS_LOST = """
cluster: {nodes: 3, same_ports: true}
work:
  - {program: batch, tasks: 1, seconds: 0, users: [ann], may_fail: true}
  - {program: service, tasks: 2, seconds: 0, users: [cleo], may_fail: true}
  - {program: tasks, tasks: 3, seconds: 0, users: [dan], may_fail: true}
  - {program: gang, applications: 2, tasks: 1, seconds: 0.3, users: [finn], may_fail: true}
faults:
  - {fault: pause-rm, at: 0, for: 2.62}
  - {fault: kill-master, at: 0.1, pick: 0.337361}
  - {fault: partition-node, at: 2.873, for: 2.4, node: 3}
  - {fault: slow-node, at: 4.6, for: 0.3, node: 2, loss: 0.3, breaks: 0.02}
  - {fault: stop-node, at: 4.6, for: 0, node: 1}
  - {fault: partition-node, at: 5, for: 4.5, node: 2}
  - {fault: lose-node-disk, at: 8.4, for: 0, node: [1, 2]}
lasts: 9.6
expect: {heal: 20, drain: 20}
"""


@pytest.mark.slow
def test_a_node_that_has_lost_its_disk_may_start_a_container_whose_start_was_answered_late() -> None:
    """The reply is held back until the node has a NodeManager that knows nothing of the start."""
    plan = parse_plan(STARTED_BEFORE_ITS_DISK_WAS_LOST, "late", "late")
    assert simulate(plan, 3403934).judgement.reasons == ()


STOPPED_WHILE_PAUSED = """
cluster: {nodes: 2}
work:
  - {program: tasks, tasks: 22, seconds: 0.7, users: [dan], may_fail: true}
faults:
  - {fault: pause-node, at: 2.8, for: 5.2, node: [1, 2]}
  - {fault: pause-rm, at: 3, for: 5}
  - {fault: stop-node, at: 5, for: 0, node: [1, 2]}
lasts: 8
expect: {drain: 20}
"""


def test_a_node_that_was_stopped_while_it_was_paused_is_started_again() -> None:
    """The AM unregisters just after the last fault, when the ResourceManager still has it as RUNNING."""
    plan = parse_plan(STOPPED_WHILE_PAUSED, "stopped", "stopped")
    assert simulate(plan, 3318888).judgement.reasons == ()


RELEASED_BEFORE_ITS_START = """
cluster: {nodes: 2}
work:
  - {program: gang, tasks: 2, seconds: 5.6, every: 0.2, users: [finn], may_fail: true}
faults:
  - {fault: full-disk, at: 3.1, for: 0.1, node: 1}
  - {fault: partition-nm-from-masters, at: 3.4, for: 1.4, node: 2}
  - {fault: full-disk, at: 4, for: 0.1, node: 1}
  - {fault: kill-rm, at: 4.5, for: 0}
lasts: 4.9
expect: {heal: 20, drain: 20}
"""


def test_the_next_resourcemanager_recovers_a_member_that_was_released_before_it_started() -> None:
    """The call that starts it arrives after the ResourceManager that knew of the release was killed."""
    plan = parse_plan(RELEASED_BEFORE_ITS_START, "released", "released")
    assert simulate(plan, 3319276).judgement.reasons == ()


CUT_OFF_AFTER_IT_CAME_BACK = """
cluster: {nodes: 3}
work:
  - {program: batch, tasks: 1, seconds: 0, users: [ann], may_fail: true}
  - {program: service, tasks: 1, seconds: 0, users: [cleo], may_fail: true}
  - {program: tasks, tasks: 1, seconds: 0, users: [dan], may_fail: true}
faults:
  - {fault: decommission-node, at: 0, for: 0.1, node: 3, timeout: 0}
  - {fault: partition-node, at: 5.7, for: 4.645, node: 1}
  - {fault: partition-node, at: 10.4, for: 0.2, node: 1}
  - {fault: kill-rm, at: 10.5, for: 0}
lasts: 10.7
expect: {heal: 20, drain: 20}
"""


def test_the_next_resourcemanager_recovers_a_container_whose_lost_node_was_back_for_one_heartbeat() -> None:
    """The order to end it would have come with the second one."""
    plan = parse_plan(CUT_OFF_AFTER_IT_CAME_BACK, "back", "back")
    assert simulate(plan, 3416244).judgement.reasons == ()


STARTED_WHILE_ITS_NODE_WAS_LOST = """
cluster: {nodes: 4}
work:
  - {program: batch, applications: 2, tasks: 1, seconds: 0, every: 0.2, users: [ann], may_fail: true}
  - {program: service, tasks: 4, seconds: 0, users: [cleo], may_fail: true}
faults:
  - {fault: drifting-clock, at: 0, for: 0.1, node: 1, drift: 0.01}
  - {fault: decommission-node, at: 3.7, for: 0.1, node: [2, 3], timeout: 0}
  - {fault: pause-node, at: 1.9, for: 0.2, node: 4}
  - {fault: partition-node, at: 4.1, for: 1.8, node: 1}
  - {fault: partition-node, at: 5.7, for: 4.645, node: 1}
  - {fault: partition-node, at: 10.4, for: 0.2, node: 1}
  - {fault: kill-rm, at: 10.5, for: 0}
lasts: 10.7
expect: {heal: 20, drain: 20}
"""


@pytest.mark.slow
def test_the_next_resourcemanager_recovers_a_container_that_its_lost_node_started_late() -> None:
    """Partitions hold back the call to start it and then the order to end it, until the ResourceManager is killed."""
    plan = parse_plan(STARTED_WHILE_ITS_NODE_WAS_LOST, "late", "late")
    assert simulate(plan, 3416244).judgement.reasons == ()


LAUNCHED_AFTER_DECOMMISSIONING = """
cluster: {nodes: 2, same_ports: true}
work:
  - {program: batch, applications: 3, tasks: 1, seconds: 0.7, users: [ann], may_fail: true,
     killed_after: 1.621660272392239}
faults:
  - {fault: partition-nm-from-masters, at: 0.4, for: 0.7, node: [1, 2], how: reset}
  - {fault: stop-node, at: 1.1, for: 4.2, node: [1, 2]}
  - {fault: partition-nm-from-masters, at: 3.715, for: 2.1, node: 1, how: reset}
  - {fault: decommission-node, at: 6, for: 2, node: 1}
lasts: 8
begins: at once
expect: {heal: 20, drain: 20}
"""


def test_an_am_is_launched_when_its_decommissioned_node_returns_although_its_application_was_killed() -> None:
    """The ResourceManager tries again to start it for as long as the node is down (AMLauncher)."""
    plan = parse_plan(LAUNCHED_AFTER_DECOMMISSIONING, "launched", "launched")
    assert simulate(plan, 3429094).judgement.reasons == ()


RECOMMISSIONED_WHILE_UNHEALTHY = """
cluster: {nodes: 2}
work:
  - {program: gang, tasks: 19, seconds: 3.7, at: 0.1, users: [finn], may_fail: true}
faults:
  - {fault: full-disk, at: 3.7, for: 2.5, node: [1, 2]}
  - {fault: pause-rm, at: 5.9, for: 8.1}
  - {fault: decommission-node, at: 10.5, for: 0, node: [1, 2]}
lasts: 14
"""


@pytest.mark.slow
def test_nodes_that_were_recommissioned_while_unhealthy_get_no_containers() -> None:
    """The ResourceManager was paused: it decommissions and recommissions both nodes before their next heartbeats."""
    plan = parse_plan(RECOMMISSIONED_WHILE_UNHEALTHY, "recommissioned", "recommissioned")
    assert simulate(plan, 3429395).judgement.reasons == ()


def test_a_running_application_is_moved_with_its_containers() -> None:
    run, lines = traced(plan_with("{fault: move-application, at: 0.5}"))
    assert any_with(lines, "events.MoveApplication", '"queue":"extra"', "SaveApplication")
    assert not any_with(lines, "events.MoveApplication", "Refuse")
    (moved,) = run.history.injected
    assert effect_of(moved, run.history) == ""


REQUESTS = """
cluster: {nodes: 2, same_ports: true}
work:
  - {program: service, tasks: 2, users: dan, may_fail: true}
lasts: 4
faults:
"""


def test_a_container_grows_and_shrinks_again() -> None:
    """The AM requests it, the ResourceManager grants it, and the node reports it or gets the order."""
    plan = parse_plan(f"{REQUESTS}  - {{fault: resize-container, at: 0.5, for: 2}}", "one", "one")
    _, lines = traced(plan)
    assert any_with(lines, '"nm-', "events.UpdateContainers", '"succeeded":[{"$id":"container_')
    assert any_with(lines, '"rm"', "events.NodeHeartbeat", '"increased_containers":[{')
    assert any_with(lines, '"rm"', '"containers_to_update":[{')
    assert any_with(lines, "as Hadoop breaks it where decreasing a container's size")


def test_an_am_avoids_a_node_for_a_while() -> None:
    plan = parse_plan(f"{REQUESTS}  - {{fault: avoid-node, at: 0.5, for: 2}}", "one", "one")
    _, lines = traced(plan)
    assert any_with(lines, '"rm"', "events.Allocate", '"blacklist_additions":["n0')
    assert any_with(lines, '"rm"', "events.Allocate", '"blacklist_removals":["n0')


def test_an_administrator_resizes_a_node_for_a_while() -> None:
    plan = parse_plan(f"{REQUESTS}  - {{fault: resize-node, node: 1, at: 0.5, for: 2}}", "one", "one")
    _, lines = traced(plan)
    sizes = [line for line in lines if "events.UpdateNodeResource" in line]
    assert [size for line in sizes for size in ("[1024,16]", "[2048,16]") if size in line] == ["[1024,16]", "[2048,16]"]
    assert any_with(lines, '"nm-1"', "events.NodeHeartbeatAnswered", '"resource":{"$resource":[1024,16]}')


@pytest.mark.parametrize(
    ("bug", "plan", "violation"),
    [
        ("reported-increase-ignored", "unusual-requests", "I-68: container_"),
        ("decrease-not-sent-to-the-node", "unusual-requests", "I-68: container_"),
        ("new-size-of-a-node-ignored", "administration", "I-01: n0000"),
        ("new-size-without-a-new-version", "unusual-requests", "I-68: container_"),
        ("increase-not-reported", "unusual-requests", "N-11: container_"),
        ("new-size-not-applied", "unusual-requests", "N-11: an update of "),
        ("blacklist-removal-ignored", "unusual-requests", "I-69: appattempt_"),
        ("first-heartbeat-handled-twice", "lost-first-replies", "heartbeat 0 got reply 2"),
        ("end-of-an-am-at-registration-ignored", "kill-rm-without-work-preserving-recovery", "I-45: container_"),
        ("repeated-unregistration-does-not-count", "lost-last-replies", "I-61: appattempt_"),
    ],
)
@only_interpreted
def test_rare_requests_and_repetitions_are_reached_and_checked(bug: str, plan: str, violation: str) -> None:
    with planted(find_bug(bug)):
        run = simulate(find_plan(plan), 1, Options(encode=False))
    assert any(violation in crash for crash in run.history.crashed), run.history.crashed


RECOVERS = 'settings: {yarn.nodemanager.recovery.enabled: "true"}'


@pytest.mark.parametrize("recovers", [True, False])
def test_containers_go_on_under_the_next_node_manager_only_with_recovery(recovers: bool) -> None:
    work = WORK.replace("same_ports: true", RECOVERS) if recovers else WORK
    killed = "  - {fault: kill-node, node: all, at: 0.9, for: 0.3, containers: false}"
    run, _ = traced(parse_plan(work + killed, "one", "one"))
    masters = [len(run.history.spans_of(one.application_id, ProcessRole.MASTER)) for one in run.history.submissions]
    assert (masters == [1, 1]) is recovers
