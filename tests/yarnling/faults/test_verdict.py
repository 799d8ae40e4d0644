"""Pass, fail or cannot tell; and the effects of faults."""

from __future__ import annotations

from tests.yarnling.faults.stories import APP, Story
from yarn.states import YarnApplicationState
from yarnling.faults.history import ObservedChange, ProcessRole
from yarnling.faults.kinds import KINDS
from yarnling.faults.plan import ClusterPlan, Expectations, FaultPlan, Plan, WorkPlan, WorkProgram
from yarnling.faults.verdict import RunVerdict, effect_of, judge

FAULT = FaultPlan(KINDS["kill-node"])


def plan_of(**expected: object) -> Plan:
    expect = Expectations(**expected)  # type: ignore[arg-type]
    return Plan("plan", "", ClusterPlan(), (WorkPlan(program=WorkProgram.BATCH),), (FAULT,), 8.0, expect)


def good() -> Story:
    return Story().am(2.0, 20.0).process(3.0, 4.0).fault("kill-node", 5.0, 9.0, 2)


def test_a_run_without_violations_passes() -> None:
    judgement = judge(plan_of(), good().history)
    assert (judgement.verdict, judgement.reasons) == (RunVerdict.PASS, ())


def test_a_violation_fails_the_run() -> None:
    judgement = judge(plan_of(), good().ends(9.0, None).history)
    assert judgement.verdict is RunVerdict.FAIL
    assert judgement.reasons == (
        f"no acknowledged application is lost: {APP} (batch of ann) was accepted but is unknown at the end",
    )


def test_a_fault_that_could_not_be_injected_makes_the_run_inconclusive() -> None:
    judgement = judge(
        plan_of(), good().fault("kill-master", 5.0, None, problem="no ApplicationMaster is running").history
    )
    assert judgement.verdict is RunVerdict.CANNOT_TELL
    assert judgement.reasons == ("5.0 s kill-master could not be injected: no ApplicationMaster is running",)


def test_a_violation_counts_even_if_a_fault_could_not_be_injected() -> None:
    story = good().fault("kill-master", 5.0, None, problem="no ApplicationMaster is running")
    story.history.crashed.append("rm ended")
    assert judge(plan_of(), story.history).verdict is RunVerdict.FAIL


def test_a_run_without_faults_is_inconclusive() -> None:
    story = Story().process(3.0, 4.0).fault("kill-node", 5.0, 9.0, 2, skipped=True)
    judgement = judge(plan_of(), story.history)
    assert (judgement.verdict, judgement.reasons) == (RunVerdict.CANNOT_TELL, ("no fault was injected",))


def test_a_run_without_containers_is_inconclusive() -> None:
    judgement = judge(plan_of(), Story(may_fail=True, tasks=0).fault("kill-node", 5.0, 9.0, 2).history)
    assert (judgement.verdict, judgement.reasons) == (RunVerdict.CANNOT_TELL, ("no container was started",))


def test_an_aborted_run_fails_only_for_violations_that_need_no_end() -> None:
    story = good().ends(0.0, YarnApplicationState.RUNNING)
    story.history.problem = "interrupted"
    assert judge(plan_of(), story.history).verdict is RunVerdict.CANNOT_TELL
    story.history.left.append("process 7")
    assert judge(plan_of(), story.history).verdict is RunVerdict.FAIL


def test_on_a_busy_machine_timed_violations_are_inconclusive() -> None:
    story = good()
    story.history.not_drained.append("not within 60 s")
    assert judge(plan_of(), story.history).verdict is RunVerdict.FAIL
    story.history.lag_s = 1.5
    judgement = judge(plan_of(), story.history)
    assert judgement.verdict is RunVerdict.CANNOT_TELL
    assert judgement.reasons[0] == "this machine is too busy to check times: a sleep was 1.5 s too long"
    story.history.crashed.append("rm ended")
    assert judge(plan_of(), story.history).verdict is RunVerdict.FAIL, "violations that do not depend on time count"


def test_expectations_of_the_plan_are_checked() -> None:
    story = good()
    story.history.changes.append(ObservedChange(8.6, "nm-2", "LOST"))
    assert (
        judge(plan_of(nodes_lost=(1, 1), attempts=(1, 1), failed=(0, 0), lost_within=4.0), story.history).verdict == 0
    )
    for expected, reason in [
        ({"nodes_lost": (0, 0)}, "nodes lost as expected: 1, expected 0"),
        ({"attempts": (2, 3)}, "attempts as expected: 1, expected 2 to 3"),
        ({"failed": (1, 1)}, "failed applications as expected: 0, expected 1"),
        ({"refused": (1, 2)}, "submissions refused as expected: 0, expected 1 to 2"),
        (
            {"lost_within": 3.5},
            "nodes lost in time: 5.0 s kill-node 2 for 4.0 s: lost after 3.6 s, expected within 3.5 s",
        ),
    ]:
        judgement = judge(plan_of(**expected), story.history)
        assert (judgement.verdict, judgement.reasons) == (RunVerdict.FAIL, (reason,))


def test_the_effects_of_faults() -> None:
    story = good().fault("kill-rm", 10.0, 12.0).fault("kill-master", 20.0, None)
    story.history.changes += [
        ObservedChange(8.6, "nm-2", "LOST"),
        ObservedChange(9.4, "nm-2", "RUNNING"),
        ObservedChange(10.1, "rm", "SILENT"),
        ObservedChange(12.5, "rm", "ANSWERS"),
    ]
    node, rm, _ = story.history.injected
    assert effect_of(node, story.history) == "LOST after 3.6 s, back 400 ms after the fault ended"
    assert effect_of(rm, story.history) == "silent for 2.5 s"


def test_the_effect_of_a_killed_am_is_the_start_of_the_next() -> None:
    story = Story().am(2.0, 20.0).am(21.5, 30.0, 2).fault("kill-master", 20.0, None)
    (killed,) = story.history.injected
    story.history.injected[0] = killed = type(killed)(killed.injection, 20.0, None, "container_1_0001_01_000001")
    assert effect_of(killed, story.history) == "next attempt after 1.5 s"


def test_the_effect_of_a_killed_container_is_the_next_start_of_its_task() -> None:
    story = Story(WorkProgram.CUSTOM).am(2.0, 20.0)
    story.process(3.0, 4.0, role=ProcessRole.TASK, number=2, task=7, status=None)
    story.process(3.5, 6.0, role=ProcessRole.TASK, number=3, task=8)
    story.process(5.2, 8.0, role=ProcessRole.TASK, number=4, task=7)
    story.fault("kill-container", 4.0, None)
    (killed,) = story.history.injected
    story.history.injected[0] = killed = type(killed)(killed.injection, 4.0, None, "container_1_0001_01_000002")
    assert effect_of(killed, story.history) == "task 7 started again after 1.2 s"
    assert effect_of(type(killed)(killed.injection, 4.0, None, "container_1_0001_01_000003"), story.history) == ""
