"""Emulates containers without processes: each follows a profile that is drawn from the rule that matches it.

A container costs one entry in a heap of ends. One timer of the event loop serves all containers; none has a task or
files. The random numbers depend on the table's seed, the container's number and its launch number, but not on the node.
So a container gets the same profile in each run.
"""

from __future__ import annotations

import asyncio
import heapq
import os
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from nm.core.container_limits import ProcessSample
from nm.core.effects import LaunchContainer, Signal, SignalProcess
from nm.core.emulation import EmulationTable, ResourceProfile, Rule
from nm.core.events import ContainerExited, ContainerLaunched, ContainerSignalled, Event, LaunchCancelled
from nm.emulation.application_master import EmulatedApplicationMaster, EmulatedApplicationMasters
from yarn.ids import EPOCH_BITS, ContainerId
from yarn.states import ContainerExitStatus

PID_FIRST = 1 << 22
"""The first process id of emulated containers. Linux assigns no id this large, so none equals that of a process."""
_STALE_ENDS_MAX = 1000
"""How many ends of killed containers may stay in the heap. Above this number the heap is rebuilt without them."""
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_CODES = {Signal.TERM: ContainerExitStatus.TERMINATED, Signal.KILL: ContainerExitStatus.FORCE_KILLED}


@dataclass(slots=True, eq=False)
class EmulatedContainer:
    """One launch of an emulated container. `exit_code` is None until it is known.

    `master` is set if the container is an AM that registers with the ResourceManager. `has_timer` is True while the
    container's end is in the heap.
    """

    effect: LaunchContainer
    profile: ResourceProfile
    pid: int
    started_ms: int
    exit_code: int | None = None
    master: EmulatedApplicationMaster | None = None
    has_timer: bool = False


class EmulatedLauncher:
    """The emulated containers of a node, by id.

    `send` receives the events; `launch` and `signal` never call it before they return. `idle` is set while no container
    runs. Set `masters` before the first launch if a rule has AMs that register.
    """

    def __init__(self, table: EmulationTable, send: Callable[[Event], None]) -> None:
        self.running: dict[ContainerId, EmulatedContainer] = {}
        self.idle = asyncio.Event()
        self.idle.set()
        self.masters: EmulatedApplicationMasters | None = None
        self._rules = {rule.name: rule for rule in table.rules}
        self._seed = table.seed
        self._send = send
        self._pids = PID_FIRST
        self._starting: dict[ContainerId, LaunchContainer] = {}
        self._deferred: deque[Callable[[], None]] = deque()
        self._ends: list[tuple[int, int, EmulatedContainer]] = []
        self._stale_ends = 0
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0

    def launch(self, effect: LaunchContainer) -> None:
        """Launch a container in the loop's next turn; a signal that comes before that cancels the launch."""
        self._starting[effect.container_id] = effect
        self._call_soon(lambda: self._start(effect))

    def signal(self, effect: SignalProcess) -> None:
        """Send a signal: TERM and KILL end the container with exit codes 143 and 137, QUIT has no effect."""
        starting = self._starting.get(effect.container_id)
        if starting is not None and starting.launch == effect.launch:
            if effect.signal is not Signal.QUIT and not effect.command:
                del self._starting[effect.container_id]
                self._call_soon(lambda: self._send(LaunchCancelled(effect.container_id, effect.launch)))
            return
        container = self.running.get(effect.container_id)
        if container is None or container.effect.launch != effect.launch or container.exit_code is not None:
            return
        if effect.command:
            signalled = ContainerSignalled(effect.container_id, effect.command, effect.signal, container.pid, True)
            self._call_soon(lambda: self._send(signalled))
        if effect.signal is not Signal.QUIT:
            self._stale_ends += container.has_timer
            self._end_soon(container, _CODES[effect.signal])

    def kill_all(self) -> None:
        """Kill every running container, because the node stops."""
        for container in list(self.running.values()):
            self.signal(SignalProcess(container.effect.container_id, container.effect.launch, Signal.KILL))

    def has(self, container_id: ContainerId) -> bool:
        """True if the container runs or is being launched."""
        return container_id in self.running or container_id in self._starting

    def sample(self, container_id: ContainerId) -> ProcessSample | None:
        """The current usage of a container as that of one process, with all memory resident; None if it
        does not run.
        """
        container = self.running.get(container_id)
        if container is None or container.exit_code is not None:
            return None
        usage = container.profile.usage_at(_now_ms() - container.started_ms)
        pid = container.pid
        words = tuple(word for command in container.effect.commands for word in command.split())
        pages = usage.memory_bytes // _PAGE_BYTES
        return ProcessSample(pid, 1, pid, pid, "emulated", usage.cpu_ms, 0, usage.memory_bytes, pages, words, 1)

    def _start(self, effect: LaunchContainer) -> None:
        if self._starting.get(effect.container_id) is not effect:
            return
        del self._starting[effect.container_id]
        self._pids += 1
        rule = self._rules[effect.emulation]
        profile = self._profile(rule, effect)
        container = EmulatedContainer(effect, profile, self._pids, _now_ms())
        self.running[effect.container_id] = container
        self.idle.clear()
        if profile.ends_after_ms is not None:
            container.has_timer = True
            heapq.heappush(self._ends, (container.started_ms + profile.ends_after_ms, container.pid, container))
            self._set_timer()
        self._send(ContainerLaunched(effect.container_id, effect.launch))
        if rule.registers:
            assert self.masters is not None, "set if the table has AMs that register"
            container.master = self.masters.start(
                effect.container_id, effect.tokens, lambda exit_code: self._master_ended(container, exit_code)
            )

    def _profile(self, rule: Rule, effect: LaunchContainer) -> ResourceProfile:
        assert rule.stages is not None, "containers of a rule with `run: real` are not emulated"
        draw = self._random(effect).random if rule.is_drawn else _never_drawn
        return ResourceProfile.draw(rule.stages, effect.resource, draw)

    def _random(self, effect: LaunchContainer) -> random.Random:
        """A generator of random numbers for one launch.

        The seed of the generator leaves out the RM's start time and epoch, because these differ between runs.
        """
        container_id = effect.container_id
        attempt_id = container_id.attempt_id
        number = container_id.number & ((1 << EPOCH_BITS) - 1)
        return random.Random(
            f"{self._seed}/{attempt_id.application_id.id}/{attempt_id.attempt}/{number}/{effect.launch}"
        )

    # Ends

    def _set_timer(self) -> None:
        """Set the timer to the first end in the heap.

        A timer that is set for an earlier time is kept; when it fires, it is set again.
        """
        if not self._ends or (self._timer is not None and self._timer_ms <= self._ends[0][0]):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_ms = self._ends[0][0]
        self._timer = asyncio.get_running_loop().call_at(self._timer_ms / 1000, self._end_due)

    def _end_due(self) -> None:
        self._timer = None
        now_ms = _now_ms()
        while self._ends and self._ends[0][0] <= now_ms:
            container = heapq.heappop(self._ends)[2]
            container.has_timer = False
            if container.exit_code is None:
                self._end_profile(container)
            else:
                self._stale_ends -= 1
        self._set_timer()

    def _end_profile(self, container: EmulatedContainer) -> None:
        """End a container whose stages are over. An AM with exit code 0 first unregisters."""
        exit_code = container.profile.exit_code
        if container.master is not None and exit_code == 0:
            container.master.finish()
            return
        container.exit_code = exit_code
        self._send_end(container)

    def _master_ended(self, container: EmulatedContainer, exit_code: int) -> None:
        """End the container of an AM that has unregistered, or that the ResourceManager shut down while its stages went
        on.
        """
        if container.exit_code is not None:
            return
        self._stale_ends += container.has_timer
        container.master = None
        container.exit_code = exit_code
        self._send_end(container)

    def _end_soon(self, container: EmulatedContainer, exit_code: int) -> None:
        container.exit_code = exit_code
        self._call_soon(lambda: self._send_end(container))
        if self._stale_ends > max(_STALE_ENDS_MAX, len(self._ends) // 2):
            self._ends = [end for end in self._ends if end[2].exit_code is None]
            heapq.heapify(self._ends)
            self._stale_ends = 0

    def _send_end(self, container: EmulatedContainer) -> None:
        assert container.exit_code is not None
        if container.master is not None:
            container.master.kill()
        effect = container.effect
        del self.running[effect.container_id]
        if not self.running:
            self.idle.set()
        self._send(ContainerExited(effect.container_id, effect.launch, container.exit_code))

    def _call_soon(self, action: Callable[[], None]) -> None:
        """Call `action` in the next turn of the event loop; one callback serves all actions of a turn."""
        if not self._deferred:
            asyncio.get_running_loop().call_soon(self._call_deferred)
        self._deferred.append(action)

    def _call_deferred(self) -> None:
        deferred, self._deferred = self._deferred, deque()
        for action in deferred:
            action()


def _now_ms() -> int:
    """The loop's clock, rounded to ms, so that an end is due when the timer for it fires."""
    return round(asyncio.get_running_loop().time() * 1000)


def _never_drawn() -> float:
    raise AssertionError("the rule needs no random numbers")
