"""Callers of several ResourceManagers: which one a call goes to, and when it is sent to the next."""

from __future__ import annotations

from typing import Any

import pytest

from tests.wire.serving import NODE, Recorder, serving, target
from wire.caller import Caller
from wire.dispatch import Gate
from wire.failover import Failover
from wire.protocols.client import ApplicationClientProtocol
from wire.protocols.tracker import ResourceTracker
from yarn.errors import CallOutcomeUnknown, ServerUnavailable, StandbyException
from yarn.ids import ApplicationId
from yarn.protocols.client import KillApplicationRequest, KillApplicationResponse

APP = ApplicationId(1_700_000_000_000, 1)
KILLED = KillApplicationResponse(True)


def test_callers_leave_an_address_together() -> None:
    failover = Failover(["a", "b"])
    failover.leave("a")
    failover.leave("a")
    assert failover.current == "b", "the second caller had called the first address, too"
    failover.leave("b")
    assert failover.current == "a"


async def test_a_call_goes_on_from_a_standby_and_later_calls_go_to_the_active_one_at_once() -> None:
    standby, active = Recorder({"unregister_node_manager": StandbyException("rm1 is not Active!")}), Recorder({})
    async with (
        serving(ResourceTracker.rpcs, standby) as one,
        serving(ResourceTracker.rpcs, active) as two,
        ResourceTracker(Failover([target(one), target(two)])) as proxy,
    ):
        await proxy.unregister_node_manager(NODE)
        await proxy.unregister_node_manager(NODE)
    assert (len(standby.calls), len(active.calls)) == (1, 2)


async def test_a_call_goes_on_from_an_address_at_which_nobody_listens(unused_tcp_port: int) -> None:
    active = Recorder({})
    async with (
        serving(ResourceTracker.rpcs, active) as server,
        ResourceTracker(Failover([f"127.0.0.1:{unused_tcp_port}", target(server)])) as proxy,
    ):
        await proxy.unregister_node_manager(NODE)
    assert len(active.calls) == 1


async def test_a_call_is_refused_when_each_one_is_standby() -> None:
    standby = Recorder({"unregister_node_manager": StandbyException("not Active!")})
    async with (
        serving(ResourceTracker.rpcs, standby) as one,
        serving(ResourceTracker.rpcs, standby) as two,
        ResourceTracker(Failover([target(one), target(two)])) as proxy,
    ):
        with pytest.raises(ServerUnavailable, match="no ResourceManager is active"):
            await proxy.unregister_node_manager(NODE)


async def test_an_idempotent_call_goes_on_also_after_an_unknown_outcome(unused_tcp_port: int) -> None:
    """As a submission whose connection breaks: RetryPolicies.failoverOnNetworkException."""
    lost = StandbyException("deposed while it answered")
    lost.definite = False
    first, second = Recorder({"force_kill_application": lost}), Recorder({"force_kill_application": KILLED})
    async with (
        serving(ApplicationClientProtocol.rpcs, first) as one,
        serving(ApplicationClientProtocol.rpcs, second) as two,
        ApplicationClientProtocol(Failover([target(one), target(two)])) as proxy,
    ):
        assert await proxy.force_kill_application(KillApplicationRequest(APP)) == KILLED
        assert len(second.calls) == 1
    async with (
        serving(ApplicationClientProtocol.rpcs, first) as one,
        ApplicationClientProtocol(Failover([target(one), f"127.0.0.1:{unused_tcp_port}"])) as proxy,
    ):
        with pytest.raises(CallOutcomeUnknown, match="no ResourceManager is active"):
            await proxy.force_kill_application(KillApplicationRequest(APP))


class Deposed(Recorder):
    """A service that loses its place while it answers."""

    gone = False

    def gate(self) -> None:
        if self.gone:
            raise StandbyException("not Active!")

    async def unregister_node_manager(self, caller: Caller[Any], request: object) -> None:
        self.calls.append(("unregister_node_manager", caller, request))
        self.gone = True


async def test_a_reply_is_held_back_by_the_gate_and_the_call_is_not_sent_again_by_itself() -> None:
    deposed, active = Deposed({}), Recorder({})
    gate: Gate = deposed.gate
    async with (
        serving(ResourceTracker.rpcs, deposed, gate=gate) as one,
        serving(ResourceTracker.rpcs, active) as two,
        ResourceTracker(Failover([target(one), target(two)])) as proxy,
    ):
        with pytest.raises(CallOutcomeUnknown):
            await proxy.unregister_node_manager(NODE)
        assert (len(deposed.calls), len(active.calls)) == (1, 0)
        await proxy.unregister_node_manager(NODE)
    assert (len(deposed.calls), len(active.calls)) == (1, 1)


async def test_a_gate_refuses_a_call_before_it_is_handled() -> None:
    deposed = Deposed({})
    deposed.gone = True
    async with (
        serving(ResourceTracker.rpcs, deposed, gate=deposed.gate) as server,
        ResourceTracker(target(server)) as proxy,
    ):
        with pytest.raises(StandbyException) as caught:
            await proxy.unregister_node_manager(NODE)
    assert caught.value.definite
    assert deposed.calls == []
