"""Pass, fail, cannot tell; and what faults cost."""

from __future__ import annotations

from tests.yarnling.chaos.stories import APP, Story
from yarn.states import YarnApplicationState
from yarnling.chaos.costs import cost_of
from yarnling.chaos.history import Change
from yarnling.chaos.plan import KINDS, ClusterPlan, Expectations, FaultPlan, Plan, Program, Work
from yarnling.chaos.verdict import Verdict, judge

FAULT = FaultPlan(KINDS["kill-node"])


def plan_of(**expected: object) -> Plan:
    expect = Expectations(**expected)  # type: ignore[arg-type]
    return Plan("plan", "", ClusterPlan(), (Work(Program.BATCH),), (FAULT,), 8.0, expect)


def good() -> Story:
    return Story().master(2.0, 20.0).lives(3.0, 4.0).struck("kill-node", 5.0, 9.0, 2)


def test_a_run_that_keeps_to_everything_passes() -> None:
    judgement = judge(plan_of(), good().history)
    assert (judgement.verdict, judgement.reasons) == (Verdict.PASS, ())


def test_a_violation_fails_it() -> None:
    judgement = judge(plan_of(), good().ends(9.0, None).history)
    assert judgement.verdict is Verdict.FAIL
    assert judgement.reasons == (f"nothing acknowledged is lost: {APP} (batch of ann) was accepted and is not known",)


def test_a_fault_that_could_not_be_done_leaves_nothing_to_tell() -> None:
    judgement = judge(plan_of(), good().struck("kill-master", 5.0, None, problem="no master runs").history)
    assert judgement.verdict is Verdict.CANNOT_TELL
    assert judgement.reasons == ("5.0 s kill-master could not be done: no master runs",)


def test_a_violation_counts_whatever_could_not_be_done() -> None:
    story = good().struck("kill-master", 5.0, None, problem="no master runs")
    story.history.died.append("rm ended")
    assert judge(plan_of(), story.history).verdict is Verdict.FAIL


def test_a_run_in_which_nothing_happened_tells_nothing() -> None:
    story = Story().lives(3.0, 4.0).struck("kill-node", 5.0, 9.0, 2, skipped=True)
    judgement = judge(plan_of(), story.history)
    assert (judgement.verdict, judgement.reasons) == (Verdict.CANNOT_TELL, ("no fault fell",))


def test_a_run_without_containers_tells_nothing() -> None:
    judgement = judge(plan_of(), Story(may_fail=True, tasks=0).struck("kill-node", 5.0, 9.0, 2).history)
    assert (judgement.verdict, judgement.reasons) == (Verdict.CANNOT_TELL, ("no container was started",))


def test_a_run_that_was_given_up_is_not_blamed_for_what_it_did_not_finish() -> None:
    story = good().ends(0.0, YarnApplicationState.RUNNING)
    story.history.problem = "interrupted"
    assert judge(plan_of(), story.history).verdict is Verdict.CANNOT_TELL
    story.history.left.append("process 7")
    assert judge(plan_of(), story.history).verdict is Verdict.FAIL


def test_a_machine_that_is_too_busy_is_not_the_products_fault() -> None:
    story = good()
    story.history.undrained.append("not within 60 s")
    assert judge(plan_of(), story.history).verdict is Verdict.FAIL
    story.history.lag_s = 1.5
    judgement = judge(plan_of(), story.history)
    assert judgement.verdict is Verdict.CANNOT_TELL
    assert judgement.reasons[0] == "this machine is too busy for times: a sleep was 1.5 s too long"
    story.history.died.append("rm ended")
    assert judge(plan_of(), story.history).verdict is Verdict.FAIL, "whatever is not a matter of time counts"


def test_what_the_plan_expects() -> None:
    story = good()
    story.history.changes.append(Change(8.6, "nm-2", "LOST"))
    assert (
        judge(plan_of(nodes_lost=(1, 1), attempts=(1, 1), failed=(0, 0), lost_within=4.0), story.history).verdict == 0
    )
    for expected, told in [
        ({"nodes_lost": (0, 0)}, "nodes lost as expected: 1, expected 0"),
        ({"attempts": (2, 3)}, "attempts as expected: 1, expected 2 to 3"),
        ({"failed": (1, 1)}, "applications that failed as expected: 0, expected 1"),
        ({"refused": (1, 2)}, "submissions refused as expected: 0, expected 1 to 2"),
        ({"lost_within": 3.5}, "lost in time: 5.0 s kill-node 2 for 4.0 s: lost after 3.6 s, expected within 3.5 s"),
    ]:
        judgement = judge(plan_of(**expected), story.history)
        assert (judgement.verdict, judgement.reasons) == (Verdict.FAIL, (told,))


def test_what_faults_cost() -> None:
    story = good().struck("kill-rm", 10.0, 12.0).struck("kill-master", 20.0, None)
    story.history.changes += [
        Change(8.6, "nm-2", "LOST"),
        Change(9.4, "nm-2", "RUNNING"),
        Change(10.1, "rm", "SILENT"),
        Change(12.5, "rm", "ANSWERS"),
    ]
    node, rm, _ = story.history.injected
    assert cost_of(node, story.history) == "LOST after 3.6 s, back 0.4 s after its end"
    assert cost_of(rm, story.history) == "silent for 2.5 s"


def test_what_a_killed_master_costs() -> None:
    story = Story().master(2.0, 20.0).master(21.5, 30.0, 2).struck("kill-master", 20.0, None)
    (killed,) = story.history.injected
    story.history.injected[0] = killed = type(killed)(killed.blow, 20.0, None, "container_1_0001_01_000001")
    assert cost_of(killed, story.history) == "next attempt after 1.5 s"
