"""ApplicationMaster delivers events to the application, and its actions to a fake RM and a fake NM."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from am.client.am_rm_client import AMRMClient
from am.client.environment import AMEnvironment
from am.client.nm_client import NMClient
from am.core.actions import Action, Application, ChangeBlacklist, Finish, Leave, StopContainer
from am.core.events import ContainersCompleted, ContainerStarted, Event, HeartbeatDone
from am.programs import application_master
from am.programs.application_master import EXIT_CRASH, ApplicationMaster, run_application_master
from am.programs.distributed_shell.core import DistributedShellCore, Width
from tests.am.builders import GB, container, container_id, ended, reply
from tests.am.fake_servers import FakeNodeManager, FakeResourceManager, served
from wire.caller import Caller
from wire.protocols.master import ApplicationMasterProtocol
from wire.retry import RetryPolicy
from yarn.containers import Container, ContainerLaunchContext, ContainerStatus, Token
from yarn.errors import (
    ApplicationAttemptNotFoundException,
    CallOutcomeUnknown,
    InternalError,
    InvalidContainerException,
)
from yarn.ids import NodeId
from yarn.protocols.container_management import (
    GetContainerStatusesResponse,
    StartContainerRequest,
    StartContainersResponse,
)
from yarn.protocols.master import AllocateResponse, NMToken
from yarn.states import FinalApplicationStatus

HELLO = ContainerLaunchContext(commands=("echo hello",))


def shell(containers: int = 1) -> DistributedShellCore:
    return DistributedShellCore(Width(containers, GB, priority=1), lambda number: HELLO)


def allocated_on(node_id: NodeId, number: int = 2) -> AllocateResponse:
    token = Token(str(container_id(number)).encode(), b"p", "ContainerToken", str(node_id))
    given: Container = replace(container(number), node_id=node_id, token=token)
    return replace(reply(allocated=(given,)), nm_tokens=(NMToken(node_id, Token(b"i", b"p", "NMToken", "")),))


async def run(
    manager: FakeResourceManager,
    node: FakeNodeManager,
    application: Application,
    *replies: object,
    heartbeat_interval_ms: int = 5,
) -> int:
    """Run an application; a callable among the replies is called with the node's id."""
    async with asyncio.timeout(60), served(manager) as rm_address, served(node) as node_id:
        manager.replies = [answer(node_id) if callable(answer) else answer for answer in replies]  # type: ignore[misc]
        proxy = ApplicationMasterProtocol(str(rm_address))
        async with (
            AMRMClient(proxy, heartbeat_interval_ms=heartbeat_interval_ms) as rm,
            NMClient(rm.nm_tokens, RetryPolicy(200, 10)) as nms,
        ):
            await rm.register("host")
            return await ApplicationMaster(application, rm, nms, check_invariants=True).run()


async def test_an_application_runs_its_container_and_unregisters() -> None:
    manager, node = FakeResourceManager(), FakeNodeManager()
    assert await run(manager, node, shell(), reply(), allocated_on, reply(), reply(completed=(ended(2),))) == 0
    assert node.started == [container_id(2)]
    assert [request.final_status for request in manager.finished] == [FinalApplicationStatus.SUCCEEDED]
    assert next(ask.count for request in manager.heard for ask in request.asks) == 1


async def test_requests_made_at_registration_are_sent_with_the_first_heartbeat() -> None:
    """Heartbeats may be far apart. In this test there is no second one."""

    class OneBeat(DistributedShellCore):
        def handle(self, event: Event, now_ms: int) -> list[Action]:
            if isinstance(event, HeartbeatDone):
                return [Finish(FinalApplicationStatus.SUCCEEDED)]
            return super().handle(event, now_ms)

    manager = FakeResourceManager()
    application = OneBeat(Width(3, GB, priority=1), lambda number: HELLO)
    assert await run(manager, FakeNodeManager(), application, heartbeat_interval_ms=3_600_000) == 0
    assert [ask.count for ask in manager.heard[0].asks] == [3]


async def test_the_application_learns_of_a_refused_start_and_releases_the_container() -> None:
    manager, node = FakeResourceManager(), FakeNodeManager(refusals=[InvalidContainerException("no")])
    assert await run(manager, node, shell(), reply(), allocated_on) == 2
    assert "failed = 1" in manager.finished[0].diagnostics


async def test_a_container_lost_with_its_node_while_the_rm_was_down_runs_again() -> None:
    """Nobody reports the end: the ResourceManager has forgotten the container, and the NodeManager is a new process."""
    manager, node = FakeResourceManager(), FakeNodeManager()

    class Restarting(DistributedShellCore):
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

    application = Restarting(Width(1, GB, priority=1), lambda number: HELLO)
    assert await run(manager, node, application, reply(), first) == 0
    assert [(one.container_id, one.exit_status) for one in lost] == [(container_id(2), -100)]
    assert node.started == [container_id(2), container_id(3)]
    assert (application.completed, application.failed) == (1, 0), "its end is not counted twice"


async def test_a_container_that_ended_with_its_node_is_not_started_on_the_next_one() -> None:
    """The answer to the start was lost, the NodeManager is a new process, and the RM has reported the end."""
    manager, node = FakeResourceManager(), FakeNodeManager()
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
        """Answer as a new NodeManager that can be reached again."""
        await is_told.wait()
        return GetContainerStatusesResponse()

    node.start_containers, node.get_container_statuses = start_and_go, know_nothing  # type: ignore[method-assign]

    class Told(DistributedShellCore):
        def handle(self, event: Event, now_ms: int) -> list[Action]:
            if isinstance(event, ContainersCompleted):
                is_told.set()
            return super().handle(event, now_ms)

    # This is enough time for a second start.
    later = [reply() for _ in range(20)]
    application = Told(Width(1, GB, priority=1), lambda number: HELLO)
    replies = (reply(), allocated_on, *later, reply(completed=(ended(2, -100),)), lambda node: allocated_on(node, 3))
    assert await run(manager, node, application, *replies, *later, reply(completed=(ended(3),))) == 0
    assert node.started == [container_id(2), container_id(3)]


async def test_without_the_rm_it_exits_without_unregistering() -> None:
    manager = FakeResourceManager()
    assert await run(manager, FakeNodeManager(), shell(), reply(), ApplicationAttemptNotFoundException("gone")) == 1
    assert manager.finished == []


class Script:
    """An application that stops its container, blacklists a host, and finishes once the RM knows that."""

    def __init__(self, manager: FakeResourceManager, node: FakeNodeManager) -> None:
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
                return [
                    StopContainer(started, self.node_id),
                    StopContainer(container_id(9), self.node_id),
                    ChangeBlacklist(("n9",)),
                ]
            case HeartbeatDone() if self.node.stopped and self.manager.heard[-1].blacklist_additions == ("n9",):
                return [Finish(FinalApplicationStatus.KILLED, "enough", 7)]
            case HeartbeatDone() if self.node.stopped and any(r.blacklist_additions for r in self.manager.heard):
                return [Leave("the heartbeat with the blacklist was missed", 8)]
        actions: list[object] = list(self.inner.handle(event, now_ms))
        for action in actions:
            self.node_id = getattr(getattr(action, "container", None), "node_id", self.node_id)
        return actions


async def test_stops_and_the_blacklist_are_carried_out() -> None:
    """A stop that the NM refuses does not end the application."""
    manager, node = FakeResourceManager(), FakeNodeManager()
    code = await run(manager, node, Script(manager, node), reply(), allocated_on)  # type: ignore[arg-type]
    assert code in (7, 8)
    assert node.stopped == [container_id(2)]
    assert any(request.blacklist_additions == ("n9",) for request in manager.heard)
    assert manager.heard[-1].progress == 0.5


def test_an_error_in_a_task_of_the_am_is_logged_with_its_message(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(environment: object, application: object) -> tuple[int, bool]:
        raise ExceptionGroup("tasks", [InternalError("invariants broken: A-01: ...")])

    monkeypatch.setattr(application_master, "_run", fail)
    monkeypatch.setattr(AMEnvironment, "read", lambda: None)
    assert run_application_master(lambda environment: shell()) == EXIT_CRASH
    assert "ApplicationMaster failed: InternalError: invariants broken: A-01: ..." in caplog.text
