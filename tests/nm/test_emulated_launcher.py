"""The emulated launcher: what it answers to a launch and to signals, each end once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from nm.core.effects import LaunchContainer, Signal, SignalProcess
from nm.core.emulation import Amount, EmulationTable, Match, Rule, Stage
from nm.core.events import (
    ContainerExited,
    ContainerLaunched,
    ContainerSignalled,
    Event,
    LaunchCancelled,
)
from nm.emulation import launcher as emulated_launcher
from nm.emulation.launcher import PID_FIRST, EmulatedLauncher
from nm.launcher.containers_launcher import ContainersLauncher, Launchers
from tests.nm.nodes import container_id
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId
from yarn.resource import Resource

MB = 1 << 20
TABLE = EmulationTable(
    (
        Rule("short", Match(), (Stage(20),)),
        Rule("fails", Match(), (Stage(10, exit_code=3, exit_probability=1.0),)),
        Rule("endless", Match(), (Stage(None, memory_first=Amount(0.5, True), memory_last=Amount(0.5, True)),)),
        Rule("long", Match(), (Stage(3_600_000),)),
        Rule("drawn", Match(), (Stage(1_000_000_000, jitter_ms=1_000_000_000),)),
    )
)


class Heard:
    """The events that a launcher has sent."""

    def __init__(self, table: EmulationTable = TABLE) -> None:
        self.events: list[Event] = []
        self.launcher = EmulatedLauncher(table, self._send)
        self._news = asyncio.Event()
        self._within = False

    def _send(self, event: Event) -> None:
        assert not self._within, "an event from within launch or signal"
        self.events.append(event)
        self._news.set()

    def launch(self, number: int, rule: str, launch: int = 1) -> None:
        self._order(
            lambda: self.launcher.launch(
                LaunchContainer(
                    container_id(number), launch, "alice", ("java Map",), {}, {}, "", Resource(100, 1), rule
                )
            )
        )

    def signal(self, number: int, signal: Signal, launch: int = 1, told: str = "") -> None:
        self._order(lambda: self.launcher.signal(SignalProcess(container_id(number), launch, signal, told)))

    async def until(self, count: int) -> list[Event]:
        """The events, once there are so many; two more turns of the loop show that there are no more."""
        async with asyncio.timeout(60):
            while len(self.events) < count:
                self._news.clear()
                await self._news.wait()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert len(self.events) == count, self.events
        return self.events

    def _order(self, order: Callable[[], None]) -> None:
        self._within = True
        order()
        self._within = False


def launched(number: int, launch: int = 1) -> ContainerLaunched:
    return ContainerLaunched(container_id(number), launch)


def exited(number: int, code: int, launch: int = 1) -> ContainerExited:
    return ContainerExited(container_id(number), launch, code)


@pytest.mark.parametrize(("rule", "code"), [("short", 0), ("fails", 3)])
async def test_a_container_runs_its_course_and_its_end_is_told_once(rule: str, code: int) -> None:
    heard = Heard()
    heard.launch(1, rule)
    assert heard.launcher.has(container_id(1))
    assert await heard.until(2) == [launched(1), exited(1, code)]
    heard.signal(1, Signal.TERM)
    heard.signal(1, Signal.KILL)
    assert len(await heard.until(2)) == 2
    assert not heard.launcher.has(container_id(1))
    assert heard.launcher.idle.is_set()


async def test_ends_come_in_the_order_of_their_times_whatever_the_order_of_the_starts() -> None:
    heard = Heard()
    heard.launch(1, "long")
    heard.launch(2, "short")
    heard.launch(3, "fails")
    assert await heard.until(5) == [launched(1), launched(2), launched(3), exited(3, 3), exited(2, 0)]
    assert not heard.launcher.idle.is_set()


@pytest.mark.parametrize(("signal", "code"), [(Signal.TERM, 143), (Signal.KILL, 137)])
@pytest.mark.parametrize("rule", ["long", "endless"])
async def test_a_signal_ends_it_once(signal: Signal, code: int, rule: str) -> None:
    heard = Heard()
    heard.launch(1, rule)
    await heard.until(1)
    heard.signal(1, signal)
    heard.signal(1, Signal.KILL)
    assert await heard.until(2) == [launched(1), exited(1, code)]


async def test_the_end_that_a_killed_container_would_have_had_is_not_told() -> None:
    heard = Heard()
    heard.launch(1, "short")
    await heard.until(1)
    heard.signal(1, Signal.KILL)
    heard.launch(2, "short")
    await heard.until(4)
    assert heard.events[1:] == [exited(1, 137), launched(2), exited(2, 0)]
    assert heard.launcher._ends == []


async def test_a_nodes_launchers_are_told_apart_by_the_containers_rule_and_end_together() -> None:
    heard = Heard()
    real = ContainersLauncher(None, None, heard.events.append)  # type: ignore[arg-type]  # never gets as far as a start
    launchers = Launchers(real, heard.launcher)
    for number, rule in ((1, "endless"), (2, "")):
        launchers.launch(LaunchContainer(container_id(number), 1, "alice", (), {}, {}, "", Resource(1, 1), rule))
    launchers.signal(SignalProcess(container_id(2), 1, Signal.TERM))
    assert await heard.until(2) == [launched(1), LaunchCancelled(container_id(2), 1)]
    assert launchers.is_running(container_id(1))
    assert not launchers.is_running(container_id(2))
    assert not launchers.has_launched
    launchers.kill_all()
    await launchers.wait_idle()
    assert heard.events[2:] == [exited(1, 137)]


async def test_a_signal_before_the_start_cancels_it() -> None:
    heard = Heard()
    heard.launch(1, "long")
    heard.signal(1, Signal.TERM)
    assert await heard.until(1) == [LaunchCancelled(container_id(1), 1)]


async def test_quit_does_nothing_and_a_user_hears_of_signals() -> None:
    heard = Heard()
    heard.launch(1, "long")
    heard.signal(1, Signal.QUIT)
    await heard.until(1)
    heard.signal(1, Signal.QUIT, told="OUTPUT_THREAD_DUMP")
    heard.signal(1, Signal.TERM, told="GRACEFUL_SHUTDOWN")
    pid = PID_FIRST + 1
    assert (await heard.until(4))[1:] == [
        ContainerSignalled(container_id(1), "OUTPUT_THREAD_DUMP", Signal.QUIT, pid, True),
        ContainerSignalled(container_id(1), "GRACEFUL_SHUTDOWN", Signal.TERM, pid, True),
        exited(1, 143),
    ]


async def test_a_container_starts_again_and_a_signal_for_its_earlier_start_is_nothing_to_it() -> None:
    heard = Heard()
    heard.launch(1, "fails")
    await heard.until(2)
    heard.launch(1, "long", launch=2)
    await heard.until(3)
    heard.signal(1, Signal.KILL, launch=1)
    heard.signal(1, Signal.TERM, launch=2)
    assert (await heard.until(4))[2:] == [launched(1, 2), exited(1, 143, 2)]


async def test_kill_all_ends_everything() -> None:
    heard = Heard()
    for number in (1, 2):
        heard.launch(number, "endless")
    await heard.until(2)
    heard.launcher.kill_all()
    await heard.launcher.idle.wait()
    assert (await heard.until(4))[2:] == [exited(1, 137), exited(2, 137)]


async def test_ends_of_killed_containers_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emulated_launcher, "_STALE_ENDS_MAX", 10)
    heard = Heard()
    heard.launch(1, "long")
    for number in range(2, 40):
        heard.launch(number, "long")
        await asyncio.sleep(0)
        heard.signal(number, Signal.KILL)
        await asyncio.sleep(0)
    assert len(heard.launcher._ends) <= 13
    assert container_id(1) in heard.launcher.running


async def test_what_it_uses_is_told_as_one_process() -> None:
    heard = Heard()
    heard.launch(1, "endless")
    await heard.until(1)
    sample = heard.launcher.sample(container_id(1))
    assert sample is not None
    assert (sample.virtual_bytes, sample.pid, sample.command_line) == (50 * MB, PID_FIRST + 1, ("java", "Map"))
    heard.signal(1, Signal.KILL)
    assert heard.launcher.sample(container_id(1)) is None
    assert heard.launcher.sample(container_id(2)) is None


async def length_ms(seed: int, container: ContainerId, launch: int = 1) -> int | None:
    heard = Heard(EmulationTable(TABLE.rules, seed))
    effect = LaunchContainer(container, launch, "alice", (), {}, {}, "", Resource(100, 1), "drawn")
    heard.launcher.launch(effect)
    await heard.until(1)
    return heard.launcher.running[container].profile.ends_after_ms


async def test_the_same_container_has_the_same_course_whichever_run_and_node_it_is() -> None:
    def container(application: int = 1, attempt: int = 1, number: int = 1, run: int = 7, epoch: int = 0) -> ContainerId:
        attempt_id = ApplicationAttemptId(ApplicationId(run, application), attempt)
        return ContainerId(attempt_id, number + (epoch << 40))

    lengths = {
        await length_ms(1, container()),
        await length_ms(1, container(run=8)),
        await length_ms(1, container(epoch=2)),
    }
    assert len(lengths) == 1
    others = [container(application=2), container(attempt=2), container(number=2)]
    lengths |= {await length_ms(1, other) for other in others}
    lengths |= {await length_ms(2, container()), await length_ms(1, container(), launch=2)}
    assert len(lengths) == 6
