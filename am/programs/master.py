"""Runs a program as an ApplicationMaster: its events from the RM and the NMs, its actions carried out.

    sys.exit(run_master(lambda environment: FixedWidth(...)))

The program is pure and is asked for one event at a time; starts of containers go on beside it, so that one NM that
does not answer holds up nothing.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Callable, Coroutine
from typing import Any

from am.client.am_rm_client import AMRMClient
from am.client.environment import AMEnvironment
from am.client.nm_client import NMClient
from am.client.reconciler import Reconciler
from am.core.events import ContainersCompleted, ContainerStarted, ContainerStartFailed, Event
from am.programs.core.actions import (
    AskFor,
    ChangeBlacklist,
    Deed,
    Finish,
    GiveBack,
    Launch,
    Leave,
    Program,
    Stop,
    Withdraw,
)
from yarn.errors import YarnException
from yarn.ids import ContainerId
from yarn.settings.resourcemanager import NM_EXPIRY_INTERVAL

EXIT_CRASH = 1

_logger = logging.getLogger(__name__)


def run_master(make_program: Callable[[AMEnvironment], Program]) -> int:
    """The exit code of a whole AM: reads the environment, registers, runs the program to its end."""
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    try:
        environment = AMEnvironment.read()
        program = make_program(environment)
        return asyncio.run(_run(environment, program))
    except YarnException as error:
        _logger.error("master failed: %s: %s", type(error).__name__, error)
        return EXIT_CRASH


async def _run(environment: AMEnvironment, program: Program) -> int:
    async with AMRMClient.connect(environment) as rm, NMClient.connect(environment, rm.nm_tokens) as nms:
        master = Master(program, rm, nms, NM_EXPIRY_INTERVAL.of(environment.configuration))
        await rm.register(host=environment.host)
        return await master.run()


class Master:
    """One program between the clients of the RM and the NMs; the RM's must be registered.

    `node_expiry_ms`: how long a NM may be silent, after a restart of the RM, before its containers count as lost.
    """

    def __init__(self, program: Program, rm: AMRMClient, nms: NMClient, node_expiry_ms: int = 600_000) -> None:
        self._program = program
        self._rm = rm
        self._nms = nms
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._reconciler = Reconciler(rm, nms, node_expiry_ms, self._events.put_nowait)
        self._running: set[asyncio.Task[None]] = set()
        self._launches: dict[ContainerId, asyncio.Task[None]] = {}
        # Monotonic, but told as wall-clock time, so that what programs write down can be read by people.
        self._epoch_s = time.time() - time.monotonic()
        rm.progress = program.progress

    async def run(self) -> int:
        """Handle events until the program finishes or leaves; its exit code."""
        async with asyncio.TaskGroup() as tasks:
            self._start_task(tasks, self._read_events())
            self._start_task(tasks, self._reconciler.run())
            try:
                while True:
                    event = await self._events.get()
                    if isinstance(event, ContainersCompleted):
                        self._give_up_launches(event)
                    for action in self._program.handle(event, self._now_ms()):
                        if isinstance(action, Finish):
                            return await self._finish(action)
                        if isinstance(action, Leave):
                            _logger.error("leaving without a word to the RM: %s", action.reason)
                            return action.exit_code
                        self._carry_out(action, tasks)
            finally:
                for task in tuple(self._running):
                    task.cancel()

    def _now_ms(self) -> int:
        return int((self._epoch_s + time.monotonic()) * 1000)

    async def _read_events(self) -> None:
        async for event in self._rm.events():
            self._happened(event)

    def _happened(self, event: Event) -> None:
        self._reconciler.note(event)
        self._events.put_nowait(event)

    async def _finish(self, finish: Finish) -> int:
        _logger.info("finishing status=%s diagnostics=%s", finish.final_status.name, finish.diagnostics)
        await self._rm.unregister(finish.final_status, finish.diagnostics)
        return finish.exit_code

    def _carry_out(self, action: Deed, tasks: asyncio.TaskGroup) -> None:
        match action:
            case AskFor(request):
                self._rm.add_request(request)
            case Withdraw(request):
                self._rm.remove_request(request)
            case GiveBack(container_id):
                self._rm.release(container_id)
            case ChangeBlacklist(additions, removals):
                _logger.info("blacklist additions=%s removals=%s", additions, removals)
                self._rm.change_blacklist(additions, removals)
            case Launch(container):
                task = self._start_task(tasks, self._launch(action))
                self._launches[container.id] = task
                task.add_done_callback(lambda _: self._launches.pop(container.id, None))
            case Stop():
                self._start_task(tasks, self._stop(action))

    def _start_task(self, tasks: asyncio.TaskGroup, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = tasks.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    def _give_up_launches(self, completed: ContainersCompleted) -> None:
        """What was not answered is tried again, and a NM that came anew would start it: it knows of no first one."""
        for status in completed.statuses:
            if launch := self._launches.get(status.container_id):
                _logger.info("start given up, it has ended container=%s", status.container_id)
                launch.cancel()

    async def _launch(self, launch: Launch) -> None:
        container = launch.container
        try:
            await self._nms.start(container, launch.launch_context)
        except YarnException as error:
            _logger.warning("start failed container=%s node=%s: %s", container.id, container.node_id, error)
            self._happened(ContainerStartFailed(container.id, str(error)))
            return
        _logger.info("started container=%s node=%s", container.id, container.node_id)
        self._happened(ContainerStarted(container.id))

    async def _stop(self, stop: Stop) -> None:
        try:
            await self._nms.stop(stop.container_id, stop.node_id)
        except YarnException as error:
            # Its end is told by the RM whatever the NM says.
            _logger.info("stop failed container=%s node=%s: %s", stop.container_id, stop.node_id, error)
