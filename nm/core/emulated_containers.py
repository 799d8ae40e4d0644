"""The emulated containers of a node: which run, when each ends and with which exit code. Without processes or a clock.

    containers.handle(LaunchContainer(...), now_ms) -> []
    containers.handle(Tick(), now_ms) -> [ContainerLaunched(...)]
    containers.next_deadline_ms()                    the end of the first of them

A container costs an entry in a heap of ends. The random numbers come from the table's seed, the container's number and
its launch number, not from the node, so a run with the same containers gives them the same profiles.

A container may take a while to exit after SIGTERM, or ignore it (Rule.after_term_ms). Its stages go on meanwhile, so
what comes first ends it: its stages, that time, or SIGKILL.

A container that an earlier NodeManager has emulated goes on where it was; an AM that registers with the ResourceManager
cannot, as it lived in that NodeManager's process.

A launch or a signal takes effect at the next Tick, which is due at once: an event for the node's core must
not come while the core's effects are carried out.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from msgspec import Struct

from nm.core.effects import LaunchContainer, ReacquireContainer, Signal, SignalProcess
from nm.core.emulation import Draw, EmulationTable, ResourceProfile, Rule
from nm.core.events import ContainerExited, ContainerLaunched, ContainerSignalled, LaunchCancelled
from yarn.ids import EPOCH_BITS, ContainerId
from yarn.machine import Tick
from yarn.states import ContainerExitStatus

PID_FIRST = 1 << 22
"""Linux gives no process an id this large, so an emulated container is never mistaken for a process."""
STALE_ENDS_MAX = 1000
"""Ends in the heap that no longer apply, because an earlier one has replaced them or the container has ended. Above
this number the heap is rebuilt without them."""

RandomOf: TypeAlias = Callable[[str], Draw]
"""A source of random numbers for a seed."""
LastsOf: TypeAlias = Callable[[LaunchContainer], int | None]
"""The time a container runs (ms) whose rule leaves that open; None: until a signal, or until its program ends."""


class ProgramEnded(Struct, frozen=True):
    """Note that the program of the container, an AM, has ended by itself."""

    container_id: ContainerId
    launch: int
    exit_code: int


class StartMaster(Struct, frozen=True):
    """Start an emulated AM that registers; ProgramEnded follows unless it is killed."""

    effect: LaunchContainer


class FinishMaster(Struct, frozen=True):
    """The stages of an AM are over: it unregisters and ends."""

    container_id: ContainerId


class KillMaster(Struct, frozen=True):
    """End an AM at once; nothing follows."""

    container_id: ContainerId


EmulationEvent: TypeAlias = LaunchContainer | ReacquireContainer | SignalProcess | ProgramEnded | Tick
NodeEvent: TypeAlias = ContainerLaunched | ContainerExited | ContainerSignalled | LaunchCancelled
"""For the node's core, as from a launcher of processes."""
EmulationEffect: TypeAlias = NodeEvent | StartMaster | FinishMaster | KillMaster


@dataclass(slots=True, eq=False)
class EmulatedContainer:
    """A launch of an emulated container. `exit_code` is None until it is known.

    `has_master`: it is an AM that registers with the ResourceManager, and has not ended. `end_ms` is the time of its
    next end in the heap, None if it has none there. `is_terminating`: that end is its exit after SIGTERM.
    """

    effect: LaunchContainer
    profile: ResourceProfile
    pid: int
    started_ms: int
    exit_code: int | None = None
    has_master: bool = False
    end_ms: int | None = None
    is_terminating: bool = False


class EmulatedContainers:
    """The containers of one node, by id: `running`, and those that are being launched.

    `lasts_of` is asked about containers whose rule leaves open how long they run.
    """

    def __init__(self, table: EmulationTable, random_of: RandomOf, lasts_of: LastsOf | None = None) -> None:
        self.running: dict[ContainerId, EmulatedContainer] = {}
        self._rules = {rule.name: rule for rule in table.rules}
        self._seed = table.seed
        self._random_of = random_of
        self._lasts_of = lasts_of
        self._pids = PID_FIRST
        self._now_ms = 0
        self._starting: dict[ContainerId, LaunchContainer] = {}
        self._elapsed_ms: dict[ContainerId, int] = {}
        """The time that each container being reacquired has run under an earlier NodeManager."""
        self._deferred: deque[LaunchContainer | EmulatedContainer | NodeEvent] = deque()
        self._ends: list[tuple[int, int, EmulatedContainer]] = []
        self._stale_ends = 0
        self._effects: list[EmulationEffect] = []

    def has(self, container_id: ContainerId) -> bool:
        """True if it runs or is being launched."""
        return container_id in self.running or container_id in self._starting

    def handle(self, event: EmulationEvent, now_ms: int) -> list[EmulationEffect]:
        """Handle an event at `now_ms`, which never decreases; returns the effects, to be carried out in order."""
        self._now_ms = now_ms
        match event:
            case LaunchContainer():
                self._starting[event.container_id] = event
                self._deferred.append(event)
            case ReacquireContainer(effect, elapsed_ms):
                self._starting[effect.container_id] = effect
                self._elapsed_ms[effect.container_id] = elapsed_ms
                self._deferred.append(effect)
            case SignalProcess():
                self._signal(event)
            case ProgramEnded():
                self._program_ended(event)
            case Tick():
                self._take_deferred()
                self._take_ends()
        effects, self._effects = self._effects, []
        return effects

    def next_deadline_ms(self) -> int | None:
        """The time to send Tick; None if all containers end only by a signal."""
        if self._deferred:
            return self._now_ms
        return self._ends[0][0] if self._ends else None

    def _signal(self, effect: SignalProcess) -> None:
        """Deliver a signal. KILL means exit code 137; TERM 143, after the time of its rule; QUIT has no effect."""
        starting = self._starting.get(effect.container_id)
        if starting is not None and starting.launch == effect.launch:
            if effect.signal is not Signal.QUIT and not effect.command:
                del self._starting[effect.container_id]
                self._elapsed_ms.pop(effect.container_id, None)
                self._deferred.append(LaunchCancelled(effect.container_id, effect.launch))
            return
        container = self.running.get(effect.container_id)
        if container is None or container.effect.launch != effect.launch or container.exit_code is not None:
            return
        if effect.command:
            signalled = ContainerSignalled(effect.container_id, effect.command, effect.signal, container.pid, True)
            self._deferred.append(signalled)
        if effect.signal is Signal.KILL:
            self._end_soon(container, ContainerExitStatus.FORCE_KILLED)
        elif effect.signal is Signal.TERM:
            self._terminate(container)

    def _terminate(self, container: EmulatedContainer) -> None:
        """Schedule the exit after SIGTERM by the container's rule, unless it is due to end earlier."""
        after_ms = self._rules[container.effect.emulation].after_term_ms
        if after_ms == 0:
            self._end_soon(container, ContainerExitStatus.TERMINATED)
        elif after_ms is not None and (container.end_ms is None or self._now_ms + after_ms < container.end_ms):
            container.is_terminating = True
            self._end_at(container, self._now_ms + after_ms)

    def _take_deferred(self) -> None:
        deferred, self._deferred = self._deferred, deque()
        for what in deferred:
            if isinstance(what, LaunchContainer):
                self._start(what)
            elif isinstance(what, EmulatedContainer):
                self._report_end(what)
            else:
                self._effects.append(what)

    def _start(self, effect: LaunchContainer) -> None:
        if self._starting.get(effect.container_id) is not effect:
            return
        del self._starting[effect.container_id]
        self._pids += 1
        rule = self._rules[effect.emulation]
        profile = self._profile(rule, effect)
        elapsed_ms = self._elapsed_ms.pop(effect.container_id, None)
        if elapsed_ms is not None and rule.registers:
            self._effects.append(ContainerLaunched(effect.container_id, effect.launch))
            self._effects.append(ContainerExited(effect.container_id, effect.launch, ContainerExitStatus.LOST))
            return
        started_ms = self._now_ms - (elapsed_ms or 0)
        container = EmulatedContainer(effect, profile, self._pids, started_ms, has_master=rule.registers)
        self.running[effect.container_id] = container
        lasts_ms = profile.ends_after_ms
        if lasts_ms is None and self._lasts_of is not None:
            lasts_ms = self._lasts_of(effect)
        if lasts_ms is not None:
            self._end_at(container, container.started_ms + lasts_ms)
        self._effects.append(ContainerLaunched(effect.container_id, effect.launch))
        if container.has_master:
            self._effects.append(StartMaster(effect))

    def _profile(self, rule: Rule, effect: LaunchContainer) -> ResourceProfile:
        assert rule.stages is not None, "containers of a rule with `run: real` are not emulated"
        draw = self._random_of(self._seed_of(effect)) if rule.is_drawn else _never_drawn
        return ResourceProfile.draw(rule.stages, effect.resource, draw)

    def _seed_of(self, effect: LaunchContainer) -> str:
        """The seed of one launch: without the RM's start time and epoch, which differ between runs."""
        container_id = effect.container_id
        attempt_id = container_id.attempt_id
        number = container_id.number & ((1 << EPOCH_BITS) - 1)
        return f"{self._seed}/{attempt_id.application_id.id}/{attempt_id.attempt}/{number}/{effect.launch}"

    def _end_at(self, container: EmulatedContainer, end_ms: int) -> None:
        """Schedule the container's end at `end_ms`, in place of the end that it has in the heap."""
        self._stale_ends += container.end_ms is not None
        container.end_ms = end_ms
        heapq.heappush(self._ends, (end_ms, container.pid, container))

    def _take_ends(self) -> None:
        while self._ends and self._ends[0][0] <= self._now_ms:
            end_ms, _, container = heapq.heappop(self._ends)
            if container.end_ms == end_ms:
                container.end_ms = None
                self._end_profile(container)
            else:
                self._stale_ends -= 1

    def _end_profile(self, container: EmulatedContainer) -> None:
        """End a container whose stages, or time after SIGTERM, are over. An AM with exit code 0 unregisters first."""
        exit_code = ContainerExitStatus.TERMINATED if container.is_terminating else container.profile.exit_code
        if container.has_master and exit_code == 0:
            self._effects.append(FinishMaster(container.effect.container_id))
            return
        container.exit_code = exit_code
        self._report_end(container)

    def _program_ended(self, event: ProgramEnded) -> None:
        """End an AM that has unregistered, or that the ResourceManager shut down before its stages were over."""
        container = self.running.get(event.container_id)
        if container is None or container.effect.launch != event.launch or container.exit_code is not None:
            return
        self._forget_end(container)
        container.has_master = False
        container.exit_code = event.exit_code
        self._report_end(container)

    def _end_soon(self, container: EmulatedContainer, exit_code: int) -> None:
        self._forget_end(container)
        container.exit_code = exit_code
        self._deferred.append(container)
        if self._stale_ends > max(STALE_ENDS_MAX, len(self._ends) // 2):
            self._ends = [end for end in self._ends if end[0] == end[2].end_ms]
            heapq.heapify(self._ends)
            self._stale_ends = 0

    def _forget_end(self, container: EmulatedContainer) -> None:
        """Cancel the container's scheduled end, because it ends earlier; the entry in the heap becomes stale."""
        self._stale_ends += container.end_ms is not None
        container.end_ms = None

    def _report_end(self, container: EmulatedContainer) -> None:
        assert container.exit_code is not None
        effect = container.effect
        if container.has_master:
            self._effects.append(KillMaster(effect.container_id))
        del self.running[effect.container_id]
        self._effects.append(ContainerExited(effect.container_id, effect.launch, container.exit_code))


def _never_drawn() -> float:
    raise AssertionError("the rule needs no random numbers")
