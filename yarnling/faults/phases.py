"""The phases of a run: inject the faults while the work runs, recover the cluster, then drain it.

Draining means that all applications end and that all resources they used are released.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack, suppress
from typing import Any, Literal, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from yarn.errors import YarnException
from yarn.states import FINAL_APPLICATION_STATES, NodeState
from yarnling.faults.actions import ACTIONS
from yarnling.faults.cleanup import busy_nodes, live_containers, work_files
from yarnling.faults.history import History, InjectedFault, ProcessRole, ReportedEnd, SubmittedApplication
from yarnling.faults.notes import FRESH_S, ProcessNotes, now_s
from yarnling.faults.plan import Plan, WorkPlan, WorkProgram
from yarnling.faults.process_target import ProcessTarget
from yarnling.faults.schedule import FaultInjection
from yarnling.faults.target import POLL_S as TARGET_POLL_S
from yarnling.faults.target import WAIT_S, NoTarget
from yarnling.faults.workload import KILLED_AT_THE_END, WorkSubmitter

POLL_S = 0.1
ANSWER_S = 5.0
"""The time a ResourceManager may take to report which nodes are missing, in seconds."""

ReportKind = Literal["fault", "recovered", "phase", "problem", "state"]
Report = Callable[[ReportKind, str], None]
"""A function that is called with each event of a run, as a line of text."""
T = TypeVar("T")


class RunContext(Struct, frozen=True):
    """A running cluster, the plan for it, and the records of what happens."""

    plan: Plan
    injections: tuple[FaultInjection, ...]
    target: ProcessTarget
    workload: WorkSubmitter
    notes: ProcessNotes
    history: History
    report: Report


def describe(error: BaseException) -> str:
    """An exception, or all exceptions of a group, in one line."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(describe(inner) for inner in error.exceptions)
    return error.message if isinstance(error, YarnException) else f"{type(error).__name__}: {error}"


async def inject_faults(run: RunContext) -> None:
    """Submit the work and inject the faults. Returns when all faults are over and all submissions are acknowledged."""
    history = run.history
    history.started_s = now_s()
    run.report("phase", "working")
    most_s = run.plan.lasts + run.plan.expect.heal
    try:
        async with asyncio.timeout(most_s), asyncio.TaskGroup() as tasks:
            for work in run.plan.work:
                tasks.create_task(_submit(run, work))
            if run.plan.awaits_work:
                await _wait_for_work(run)
            for injection in run.injections:
                tasks.create_task(_inject(run, injection))
    except TimeoutError:
        history.not_recovered.append(f"a fault or a submission is still not over after {most_s:g} s")


async def _submit(run: RunContext, work: WorkPlan) -> None:
    try:
        await _result(run.workload.run(work))
    except YarnException as error:
        run.history.problem = f"{work.program.value} could not be submitted: {error.message}"


async def _wait_for_work(run: RunContext) -> None:
    """Wait for the first running container. Times are measured from then on: earlier faults would break nothing."""
    while not run.notes.alive(ProcessRole.CONTAINER, ProcessRole.TASK):  # noqa: ASYNC110  files set no event
        await asyncio.sleep(POLL_S)
    run.history.started_s = now_s()
    run.report("phase", "work has begun")


async def _inject(run: RunContext, injection: FaultInjection) -> None:
    """Inject a fault at its time, and undo it when its time is over."""
    history = run.history
    fault = AsyncExitStack()
    await asyncio.sleep(max(0.0, history.started_s + injection.at_ms / 1000 - now_s()))
    start_s = now_s()
    index = len(history.injected)
    history.injected.append(InjectedFault(injection, start_s))
    try:
        target = await _result(inject(fault, run.target, injection))
    except YarnException as error:
        # There was no target, or the target has just exited. For an optional fault this is acceptable.
        problem = "" if injection.optional else error.message
        history.injected[index] = InjectedFault(
            injection, start_s, now_s(), problem=problem, skipped=injection.optional
        )
        run.report("problem", f"{injection}: {error.message}")
        return
    injected = InjectedFault(injection, start_s, target=target)
    history.injected[index] = injected
    run.report("fault", f"{injection.kind.name} {target}")
    if injection.until_ms is None:
        await fault.aclose()
        return
    # The planned duration starts now: on a busy machine the injection itself takes a while.
    await asyncio.sleep((injection.until_ms - injection.at_ms) / 1000)
    try:
        await _result(fault.aclose())
    except YarnException as error:
        history.not_recovered.append(f"{injection.kind.name} {target}: {error.message}")
    history.injected[index] = replace(injected, recovered_s=now_s())
    run.report("recovered", f"{injection.kind.name} {target}")


async def inject(fault: AsyncExitStack, target: ProcessTarget, injection: FaultInjection) -> str:
    """Inject a fault, which `fault` then undoes, and return the name of its target.

    Waits for a target, as an earlier fault may still be undone, unless the fault is optional. Raises NoTarget.
    """
    deadline_s = now_s() + (0.0 if injection.optional else WAIT_S)
    while True:
        try:
            return await fault.enter_async_context(ACTIONS[injection.kind.name](target, injection))
        except NoTarget:
            if now_s() >= deadline_s:
                raise
        await asyncio.sleep(TARGET_POLL_S)


async def _result(step: Coroutine[Any, Any, T]) -> T:
    """Await a step of a fault. Raises YarnException for errors of the cluster or of an exited process."""
    try:
        return await step
    except* (YarnException, ProcessLookupError, TimeoutError) as errors:
        problem = describe(errors)
    # This is not done within `except*`: Python 3.11.2 would wrap the exception in a group.
    raise YarnException(problem)


async def recover(run: RunContext) -> None:
    """Undo the remaining faults, and wait until all daemons run again."""
    run.report("phase", "recovering")
    target, most_s = run.target, run.plan.expect.heal
    try:
        async with asyncio.timeout(most_s):
            await target.recover()
            while not await _all_nodes_run(target):
                # A node whose decommissioning has just been cancelled may still exit.
                await target.restart_nodes()
                await asyncio.sleep(POLL_S)
    except (YarnException, TimeoutError) as error:
        run.history.not_recovered.append(str(error) or f"not within {most_s:g} s")
        run.history.not_recovered += await _missing_nodes(target)
    run.history.recovered_s = now_s()


async def _all_nodes_run(target: ProcessTarget) -> bool:
    running = await target.cluster.client.nodes(frozenset({NodeState.RUNNING}))
    return len(running) == len(target.cluster.nodes)


async def _missing_nodes(target: ProcessTarget) -> list[str]:
    """A line for each node that is not RUNNING, or a line that says that the ResourceManager does not answer."""
    try:
        async with asyncio.timeout(ANSWER_S):
            nodes = await target.cluster.client.nodes()
    except (YarnException, TimeoutError):
        return ["the ResourceManager does not answer"]
    return [f"{node.node_id} is {node.state.name}" for node in nodes if node.state is not NodeState.RUNNING]


async def drain(run: RunContext) -> None:
    """Kill the services, and wait until all applications have ended and all resources they used are released.

    Services run until the last fencing window is over. If they were killed earlier, containers that run twice would end
    before the checks could see them.
    """
    await asyncio.sleep(max(0.0, _last_window_s(run) - now_s()))
    run.report("phase", "draining")
    history, most_s = run.history, run.plan.expect.drain
    try:
        async with asyncio.timeout(most_s):
            await _end_applications(run)
            while held := await _still_used(run.target):
                run.report("state", held[0])
                await asyncio.sleep(POLL_S)
        history.drained_s = now_s()
    except TimeoutError:
        history.not_drained += await _still_used(run.target)
        history.not_drained.append(f"not within {most_s:g} s")
    except YarnException as error:
        history.not_drained.append(error.message)
    for submitted in history.submissions:
        history.outcomes[submitted.application_id] = await _outcome(run, submitted)
        history.journals[submitted.application_id] = run.workload.journal(submitted.application_id)


async def _end_applications(run: RunContext) -> None:
    """Kill the applications that never end by themselves, and wait until all accepted ones have ended."""
    client = run.target.cluster.client
    accepted = [one for one in run.history.submissions if one.acknowledged_s is not None]
    for one in accepted:
        if one.program is WorkProgram.SERVICE:
            await client.kill(one.application_id, KILLED_AT_THE_END)
    for one in accepted:
        await client.wait(one.application_id)


def _last_window_s(run: RunContext) -> float:
    """The time when the last fencing window is over, and the notes of work that ended in it are no longer fresh."""
    hiding = [one for one in run.history.injected if one.injection.kind.hides_node and not one.skipped]
    ends = [one.recovered_s for one in hiding if one.recovered_s is not None]
    return max(ends, default=0.0) + run.plan.expect.fence + FRESH_S


async def _outcome(run: RunContext, submitted: SubmittedApplication) -> ReportedEnd:
    """The outcome of an application according to the ResourceManager; `state` is None if the RM cannot be asked."""
    application_id = submitted.application_id
    with suppress(YarnException):
        report = await run.target.cluster.client.report(application_id)
        ended = report.state in FINAL_APPLICATION_STATES
        counted = submitted.program is WorkProgram.WORDCOUNT and ended
        right = run.workload.is_right(application_id) if counted else None
        return ReportedEnd(
            report.state, report.final_status, report.current_attempt_id.attempt, report.diagnostics, right
        )
    return ReportedEnd(None)


async def _still_used(target: ProcessTarget) -> list[str]:
    """A line for each resource in use, according to the ResourceManager and to the processes and files of the nodes."""
    return [
        *await busy_nodes(target.cluster.client),
        *await asyncio.to_thread(live_containers, target.cluster.directory.path),
        *work_files(target.cluster.nodes),
    ]
