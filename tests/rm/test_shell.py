"""The shell around a scripted core: order of effects, answers, timers, the event log."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rm.core.effects import CleanUpAM, Effect, LaunchAM, SaveNodeLabels
from rm.core.events import (
    Allocate,
    AMLaunched,
    Event,
    GetNewApplication,
    NodeHeartbeat,
    ProcessStalled,
    RegisterNode,
    SubmitApplication,
)
from rm.core.stored_state import NodeLabelState
from rm.shell.effects import ResourceManagerShell
from tests.rm.served_cluster import until
from wire.event_log import EventLog, LoggedStep, read_event_log
from yarn.applications import ApplicationSubmissionContext
from yarn.containers import Container
from yarn.errors import ApplicationNotFoundException, RemoteError
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.machine import Refuse, Reply, StateChanged, Tick, Warn
from yarn.protocols.master import AllocateRequest
from yarn.protocols.tracker import NodeHeartbeatRequest, RegisterNodeManagerRequest
from yarn.resource import Resource

ATTEMPT = ApplicationAttemptId(ApplicationId(1, 1), 1)
SAVED = SaveNodeLabels(NodeLabelState())
CONTAINER = Container(ContainerId(ATTEMPT, 1), NodeId("n", 1), "n:2", Resource(1, 1), 0)


class ScriptedCore:
    """Answers each event with the next list of effects; an exception in the script is raised."""

    def __init__(self, *script: list[Effect] | Exception) -> None:
        self.script = list(script)
        self.events: list[tuple[Event, int]] = []
        self.deadline_ms: int | None = None

    def handle(self, event: Event, now_ms: int) -> list[Effect]:
        self.events.append((event, now_ms))
        step = self.script.pop(0) if self.script else []
        if isinstance(step, Exception):
            raise step
        return step

    def next_deadline_ms(self) -> int | None:
        return self.deadline_ms


class Clock:
    def __init__(self, now_ms: int = 1000) -> None:
        self.now_ms = now_ms

    def __call__(self) -> int:
        return self.now_ms


async def test_a_call_gets_the_reply_with_its_number() -> None:
    core = ScriptedCore([Warn("first"), Reply(1, "one")], [Refuse(2, ApplicationNotFoundException("none"))])
    shell = ResourceManagerShell(core, Clock())
    assert await shell.ask(GetNewApplication) == "one"
    with pytest.raises(ApplicationNotFoundException, match="none"):
        await shell.ask(GetNewApplication)
    assert core.events == [(GetNewApplication(1), 1000), (GetNewApplication(2), 1000)]


async def test_a_reply_may_come_in_a_later_step() -> None:
    """As if a store had to commit first."""
    core = ScriptedCore([], [], [Reply(2, "two"), Reply(1, "one")])
    shell = ResourceManagerShell(core, Clock())
    async with asyncio.TaskGroup() as tasks:
        first = tasks.create_task(shell.ask(GetNewApplication))
        second = tasks.create_task(shell.ask(GetNewApplication))
        await until(lambda: len(core.events) >= 2)
        shell.handle(Tick())
    assert (first.result(), second.result()) == ("one", "two")


async def test_a_reply_for_a_cancelled_call_is_dropped() -> None:
    core = ScriptedCore([], [Reply(1, "late"), Refuse(1, ApplicationNotFoundException("late"))])
    shell = ResourceManagerShell(core, Clock())
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await shell.ask(GetNewApplication)
    shell.handle(Tick())


class BusyWriter:
    """Always has records to write, and keeps the replies that wait for them."""

    problem = None
    is_busy = True

    def __init__(self) -> None:
        self.effects: list[object] = []
        self.answers: list[object] = []

    def put(self, effects: list[Any], answers: list[Any]) -> None:
        self.effects += effects
        self.answers += answers


async def test_only_replies_to_durable_requests_wait_for_the_store() -> None:
    """A heartbeat that arrives after it does not wait."""
    core = ScriptedCore([Reply(1, "stored")], [Reply(2, "beaten")])
    shell = ResourceManagerShell(core, Clock())
    writer = shell.store_writer = BusyWriter()
    async with asyncio.TaskGroup() as tasks:
        order = tasks.create_task(
            shell.ask(lambda call: SubmitApplication(call, "ann", ApplicationSubmissionContext(ATTEMPT.application_id)))
        )
        await until(lambda: writer.answers)
        beat = shell.begin(lambda call: NodeHeartbeat(call, NodeHeartbeatRequest(NodeId("n", 1), 0)))
        assert beat.result() == "beaten"
        assert writer.answers == [Reply(1, "stored")]
        shell.answer(1, "stored")
    assert order.result() == "stored"
    shell.close()


@pytest.mark.parametrize(
    "beat",
    [
        lambda call: NodeHeartbeat(call, NodeHeartbeatRequest(NodeId("n", 1), 0)),
        lambda call: RegisterNode(call, RegisterNodeManagerRequest(NodeId("n", 1), 8042, Resource(1, 1)), "/r"),
        lambda call: Allocate(call, ATTEMPT, AllocateRequest(0)),
    ],
    ids=["node", "new node", "master"],
)
async def test_a_heartbeat_does_not_wait_for_the_records_that_it_stores(beat: Callable[[int], Event]) -> None:
    """A node that gets no replies would expire; it must survive a full disk."""
    core = ScriptedCore([StateChanged("RMApp", "a", "KILL", "RUNNING", "KILLED"), SAVED, Reply(1, "beaten")])
    shell = ResourceManagerShell(core, Clock())
    writer = shell.store_writer = BusyWriter()
    assert shell.begin(beat).result() == "beaten"
    assert (writer.effects, writer.answers) == ([SAVED], [])
    shell.close()


async def test_effects_are_carried_out_in_their_order() -> None:
    launch = LaunchAM(ATTEMPT, CONTAINER, ApplicationSubmissionContext(ATTEMPT.application_id), "ann", 5)
    clean_up = CleanUpAM(ATTEMPT, CONTAINER.id, CONTAINER.node_id)
    ended = StateChanged("RMAppAttempt", str(ATTEMPT), "KILL", "RUNNING", "KILLED")
    other = StateChanged("RMApp", "application_1_0001", "KILL", "RUNNING", "KILLED")
    shell = ResourceManagerShell(ScriptedCore([launch, ended, other, clean_up]), Clock())
    done: list[Any] = []
    shell.launch, shell.clean_up, shell.attempt_ended = done.append, done.append, done.append
    shell.handle(Tick())
    assert done == [launch, str(ATTEMPT), clean_up]


async def test_changes_and_warnings_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    changed = StateChanged("RMNode", "n1:1", "EXPIRE", "RUNNING", "LOST", "capability=<memory:1, vCores:1>")
    shell = ResourceManagerShell(ScriptedCore([changed, Warn("odd")]), Clock())
    shell.handle(Tick())
    assert [record.getMessage() for record in caplog.records] == [
        "RMNode=n1:1 event=EXPIRE from=RUNNING to=LOST detail='capability=<memory:1, vCores:1>'",
        "odd",
    ]


async def test_a_failed_step_is_raised_to_its_caller_only() -> None:
    core = ScriptedCore(AssertionError("invariant"), [Reply(2, "fine")])
    shell = ResourceManagerShell(core, Clock())
    with pytest.raises(AssertionError, match="invariant"):
        await shell.ask(GetNewApplication)
    assert await shell.ask(GetNewApplication) == "fine"


async def test_of_concurrent_calls_only_the_failing_one_gets_its_error() -> None:
    core = ScriptedCore([Reply(1, "one")], AssertionError("invariant"), [], [Reply(3, "three")])
    shell = ResourceManagerShell(core, Clock())
    first, second, third = (shell.begin(GetNewApplication) for _ in range(3))
    assert first.done()
    assert first.result() == "one"
    with pytest.raises(RemoteError, match="AssertionError; the server's log has the traceback"):
        await second
    assert not third.done()
    shell.handle(Tick())
    assert await third == "three"
    shell.close()


# Timers


async def test_a_tick_is_sent_at_the_cores_deadline() -> None:
    clock = Clock()
    core = ScriptedCore()
    shell = ResourceManagerShell(core, clock)
    core.deadline_ms = 1005
    shell.handle(AMLaunched(ATTEMPT))
    clock.now_ms = 1005
    core.deadline_ms = None if len(core.events) > 1 else 1005
    await until(lambda: len(core.events) >= 2)
    core.deadline_ms = None
    assert core.events[1] == (Tick(), 1005)
    shell.close()


async def test_the_deadline_of_concurrent_calls_is_read_once_and_kept() -> None:
    asked = []

    class Asked(ScriptedCore):
        def next_deadline_ms(self) -> int | None:
            asked.append(len(self.events))
            return super().next_deadline_ms()

    clock, core = Clock(), Asked()
    shell = ResourceManagerShell(core, clock)
    core.deadline_ms = 1005
    for _ in range(5):
        shell.begin(GetNewApplication)
    assert asked == []
    await asyncio.sleep(0)
    assert asked == [5]
    clock.now_ms = 1005
    await until(lambda: len(core.events) >= 6)
    core.deadline_ms = None
    assert core.events[5] == (Tick(), 1005)
    shell.close()


async def test_no_tick_is_sent_before_the_deadline() -> None:
    """The timer fires by the event loop's clock, but the shell's clock decides."""
    clock = Clock()
    core = ScriptedCore()
    core.deadline_ms = 1001
    shell = ResourceManagerShell(core, clock)
    shell.handle(AMLaunched(ATTEMPT))
    await asyncio.sleep(0.01)
    assert len(core.events) == 1
    clock.now_ms = 1001
    await until(lambda: len(core.events) > 1)
    core.deadline_ms = None
    shell.close()


async def test_an_earlier_deadline_replaces_the_timer() -> None:
    clock = Clock()
    core = ScriptedCore()
    core.deadline_ms = 1_000_000
    shell = ResourceManagerShell(core, clock)
    shell.handle(AMLaunched(ATTEMPT))
    core.deadline_ms = 1002
    shell.handle(AMLaunched(ATTEMPT))
    clock.now_ms = 1002
    await until(lambda: len(core.events) > 2)
    core.deadline_ms = None
    shell.close()


async def test_a_tick_that_fails_is_logged_and_ticks_go_on(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    core = ScriptedCore([], AssertionError("invariant"))
    core.deadline_ms = 1001
    shell = ResourceManagerShell(core, clock)
    shell.handle(AMLaunched(ATTEMPT))
    clock.now_ms = 1001
    await until(lambda: len(core.events) > 2)
    core.deadline_ms = None
    shell.close()
    assert "processing an event failed event=Tick" in caplog.text


# A stalled process


async def test_a_stall_is_reported_to_the_core_before_any_other_event() -> None:
    """SIGSTOP, or a machine that sleeps: when it continues, timers and calls fire at once, in any order."""
    core, clock = ScriptedCore(), Clock()
    shell = ResourceManagerShell(core, clock)
    shell.detect_stalls(10_000)
    clock.now_ms += 10_000
    shell.handle(Tick())
    clock.now_ms += 12_000
    shell.handle(Tick())
    shell.handle(Tick())
    handled = [event for event, _ in core.events]
    assert [type(event) for event in handled] == [Tick, ProcessStalled, Tick, Tick]
    assert handled[1] == ProcessStalled(12_000)
    shell.close()


async def test_an_idle_process_is_not_stalled() -> None:
    core, clock = ScriptedCore(), Clock()
    shell = ResourceManagerShell(core, clock)
    shell.detect_stalls(30)
    for _ in range(3):
        clock.now_ms += 25
        await until(lambda: shell._last_run_ms == clock.now_ms)
    shell.handle(Tick())
    assert [event for event, _ in core.events] == [Tick()]
    shell.close()


async def test_without_detect_stalls_no_stall_is_reported() -> None:
    core, clock = ScriptedCore(), Clock()
    shell = ResourceManagerShell(core, clock)
    clock.now_ms += 10**9
    shell.handle(Tick())
    assert [event for event, _ in core.events] == [Tick()]


# The event log


async def test_each_step_is_recorded(tmp_path: Path) -> None:
    shell = ResourceManagerShell(ScriptedCore([Reply(1, None)], [Warn("w")]), Clock())
    shell.event_log = EventLog(tmp_path / "log", None)
    await shell.ask(GetNewApplication)
    shell.handle(Tick())
    shell.close()
    _, steps = read_event_log(tmp_path / "log")
    assert list(steps) == [
        LoggedStep(1000, "", GetNewApplication(1), (Reply(1, None),)),
        LoggedStep(1000, "", Tick(), (Warn("w"),)),
    ]


async def test_a_full_disk_ends_only_the_event_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    shell = ResourceManagerShell(ScriptedCore([Reply(1, "a")], [Reply(2, "b")]), Clock())
    shell.event_log = EventLog(tmp_path / "log", None, key="yarn.yarnling.event-log")
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, shell.event_log._file.fileno())
    os.close(full)
    assert await shell.ask(GetNewApplication) == "a"
    assert await shell.ask(GetNewApplication) == "b"
    shell.close()
    (message,) = [record.getMessage() for record in caplog.records]
    assert message.startswith(
        "continuing without the event log: the event log cannot be written: yarn.yarnling.event-log ="
    )
    assert "No space left on device (free some space" in message
