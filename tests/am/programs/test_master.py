"""The runner of programs: events to a program, its actions to an RM and an NM that the test plays."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from am.client.am_rm_client import AMRMClient
from am.client.nm_client import NMClient
from am.core.events import ContainersCompleted, ContainerStarted, Event, HeartbeatDone
from am.programs.core.actions import Action, ChangeBlacklist, Finish, Leave, Program, Stop
from am.programs.core.fixed_width import FixedWidth, Width
from am.programs.master import Master
from tests.am.builders import GB, container, container_id, ended, reply
from tests.am.played_servers import PlayedManager, PlayedNode, served
from wire.caller import Caller
from wire.protocols.master import ApplicationMasterProtocol
from wire.retry import RetryPolicy
from yarn.containers import Container, ContainerLaunchContext, ContainerStatus, Token
from yarn.errors import ApplicationAttemptNotFoundException, CallOutcomeUnknown, InvalidContainerException
from yarn.ids import NodeId
from yarn.protocols.container_management import (
    GetContainerStatusesResponse,
    StartContainerRequest,
    StartContainersResponse,
)
from yarn.protocols.master import AllocateResponse, NMToken
from yarn.states import FinalApplicationStatus

HELLO = ContainerLaunchContext(commands=("echo hello",))


def shell(containers: int = 1) -> FixedWidth:
    return FixedWidth(Width(containers, GB, priority=1), lambda number: HELLO)


def allocated_on(node_id: NodeId, number: int = 2) -> AllocateResponse:
    token = Token(str(container_id(number)).encode(), b"p", "ContainerToken", str(node_id))
    given: Container = replace(container(number), node_id=node_id, token=token)
    return replace(reply(allocated=(given,)), nm_tokens=(NMToken(node_id, Token(b"i", b"p", "NMToken", "")),))


async def run(
    manager: PlayedManager, node: PlayedNode, program: Program, *replies: object, heartbeat_interval_ms: int = 5
) -> int:
    """Run a program; a callable among the replies is given the node's id."""
    async with asyncio.timeout(60), served(manager) as rm_address, served(node) as node_id:
        manager.replies = [answer(node_id) if callable(answer) else answer for answer in replies]  # type: ignore[misc]
        proxy = ApplicationMasterProtocol(str(rm_address))
        async with (
            AMRMClient(proxy, heartbeat_interval_ms=heartbeat_interval_ms) as rm,
            NMClient(rm.nm_tokens, RetryPolicy(200, 10)) as nms,
        ):
            await rm.register("host")
            return await Master(program, rm, nms).run()


async def test_a_program_runs_its_container_and_unregisters() -> None:
    manager, node = PlayedManager(), PlayedNode()
    assert await run(manager, node, shell(), reply(), allocated_on, reply(), reply(completed=(ended(2),))) == 0
    assert node.started == [container_id(2)]
    assert [request.final_status for request in manager.finished] == [FinalApplicationStatus.SUCCEEDED]
    assert next(ask.count for request in manager.heard for ask in request.asks) == 1


async def test_what_a_program_asks_for_when_it_is_registered_goes_with_the_first_heartbeat() -> None:
    """Heartbeats may be long apart: there is no second one here in which it could go."""

    class OneBeat(FixedWidth):
        def handle(self, event: Event, now_ms: int) -> list[Action]:
            if isinstance(event, HeartbeatDone):
                return [Finish(FinalApplicationStatus.SUCCEEDED)]
            return super().handle(event, now_ms)

    manager = PlayedManager()
    program = OneBeat(Width(3, GB, priority=1), lambda number: HELLO)
    assert await run(manager, PlayedNode(), program, heartbeat_interval_ms=3_600_000) == 0
    assert [ask.count for ask in manager.heard[0].asks] == [3]


async def test_a_start_that_is_refused_reaches_the_program_and_the_container_is_given_back() -> None:
    manager, node = PlayedManager(), PlayedNode(refusals=[InvalidContainerException("no")])
    assert await run(manager, node, shell(), reply(), allocated_on) == 2
    assert "failed = 1" in manager.finished[0].diagnostics


async def test_a_container_that_went_with_its_node_while_the_rm_was_away_runs_again() -> None:
    """Nobody tells of its end: the ResourceManager has forgotten it, the NodeManager is another one."""
    manager, node = PlayedManager(), PlayedNode()

    class Restarting(FixedWidth):
        def handle(self, event: Event, now_ms: int) -> list[Action]:
            if isinstance(event, ContainerStarted) and not node.has_gone:
                node.has_gone = True
                manager.forget()
            if isinstance(event, ContainersCompleted) and not lost:
                lost.extend(event.statuses)
                manager.replies = [allocated_on(event_node[0], 3), reply(completed=(ended(2), ended(3)))]
            return super().handle(event, now_ms)

    lost: list[ContainerStatus] = []
    event_node: list[NodeId] = []

    def first(node_id: NodeId) -> AllocateResponse:
        event_node.append(node_id)
        return allocated_on(node_id)

    program = Restarting(Width(1, GB, priority=1), lambda number: HELLO)
    assert await run(manager, node, program, reply(), first) == 0
    assert [(one.container_id, one.exit_status) for one in lost] == [(container_id(2), -100)]
    assert node.started == [container_id(2), container_id(3)]
    assert (program.completed, program.failed) == (1, 0), "its end is not counted twice"


async def test_what_has_ended_with_its_node_is_not_started_on_the_next_one() -> None:
    """The answer to the start was lost, the NodeManager is another one, and the RM has told of the end meanwhile."""
    manager, node = PlayedManager(), PlayedNode()
    is_told = asyncio.Event()
    started = node.start_containers

    async def start_and_go(
        caller: Caller[None], requests: tuple[StartContainerRequest, ...]
    ) -> StartContainersResponse:
        response = await started(caller, requests)
        if not node.has_gone:
            node.has_gone = True
            raise CallOutcomeUnknown("lost")
        return response

    async def know_nothing(caller: object, container_ids: object) -> GetContainerStatusesResponse:
        """When it can be reached again."""
        await is_told.wait()
        return GetContainerStatusesResponse()

    node.start_containers, node.get_container_statuses = start_and_go, know_nothing  # type: ignore[method-assign]

    class Told(FixedWidth):
        def handle(self, event: Event, now_ms: int) -> list[Action]:
            if isinstance(event, ContainersCompleted):
                is_told.set()
            return super().handle(event, now_ms)

    # Time enough for a second start.
    later = [reply() for _ in range(20)]
    program = Told(Width(1, GB, priority=1), lambda number: HELLO)
    replies = (reply(), allocated_on, *later, reply(completed=(ended(2, -100),)), lambda node: allocated_on(node, 3))
    assert await run(manager, node, program, *replies, *later, reply(completed=(ended(3),))) == 0
    assert node.started == [container_id(2), container_id(3)]


async def test_without_the_rm_it_leaves_and_does_not_unregister() -> None:
    manager = PlayedManager()
    assert await run(manager, PlayedNode(), shell(), reply(), ApplicationAttemptNotFoundException("gone")) == 1
    assert manager.finished == []


class Script:
    """A program that stops what it started, keeps away from a host, and finishes when that has been told."""

    def __init__(self, manager: PlayedManager, node: PlayedNode) -> None:
        self.inner = shell()
        self.manager = manager
        self.node = node
        self.node_id: NodeId | None = None

    def progress(self) -> float:
        return 0.5

    def handle(self, event: Event, now_ms: int) -> list[object]:
        match event:
            case ContainerStarted(started):
                assert self.node_id is not None
                return [Stop(started, self.node_id), Stop(container_id(9), self.node_id), ChangeBlacklist(("n9",))]
            case HeartbeatDone() if self.node.stopped and self.manager.heard[-1].blacklist_additions == ("n9",):
                return [Finish(FinalApplicationStatus.KILLED, "enough", 7)]
            case HeartbeatDone() if self.node.stopped and any(r.blacklist_additions for r in self.manager.heard):
                return [Leave("the beat that told was missed", 8)]
        actions: list[object] = list(self.inner.handle(event, now_ms))
        for action in actions:
            self.node_id = getattr(getattr(action, "container", None), "node_id", self.node_id)
        return actions


async def test_stops_and_the_blacklist_are_carried_out() -> None:
    """A stop that the NM refuses is no end of the program."""
    manager, node = PlayedManager(), PlayedNode()
    code = await run(manager, node, Script(manager, node), reply(), allocated_on)  # type: ignore[arg-type]
    assert code in (7, 8)
    assert node.stopped == [container_id(2)]
    assert any(request.blacklist_additions == ("n9",) for request in manager.heard)
    assert manager.heard[-1].progress == 0.5
