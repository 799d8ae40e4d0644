"""Runs containers without processes: each follows the course that its rule draws for it (nm.emulation).

A container costs an entry in a heap of ends and no task, and one timer of the loop serves all of them; while nothing
runs there is nothing at all. Nothing on disk is made for it. Chance is drawn from the table's seed and the container's
own number and start, whichever node it is on, so a run with the same containers has the same courses.
"""

from __future__ import annotations

import asyncio
import heapq
import os
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nm.core.effects import LaunchContainer, Signal, SignalProcess
from nm.core.emulation import Course, EmulationTable, Rule
from nm.core.events import ContainerExited, ContainerLaunched, ContainerSignalled, Event, LaunchCancelled
from nm.core.memory_limits import ProcessSample
from yarn.ids import EPOCH_BITS, ContainerId
from yarn.states import ContainerExitStatus

if TYPE_CHECKING:
    from nm.emulation.master import EmulatedMaster, EmulatedMasters

PID_FIRST = 1 << 22
"""Linux gives no process an id of this size or above, so nobody takes an emulated one for a process."""
_STALE_ENDS_MAX = 1000
"""Ends of containers that were killed before, kept until they are due; above it the heap is made anew."""
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_CODES = {Signal.TERM: ContainerExitStatus.TERMINATED, Signal.KILL: ContainerExitStatus.FORCE_KILLED}


@dataclass(slots=True, eq=False)
class EmulatedContainer:
    """One start of an emulated container. `exit_code` is None until it is decided how it ends.

    `master` talks to the ResourceManager, if the container is a master that registers. `has_timer` is True while the
    heap has its end.
    """

    effect: LaunchContainer
    course: Course
    pid: int
    began_ms: int
    exit_code: int | None = None
    master: EmulatedMaster | None = None
    has_timer: bool = False


class EmulatedLauncher:
    """The node's emulated containers by id. `send` takes the events; it is never called from within launch or signal.

    `idle` is set while none runs. Set `masters` before the first launch if a rule has masters that register.
    """

    def __init__(self, table: EmulationTable, send: Callable[[Event], None]) -> None:
        self.running: dict[ContainerId, EmulatedContainer] = {}
        self.idle = asyncio.Event()
        self.idle.set()
        self.masters: EmulatedMasters | None = None
        self._rules = {rule.name: rule for rule in table.rules}
        self._seed = table.seed
        self._send = send
        self._pids = PID_FIRST
        self._starting: dict[ContainerId, LaunchContainer] = {}
        self._news: deque[Callable[[], None]] = deque()
        self._ends: list[tuple[int, int, EmulatedContainer]] = []
        self._stale_ends = 0
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0

    def launch(self, effect: LaunchContainer) -> None:
        """Start it in the loop's next turn; until then a signal cancels it."""
        self._starting[effect.container_id] = effect
        self._soon(lambda: self._start(effect))

    def signal(self, effect: SignalProcess) -> None:
        """TERM and KILL end it with 143 and 137, QUIT does nothing to it."""
        starting = self._starting.get(effect.container_id)
        if starting is not None and starting.launch == effect.launch:
            if effect.signal is not Signal.QUIT and not effect.told:
                del self._starting[effect.container_id]
                self._soon(lambda: self._send(LaunchCancelled(effect.container_id, effect.launch)))
            return
        container = self.running.get(effect.container_id)
        if container is None or container.effect.launch != effect.launch or container.exit_code is not None:
            return
        if effect.told:
            told = ContainerSignalled(effect.container_id, effect.told, effect.signal, container.pid, True)
            self._soon(lambda: self._send(told))
        if effect.signal is not Signal.QUIT:
            self._stale_ends += container.has_timer
            self._end_soon(container, _CODES[effect.signal])

    def kill_all(self) -> None:
        """KILL what runs: the node stops."""
        for container in list(self.running.values()):
            self.signal(SignalProcess(container.effect.container_id, container.effect.launch, Signal.KILL))

    def has(self, container_id: ContainerId) -> bool:
        """True if it runs, or is about to."""
        return container_id in self.running or container_id in self._starting

    def sample(self, container_id: ContainerId) -> ProcessSample | None:
        """What it uses now, as if it were one process; None if it does not run. Its memory is all resident."""
        container = self.running.get(container_id)
        if container is None or container.exit_code is not None:
            return None
        use = container.course.use_at(_now_ms() - container.began_ms)
        pid = container.pid
        words = tuple(word for command in container.effect.commands for word in command.split())
        pages = use.memory_bytes // _PAGE_BYTES
        return ProcessSample(pid, 1, pid, pid, "emulated", use.cpu_ms, 0, use.memory_bytes, pages, words, 1)

    def _start(self, effect: LaunchContainer) -> None:
        if self._starting.get(effect.container_id) is not effect:
            return
        del self._starting[effect.container_id]
        self._pids += 1
        rule = self._rules[effect.emulation]
        course = self._course(rule, effect)
        container = EmulatedContainer(effect, course, self._pids, _now_ms())
        self.running[effect.container_id] = container
        self.idle.clear()
        if course.ends_after_ms is not None:
            container.has_timer = True
            heapq.heappush(self._ends, (container.began_ms + course.ends_after_ms, container.pid, container))
            self._set_timer()
        self._send(ContainerLaunched(effect.container_id, effect.launch))
        if rule.registers:
            assert self.masters is not None, "set where a table has masters that register"
            container.master = self.masters.start(
                effect.container_id, effect.tokens, lambda exit_code: self._master_ended(container, exit_code)
            )

    def _course(self, rule: Rule, effect: LaunchContainer) -> Course:
        assert rule.stages is not None, "a rule that says real reaches no emulated launcher"
        draw = self._random(effect).random if rule.is_drawn else _no_draw
        return Course.draw(rule.stages, effect.resource, draw)

    def _random(self, effect: LaunchContainer) -> random.Random:
        """For one start of one container. The RM's start time and epoch, which change by the run, are not in it."""
        container_id = effect.container_id
        attempt_id = container_id.attempt_id
        number = container_id.number & ((1 << EPOCH_BITS) - 1)
        return random.Random(
            f"{self._seed}/{attempt_id.application_id.id}/{attempt_id.attempt}/{number}/{effect.launch}"
        )

    # Ends

    def _set_timer(self) -> None:
        """Have the loop wake this at the first end. A timer that fires too early is left: it looks again."""
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
                self._end_course(container)
            else:
                self._stale_ends -= 1
        self._set_timer()

    def _end_course(self, container: EmulatedContainer) -> None:
        """Its stages are over. A master that ends well unregisters first."""
        exit_code = container.course.exit_code
        if container.master is not None and exit_code == 0:
            container.master.finish()
            return
        container.exit_code = exit_code
        self._tell_end(container)

    def _master_ended(self, container: EmulatedContainer, exit_code: int) -> None:
        """A master has unregistered, or was sent away while its stages went on."""
        if container.exit_code is not None:
            return
        self._stale_ends += container.has_timer
        container.master = None
        container.exit_code = exit_code
        self._tell_end(container)

    def _end_soon(self, container: EmulatedContainer, exit_code: int) -> None:
        container.exit_code = exit_code
        self._soon(lambda: self._tell_end(container))
        if self._stale_ends > max(_STALE_ENDS_MAX, len(self._ends) // 2):
            self._ends = [end for end in self._ends if end[2].exit_code is None]
            heapq.heapify(self._ends)
            self._stale_ends = 0

    def _tell_end(self, container: EmulatedContainer) -> None:
        assert container.exit_code is not None
        if container.master is not None:
            container.master.kill()
        effect = container.effect
        del self.running[effect.container_id]
        if not self.running:
            self.idle.set()
        self._send(ContainerExited(effect.container_id, effect.launch, container.exit_code))

    # The next turn of the loop

    def _soon(self, act: Callable[[], None]) -> None:
        if not self._news:
            asyncio.get_running_loop().call_soon(self._act)
        self._news.append(act)

    def _act(self) -> None:
        """What was put off until now; what comes up meanwhile waits for the turn after this one."""
        news, self._news = self._news, deque()
        for act in news:
            act()


def _now_ms() -> int:
    """The loop's clock in whole ms: a little early rather than late, so that an end is due when its timer fires."""
    return round(asyncio.get_running_loop().time() * 1000)


def _no_draw() -> float:
    raise AssertionError("nothing of this rule is drawn")
