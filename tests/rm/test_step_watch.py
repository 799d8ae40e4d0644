"""The watch over steps sees what no event may do; and what keeps on being true while a cluster is left alone."""

from __future__ import annotations

import pytest

from rm.core.events import Tick
from rm.core.states import RMAppAttemptState
from rm.scheduler.placement.visit import Placement
from tests.rm.builders import RM, ask, done
from yarn.asks import ANY, ResourceRequest
from yarn.ids import ApplicationId
from yarn.machine import InvariantsBroken, Reply
from yarn.resource import Resource


@pytest.fixture
def rm() -> RM:
    rm = RM()
    rm.node("n1")
    return rm


@pytest.fixture
def app(rm: RM) -> ApplicationId:
    app = rm.submit(max_app_attempts=3)
    rm.run_master(app)
    return app


def broken_by(rm: RM) -> list[str]:
    """The numbers of what a step finds in which nothing happens."""
    effects = rm.core.handle(Tick(), rm.now_ms)
    found = [text for effect in effects if isinstance(effect, InvariantsBroken) for text in effect.violations]
    return [text.split(":")[0] for text in found]


def test_nothing_is_booked_on_a_node_that_does_not_speak(rm: RM, app: ApplicationId) -> None:
    rm.allocate(app, [ask(1)])
    rm.core.scheduler.node_update(rm.nodes["n1"].node_id, [], [], rm.now_ms)
    assert broken_by(rm) == ["I-17"]


def test_a_reservation_that_fits_is_filled_by_the_second_visit(
    rm: RM, app: ApplicationId, monkeypatch: pytest.MonkeyPatch
) -> None:
    rm.node("n2")
    held = rm.get(app, 5)
    rm.allocate(app, [ask(1, 4096, priority=2)])
    rm.beat()
    node = rm.core.scheduler.nodes[rm.nodes["n1"].node_id]
    assert node.reserved_container is not None
    monkeypatch.setattr(Placement, "_serve_reservation", lambda *_: None)
    rm.beat(ended=[done(container.id) for container in held])
    with pytest.raises(AssertionError, match="I-21"):
        rm.beat()


def test_a_reservation_for_a_host_waits_for_the_size_of_the_host_row(rm: RM, app: ApplicationId) -> None:
    """The row for anywhere may ask for less by now; it is the host's row that the reservation is served by."""
    rm.node("n2")
    held = rm.get(app, 5)
    at_host = [ResourceRequest(2, name, Resource(4096, 1), 1) for name in ("n1", "/default-rack", ANY)]
    rm.allocate(app, at_host)
    rm.beat()
    node = rm.core.scheduler.nodes[rm.nodes["n1"].node_id]
    assert node.reserved_container is not None
    rm.allocate(app, [ResourceRequest(2, ANY, Resource(1024, 1), 1)])
    for _ in range(3):
        rm.beat()
    assert node.reserved_container is not None
    rm.beat(ended=[done(container.id) for container in held])
    assert node.reserved_container is None


def second_attempt(rm: RM, app: ApplicationId) -> None:
    """The first one has failed."""
    (master,) = rm.core.scheduler.containers_of(app).values()
    rm.beat(ended=[done(master.id, 1)])
    assert rm.attempt_id(app).attempt == 2


def test_an_application_has_one_attempt_at_a_time(rm: RM, app: ApplicationId) -> None:
    second_attempt(rm, app)
    assert broken_by(rm) == []
    first = next(iter(rm.core.context.apps[app].attempts.values()))
    first.machine.state = RMAppAttemptState.RUNNING
    assert broken_by(rm) == ["I-36"]


def test_an_application_is_not_tried_again_beyond_its_failures(rm: RM, app: ApplicationId) -> None:
    second_attempt(rm, app)
    rm.core.context.apps[app].max_attempts = 1
    assert broken_by(rm) == ["I-38"]


def test_queue_and_priority_do_not_change_by_themselves(rm: RM, app: ApplicationId) -> None:
    rm.core.context.apps[app].priority = 7
    assert broken_by(rm) == ["I-42"]
    assert broken_by(rm) == []


def test_an_idle_cluster_is_idle(rm: RM, app: ApplicationId) -> None:
    """I-63: in an hour of heartbeats nothing is done but answer them, and timers do not fire by themselves."""
    rm.node("n2")
    rm.node("n3")
    ticks = effects = 0
    for _ in range(3600):
        before = len(rm.log)
        rm.wait(1000)
        ticks += len(rm.log) - before
        for host in ("n1", "n2", "n3"):
            rm.beat(host)
            effects += len([effect for effect in rm.effects if not isinstance(effect, Reply)])
        rm.allocate(app)
        effects += len([effect for effect in rm.effects if not isinstance(effect, Reply)])
    assert effects == 0
    assert ticks <= 60, "liveness is looked at now and then, and finds everybody alive"


def test_each_application_is_served_in_a_bounded_number_of_visits(rm: RM) -> None:
    """I-59: each heartbeat of a node with room serves the next of those that wait, whatever their order."""
    apps = [rm.submit() for _ in range(6)]
    for app in apps:
        rm.run_master(app)
    for app in apps:
        rm.allocate(app, [ask(1, 1024)])
    running = []
    for _ in apps:
        rm.beat()
        for app in apps:
            for container in rm.allocate(app).allocated:
                rm.run(container)
                running.append(app)
        rm.beat(ended=[done(container_id) for container_id in list(rm.nodes["n1"].running)[len(apps) :]])
    assert sorted(running) == apps
