"""The auditor in the core: what ends the process, what is only warned of, and what happens to the daemon then."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from rm.core.audit import Audit
from rm.core.events import GetNewApplication, Tick, UnregisterNode
from rm.core.resource_manager import ResourceManagerCore
from rm.shell import daemon
from tests.rm.builders import ONE_QUEUE, RM, START_MS, ask
from tests.rm.served_cluster import SOON_S, configuration
from wire.cluster_secret import read_client_token
from wire.event_log import read_event_log
from wire.proxies.client import ApplicationClientProxy
from yarn.configuration import Configuration
from yarn.ids import NodeId
from yarn.machine import InvariantsBroken, Reply, Warn
from yarn.protocols.master import AllocateResponse
from yarn.resource import Resource


@pytest.fixture
def rm() -> RM:
    """Two containers at work."""
    rm = RM()
    rm.node("n1")
    app = rm.submit()
    rm.run_master(app)
    rm.allocate(app, [ask(2)])
    rm.beat()
    return rm


def test_nothing_is_looked_at_unless_asked_for() -> None:
    core = ResourceManagerCore(Configuration.of(ONE_QUEUE), cluster_timestamp=START_MS)
    assert core.scheduler.context.watch is None


def test_what_must_always_hold_is_told_last_with_its_amounts(rm: RM) -> None:
    node = next(iter(rm.core.scheduler.nodes.values()))
    node.unallocated = Resource(1, 1)
    effects = rm.core.handle(GetNewApplication(rm.call()), rm.now_ms)
    assert isinstance(effects[0], Reply)
    assert isinstance(effects[-1], InvariantsBroken)
    assert effects[-1].violations == (
        "I-01: n1:45454: allocated <memory:3072, vCores:3> + free <memory:1, vCores:1> "
        "!= total <memory:8192, vCores:8>",
    )


def test_pending_that_an_am_had_miscounted_is_a_warning(rm: RM) -> None:
    """Otherwise any AM could end an audited ResourceManager; without such a request the same sum ends it."""
    app = rm.submit()
    rm.run_master(app)
    rm.allocate(app, [ask(-2)])
    warned = [effect.text.split(": ")[1] for effect in rm.effects if isinstance(effect, Warn)]
    assert warned == ["I-14 (miscounted)"]


def test_what_hadoop_breaks_is_warned_of_once(rm: RM) -> None:
    queue = rm.core.scheduler.queues["root.default"]
    queue.capacities.default.effective_maximum = Resource(1024, 1)
    warnings = [effect for effect in rm.core.handle(Tick(), rm.now_ms) if isinstance(effect, Warn)]
    assert [warning.text.split(": ")[1] for warning in warnings] == ["I-08"]
    assert rm.core.handle(Tick(), rm.now_ms) == []


@pytest.mark.parametrize("told_mb", [-1, 8193])
def test_a_headroom_that_cannot_be_is_found(rm: RM, told_mb: int) -> None:
    audit = Audit(rm.core.context)
    assert audit.look_at_step(Tick(), [Reply(1, AllocateResponse(1, Resource(8192, 1), 1))]) == []
    found = audit.look_at_step(Tick(), [Reply(2, AllocateResponse(1, Resource(told_mb, 1), 1))])
    assert found == [InvariantsBroken((f"I-12: call 2: a headroom of {told_mb} MB was told in a cluster of 8192 MB",))]


def test_a_lost_reply_is_told_again_as_it_was(rm: RM) -> None:
    """The cluster has become smaller since."""
    audit = Audit(rm.core.context)
    rm.node("n2")
    lost = AllocateResponse(1, Resource(16384, 1), 2)
    assert audit.look_at_step(Tick(), [Reply(1, lost)]) == []
    rm.send(UnregisterNode(rm.call(), NodeId("n2", 45454)))
    assert rm.core.scheduler.cluster_resource.memory_mb == 8192
    assert audit.look_at_step(Tick(), [Reply(2, lost)]) == []
    new = AllocateResponse(1, Resource(16384, 1), 2)
    assert [type(effect) for effect in audit.look_at_step(Tick(), [Reply(3, new)])] == [InvariantsBroken]


async def test_the_daemon_says_what_is_wrong_keeps_its_event_log_and_ends(
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
        async with ApplicationClientProxy(address, user="ann", token=token) as client:
            await client.get_new_application()
            monkeypatch.setattr("rm.core.audit.violations", lambda _: ["I-01: n1: 1 + 1 != 3"])
            await client.get_new_application()
    assert serving.result() == daemon.BROKEN
    assert [record.message for record in caplog.records if record.levelno == logging.CRITICAL] == [
        "invariant broken: I-01: n1: 1 + 1 != 3"
    ]
    _, steps = read_event_log(tmp_path / "events.jsonl")
    assert list(steps)[-1].effects[-1] == InvariantsBroken(("I-01: n1: 1 + 1 != 3",))
