"""Changes that are possible when a run is forked, and those that are refused."""

from __future__ import annotations

import pytest

from yarn.errors import InvalidArgumentException
from yarnling.lessons.chapters import failure, preemption
from yarnling.simulation.machine import SimulatedMachine
from yarnling.stepping.changes import TEXT_MAX, ClusterChange
from yarnling.stepping.cluster_view import ClusterView
from yarnling.stepping.session import Session
from yarnling.stepping.sources import Scene


@pytest.fixture(scope="module")
def running() -> Session:
    """Ann's application holds containers on both nodes."""
    session = Session(Scene(preemption.LESSON))
    session.go_to_time(10_000)
    return session


def later(session: Session, change: str, seconds: float) -> ClusterView:
    """The cluster so many seconds after the change."""
    forked = session.fork(ClusterChange.parse(change))
    forked.go_to_time(session.at_ms + round(seconds * 1000))
    return forked.view()


def states(view: ClusterView) -> dict[str, str]:
    return {app.name: app.state for app in view.applications}


def test_kill_an_application(running: Session) -> None:
    view = later(running, "kill ann", 3)
    assert states(view) == {"ann": "KILLED"}
    assert [node.used_mb for node in view.nodes] == [0, 0]


def test_kill_a_container(running: Session) -> None:
    names = [box.name for node in running.view().nodes for box in node.containers]
    assert "ann-c5" in names
    view = later(running, "kill ann-c5", 0.5)
    assert "ann-c5" not in [box.name for node in view.nodes for box in node.containers]


def test_kill_and_start_a_node(running: Session) -> None:
    killed = running.fork(ClusterChange.parse("kill n2"))
    assert killed.view().nodes[1].process == "down"
    view = later(killed, "start n2", 3)
    assert (view.nodes[1].process, view.nodes[1].state) == ("running", "RUNNING")


def test_pause_and_resume_a_node(running: Session) -> None:
    paused = running.fork(ClusterChange.parse("pause n1"))
    assert paused.view().nodes[0].process == "paused"
    assert later(paused, "resume n1", 2).nodes[0].process == "running"


def test_remove_a_node_and_take_it_back(running: Session) -> None:
    removed = running.fork(ClusterChange.parse("remove n2"))
    removed.go_to_time(running.at_ms + 5_000)
    assert removed.view().nodes[1].state == "DECOMMISSIONED"
    assert later(removed, "start n2", 5).nodes[1].state == "RUNNING"


def test_cut_off_a_node(running: Session) -> None:
    cut = running.fork(ClusterChange.parse("cut n2"))
    heartbeats = [step for step in cut.steps if step.node == "n2"]
    cut.go_to_time(running.at_ms + 5_000)
    assert [step for step in cut.steps if step.node == "n2"] == heartbeats
    joined = cut.fork(ClusterChange.parse("join n2"))
    assert joined.go_to_next(lambda step: step.node == "n2")


def test_kill_and_start_the_resource_manager() -> None:
    session = Session(Scene(failure.LESSON))
    session.go_to_time(6_000)
    killed = session.fork(ClusterChange.parse("kill rm"))
    view = killed.view()
    assert (view.rm, view.queues, view.applications) == ("down", (), ())
    with pytest.raises(InvalidArgumentException, match="the ResourceManager is down: start rm first"):
        killed.fork(ClusterChange.parse("submit eve"))
    view = later(killed, "start rm", 1.5)
    assert (view.rm, states(view)) == ("running", {"ann": "RUNNING"})


def test_pause_the_resource_manager(running: Session) -> None:
    paused = running.fork(ClusterChange.parse("pause rm"))
    assert paused.view().rm == "paused"
    with pytest.raises(InvalidArgumentException, match="resume rm first"):
        paused.fork(ClusterChange.parse("kill ann"))
    assert later(paused, "resume rm", 2).rm == "running"


def test_submit_an_application(running: Session) -> None:
    view = later(running, "submit eve user=bob queue=b containers=3 memory=2048 vcores=2 seconds=4", 3)
    eve = view.applications[-1]
    assert (eve.name, eve.user, eve.queue) == ("eve", "bob", "root.b")
    assert later(running, "submit eve", 1).applications[-1].queue == "root.a"


def test_set_the_capacities_of_queues(running: Session) -> None:
    view = later(running, "set root.a.capacity=30 root.b.capacity=70", 0.1)
    guaranteed = {queue.path: queue.guaranteed_mb for queue in view.queues}
    assert guaranteed == {"root": 16384, "root.a": 4915, "root.b": 11468}


def test_settings_are_kept_by_a_later_change(running: Session) -> None:
    first = running.fork(ClusterChange.parse("set root.a.capacity=30 root.b.capacity=70"))
    view = later(first, "set root.a.maximum-capacity=40", 0.1)
    assert [queue.guaranteed_mb for queue in view.queues] == [16384, 4915, 11468]
    assert view.queues[1].maximum_mb == 6553


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("", "is not a change: begin with kill, start"),
        ("dance", "is not a change"),
        ("x" * (TEXT_MAX + 1), "is too long"),
        ("kill", "kill takes one word"),
        ("kill n1 n2", "kill takes one word"),
        ("kill n0", "there is no node n0"),
        ("kill nobody", "nothing is called nobody"),
        ("start n1", "the NodeManager of n1 is running"),
        ("start rm", "the ResourceManager is running: kill rm first"),
        ("resume n1", "n1 is not paused"),
        ("cut rm", "there is no node rm"),
        ("submit", "submit takes a name"),
        ("submit n;x", "submit takes a name"),
        ("submit ann", "there is an application ann already"),
        ("submit eve 4", "'4' is not KEY=VALUE"),
        ("submit eve colour=red", "there is no option 'colour'"),
        ("submit eve containers=0", "containers=0 is not a whole number from 1 to 1000"),
        ("submit eve memory=1e3", "memory=1e3 is not a whole number"),
        ("submit eve seconds=7", "seconds=7: choose one of forever, 2, 4"),
        ("set", "set takes settings of queues"),
        ("set root.a.capacity", "is not KEY=VALUE"),
        ("set yarn.resourcemanager.am.max-attempts=1", "is not a setting of queues"),
        ("set root.a.capacity=30", "the ResourceManager refuses the settings"),
    ],
)
def test_what_is_refused(running: Session, change: str, problem: str) -> None:
    with pytest.raises(InvalidArgumentException, match=problem):
        running.fork(ClusterChange.parse(change))


def test_a_change_at_which_a_core_fails_ends_the_run(running: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(machine: SimulatedMachine, *, containers: bool) -> None:
        raise KeyError("x")

    monkeypatch.setattr(SimulatedMachine, "kill", fail)
    forked = running.fork(ClusterChange.parse("kill n2"))
    assert forked.step is not None
    assert [line.text for line in forked.step.lines] == ["the run ends: KeyError: 'x'"]
    forked.next()
    assert forked.is_at_end
