"""Emulates containers without processes: the shell of EmulatedContainers, which decides what runs and when it ends.

One timer of the event loop serves all containers, and there is no task. No file is made for a container.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Callable
from functools import partial
from typing import assert_never

from nm.core.container_limits import ProcessSample
from nm.core.effects import LaunchContainer, ReacquireContainer, Signal, SignalProcess
from nm.core.emulated_containers import (
    EmulatedContainers,
    EmulationEvent,
    FinishMaster,
    KillMaster,
    ProgramEnded,
    StartMaster,
)
from nm.core.emulation import Draw, EmulationTable
from nm.core.events import ContainerExited, ContainerLaunched, ContainerSignalled, Event, LaunchCancelled
from nm.emulation.application_master import EmulatedApplicationMaster, EmulatedApplicationMasters
from yarn.ids import ContainerId
from yarn.machine import Tick

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class EmulatedLauncher:
    """The node's emulated containers. `send` takes the events; `launch` and `signal` never call it themselves.

    `send` receives the events; `launch` and `signal` never call it before they return. `idle` is set while no container
    runs. Set `masters` before the first launch if a rule has AMs that register.
    """

    def __init__(self, table: EmulationTable, send: Callable[[Event], None]) -> None:
        self.containers = EmulatedContainers(table, _random_of)
        self.idle = asyncio.Event()
        self.idle.set()
        self.masters: EmulatedApplicationMasters | None = None
        self._send = send
        self._started: dict[ContainerId, EmulatedApplicationMaster] = {}
        self._timer: asyncio.Handle | None = None
        self._timer_ms = 0

    def launch(self, effect: LaunchContainer) -> None:
        """Launch it in the loop's next turn; a signal that comes earlier cancels the launch."""
        self._handle(effect)

    def reacquire(self, effect: ReacquireContainer) -> None:
        """Let a container of an earlier NodeManager go on, from the loop's next turn."""
        self._handle(effect)

    def signal(self, effect: SignalProcess) -> None:
        """Deliver a signal. KILL means exit code 137; TERM 143, after the time of its rule; QUIT has no effect."""
        self._handle(effect)

    def kill_all(self) -> None:
        """Kill every running container: the node stops."""
        for container in list(self.containers.running.values()):
            self.signal(SignalProcess(container.effect.container_id, container.effect.launch, Signal.KILL))

    def has(self, container_id: ContainerId) -> bool:
        """True if it runs or is being launched."""
        return self.containers.has(container_id)

    def is_running(self, container_id: ContainerId) -> bool:
        return container_id in self.containers.running

    def sample(self, container_id: ContainerId) -> ProcessSample | None:
        """Its current usage as that of one process, all memory resident; None if it does not run."""
        container = self.containers.running.get(container_id)
        if container is None or container.exit_code is not None:
            return None
        usage = container.profile.usage_at(_now_ms() - container.started_ms)
        pid = container.pid
        words = tuple(word for command in container.effect.commands for word in command.split())
        pages = usage.memory_bytes // _PAGE_BYTES
        return ProcessSample(pid, 1, pid, pid, "emulated", usage.cpu_ms, 0, usage.memory_bytes, pages, words, 1)

    def _handle(self, event: EmulationEvent) -> None:
        for effect in self.containers.handle(event, _now_ms()):
            match effect:
                case ContainerLaunched():
                    self.idle.clear()
                    self._send(effect)
                case ContainerExited():
                    if not self.containers.running:
                        self.idle.set()
                    self._send(effect)
                case ContainerSignalled() | LaunchCancelled():
                    self._send(effect)
                case StartMaster(launch):
                    self._start_master(launch)
                case FinishMaster(container_id):
                    self._started[container_id].finish()
                case KillMaster(container_id):
                    self._started.pop(container_id).kill()
                case _:
                    assert_never(effect)
        self._set_timer()

    def _start_master(self, effect: LaunchContainer) -> None:
        assert self.masters is not None, "set if the table has AMs that register"
        ended = partial(self._master_ended, effect.container_id, effect.launch)
        self._started[effect.container_id] = self.masters.start(effect.container_id, effect.tokens, ended)

    def _master_ended(self, container_id: ContainerId, launch: int, exit_code: int) -> None:
        self._started.pop(container_id, None)
        self._handle(ProgramEnded(container_id, launch, exit_code))

    def _set_timer(self) -> None:
        """Set the timer to the next deadline. A timer for an earlier time is kept, and set again when it fires."""
        deadline_ms = self.containers.next_deadline_ms()
        if deadline_ms is None or (self._timer is not None and self._timer_ms <= deadline_ms):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_ms = deadline_ms
        loop = asyncio.get_running_loop()
        if deadline_ms <= _now_ms():
            # In the order of other calls, and cheaper than a timer.
            self._timer = loop.call_soon(self._deadline_reached)
        else:
            self._timer = loop.call_at(deadline_ms / 1000, self._deadline_reached)

    def _deadline_reached(self) -> None:
        self._timer = None
        self._handle(Tick())


def _random_of(seed: str) -> Draw:
    return random.Random(seed).random


def _now_ms() -> int:
    """The loop's clock, rounded to ms, so that an end is due when the timer for it fires."""
    return round(asyncio.get_running_loop().time() * 1000)
