"""Waits for conditions of a cluster: of its nodes, of its containers, or any function. So tests need no sleep."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

import psutil

from yarn.applications import ApplicationReport, ContainerReport
from yarn.errors import ContainerNotFoundException
from yarn.ids import ApplicationId, ContainerId, NodeId
from yarn.nodes import NodeReport
from yarn.states import ContainerState, NodeState
from yarnling.cluster.client import Client, WaitTimeout, why_waiting
from yarnling.cluster.containers import processes_of

T = TypeVar("T")

WAIT_S = 30.0
"""The default timeout in seconds: far longer than a healthy cluster needs on a busy machine."""
POLL_S = 0.02
"""The minimum interval between two checks, in seconds.

Most checks are one or two calls, which take the ResourceManager a millisecond. A check that takes longer, for example a
list of ten thousand nodes, is followed by an equally long pause.
"""


@overload
async def until(condition: Callable[[], Awaitable[T]], timeout_s: float = WAIT_S) -> T: ...
@overload
async def until(condition: Callable[[], T], timeout_s: float = WAIT_S) -> T: ...
async def until(condition: Callable[[], Any], timeout_s: float = WAIT_S) -> Any:
    """Call `condition`, a function or a coroutine function, until it returns a true value, and return that value.

    Raises WaitTimeout, which contains the last value, and any error of `condition`.
    """
    value = None
    scope = asyncio.timeout(timeout_s)
    try:
        async with scope:
            while True:
                checked_s = time.monotonic()
                result = condition()
                value = await result if inspect.isawaitable(result) else result
                if value:
                    return value
                await asyncio.sleep(max(POLL_S, time.monotonic() - checked_s))
    except TimeoutError:
        if not scope.expired():
            raise
        raise WaitTimeout(f"the condition was not met within {timeout_s:g} s; its last value was {value!r}") from None


def until_blocking(condition: Callable[[], T], timeout_s: float = WAIT_S) -> T:
    """Do what `until` does, without asyncio. `condition` is called in this thread."""
    deadline = time.monotonic() + timeout_s
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise WaitTimeout(f"the condition was not met within {timeout_s:g} s; its last value was {value!r}")
        time.sleep(POLL_S)
    return value


async def wait_nodes(client: Client, count: int, state: NodeState, timeout_s: float) -> tuple[NodeReport, ...]:
    """Wait until exactly `count` nodes are in `state`, and return their reports."""
    reports: tuple[NodeReport, ...] = ()
    seen = 0

    async def has_count() -> bool:
        nonlocal reports, seen
        if state is NodeState.RUNNING:
            # A list of thousands of nodes takes a second, and their number does not.
            seen = (await client.metrics()).active
            if seen != count:
                return False
        reports = await client.nodes(frozenset({state}))
        seen = len(reports)
        return seen == count

    try:
        await until(has_count, timeout_s)
    except WaitTimeout:
        raise WaitTimeout(f"after {timeout_s:g} s {seen} nodes are {state.name}, not {count}") from None
    return reports


async def wait_node(client: Client, node_id: NodeId, states: frozenset[NodeState], timeout_s: float) -> NodeReport:
    """Wait until a node is in one of `states`, and return its report."""
    report: NodeReport | None = None

    async def has_state() -> bool:
        nonlocal report
        report = next((node for node in await client.nodes() if node.node_id == node_id), None)
        return report is not None and report.state in states

    try:
        await until(has_state, timeout_s)
    except WaitTimeout:
        wanted = " or ".join(sorted(state.name for state in states))
        seen = "unknown" if report is None else report.state.name
        raise WaitTimeout(f"after {timeout_s:g} s {node_id} is {seen}, not {wanted}") from None
    assert report is not None
    return report


async def wait_containers(
    client: Client, app_id: ApplicationId | str, count: int, timeout_s: float, *, exactly: bool = False
) -> tuple[ContainerReport, ...]:
    """Wait for containers of the application's current attempt, and return the reports of the running ones.

    The ApplicationMaster's container is left out. Returns once there are at least `count`; if `exactly`, once there are
    neither more nor fewer.
    """
    running: tuple[ContainerReport, ...] = ()
    state = ""

    async def has_count() -> bool:
        nonlocal running, state
        report = await client.report(app_id)
        running = await _running_tasks(client, report)
        state = report.state.name
        return len(running) == count or (len(running) > count and not exactly)

    try:
        await until(has_count, timeout_s)
    except WaitTimeout:
        wanted = f"not {'exactly ' if exactly else ''}{count}"
        found = f"{len(running)} containers of {app_id} run, {wanted}: it is {state}"
        if not state:
            found = f"the ResourceManager has not answered how many containers of {app_id} run"
        raise WaitTimeout(f"after {timeout_s:g} s {found}{await why_waiting(client, app_id)}") from None
    return running


async def wait_processes(client: Client, container_id: ContainerId, below: int) -> list[psutil.Process]:
    """Wait until the container has processes among the descendants of `below`, and return them.

    Raises ContainerNotFoundException if the container has ended.
    """
    while not (processes := processes_of(container_id, below)):
        report = await client.container(container_id)
        if report.state is ContainerState.COMPLETE:
            raise ContainerNotFoundException(f"{container_id} has ended")
        await asyncio.sleep(POLL_S)
    return processes


async def wait_am(client: Client, app_id: ApplicationId | str) -> ContainerId:
    """Wait until the application has a current ApplicationMaster, and return its container."""

    async def current() -> ContainerId | None:
        attempt_id = (await client.report(app_id)).current_attempt_id
        attempts = {attempt.attempt_id: attempt for attempt in await client.attempts(app_id)}
        return attempts[attempt_id].am_container_id if attempt_id in attempts else None

    am = await until(current)
    assert am is not None
    return am


async def _running_tasks(client: Client, report: ApplicationReport) -> tuple[ContainerReport, ...]:
    """The running containers of the application's current attempt, without the AM's.

    Containers are listed before attempts, because an attempt knows its AM's container before the container list has it.
    """
    containers = await client.containers(report.current_attempt_id)
    ams = {attempt.am_container_id for attempt in await client.attempts(report.application_id)}
    return tuple(
        container
        for container in containers
        if container.container_id not in ams and container.state is ContainerState.RUNNING
    )
