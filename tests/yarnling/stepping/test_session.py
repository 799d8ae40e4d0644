"""Stepping through a run, back, and on with a change: which position is which state, whatever way led there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from yarn.errors import InvalidArgumentException
from yarnling.faults.plan_file import find_plan
from yarnling.lessons.chapters import failure, preemption, reservation
from yarnling.simulation.cluster import InvariantBroken
from yarnling.simulation.engine import Rank
from yarnling.simulation.runner import Options, simulate
from yarnling.stepping.changes import ClusterChange
from yarnling.stepping.session import VIEWS_BEFORE, VIEWS_MAX, Session
from yarnling.stepping.sources import PlanSource, Scene, find_source
from yarnling.stepping.steps import PLAN, RUN, SCENE, LineKind, Step


@pytest.fixture
def session() -> Iterator[Session]:
    opened = Session(Scene(preemption.LESSON))
    yield opened
    opened.close()


def texts(step: Step | None, kind: LineKind) -> list[str]:
    assert step is not None
    return [line.text for line in step.lines if line.kind is kind]


def test_nothing_has_happened_at_position_0(session: Session) -> None:
    assert session.step is None
    view = session.view()
    assert view.rm == "down"
    assert [node.process for node in view.nodes] == ["down", "down"]
    session.back()
    assert session.position == 0


def test_a_step_says_what_arrived_what_was_decided_and_what_is_sent(session: Session) -> None:
    assert session.go_to_next(lambda step: any(line.kind is LineKind.PLACED for line in step.lines))
    step = session.step
    assert step is not None
    assert (step.place, step.node) == ("RM", "n1")
    assert step.title == "nodeHeartbeat from NM n1 arrives: response id 2"
    assert texts(step, LineKind.PLACED) == ["allocates ann-am (1024 MB) on n1: 7168 MB are free there now"]
    assert "attempt 1 of ann: SCHEDULED \u2192 ALLOCATED_SAVING (on CONTAINER_ALLOCATED)" in texts(step, LineKind.STATE)
    assert texts(step, LineKind.REPLY) == ["replies to NM n1: response id 3"]
    assert "healthy: True" in step.fields
    node = session.view().nodes[0]
    assert [box.name for box in node.containers] == ["ann-am"]
    assert node.used_mb == 1024


def test_a_heartbeat_at_which_nothing_is_placed_says_why_not(session: Session) -> None:
    session.go_to_time(13_000)
    assert session.go_to_next(lambda step: bool(texts(step, LineKind.REFUSED)))
    refused = texts(session.step, LineKind.REFUSED)
    assert refused == [
        "no container for ann on n1: Initial check: node resource is insufficient for minimum allocation "
        "(smallest container <memory:1024, vCores:1>, available <memory:0, vCores:0>)"
    ]
    app = session.view().applications[0]
    assert app.waits[0].startswith("waits because the cluster is full")
    assert (app.containers, app.pending) == (16, 15)


def test_an_application_that_got_something_is_not_refused() -> None:
    session = Session(Scene(reservation.LESSON))
    assert session.go_to_next(lambda step: any("reserves bob-c2" in text for text in texts(step, LineKind.PLACED)))
    assert [text.split(" on ")[0] for text in texts(session.step, LineKind.REFUSED)] == ["no container for ann"]
    reserved = session.view().nodes[1].reserved
    assert reserved is not None
    assert (reserved.name, reserved.memory_mb) == ("bob-c2", 5120)
    assert session.view().queues[0].reserved_mb == 5120


@pytest.mark.slow
def test_the_same_position_is_the_same_state_whatever_way_led_there(session: Session) -> None:
    session.go_to(300)
    forwards = [session.view()]
    for _ in range(5):
        session.next()
        forwards.append(session.view())
    backwards = [session.view()]
    for _ in range(5):
        session.back()
        backwards.append(session.view())
    assert backwards[::-1] == forwards
    other = Session(Scene(preemption.LESSON))
    other.go_to(900)
    other.go_to(300)
    assert other.view() == forwards[0]
    assert other.steps[:300] == session.steps[:300]


def test_views_that_were_dropped_are_made_again(session: Session) -> None:
    session.go_to(50)
    first = session.view()
    for position in range(51, 60 + VIEWS_MAX):
        session.go_to(position)
        session.view()
    session.go_to(50)
    assert session.view() == first
    session.back(VIEWS_BEFORE)
    assert session.view().at_ms <= first.at_ms


def test_looking_does_not_change_the_run(session: Session) -> None:
    looked = Session(Scene(preemption.LESSON))
    for _ in range(400):
        looked.next()
        looked.view()
    session.go_to(400)
    assert session.steps == looked.steps


def test_a_time_leads_to_the_last_position_before_it(session: Session) -> None:
    session.go_to_time(14_000)
    assert session.at_ms <= 14_000 < session.steps[session.position].at_ms
    position = session.position
    session.go_to_time(0)
    assert session.position == 0
    session.go_to_time(14_000)
    assert session.position == position


def test_the_end_of_a_run_is_its_last_position(session: Session) -> None:
    session.go_to(10**9)
    assert session.is_at_end
    last = session.position
    session.next()
    assert session.position == last
    assert not session.go_to_next(lambda step: True)
    session.back()
    assert not session.is_at_end


def test_changes_are_found_in_both_directions(session: Session) -> None:
    session.go_to(10)
    assert session.go_to_next(lambda step: step.is_change)
    first = session.position
    assert session.go_to_next(lambda step: step.is_change)
    assert session.go_to_previous(lambda step: step.is_change)
    assert session.position == first


def test_what_the_scene_does_and_calls_without_a_reply_are_steps() -> None:
    session = Session(Scene(failure.LESSON))
    assert session.go_to_next(lambda step: step.place == SCENE)
    step = session.step
    assert step is not None
    assert (step.at_ms, step.title, step.lines, step.is_change) == (8_000, "the RM is killed", (), True)
    assert session.view().rm == "down"
    assert session.go_to_next(lambda step: bool(texts(step, LineKind.LOST)))
    assert session.step is not None
    assert session.step.title == "nodeHeartbeat gets no reply"
    assert texts(session.step, LineKind.LOST)[0].startswith("nodeHeartbeat over tracker-1: cannot be reached")


def test_a_fork_differs_only_after_its_change(session: Session) -> None:
    session.go_to_time(8_000)
    position = session.position
    forked = session.fork(ClusterChange.parse("kill  n2"))
    assert forked.position == position + 1
    assert forked.steps[:position] == session.steps[:position]
    assert forked.step is not None
    assert (forked.step.place, forked.step.title) == ("you", "kill n2")
    assert [node.process for node in forked.view().nodes] == ["running", "down"]
    opened = Session(forked.source, forked.changes)
    opened.go_to(position + 1)
    assert opened.steps == forked.steps
    assert opened.view() == forked.view()
    forked.back()
    assert forked.view() == session.view()
    forked.next(300)
    session.next(300)
    assert forked.view() != session.view()
    assert [node.process for node in session.view().nodes] == ["running", "running"]


def test_a_fork_of_a_fork_keeps_the_changes_before_it(session: Session) -> None:
    session.go_to_time(8_000)
    first = session.fork(ClusterChange.parse("kill n2"))
    first.next(20)
    second = first.fork(ClusterChange.parse("submit eve queue=b containers=2"))
    assert [made.change.text for made in second.changes] == ["kill n2", "submit eve queue=b containers=2"]
    second.go_to_time(12_000)
    assert second.view().nodes[1].process == "down"
    assert [app.name for app in second.view().applications] == ["ann", "eve"]
    first.back(21)
    before = first.fork(ClusterChange.parse("kill n1"))
    assert [made.change.text for made in before.changes] == ["kill n1"]


def test_a_change_that_the_cluster_does_not_allow_leaves_the_session_as_it_is(session: Session) -> None:
    session.go_to_time(8_000)
    view = session.view()
    with pytest.raises(InvalidArgumentException, match="there is no node n7: choose one of n1 to n2"):
        session.fork(ClusterChange.parse("kill n7"))
    assert session.view() == view
    assert session.changes == ()


@pytest.mark.slow
def test_stepping_through_a_plan_is_the_run_of_simulate() -> None:
    plan, seed = find_plan("kill-node"), 7
    session = Session(PlanSource(plan, "kill-node", seed))
    session.go_to(10**9)
    simulated = simulate(plan, seed, Options(encode=False))
    assert session._ahead.run.cluster.engine.events == simulated.events
    assert session.at_ms <= simulated.virtual_s * 1000
    notes = [step.title for step in session.steps if step.place == PLAN]
    kills = [one for one in simulated.history.injected if one.target]
    assert sum("fault kill-node on" in note and "is over" not in note for note in notes) == len(kills) > 0
    last = session.view()
    session.back(len(session.steps) // 2)
    middle = session.view()
    session.go_to(10**9)
    assert session.view() == last
    session.close()
    other = Session(PlanSource(plan, "kill-node", seed))
    other.go_to_time(middle.at_ms - 1)
    while other.position < len(session.steps) - len(session.steps) // 2:
        other.next()
    assert other.view() == middle, "a repeated run, whose invariants are not checked, is the same"
    other.close()


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        (InvariantBroken("rm: I-1"), "the run ends: an invariant is broken: rm: I-1"),
        (KeyError("x"), "the run ends: KeyError: 'x'"),
    ],
)
def test_a_run_ends_with_the_step_in_which_a_core_fails(problem: Exception, said: str) -> None:
    def fail() -> None:
        raise problem

    session = Session(Scene(preemption.LESSON))
    session.go_to_time(3_000)
    engine = session._ahead.run.cluster.engine
    engine.at(engine.now_ms + 100, Rank.CLIENT, 0, fail)
    session.go_to(10**9)
    assert session.step is not None
    assert (session.step.place, session.step.title) == (RUN, said)
    assert session.at_ms < 4_000


def test_a_source_is_a_lesson_or_a_plan() -> None:
    assert find_source("", None).arguments == ("allocate",)
    assert find_source("lesson-8", None).arguments == ("preemption",)
    assert find_source("kill-node", 3).arguments == ("kill-node", "--seed", "3")
    released = find_source("kill-node", 3, "3.5.0")
    assert released.arguments == ("kill-node", "--seed", "3", "--release", "3.5.0")
    with pytest.raises(InvalidArgumentException, match="draws nothing"):
        find_source("8", 3)
    with pytest.raises(InvalidArgumentException, match=r"--release 3\.5\.0: the scene preemption follows"):
        find_source("8", None, "3.5.0")


def moments(session: Session) -> list[tuple[str, str]]:
    return [(moment.kind.value, moment.text) for moment in session.moments]


def test_a_run_opens_at_its_first_decision_and_knows_its_moments(session: Session) -> None:
    session.go_to_opening()
    assert texts(session.step, LineKind.PLACED) == ["allocates ann-am (1024 MB) on n1: 7168 MB are free there now"]
    assert moments(session)[:4] == [
        ("submitted", "ann is submitted"),
        ("placed", "first container of ann: ann-am on n1"),
        ("submitted", "bob is submitted"),
        ("preempted", "preemption of ann-c16 requested: GUARANTEE for root.b"),
    ]
    assert [moment.step for moment in session.moments] == sorted(moment.step for moment in session.moments)
    forked = session.fork(ClusterChange.parse("kill n2"))
    forked.look_ahead()
    assert moments(forked)[:3] == [*moments(session)[:2], ("done", "kill n2")]
    forked.close()


@pytest.mark.parametrize(
    ("scene", "title"),
    [("register", "registerNodeManager from NM n1 arrives"), ("heartbeat", "NM n2 is killed"), ("7", "nodeHeartbeat")],
)
def test_a_run_without_a_decision_opens_at_its_first_moment_or_change(scene: str, title: str) -> None:
    opened = Session(find_source(scene, None))
    opened.go_to_opening()
    assert opened.step is not None
    assert title in opened.step.title
    opened.close()


def test_lost_messages_are_one_moment_until_they_pass_again() -> None:
    opened = Session(Scene(failure.LESSON))
    opened.look_ahead()
    lost = [text for kind, text in moments(opened) if kind == "lost"]
    assert [text for text in lost if "gets no reply" in text] == [
        "nodeHeartbeat of NM n1 gets no reply",
        "allocate of AM ann gets no reply",
        "nodeHeartbeat of NM n2 gets no reply",
    ]
    assert "ann, attempt 1 has failed" in lost
    opened.close()


def test_a_node_that_expires_is_a_moment() -> None:
    opened = Session(find_source("heartbeat", None))
    opened.look_ahead()
    assert moments(opened)[-1] == ("lost", "node n2 is lost")
    opened.close()
