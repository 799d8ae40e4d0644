"""Waiting for conditions of a cluster: its nodes, its containers, or any function. Tests need no sleep."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

import psutil

from yarn.applications import ContainerReport
from yarn.errors import ContainerNotFoundException
from yarn.ids import ApplicationId, ContainerId, NodeId
from yarn.nodes import NodeReport
from yarn.states import ContainerState, NodeState
from yarnling.cluster.client import Client, WaitTimeout
from yarnling.cluster.containers import processes_of

T = TypeVar("T")

WAIT_S = 30.0
"""The default timeout: far above what a healthy cluster takes on a busy machine."""
POLL_S = 0.02
"""Minimum interval between two checks; a check is a call or two of the ResourceManager, a millisecond of its time.

A check that takes longer, for example a list of ten thousand nodes, is followed by an equally long pause."""


@overload
async def until(condition: Callable[[], Awaitable[T]], timeout_s: float = WAIT_S) -> T: ...
@overload
async def until(condition: Callable[[], T], timeout_s: float = WAIT_S) -> T: ...
async def until(condition: Callable[[], Any], timeout_s: float = WAIT_S) -> Any:
    """The first true value that `condition`, a function or a coroutine function, returns.

    Raises WaitTimeout with the last value, and the errors of `condition`.
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
        raise WaitTimeout(f"after {timeout_s:g} s still {value!r}") from None


def until_blocking(condition: Callable[[], T], timeout_s: float = WAIT_S) -> T:
    """As `until`, without asyncio; `condition` runs in this thread."""
    deadline = time.monotonic() + timeout_s
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise WaitTimeout(f"after {timeout_s:g} s still {value!r}")
        time.sleep(POLL_S)
    return value


async def wait_nodes(client: Client, count: int, state: NodeState, timeout_s: float) -> tuple[NodeReport, ...]:
    """The nodes in `state`, once there are exactly `count`."""
    seen: tuple[NodeReport, ...] = ()

    async def has_count() -> bool:
        nonlocal seen
        seen = await client.nodes(frozenset({state}))
        return len(seen) == count

    try:
        await until(has_count, timeout_s)
    except WaitTimeout:
        raise WaitTimeout(f"after {timeout_s:g} s {len(seen)} nodes are {state.name}, not {count}") from None
    return seen


async def wait_node(client: Client, node_id: NodeId, states: frozenset[NodeState], timeout_s: float) -> NodeReport:
    """The ResourceManager's report of a node, once it is in one of `states`."""
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
    """The running containers of the application's current attempt without its ApplicationMaster's.

    Returns once there are at least `count`, with `exactly` once there are neither more nor fewer.
    """
    running: tuple[ContainerReport, ...] = ()

    async def has_count() -> bool:
        nonlocal running
        running = await _running_tasks(client, app_id)
        return len(running) == count or (len(running) > count and not exactly)

    try:
        await until(has_count, timeout_s)
    except WaitTimeout:
        report = await client.report(app_id)
        bound = "exactly " if exactly else ""
        raise WaitTimeout(
            f"after {timeout_s:g} s {len(running)} containers of {app_id} run, not {bound}{count}: "
            f"it is {report.state.name}"
        ) from None
    return running


async def wait_processes(client: Client, container_id: ContainerId, below: int) -> list[psutil.Process]:
    """The container's processes among the descendants of `below`, once there are some.

    Raises ContainerNotFoundException if the container has ended.
    """
    while not (processes := processes_of(container_id, below)):
        report = await client.container(container_id)
        if report.state is ContainerState.COMPLETE:
            raise ContainerNotFoundException(f"{container_id} has ended")
        await asyncio.sleep(POLL_S)
    return processes


async def wait_am(client: Client, app_id: ApplicationId | str) -> ContainerId:
    """The container of the application's current ApplicationMaster, once it has one."""

    async def current() -> ContainerId | None:
        attempt_id = (await client.report(app_id)).current_attempt_id
        attempts = {attempt.attempt_id: attempt for attempt in await client.attempts(app_id)}
        return attempts[attempt_id].am_container_id if attempt_id in attempts else None

    am = await until(current)
    assert am is not None
    return am


async def _running_tasks(client: Client, app_id: ApplicationId | str) -> tuple[ContainerReport, ...]:
    """Containers are listed before attempts: an attempt knows its AM's container before that is in the list."""
    current = (await client.report(app_id)).current_attempt_id
    containers = await client.containers(current)
    ams = {attempt.am_container_id for attempt in await client.attempts(app_id)}
    return tuple(
        container
        for container in containers
        if container.container_id not in ams and container.state is ContainerState.RUNNING
    )
