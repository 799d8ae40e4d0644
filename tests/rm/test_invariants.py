"""The invariants of the core: violations end the process, what Hadoop breaks is a warning, and steps are compared."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from rm import daemon
from rm.core import invariants
from rm.core.events import GetNewApplication, UnregisterNode
from rm.core.invariants import UNCHANGED_HEARTBEATS_MAX, RMAudit
from rm.core.resource_manager import ResourceManagerCore
from rm.core.states import RMAppAttemptState
from rm.scheduler.capacity_scheduler import CapacityScheduler
from rm.scheduler.placement.visit import Placement
from tests.compiled import only_interpreted
from tests.rm.builders import ONE_QUEUE, RM, START_MS, done, resource_request
from tests.rm.served_cluster import SOON_S, configuration
from wire.cluster_secret import read_client_token
from wire.event_log import read_event_log
from wire.protocols.client import ApplicationClientProtocol
from yarn.configuration import Configuration
from yarn.containers import ANY, ResourceRequest
from yarn.ids import ApplicationId, NodeId
from yarn.machine import InvariantsBroken, Reply, Tick, Warn
from yarn.protocols.master import AllocateResponse
from yarn.resource import Resource


@pytest.fixture
def rm() -> RM:
    rm = RM()
    rm.node("n1")
    return rm


@pytest.fixture
def busy() -> RM:
    """Two containers run."""
    rm = RM()
    rm.node("n1")
    app = rm.submit()
    rm.run_am(app)
    rm.allocate(app, [resource_request(2)])
    rm.beat()
    return rm


@pytest.fixture
def app(rm: RM) -> ApplicationId:
    app = rm.submit(max_app_attempts=3)
    rm.run_am(app)
    return app


def broken_by(rm: RM) -> list[str]:
    """The numbers of the violations that an empty step finds."""
    effects = rm.core.handle(Tick(), rm.now_ms)
    found = [text for effect in effects if isinstance(effect, InvariantsBroken) for text in effect.violations]
    return [text.split(":")[0] for text in found]


def test_nothing_is_allocated_on_a_node_without_a_heartbeat(rm: RM, app: ApplicationId) -> None:
    rm.allocate(app, [resource_request(1)])
    rm.core.scheduler.node_update(rm.nodes["n1"].node_id, [], [], rm.now_ms)
    assert broken_by(rm) == ["I-17"]


@only_interpreted
def test_a_reservation_that_fits_is_filled_by_the_second_visit(
    rm: RM, app: ApplicationId, monkeypatch: pytest.MonkeyPatch
) -> None:
    rm.node("n2")
    held = rm.get(app, 5)
    rm.allocate(app, [resource_request(1, 4096, priority=2)])
    rm.beat()
    node = rm.core.scheduler.nodes[rm.nodes["n1"].node_id]
    assert node.reserved_container is not None
    monkeypatch.setattr(Placement, "serve_reservation", lambda *_: None)
    rm.beat(ended=[done(container.id) for container in held])
    with pytest.raises(AssertionError, match="I-21"):
        rm.beat()


def test_a_reservation_for_a_host_waits_for_the_size_of_the_host_row(rm: RM, app: ApplicationId) -> None:
    """The request for anywhere may be smaller by now; the reservation serves the request for the host."""
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
    (am_container,) = rm.core.scheduler.containers_of(app).values()
    rm.beat(ended=[done(am_container.id, 1)])
    assert rm.attempt_id(app).attempt == 2


def test_an_application_has_one_attempt_at_a_time(rm: RM, app: ApplicationId) -> None:
    second_attempt(rm, app)
    assert broken_by(rm) == []
    first = next(iter(rm.core.context.apps[app].attempts.values()))
    first.machine.state = RMAppAttemptState.RUNNING
    assert broken_by(rm) == ["I-36"]


def test_no_attempt_follows_the_maximum_of_failures(rm: RM, app: ApplicationId) -> None:
    second_attempt(rm, app)
    rm.core.context.apps[app].max_attempts = 1
    assert broken_by(rm) == ["I-38"]


def test_queue_and_priority_do_not_change_by_themselves(rm: RM, app: ApplicationId) -> None:
    rm.core.context.apps[app].priority = 7
    assert broken_by(rm) == ["I-42"]
    assert broken_by(rm) == []


def test_the_scheduler_is_not_checked_after_heartbeats_that_change_nothing(
    busy: RM, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = 0

    def count(scheduler: CapacityScheduler) -> list[str]:
        nonlocal checks
        checks += 1
        return []

    monkeypatch.setattr(invariants, "violations", count)
    busy.beat()
    busy.core.handle(Tick(), busy.now_ms)
    checks = 0
    for _ in range(UNCHANGED_HEARTBEATS_MAX - 1):
        busy.beat()
    assert checks == 0
    busy.core.handle(Tick(), busy.now_ms)
    assert checks == 1


def test_a_change_that_the_scheduler_has_not_counted_is_found_after_some_heartbeats(busy: RM) -> None:
    (node,) = busy.core.scheduler.nodes.values()
    busy.beat()
    node.unallocated = node.total

    def beat_on() -> None:
        for _ in range(UNCHANGED_HEARTBEATS_MAX):
            busy.beat()

    with pytest.raises(AssertionError, match="I-01"):
        beat_on()


def test_an_idle_cluster_has_no_usage(rm: RM, app: ApplicationId) -> None:
    """I-63: ten minutes of heartbeats have no effects but their replies, and timers do not fire by themselves."""
    rm.node("n2")
    rm.node("n3")
    ticks = effects = 0
    for _ in range(600):
        before = len(rm.log)
        rm.wait(1000)
        ticks += len(rm.log) - before
        for host in ("n1", "n2", "n3"):
            rm.beat(host)
            effects += len([effect for effect in rm.effects if not isinstance(effect, Reply)])
        rm.allocate(app)
        effects += len([effect for effect in rm.effects if not isinstance(effect, Reply)])
    assert effects == 0
    assert ticks <= 10, "liveness is checked now and then, and finds every node and AM alive"


def test_each_application_gets_a_container_in_a_bounded_number_of_visits(rm: RM) -> None:
    """I-59: each heartbeat of a node with free capacity serves the next waiting application, in any order."""
    apps = [rm.submit() for _ in range(6)]
    for app in apps:
        rm.run_am(app)
    for app in apps:
        rm.allocate(app, [resource_request(1, 1024)])
    running = []
    for _ in apps:
        rm.beat()
        for app in apps:
            for container in rm.allocate(app).allocated:
                rm.run(container)
                running.append(app)
        rm.beat(ended=[done(container_id) for container_id in list(rm.nodes["n1"].running)[len(apps) :]])
    assert sorted(running) == apps


# Violations and warnings


def test_nothing_is_checked_unless_configured() -> None:
    core = ResourceManagerCore(Configuration.of(ONE_QUEUE), cluster_timestamp=START_MS)
    assert core.scheduler.placement.watch is None


def test_a_violation_is_the_last_effect_with_its_amounts(busy: RM) -> None:
    node = next(iter(busy.core.scheduler.nodes.values()))
    node.unallocated = Resource(1, 1)
    effects = busy.core.handle(GetNewApplication(busy.call()), busy.now_ms)
    assert isinstance(effects[0], Reply)
    assert isinstance(effects[-1], InvariantsBroken)
    assert effects[-1].violations == (
        "I-01: n1:45454: allocated <memory:3072, vCores:3> + free <memory:1, vCores:1> "
        "!= total <memory:8192, vCores:8>",
    )


def test_pending_that_an_am_had_miscounted_is_a_warning(busy: RM) -> None:
    """Otherwise any AM could end an audited ResourceManager; without such a request the same sum ends it."""
    app = busy.submit()
    busy.run_am(app)
    busy.allocate(app, [resource_request(-2)])
    warned = [effect.text.split(": ")[1] for effect in busy.effects if isinstance(effect, Warn)]
    assert warned == ["I-14 (miscounted)"]


def test_a_violation_that_hadoop_also_causes_is_warned_of_once(busy: RM) -> None:
    queue = busy.core.scheduler.queues["root.default"]
    queue.capacities.default.effective_maximum = Resource(1024, 1)
    warnings = [effect for effect in busy.core.handle(Tick(), busy.now_ms) if isinstance(effect, Warn)]
    assert [warning.text.split(": ")[1] for warning in warnings] == ["I-08"]
    assert busy.core.handle(Tick(), busy.now_ms) == []


@pytest.mark.parametrize("headroom_mb", [-1, 8193])
def test_an_impossible_headroom_is_found(busy: RM, headroom_mb: int) -> None:
    audit = RMAudit(busy.core.context)
    assert audit.look_at_step(Tick(), [Reply(1, AllocateResponse(1, Resource(8192, 1), 1))]) == []
    found = audit.look_at_step(Tick(), [Reply(2, AllocateResponse(1, Resource(headroom_mb, 1), 1))])
    assert found == [
        InvariantsBroken((f"I-12: call 2: reported a headroom of {headroom_mb} MB in a cluster of 8192 MB",))
    ]


def test_a_reply_that_is_sent_again_is_not_checked(busy: RM) -> None:
    """The cluster has become smaller since."""
    audit = RMAudit(busy.core.context)
    busy.node("n2")
    lost = AllocateResponse(1, Resource(16384, 1), 2)
    assert audit.look_at_step(Tick(), [Reply(1, lost)]) == []
    busy.send(UnregisterNode(busy.call(), NodeId("n2", 45454)))
    assert busy.core.scheduler.cluster_resource.memory_mb == 8192
    assert audit.look_at_step(Tick(), [Reply(2, lost)]) == []
    new = AllocateResponse(1, Resource(16384, 1), 2)
    assert [type(effect) for effect in audit.look_at_step(Tick(), [Reply(3, new)])] == [InvariantsBroken]


async def test_the_daemon_logs_a_violation_keeps_its_event_log_and_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    conf = configuration(
        tmp_path,
        yarn__yarnling__check_invariants="true",
        yarn__yarnling__event_log=str(tmp_path / "events.jsonl"),
    )
    addresses: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()

    def note(facts: dict[str, object]) -> None:
        served = facts["addresses"]
        assert isinstance(served, dict)
        addresses.set_result(served)

    async with asyncio.timeout(SOON_S), asyncio.TaskGroup() as tasks:
        serving = tasks.create_task(daemon.serve(conf, note, stop=asyncio.Event()))
        address, token = (await addresses)["yarn.resourcemanager.address"], read_client_token(conf)
        async with ApplicationClientProtocol(address, user="ann", token=token) as client:
            await client.get_new_application()
            monkeypatch.setattr("rm.core.invariants.violations", lambda _: ["I-01: n1: 1 + 1 != 3"])
            await client.get_new_application()
    assert serving.result() == daemon.BROKEN
    assert [record.message for record in caplog.records if record.levelno == logging.CRITICAL] == [
        "invariant broken: I-01: n1: 1 + 1 != 3"
    ]
    _, steps = read_event_log(tmp_path / "events.jsonl")
    assert list(steps)[-1].effects[-1] == InvariantsBroken(("I-01: n1: 1 + 1 != 3",))
