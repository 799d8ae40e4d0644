"""Runs an application as an ApplicationMaster: delivers events of the RM and the NMs, and carries out its actions.

    sys.exit(run_application_master(lambda environment: DistributedShellCore(...)))

The application handles one event at a time. Each container is started in a task of its own, so that an NM that does not
answer delays nothing else.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, assert_never

from am.client.am_rm_client import AMRMClient
from am.client.environment import AMEnvironment
from am.client.nm_client import NMClient
from am.core.actions import (
    Application,
    ChangeBlacklist,
    Finish,
    Launch,
    Leave,
    ReleaseContainer,
    RequestContainer,
    StopContainer,
    WithdrawRequest,
)
from am.core.application_master import (
    AbandonLaunch,
    ApplicationMasterCore,
    ApplicationMasterEffect,
    ApplicationMasterEvent,
    MarkedLost,
)
from am.core.events import ContainerStarted, ContainerStartFailed
from am.core.reconciliation import MarkLost, NodeAnswered, NodeUnreachable, QueryNode, StopOrphan
from wire.garbage_collection import collect_less_often
from yarn.containers import ContainerStatus
from yarn.errors import InternalError, YarnException
from yarn.ids import ContainerId, NodeId
from yarn.machine import StateChanged, Tick
from yarn.settings.resourcemanager import NM_EXPIRY_INTERVAL
from yarn.settings.yarnling import CHECK_INVARIANTS

EXIT_CRASH = 1

_logger = logging.getLogger(f"yarnling.{__name__}")


def run_application_master(
    make_application: Callable[[AMEnvironment], Application], on_unregistered: Callable[[], None] = lambda: None
) -> int:
    """Run an AM process: read the environment, register, and run the application to its end. Returns the exit code.

    `on_unregistered` is called if the application has finished, so that no other attempt will follow.
    """
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    collect_less_often()
    exit_code, has_unregistered = EXIT_CRASH, False
    try:
        environment = AMEnvironment.read()
        exit_code, has_unregistered = asyncio.run(_run(environment, make_application(environment)))
    except* (YarnException, InternalError) as group:
        for error in _leaves(group):
            trace = error if isinstance(error, InternalError) else None
            _logger.error("ApplicationMaster failed: %s: %s", type(error).__name__, error, exc_info=trace)
    if has_unregistered:
        on_unregistered()
    return exit_code


def _leaves(group: BaseExceptionGroup[YarnException | InternalError]) -> Iterator[YarnException | InternalError]:
    """Yield the errors of an exception group and of the groups nested in it."""
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error


async def _run(environment: AMEnvironment, application: Application) -> tuple[int, bool]:
    """Run the application. Returns (exit code, whether the AM has unregistered)."""
    async with AMRMClient.connect(environment) as rm, NMClient.connect(environment, rm.nm_tokens) as nms:
        master = ApplicationMaster(
            application,
            rm,
            nms,
            node_expiry_ms=NM_EXPIRY_INTERVAL.of(environment.configuration),
            check_invariants=environment.check_invariants,
        )
        if environment.check_invariants:
            _logger.info("checking invariants after each step (%s)", CHECK_INVARIANTS.key)
        await rm.register(host=environment.host)
        return await master.run(), master.has_unregistered


class ApplicationMaster:
    """Connects one application to the clients of the RM and the NMs. `rm` must be registered before `run`.

    `node_expiry_ms` is how long an NM may be silent, after a restart of the RM, before its containers count as lost.
    """

    def __init__(
        self,
        application: Application,
        rm: AMRMClient,
        nms: NMClient,
        *,
        node_expiry_ms: int = 600_000,
        check_invariants: bool = False,
    ) -> None:
        self.has_unregistered = False
        self._rm = rm
        self._nms = nms
        self._core = ApplicationMasterCore(application, node_expiry_ms, check_invariants=check_invariants)
        self._events: asyncio.Queue[ApplicationMasterEvent] = asyncio.Queue()
        self._running: set[asyncio.Task[None]] = set()
        self._launches: dict[ContainerId, asyncio.Task[None]] = {}
        # Wall-clock time that never goes back, so that times in the files of applications are readable.
        self._epoch_s = time.time() - asyncio.get_running_loop().time()
        rm.progress = application.progress

    async def run(self) -> int:
        """Handle events until the application finishes or leaves. Returns its exit code."""
        async with asyncio.TaskGroup() as tasks:
            self._start_task(tasks, self._read_events())
            try:
                while True:
                    event = await self._next_event()
                    for effect in self._core.handle(event, self._now_ms()):
                        if isinstance(effect, Finish):
                            return await self._finish(effect)
                        if isinstance(effect, Leave):
                            _logger.error("exiting without unregistering: %s", effect.reason)
                            return effect.exit_code
                        self._carry_out(effect, tasks)
            finally:
                for task in tuple(self._running):
                    task.cancel()

    def _now_ms(self) -> int:
        return int((self._epoch_s + asyncio.get_running_loop().time()) * 1000)

    async def _read_events(self) -> None:
        async for event in self._rm.events():
            self._events.put_nowait(event)

    async def _next_event(self) -> ApplicationMasterEvent:
        deadline_ms = self._core.next_deadline_ms()
        wait_s = None if deadline_ms is None else max(0.0, (deadline_ms - self._now_ms()) / 1000)
        try:
            async with asyncio.timeout(wait_s):
                return await self._events.get()
        except TimeoutError:
            return Tick()

    async def _finish(self, finish: Finish) -> int:
        _logger.info("unregistering status=%s diagnostics=%s", finish.final_status.name, finish.diagnostics)
        await self._rm.unregister(finish.final_status, finish.diagnostics)
        self.has_unregistered = True
        return finish.exit_code

    def _carry_out(self, effect: ApplicationMasterEffect, tasks: asyncio.TaskGroup) -> None:
        match effect:
            case RequestContainer(request):
                self._rm.add_request(request)
            case WithdrawRequest(request):
                self._rm.remove_request(request)
            case ReleaseContainer(container_id):
                self._rm.release(container_id)
            case ChangeBlacklist(additions, removals):
                _logger.info("blacklist additions=%s removals=%s", additions, removals)
                self._rm.change_blacklist(additions, removals)
            case Launch(container):
                task = self._start_task(tasks, self._launch(effect))
                self._launches[container.id] = task
                task.add_done_callback(lambda _: self._launches.pop(container.id, None))
            case AbandonLaunch(container_id):
                if launch := self._launches.get(container_id):
                    _logger.info("cancelled the start of a container that has ended container=%s", container_id)
                    launch.cancel()
            case StopContainer(container_id, node_id):
                self._start_task(tasks, self._stop(container_id, node_id))
            case QueryNode():
                self._start_task(tasks, self._query(effect))
            case StopOrphan(container_id, node_id):
                _logger.warning("stopping a container that was reported as lost container=%s", container_id)
                self._start_task(tasks, self._stop(container_id, node_id))
            case MarkLost(statuses, release):
                self._mark_lost(statuses, release=release)
            case StateChanged(kind, subject, event, source, target):
                _logger.info("%s %s: %s -> %s on %s", kind, subject, source, target, event)
            case Finish() | Leave():
                raise AssertionError("`run` ends with it")
            case _:
                assert_never(effect)

    def _start_task(self, tasks: asyncio.TaskGroup, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = tasks.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    async def _launch(self, launch: Launch) -> None:
        container = launch.container
        try:
            await self._nms.start(container, launch.launch_context)
        except YarnException as error:
            _logger.warning("start failed container=%s node=%s: %s", container.id, container.node_id, error)
            self._events.put_nowait(ContainerStartFailed(container.id, str(error)))
            return
        _logger.info("started container=%s node=%s", container.id, container.node_id)
        self._events.put_nowait(ContainerStarted(container.id))

    async def _stop(self, container_id: ContainerId, node_id: NodeId) -> None:
        try:
            async with asyncio.timeout(self._core.answer_timeout_ms / 1000):
                await self._nms.stop(container_id, node_id)
        except (YarnException, TimeoutError) as error:
            # The RM reports the container's end in any case; an orphan is queried again, and stopped again.
            _logger.info("stop failed container=%s node=%s: %s", container_id, node_id, error)

    async def _query(self, query: QueryNode) -> None:
        try:
            async with asyncio.timeout(self._core.answer_timeout_ms / 1000):
                statuses = await self._nms.statuses(query.container_ids, query.node_id)
        except (YarnException, TimeoutError) as error:
            _logger.info("NodeManager did not answer getContainerStatuses node=%s: %s", query.node_id, error)
            self._events.put_nowait(NodeUnreachable(query.node_id))
        else:
            self._events.put_nowait(NodeAnswered(query.node_id, query.container_ids, statuses))

    def _mark_lost(self, statuses: tuple[ContainerStatus, ...], *, release: bool) -> None:
        for status in statuses:
            _logger.warning("container lost container=%s: %s", status.container_id, status.diagnostics)
        self._events.put_nowait(MarkedLost(tuple(self._rm.mark_lost(statuses, release=release))))
