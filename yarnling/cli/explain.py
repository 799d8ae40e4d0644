"""`yarnling explain`: why an application has not got its next container."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby

from rich.text import Text

from yarn.applications import ApplicationReport
from yarn.asks import ANY
from yarn.errors import YarnException
from yarn.ids import ApplicationId
from yarn.nodes import NodeReport
from yarn.protocols.inspection import Explanation, ObstacleReport, ObstacleScope, PendingAsk
from yarn.resource import MEMORY_MB, VCORES, Resource
from yarn.states import FINAL_APPLICATION_STATES, NodeState, YarnApplicationState
from yarnling.cli import json_form
from yarnling.cli.arguments import reading_arguments
from yarnling.cli.connection import connect
from yarnling.cli.terminal import in_line, print_indented, terminal
from yarnling.cluster.client import Client
from yarnling.cluster.nodes import complaints

EXPLAINED_MAX = 20
"""Applications, the oldest first, where none is named."""

# {reason: what is compared with what}; others compare what is asked for with what there is.
_COMPARED = {
    "QUEUE_MAXIMUM": ("in use", "at most"),
    "COMMIT_QUEUE_MAXIMUM": ("with it in use", "at most"),
    "USER_LIMIT": ("the user has", "at most"),
    "COMMIT_USER_LIMIT": ("the user has", "at most"),
    "AM_QUEUE_LIMIT": ("with it masters have", "at most"),
    "AM_USER_LIMIT": ("with it the user's masters have", "at most"),
    "QUEUE_HEADROOM": ("asked", "left of the queue"),
    "QUEUE_NODE_RESERVED": ("kept for another", ""),
    "NODE_TOTAL_TOO_SMALL": ("asked", "the whole node"),
    "NODE_FULL": ("asked", "free"),
    "QUEUE_NODE_FULL": ("least container", "free"),
    "NODE_TOO_SMALL": ("least container", "within reach"),
    "COMMIT_NO_ROOM": ("asked", "free"),
    "COMMIT_NODE_STATE": ("asked", "free"),
}


def show(name: str, application: str | None, user: str, *, as_json: bool) -> None:
    """Print the explanation, or those of all that wait. Raises what the ResourceManager refuses with."""
    with reading_arguments():
        app_id = None if application is None else ApplicationId.parse(application)
    found, nodes = asyncio.run(_ask(name, app_id, user))
    if as_json:
        sys.stdout.write(json_form.text(found if app_id is None else found[0]) + "\n")
        return
    console = terminal()
    if not found:
        console.print("No application waits for anything.")
    for explanation in found:
        for line in explained(explanation, nodes):
            print_indented(console, line)


async def _ask(name: str, app_id: ApplicationId | None, user: str) -> tuple[list[Explanation], tuple[NodeReport, ...]]:
    _, client = connect(name, user)
    async with client:
        if app_id is not None:
            return [await client.explain(app_id)], await client.nodes()
        applications = sorted(await client.applications(), key=lambda app: app.application_id)
        return await waiting(client, applications), await client.nodes()


async def waiting(client: Client, applications: Iterable[ApplicationReport]) -> list[Explanation]:
    """Why, of the first of these that ask for something; what this user may not view is not explained."""
    found: list[Explanation] = []
    for app in [app for app in applications if app.state not in FINAL_APPLICATION_STATES][:EXPLAINED_MAX]:
        with suppress(YarnException):
            explanation = await client.explain(app.application_id)
            if explanation.asks:
                found.append(explanation)
    return found


def explained(found: Explanation, nodes: Sequence[NodeReport] = ()) -> Iterator[Text]:
    """Line by line: what is asked for, what is kept for it, and on each node what stands in the way.

    `nodes`: those of the cluster, to tell why nothing is offered at all.
    """
    state = in_line(f"{found.application_id} of {found.user} in {found.queue}: {found.state.name}")
    yield Text.assemble((state, "bold"))
    if not found.asks:
        over = found.state in FINAL_APPLICATION_STATES
        yield Text("It is over." if over else "It asks for nothing.")
    for_master = ", for its master" if found.state is YarnApplicationState.ACCEPTED else ""
    for ask in found.asks:
        yield Text(in_line(f"  {_asked(ask)}{for_master}"))
    for kept in found.reservations:
        age = _age(found.now_ms - kept.since_ms)
        yield Text(f"Kept for it on {kept.node_id}: {amounts(kept.resource)}, for {age}")
    for place, obstacles in groupby(found.obstacles, key=lambda obstacle: obstacle.node_id):
        yield Text("Everywhere" if place is None else f"On {place}", "bold")
        for obstacle in obstacles:
            yield from _told(obstacle, found.now_ms)
    if found.asks and not found.obstacles:
        yield Text("Nothing has refused it yet: no node has been offered to it since it asked.")
        if nodes and not any(node.state is NodeState.RUNNING for node in nodes):
            yield Text("No node runs.", "bold")
        for complaint in complaints(nodes):
            yield Text(in_line(f"  {complaint}"))


def short(obstacle: ObstacleReport) -> str:
    """One line of an obstacle: whose it is, what it says, the numbers."""
    numbers = _numbers(obstacle)
    return in_line(f"{_whose(obstacle)}: {obstacle.message.rstrip('.')}{f' ({numbers})' if numbers else ''}")


def amounts(resource: Resource) -> str:
    """Amounts with their units."""
    units = {MEMORY_MB: "MB", VCORES: "vcore" if resource.vcores == 1 else "vcores"}
    return ", ".join(f"{amount} {units.get(name, name)}" for name, amount in resource.amounts().items())


def _told(obstacle: ObstacleReport, now_ms: int) -> Iterator[Text]:
    age = _age(now_ms - obstacle.at_ms)
    yield Text(in_line(f"  {_whose(obstacle)}, {age} ago: {obstacle.message}"))
    numbers = _numbers(obstacle)
    if numbers:
        yield Text(in_line(f"    {numbers}"))
    for setting in obstacle.settings:
        yield Text(in_line(f"    {setting.key} = {setting.value}"), "cyan")


def _numbers(obstacle: ObstacleReport) -> str:
    asked, bound = _COMPARED.get(obstacle.reason, ("asked", "there is"))
    parts = [(asked, obstacle.asked), (bound, obstacle.bound)]
    return "; ".join(f"{word} {amounts(value)}" for word, value in parts if value is not None)


def _whose(obstacle: ObstacleReport) -> str:
    if obstacle.scope is ObstacleScope.APPLICATION:
        return "the application"
    return f"{'user' if obstacle.scope is ObstacleScope.USER else 'queue'} {obstacle.subject}"


def _asked(ask: PendingAsk) -> str:
    place = "anywhere" if ask.resource_name == ANY else f"on {ask.resource_name}"
    if ask.resource_name == ANY and not ask.relax_locality:
        place = "at the places named alone"
    label = f", label {ask.label}" if ask.label else ""
    number = f", request {ask.allocation_request_id}" if ask.allocation_request_id >= 0 else ""
    return f"{ask.count} x {amounts(ask.capability)} {place}, priority {ask.priority}{number}{label}"


def _age(elapsed_ms: int) -> str:
    seconds = max(0, elapsed_ms) / 1000
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
