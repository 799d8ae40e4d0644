"""The emulated launcher: its answers to launches and signals, and that each end is sent once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from nm.core import emulated_containers
from nm.core.effects import LaunchContainer, Signal, SignalProcess
from nm.core.emulated_containers import PID_FIRST
from nm.core.emulation import Amount, EmulationStage, EmulationTable, Match, Rule
from nm.core.events import (
    ContainerExited,
    ContainerLaunched,
    ContainerSignalled,
    Event,
    LaunchCancelled,
)
from nm.emulation.launcher import EmulatedLauncher
from nm.launcher.containers_launcher import ContainersLauncher, Launchers
from nm.launcher.reacquired_containers import ReacquiredContainers
from tests.nm.nodes import container_id
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId
from yarn.resource import Resource

MB = 1 << 20
TABLE = EmulationTable(
    (
        Rule("short", Match(), (EmulationStage(20),)),
        Rule("fails", Match(), (EmulationStage(10, exit_code=3, exit_probability=1.0),)),
        Rule(
            "endless", Match(), (EmulationStage(None, memory_first=Amount(0.5, True), memory_last=Amount(0.5, True)),)
        ),
        Rule("long", Match(), (EmulationStage(3_600_000),)),
        Rule("drawn", Match(), (EmulationStage(1_000_000_000, jitter_ms=1_000_000_000),)),
    )
)


class Sent:
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

    def signal(self, number: int, signal: Signal, launch: int = 1, command: str = "") -> None:
        self._order(lambda: self.launcher.signal(SignalProcess(container_id(number), launch, signal, command)))

    async def until(self, count: int) -> list[Event]:
        """Wait for `count` events and return them. Two more turns of the loop show that there are no more."""
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
async def test_a_container_follows_its_profile_and_its_end_is_sent_once(rule: str, code: int) -> None:
    sent = Sent()
    sent.launch(1, rule)
    assert sent.launcher.has(container_id(1))
    assert await sent.until(2) == [launched(1), exited(1, code)]
    sent.signal(1, Signal.TERM)
    sent.signal(1, Signal.KILL)
    assert len(await sent.until(2)) == 2
    assert not sent.launcher.has(container_id(1))
    assert sent.launcher.idle.is_set()


async def test_ends_are_sent_in_the_order_of_their_times_not_of_the_launches() -> None:
    sent = Sent()
    sent.launch(1, "long")
    sent.launch(2, "short")
    sent.launch(3, "fails")
    assert await sent.until(5) == [launched(1), launched(2), launched(3), exited(3, 3), exited(2, 0)]
    assert not sent.launcher.idle.is_set()


@pytest.mark.parametrize(("signal", "code"), [(Signal.TERM, 143), (Signal.KILL, 137)])
@pytest.mark.parametrize("rule", ["long", "endless"])
async def test_a_signal_ends_it_once(signal: Signal, code: int, rule: str) -> None:
    sent = Sent()
    sent.launch(1, rule)
    await sent.until(1)
    sent.signal(1, signal)
    sent.signal(1, Signal.KILL)
    assert await sent.until(2) == [launched(1), exited(1, code)]


async def test_a_killed_container_has_no_second_end_when_its_profile_ends() -> None:
    sent = Sent()
    sent.launch(1, "short")
    await sent.until(1)
    sent.signal(1, Signal.KILL)
    sent.launch(2, "short")
    await sent.until(4)
    assert sent.events[1:] == [exited(1, 137), launched(2), exited(2, 0)]
    assert sent.launcher.containers._ends == []


async def test_containers_are_handed_to_the_launcher_of_their_rule_and_both_launchers_end_together() -> None:
    sent = Sent()
    real = ContainersLauncher(None, None, sent.events.append)  # type: ignore[arg-type]  # never gets as far as a start
    reacquired = ReacquiredContainers(None, sent.events.append)  # type: ignore[arg-type]  # it has no container
    launchers = Launchers(real, reacquired, sent.launcher)
    for number, rule in ((1, "endless"), (2, "")):
        launchers.launch(LaunchContainer(container_id(number), 1, "alice", (), {}, {}, "", Resource(1, 1), rule))
    launchers.signal(SignalProcess(container_id(2), 1, Signal.TERM))
    assert await sent.until(2) == [launched(1), LaunchCancelled(container_id(2), 1)]
    assert launchers.is_running(container_id(1))
    assert not launchers.is_running(container_id(2))
    assert not launchers.has_launched
    launchers.kill_all()
    await launchers.wait_idle()
    assert sent.events[2:] == [exited(1, 137)]


async def test_a_signal_before_the_start_cancels_it() -> None:
    sent = Sent()
    sent.launch(1, "long")
    sent.signal(1, Signal.TERM)
    assert await sent.until(1) == [LaunchCancelled(container_id(1), 1)]


async def test_quit_has_no_effect_and_a_users_signals_are_reported() -> None:
    sent = Sent()
    sent.launch(1, "long")
    sent.signal(1, Signal.QUIT)
    await sent.until(1)
    sent.signal(1, Signal.QUIT, command="OUTPUT_THREAD_DUMP")
    sent.signal(1, Signal.TERM, command="GRACEFUL_SHUTDOWN")
    pid = PID_FIRST + 1
    assert (await sent.until(4))[1:] == [
        ContainerSignalled(container_id(1), "OUTPUT_THREAD_DUMP", Signal.QUIT, pid, True),
        ContainerSignalled(container_id(1), "GRACEFUL_SHUTDOWN", Signal.TERM, pid, True),
        exited(1, 143),
    ]


async def test_a_relaunched_container_ignores_signals_for_its_earlier_launch() -> None:
    sent = Sent()
    sent.launch(1, "fails")
    await sent.until(2)
    sent.launch(1, "long", launch=2)
    await sent.until(3)
    sent.signal(1, Signal.KILL, launch=1)
    sent.signal(1, Signal.TERM, launch=2)
    assert (await sent.until(4))[2:] == [launched(1, 2), exited(1, 143, 2)]


async def test_kill_all_ends_everything() -> None:
    sent = Sent()
    for number in (1, 2):
        sent.launch(number, "endless")
    await sent.until(2)
    sent.launcher.kill_all()
    await sent.launcher.idle.wait()
    assert (await sent.until(4))[2:] == [exited(1, 137), exited(2, 137)]


async def test_ends_of_killed_containers_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emulated_containers, "STALE_ENDS_MAX", 10)
    sent = Sent()
    sent.launch(1, "long")
    for number in range(2, 40):
        sent.launch(number, "long")
        await asyncio.sleep(0)
        sent.signal(number, Signal.KILL)
        await asyncio.sleep(0)
    assert len(sent.launcher.containers._ends) <= 13
    assert container_id(1) in sent.launcher.containers.running


async def test_its_usage_is_that_of_one_process() -> None:
    sent = Sent()
    sent.launch(1, "endless")
    await sent.until(1)
    sample = sent.launcher.sample(container_id(1))
    assert sample is not None
    assert (sample.virtual_bytes, sample.pid, sample.command_line) == (50 * MB, PID_FIRST + 1, ("java", "Map"))
    sent.signal(1, Signal.KILL)
    assert sent.launcher.sample(container_id(1)) is None
    assert sent.launcher.sample(container_id(2)) is None


async def length_ms(seed: int, container: ContainerId, launch: int = 1) -> int | None:
    sent = Sent(EmulationTable(TABLE.rules, seed))
    effect = LaunchContainer(container, launch, "alice", (), {}, {}, "", Resource(100, 1), "drawn")
    sent.launcher.launch(effect)
    await sent.until(1)
    return sent.launcher.containers.running[container].profile.ends_after_ms


async def test_a_container_has_the_same_profile_in_every_run_and_on_every_node() -> None:
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
