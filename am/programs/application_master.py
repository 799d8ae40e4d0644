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
from typing import Any

from am.client.am_rm_client import AMRMClient
from am.client.environment import AMEnvironment
from am.client.nm_client import NMClient
from am.core.actions import (
    Application,
    ChangeBlacklist,
    ContainerAction,
    Finish,
    Launch,
    Leave,
    ReleaseContainer,
    RequestContainer,
    StopContainer,
    WithdrawRequest,
)
from am.core.events import ContainersCompleted, ContainerStarted, ContainerStartFailed, Event
from am.core.invariants import CheckedReconciliation
from am.core.reconciliation import (
    MarkLost,
    NodeAnswered,
    NodeUnreachable,
    QueryNode,
    Reconciliation,
    ReconciliationEffect,
    ReconciliationEvent,
    StopOrphan,
)
from yarn.errors import InternalError, YarnException
from yarn.ids import ContainerId, NodeId
from yarn.machine import StateChanged, Tick
from yarn.settings.resourcemanager import NM_EXPIRY_INTERVAL
from yarn.settings.yarnling import CHECK_INVARIANTS

EXIT_CRASH = 1

ANSWER_TIMEOUT_EXPIRIES = 0.5
"""How long an NM may take to answer a query, as a fraction of the NM expiry interval.

So an NM that misses two answers has been silent for one expiry interval.
"""

_logger = logging.getLogger(__name__)


def run_application_master(
    make_application: Callable[[AMEnvironment], Application], on_unregistered: Callable[[], None] = lambda: None
) -> int:
    """Run an AM process: read the environment, register, and run the application to its end. Returns the exit code.

    `on_unregistered` is called if the application has finished, so that no other attempt will follow.
    """
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s %(message)s")
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
        self._application = application
        self._rm = rm
        self._nms = nms
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._reconciler = _Reconciler(rm, nms, node_expiry_ms, self._events.put_nowait, check_invariants)
        self._running: set[asyncio.Task[None]] = set()
        self._launches: dict[ContainerId, asyncio.Task[None]] = {}
        # Wall-clock time that never goes back, so that times in the files of applications are readable.
        self._epoch_s = time.time() - asyncio.get_running_loop().time()
        rm.progress = application.progress

    async def run(self) -> int:
        """Handle events until the application finishes or leaves. Returns its exit code."""
        async with asyncio.TaskGroup() as tasks:
            self._start_task(tasks, self._read_events())
            self._start_task(tasks, self._reconciler.run())
            try:
                while True:
                    event = await self._events.get()
                    if isinstance(event, ContainersCompleted):
                        self._cancel_launches(event)
                    for action in self._application.handle(event, self._now_ms()):
                        if isinstance(action, Finish):
                            return await self._finish(action)
                        if isinstance(action, Leave):
                            _logger.error("exiting without unregistering: %s", action.reason)
                            return action.exit_code
                        self._carry_out(action, tasks)
            finally:
                for task in tuple(self._running):
                    task.cancel()

    def _now_ms(self) -> int:
        return int((self._epoch_s + asyncio.get_running_loop().time()) * 1000)

    async def _read_events(self) -> None:
        async for event in self._rm.events():
            self._deliver(event)

    def _deliver(self, event: Event) -> None:
        self._reconciler.note(event)
        self._events.put_nowait(event)

    async def _finish(self, finish: Finish) -> int:
        _logger.info("unregistering status=%s diagnostics=%s", finish.final_status.name, finish.diagnostics)
        await self._rm.unregister(finish.final_status, finish.diagnostics)
        self.has_unregistered = True
        return finish.exit_code

    def _carry_out(self, action: ContainerAction | StateChanged, tasks: asyncio.TaskGroup) -> None:
        match action:
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
                task = self._start_task(tasks, self._launch(action))
                self._launches[container.id] = task
                task.add_done_callback(lambda _: self._launches.pop(container.id, None))
            case StopContainer(container_id, node_id):
                self._start_task(tasks, self._stop(container_id, node_id))
            case StateChanged(kind, subject, event, source, target):
                _logger.info("%s %s: %s -> %s on %s", kind, subject, source, target, event)

    def _start_task(self, tasks: asyncio.TaskGroup, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = tasks.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    def _cancel_launches(self, completed: ContainersCompleted) -> None:
        """Cancel the starts of containers that have completed.

        A start without an answer would be repeated, and a restarted NM, which does not know the container, would run it
        again.
        """
        for status in completed.statuses:
            if launch := self._launches.get(status.container_id):
                _logger.info("cancelled the start of a container that has ended container=%s", status.container_id)
                launch.cancel()

    async def _launch(self, launch: Launch) -> None:
        container = launch.container
        try:
            await self._nms.start(container, launch.launch_context)
        except YarnException as error:
            _logger.warning("start failed container=%s node=%s: %s", container.id, container.node_id, error)
            self._deliver(ContainerStartFailed(container.id, str(error)))
            return
        _logger.info("started container=%s node=%s", container.id, container.node_id)
        self._deliver(ContainerStarted(container.id))

    async def _stop(self, container_id: ContainerId, node_id: NodeId) -> None:
        try:
            await self._nms.stop(container_id, node_id)
        except YarnException as error:
            # The RM reports the container's end in any case.
            _logger.info("stop failed container=%s node=%s: %s", container_id, node_id, error)


class _Reconciler:
    """Carries out the effects of Reconciliation: it queries NMs while the application runs.

    `deliver` receives the ends that are found. `note` must be called with all other events of the application.
    """

    def __init__(
        self, rm: AMRMClient, nms: NMClient, expiry_ms: int, deliver: Callable[[Event], None], check_invariants: bool
    ) -> None:
        self._rm = rm
        self._nms = nms
        self._deliver = deliver
        self._core = (CheckedReconciliation if check_invariants else Reconciliation)(expiry_ms)
        self._timeout_s = expiry_ms * ANSWER_TIMEOUT_EXPIRIES / 1000
        self._events: asyncio.Queue[ReconciliationEvent] = asyncio.Queue()

    def note(self, event: Event) -> None:
        """Queue an event for `run`."""
        self._events.put_nowait(event)

    async def run(self) -> None:
        """Handle events and deadlines until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                event = await self._next_event()
                for effect in self._core.handle(event, _monotonic_ms()):
                    self._carry_out(effect, tasks)

    async def _next_event(self) -> ReconciliationEvent:
        deadline_ms = self._core.next_deadline_ms()
        wait_s = None if deadline_ms is None else max(0.0, (deadline_ms - _monotonic_ms()) / 1000)
        try:
            async with asyncio.timeout(wait_s):
                return await self._events.get()
        except TimeoutError:
            return Tick()

    def _carry_out(self, effect: ReconciliationEffect, tasks: asyncio.TaskGroup) -> None:
        match effect:
            case QueryNode():
                tasks.create_task(self._query(effect))
            case StopOrphan():
                tasks.create_task(self._stop(effect))
            case MarkLost(statuses, release):
                for status in statuses:
                    _logger.warning("container lost container=%s: %s", status.container_id, status.diagnostics)
                for event in self._rm.mark_lost(statuses, release=release):
                    self._deliver(event)

    async def _query(self, query: QueryNode) -> None:
        try:
            async with asyncio.timeout(self._timeout_s):
                statuses = await self._nms.statuses(query.container_ids, query.node_id)
        except (YarnException, TimeoutError) as error:
            _logger.info("NodeManager did not answer getContainerStatuses node=%s: %s", query.node_id, error)
            self._events.put_nowait(NodeUnreachable(query.node_id))
        else:
            self._events.put_nowait(NodeAnswered(query.node_id, query.container_ids, statuses))

    async def _stop(self, orphan: StopOrphan) -> None:
        _logger.warning("stopping a container that was reported as lost container=%s", orphan.container_id)
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._nms.stop(orphan.container_id, orphan.node_id)
        except (YarnException, TimeoutError) as error:
            # The container is queried again, and stopped again if it still runs.
            _logger.info(
                "stopContainers failed, the container will be queried again container=%s: %s",
                orphan.container_id,
                error,
            )


def _monotonic_ms() -> int:
    return int(asyncio.get_running_loop().time() * 1000)
