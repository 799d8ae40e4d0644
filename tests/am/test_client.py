"""AMRMClient over the wire, against a fake RM."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from am.client.am_rm_client import AMRMClient
from am.client.environment import AMEnvironment
from am.core import am_rm_client_core as core
from am.core.events import (
    AllocateFailed,
    ContainersAllocated,
    ContainersCompleted,
    Event,
    HeartbeatDone,
    Registered,
    Resynced,
    ShutdownOrdered,
)
from am.core.requests import ContainerRequest
from tests.am.builders import GB, container, container_id, ended, reply
from tests.am.fake_servers import FakeResourceManager, served
from wire.protocols.master import ApplicationMasterProtocol
from yarn.configuration import Configuration
from yarn.containers import Token
from yarn.errors import (
    ApplicationAttemptNotFoundException,
    CallOutcomeUnknown,
    InvalidResourceRequestException,
    InvalidToken,
    YarnException,
)
from yarn.protocols.master import AllocateRequest, AllocateResponse
from yarn.states import FinalApplicationStatus

REQUEST = ContainerRequest(GB, priority=1)
TIMEOUT_S = 60.0


@asynccontextmanager
async def registered(manager: FakeResourceManager) -> AsyncIterator[AMRMClient]:
    async with asyncio.timeout(TIMEOUT_S), served(manager) as address:
        proxy = ApplicationMasterProtocol(str(address), token=Token(b"i", b"p", "AMRM", ""))
        async with AMRMClient(proxy, heartbeat_interval_ms=5) as rm:
            await rm.register("am-host")
            yield rm


async def events_until(rm: AMRMClient, kind: type[Event]) -> list[Event]:
    """Collect the events up to the first one of this class; HeartbeatDone is left out."""
    found: list[Event] = []
    async for event in rm.events():
        if not isinstance(event, HeartbeatDone) or kind is HeartbeatDone:
            found.append(event)
        if isinstance(event, kind):
            return found
    return found


async def test_the_first_event_is_the_registration() -> None:
    async with registered(FakeResourceManager()) as rm:
        assert await events_until(rm, HeartbeatDone) == [Registered(GB, "root.default"), HeartbeatDone(GB, 1)]


async def test_a_registration_that_is_not_answered_is_repeated() -> None:
    """The RM was killed while it handled the call, and the restarted RM does not know of it (RMProxy retries)."""
    manager = FakeResourceManager(registrations_lost=2)
    async with registered(manager) as rm:
        assert await events_until(rm, HeartbeatDone) == [Registered(GB, "root.default"), HeartbeatDone(GB, 1)]
    assert (manager.registered, manager.registrations_lost) == (1, 0)


async def test_registrations_that_are_never_answered_end_with_the_error() -> None:
    manager = FakeResourceManager(registrations_lost=1_000_000)
    async with asyncio.timeout(TIMEOUT_S), served(manager) as address:
        proxy = ApplicationMasterProtocol(str(address))
        async with AMRMClient(proxy, heartbeat_interval_ms=1, silence_max_ms=20) as rm:
            with pytest.raises(CallOutcomeUnknown):
                await rm.register()


async def test_requests_are_sent_and_containers_received() -> None:
    manager = FakeResourceManager(replies=[reply(), reply(allocated=(container(2),))])
    async with registered(manager) as rm:
        rm.add_request(REQUEST)
        found = await events_until(rm, ContainersAllocated)
        assert isinstance(found[-1], ContainersAllocated)
        assert found[-1].allocations[0].request == REQUEST
    assert [ask.count for ask in manager.heard[0].asks] == [1]


async def test_progress_is_sent_with_each_heartbeat() -> None:
    manager = FakeResourceManager()
    async with registered(manager) as rm:
        rm.progress = lambda: 0.25
        await heard(manager, lambda requests: requests[-1].progress == 0.25)


async def test_the_rack_of_a_requested_node_comes_from_the_clusters_table(tmp_path: Path) -> None:
    """A request for a node is also one for its rack, which RackResolver looks up (AMRMClientImpl)."""
    (tmp_path / "table").write_text("n7 /r7\n")
    manager = FakeResourceManager()
    async with asyncio.timeout(TIMEOUT_S), served(manager) as address:
        conf = {
            "yarn.resourcemanager.scheduler.address": str(address),
            "net.topology.node.switch.mapping.impl": "org.apache.hadoop.net.TableMapping",
            "net.topology.table.file.name": str(tmp_path / "table"),
        }
        token = Token(b"i", b"p", "AMRM", "")
        environment = AMEnvironment(container_id(1), "am-host", "alice", Configuration.of(conf), token)
        async with AMRMClient.connect(environment) as rm:
            rm.add_request(ContainerRequest(GB, priority=1, nodes=("n7",)))
            await rm.register("am-host")
            await heard(manager, len)
    assert {ask.resource_name for ask in manager.heard[0].asks} == {"n7", "/r7", "*"}


async def heard(manager: FakeResourceManager, condition: object) -> None:
    assert callable(condition)
    while not (manager.heard and condition(manager.heard)):
        manager.changed.clear()
        await manager.changed.wait()


async def test_a_heartbeat_whose_answer_is_lost_is_repeated_and_counts_once() -> None:
    """The RM handles the call, but the answer is lost. The client repeats the call under the same response id."""
    manager = FakeResourceManager()
    lost = replace(reply(completed=(ended(2),)), response_id=1)

    def lose_once(request: AllocateRequest) -> None:
        if request.response_id == 0:
            manager.heard.append(request)
            manager.last = lost
            raise CallOutcomeUnknown("the answer is lost")

    manager.before_reply = lose_once
    async with registered(manager) as rm:
        rm.add_request(REQUEST)
        found = await events_until(rm, ContainersCompleted)
        assert found[-1] == ContainersCompleted((ended(2),))
        await heard(manager, lambda requests: len(requests) >= 4)
    assert [len(request.asks) for request in manager.heard[:3]] == [1, 0, 0]
    assert [request.response_id for request in manager.heard[:3]] == [0, 1, 2]


async def test_after_a_restart_of_the_rm_it_registers_and_requests_again() -> None:
    manager = FakeResourceManager()
    async with registered(manager) as rm:
        rm.add_request(REQUEST)
        rm.release(container_id(5))
        await heard(manager, lambda requests: bool(requests[-1].releases or len(requests) > 1))
        count = len(manager.heard)
        manager.forget()
        await heard(manager, lambda requests: len(requests) > count)
        again = manager.heard[count]
        assert isinstance((await events_until(rm, Resynced))[-1], Resynced)
    assert manager.registered == 2
    assert [ask.count for ask in again.asks] == [1]
    assert again.releases == (container_id(5),)


@pytest.mark.parametrize("error", [ApplicationAttemptNotFoundException("gone"), InvalidToken("not found")])
async def test_an_attempt_that_the_rm_does_not_know_gets_a_shutdown_order(error: YarnException) -> None:
    async with registered(FakeResourceManager(replies=[error])) as rm:
        found = await events_until(rm, ShutdownOrdered)
        assert found[-1] == ShutdownOrdered(error.message)


async def test_a_refused_call_ends_the_events_with_the_error() -> None:
    async with registered(FakeResourceManager(replies=[InvalidResourceRequestException("too large")])) as rm:
        found = [event async for event in rm.events()]
        assert isinstance(found[-1], AllocateFailed)
        assert isinstance(found[-1].error, InvalidResourceRequestException)


async def test_a_new_amrm_token_is_used() -> None:
    renewed = Token(b"new", b"p", "AMRM", "")
    manager = FakeResourceManager(replies=[replace(reply(), am_rm_token=renewed)])
    async with registered(manager):
        await heard(manager, lambda requests: len(requests) >= 2)
    assert manager.tokens[0] == Token(b"i", b"p", "AMRM", "")
    assert manager.tokens[1] == renewed


async def test_unregister_is_repeated_until_the_rm_has_stored_the_end() -> None:
    manager = FakeResourceManager(finishes_needed=3)
    async with registered(manager) as rm:
        await rm.unregister(FinalApplicationStatus.SUCCEEDED, "done")
        beats = len(manager.heard)
        await asyncio.sleep(0.02)
        assert len(manager.heard) == beats
    assert [(request.final_status, request.diagnostics) for request in manager.finished] == [
        (FinalApplicationStatus.SUCCEEDED, "done")
    ] * 3


async def test_unregister_is_repeated_soon_and_then_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last of the pauses repeats."""
    monkeypatch.setattr(core, "UNREGISTER_PAUSES_MS", (0, 1))
    manager = FakeResourceManager(finishes_needed=6)
    async with registered(manager) as rm:
        await rm.unregister(FinalApplicationStatus.SUCCEEDED)
    assert len(manager.finished) == 6
    monkeypatch.setattr(core, "UNREGISTER_PAUSES_MS", (0, 3_600_000))
    manager = FakeResourceManager(finishes_needed=2)
    async with registered(manager) as rm:
        await rm.unregister(FinalApplicationStatus.SUCCEEDED)
    assert len(manager.finished) == 2


async def test_unregister_registers_again_with_an_rm_that_has_restarted() -> None:
    manager = FakeResourceManager()
    async with registered(manager) as rm:
        await events_until(rm, HeartbeatDone)
        await rm._stop_heartbeats()
        manager.forget()
        await rm.unregister(FinalApplicationStatus.FAILED)
    assert manager.registered == 2
    assert len(manager.finished) == 1


@pytest.mark.parametrize("is_known", [False, True], ids=["killed before", "answer lost"])
async def test_unregister_survives_a_registration_that_is_not_answered(is_known: bool) -> None:
    """Either the RM is killed again when the AM registers again to unregister, or only the answer is lost."""
    manager = FakeResourceManager()
    async with registered(manager) as rm:
        await events_until(rm, HeartbeatDone)
        await rm._stop_heartbeats()
        manager.forget()
        manager.registrations_lost = 1
        manager.loses_answers_only = is_known
        await rm.unregister(FinalApplicationStatus.SUCCEEDED)
    assert [request.final_status for request in manager.finished] == [FinalApplicationStatus.SUCCEEDED]


async def test_silence_for_too_long_ends_the_events() -> None:
    def always_lose(request: AllocateRequest) -> AllocateResponse:
        raise CallOutcomeUnknown("no answer")

    manager = FakeResourceManager()
    manager.before_reply = always_lose
    async with asyncio.timeout(TIMEOUT_S), served(manager) as address:
        proxy = ApplicationMasterProtocol(str(address))
        async with AMRMClient(proxy, heartbeat_interval_ms=1, silence_max_ms=20) as rm:
            await rm.register()
            found = [event async for event in rm.events()]
    assert isinstance(found[-1], AllocateFailed)
