"""Emulated ApplicationMasters over gRPC, with a fake ResourceManager."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from nm.core.effects import LaunchContainer, Signal, SignalProcess
from nm.core.emulation import EmulationStage, EmulationTable, Match, Rule
from nm.core.events import ContainerExited, ContainerLaunched, Event
from nm.emulation.application_master import AM_FAILED, EmulatedApplicationMasters
from nm.emulation.launcher import EmulatedLauncher
from tests.am.fake_servers import FakeResourceManager, served
from tests.nm.nodes import container_id
from wire.channel import Channels
from wire.files.credentials import Credentials
from yarn.configuration import Configuration
from yarn.containers import AMRM_KIND, Token
from yarn.errors import ApplicationAttemptNotFoundException, CallOutcomeUnknown
from yarn.protocols.master import AllocateRequest
from yarn.resource import Resource
from yarn.states import FinalApplicationStatus

TIMEOUT_S = 60
TOKENS = Credentials({"rm": Token(b"i", b"p", AMRM_KIND, "")}).to_bytes()
TABLE = EmulationTable(
    (
        Rule("ends", Match(is_master=True), (EmulationStage(30),), registers=True),
        Rule(
            "crashes", Match(is_master=True), (EmulationStage(30, exit_code=3, exit_probability=1.0),), registers=True
        ),
        Rule("stays", Match(is_master=True), (EmulationStage(None),), registers=True),
        Rule("hour", Match(is_master=True), (EmulationStage(3_600_000),), registers=True),
    )
)


class Node:
    """A launcher with emulated AMs. `events` are the events that it has sent."""

    def __init__(self, masters: EmulatedApplicationMasters) -> None:
        self.events: list[Event] = []
        self.launcher = EmulatedLauncher(TABLE, self._send)
        self.launcher.masters = masters
        self._sent = asyncio.Event()

    def launch(self, rule: str, tokens: bytes = TOKENS) -> None:
        self.launcher.launch(
            LaunchContainer(container_id(1), 1, "ann", ("true",), {}, {}, "", Resource(100, 1), rule, tokens)
        )

    def kill(self) -> None:
        self.launcher.signal(SignalProcess(container_id(1), 1, Signal.KILL))

    async def exit_code(self) -> int:
        """Wait for the container's end and return its exit code."""
        while not (self.events and isinstance(self.events[-1], ContainerExited)):
            self._sent.clear()
            await self._sent.wait()
        assert isinstance(self.events[-1], ContainerExited)
        assert self.events == [ContainerLaunched(container_id(1), 1), self.events[-1]]
        assert self.launcher.idle.is_set()
        return self.events[-1].exit_code

    def _send(self, event: Event) -> None:
        self.events.append(event)
        self._sent.set()


@asynccontextmanager
async def node(manager: FakeResourceManager) -> AsyncIterator[Node]:
    """A node whose AMs call `manager` every 5 ms. At the end no AM may be left."""
    async with asyncio.timeout(TIMEOUT_S), served(manager) as address, Channels() as channels:
        conf = {
            "yarn.resourcemanager.scheduler.address": str(address),
            "yarn.app.mapreduce.am.scheduler.heartbeat.interval-ms": "5",
        }
        async with asyncio.TaskGroup() as tasks:
            masters = EmulatedApplicationMasters(Configuration.of(conf), channels, tasks)
            yield Node(masters)
            masters.close()


async def heartbeats(manager: FakeResourceManager, count: int) -> None:
    while len(manager.heard) < count:
        manager.changed.clear()
        await manager.changed.wait()


async def test_an_am_registers_and_unregisters_before_it_exits() -> None:
    manager = FakeResourceManager(finishes_needed=2)
    async with node(manager) as emulating:
        emulating.launch("ends")
        assert await emulating.exit_code() == 0
    assert manager.registered == 1
    assert [request.final_status for request in manager.finished] == [FinalApplicationStatus.SUCCEEDED] * 2


async def test_an_am_whose_stages_fail_exits_without_unregistering() -> None:
    manager = FakeResourceManager()
    async with node(manager) as emulating:
        emulating.launch("crashes")
        assert await emulating.exit_code() == 3
    assert manager.finished == []


@pytest.mark.parametrize("rule", ["stays", "hour"])
async def test_a_killed_am_exits_without_unregistering_and_makes_no_more_calls(rule: str) -> None:
    manager = FakeResourceManager()
    async with node(manager) as emulating:
        emulating.launch(rule)
        await heartbeats(manager, 2)
        emulating.kill()
        assert await emulating.exit_code() == 137
        assert emulating.launcher.containers._stale_ends == (rule == "hour")
    assert manager.finished == []


async def test_an_am_that_is_killed_while_it_unregisters_ends_once() -> None:
    manager = FakeResourceManager(finishes_needed=1_000_000)
    async with node(manager) as emulating:
        emulating.launch("ends")
        while not manager.finished:  # noqa: ASYNC110  the played manager sets no event for it
            await asyncio.sleep(0.001)
        emulating.kill()
        assert await emulating.exit_code() == 137


async def test_an_am_registers_again_with_a_restarted_resourcemanager() -> None:
    manager = FakeResourceManager()
    async with node(manager) as emulating:
        emulating.launch("stays")
        await heartbeats(manager, 2)
        manager.forget()
        await heartbeats(manager, 5)
        emulating.kill()
        await emulating.exit_code()
    assert manager.registered == 2


async def test_calls_whose_replies_are_lost_are_repeated_unchanged() -> None:
    manager = FakeResourceManager(registrations_lost=1, loses_answers_only=True)
    lost = iter([True])

    def lose_once(request: AllocateRequest) -> None:
        if request.response_id == 1 and next(lost, False):
            raise CallOutcomeUnknown("the connection was lost")

    manager.before_reply = lose_once
    async with node(manager) as emulating:
        emulating.launch("stays")
        await heartbeats(manager, 4)
        emulating.kill()
        await emulating.exit_code()
    assert [request.response_id for request in manager.heard[:4]] == [0, 1, 2, 3]


async def test_an_am_that_the_resourcemanager_refuses_fails() -> None:
    manager = FakeResourceManager(replies=[ApplicationAttemptNotFoundException("gone")])
    async with node(manager) as emulating:
        emulating.launch("hour")
        assert await emulating.exit_code() == AM_FAILED
        assert emulating.launcher.containers._stale_ends == 1


async def test_an_am_without_a_token_fails() -> None:
    async with node(FakeResourceManager()) as emulating:
        emulating.launch("stays", b"")
        assert await emulating.exit_code() == AM_FAILED
