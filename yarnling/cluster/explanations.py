"""Explanations of why applications wait, in sentences for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby

from msgspec.structs import replace
from rich.text import Text

from yarn.applications import ApplicationReport
from yarn.containers import ANY
from yarn.errors import YarnException
from yarn.ids import NodeId
from yarn.nodes import NodeReport, node_groups
from yarn.protocols.inspection import Explanation, ObstacleReport, ObstacleScope, PendingAsk, VerdictReport
from yarn.resource import MEMORY_MB, VCORES, Resource
from yarn.states import FINAL_APPLICATION_STATES, NodeState, YarnApplicationState
from yarn.times import duration
from yarnling.cluster.client import Client
from yarnling.cluster.nodes import complaints
from yarnling.report.escapes import in_line

EXPLAINED_MAX = 20
"""The number of applications that are explained if no id is given, oldest first."""

NAMED_NODES_MAX = 5
"""The number of nodes that are named of those with the same refusal."""

_DEFAULT_LABELS = ("requested", "available")
_LABELS = {
    "QUEUE_MAXIMUM": ("in use", "at most"),
    "COMMIT_QUEUE_MAXIMUM": ("would be in use", "at most"),
    "USER_LIMIT": ("the user has", "at most"),
    "COMMIT_USER_LIMIT": ("the user has", "at most"),
    "AM_QUEUE_LIMIT": ("AMs would use", "at most"),
    "AM_USER_LIMIT": ("the user's AMs would use", "at most"),
    "QUEUE_HEADROOM": ("requested", "headroom"),
    "QUEUE_NODE_RESERVED": ("reserved for another application", ""),
    "NODE_TOTAL_TOO_SMALL": ("requested", "node total"),
    "NODE_FULL": ("requested", "free"),
    "QUEUE_NODE_FULL": ("smallest container", "free"),
    "NODE_TOO_SMALL": ("smallest container", "obtainable"),
    "COMMIT_NO_ROOM": ("requested", "free"),
    "COMMIT_NODE_STATE": ("requested", "free"),
}
"""The labels of the two amounts that were compared, by reason; other reasons have _DEFAULT_LABELS."""


async def waiting(client: Client, applications: Iterable[ApplicationReport]) -> list[Explanation]:
    """Explanations for the first of these applications that have pending requests.

    Applications that this user may not view are left out.
    """
    found: list[Explanation] = []
    for app in [app for app in applications if app.state not in FINAL_APPLICATION_STATES][:EXPLAINED_MAX]:
        with suppress(YarnException):
            explanation = await client.explain(app.application_id)
            if explanation.asks:
                found.append(explanation)
    return found


def explained(found: Explanation, nodes: Sequence[NodeReport] = ()) -> Iterator[Text]:
    """The lines of an explanation: each pending request with its verdict, reservations, and the last refusals.

    `nodes` are all nodes of the cluster, to explain the case that none of them was offered to the application.
    """
    state = in_line(f"{found.application_id} of {found.user} in {found.queue}: {found.state.name}")
    yield Text.assemble((state, "bold"))
    if not found.asks:
        ended = found.state in FINAL_APPLICATION_STATES
        yield Text("It has ended." if ended else "It has no pending requests.")
        for verdict in found.verdicts:
            yield from _verdict(verdict, found.now_ms)
    if (refused := found.refused_start) is not None:
        age = _age(found.now_ms - refused.at_ms)
        yield Text(in_line(f"{refused.node_id} refused to start {refused.container_id}, {age} ago:"), "bold yellow")
        yield Text(in_line(f"    {refused.reason}"))
    yield from _requests(found)
    for reservation in found.reservations:
        age = _age(found.now_ms - reservation.since_ms)
        size = amounts(reservation.resource, found.counted_types)
        yield Text(f"Reserved for it on {reservation.node_id}: {size}, for {age}")
    if found.obstacles:
        yield Text("Last refusals", "bold")
    for alike in _alike(found.obstacles):
        yield from _described(alike, found)
    if found.asks and not found.obstacles:
        yield Text("No refusal yet: no node has refused the request since it was sent.")
        if nodes and not any(node.state is NodeState.RUNNING for node in nodes):
            yield Text("No node is running.", "bold")
        for complaint in complaints(node_groups(nodes)):
            yield Text(in_line(f"  {complaint}"))


def _requests(found: Explanation) -> Iterator[Text]:
    """Describe the pending requests, each followed by the verdict on why it waits."""
    for_am = ", for its ApplicationMaster" if found.state is YarnApplicationState.ACCEPTED else ""
    verdicts = {(verdict.priority, verdict.allocation_request_id): verdict for verdict in found.verdicts}
    for key, rows in groupby(found.asks, key=lambda ask: (ask.priority, ask.allocation_request_id)):
        for ask in rows:
            yield Text(in_line(f"  {request_text(ask, found.counted_types)}{for_am}"))
        if key in verdicts:
            yield from _verdict(verdicts[key], found.now_ms)


def _verdict(verdict: VerdictReport, now_ms: int) -> Iterator[Text]:
    """Describe a verdict: why the request waits, the changes that would help, settings, notes, and nodes."""
    yield Text(in_line(f"    {verdict.sentence}"), "bold yellow")
    for change in verdict.changes:
        yield Text(in_line(f"    it would get a container {change}"), "green")
    for setting in verdict.settings:
        yield Text(in_line(f"    {setting.key} = {setting.value}"), "cyan")
    for note in verdict.notes:
        yield Text(in_line(f"    {note}"))
    total = sum(alike.count for alike in verdict.nodes)
    for alike in verdict.nodes:
        where = _where(alike.node_ids, alike.count)
        yield Text(in_line(f"    on {alike.count} of {total} nodes ({where}): {alike.sentence}"))
    if verdict.nodes:
        yield Text(f"    requested {_age(now_ms - verdict.since_ms)} ago")


def _where(node_ids: Sequence[NodeId], count: int) -> str:
    """The names of the first few of `count` nodes."""
    names = [node_id.host for node_id in node_ids[:NAMED_NODES_MAX]]
    return ", ".join([*names, "..."] if count > len(names) else names)


def _alike(obstacles: Iterable[ObstacleReport]) -> list[list[ObstacleReport]]:
    """Group obstacles that differ only in node and time."""
    groups: dict[object, list[ObstacleReport]] = {}
    for obstacle in obstacles:
        groups.setdefault(replace(obstacle, node_id=None, at_ms=0), []).append(obstacle)
    return list(groups.values())


def amounts(resource: Resource, counted: Iterable[str] = ()) -> str:
    """A resource as text, with units: only the types that count, or all if these are not known."""
    units = {MEMORY_MB: "MB", VCORES: "vcore" if resource.vcores == 1 else "vcores"}
    held = resource.amounts()
    return ", ".join(f"{held.get(name, 0)} {units.get(name, name)}" for name in (counted or held))


def _described(alike: Sequence[ObstacleReport], found: Explanation) -> Iterator[Text]:
    """Describe a group of obstacles that differ only in node and time."""
    first = alike[0]
    node_ids = [obstacle.node_id for obstacle in alike if obstacle.node_id is not None]
    place = f"on {len(node_ids)} nodes ({_where(node_ids, len(node_ids))})" if node_ids[1:] else "everywhere"
    if len(node_ids) == 1:
        place = f"on {node_ids[0]}"
    newest = _age(found.now_ms - max(obstacle.at_ms for obstacle in alike))
    oldest = _age(found.now_ms - min(obstacle.at_ms for obstacle in alike))
    age = newest if newest == oldest else f"{newest} to {oldest}"
    yield Text(in_line(f"  {place}, {age} ago, {_whose(first)}: {first.message}"))
    numbers = _numbers(first, found.counted_types)
    if numbers:
        yield Text(in_line(f"    {numbers}"))
    for setting in first.settings:
        yield Text(in_line(f"    {setting.key} = {setting.value}"), "cyan")


def _numbers(obstacle: ObstacleReport, counted: Iterable[str]) -> str:
    requested, bound = _LABELS.get(obstacle.reason, _DEFAULT_LABELS)
    parts = [(requested, obstacle.asked), (bound, obstacle.bound)]
    return "; ".join(f"{label} {amounts(value, counted)}" for label, value in parts if value is not None)


def _whose(obstacle: ObstacleReport) -> str:
    if obstacle.scope is ObstacleScope.APPLICATION:
        return "the application"
    return f"{'user' if obstacle.scope is ObstacleScope.USER else 'queue'} {obstacle.subject}"


def request_text(ask: PendingAsk, counted: Iterable[str]) -> str:
    """A pending request in one line: how many containers of which size, and where."""
    place = "anywhere" if ask.resource_name == ANY else f"on {ask.resource_name}"
    if ask.resource_name == ANY and not ask.relax_locality:
        place = "only at the requested locations"
    label = f", label {ask.label}" if ask.label else ""
    number = f", request {ask.allocation_request_id}" if ask.allocation_request_id >= 0 else ""
    return f"{ask.count} x {amounts(ask.capability, counted)} {place}, priority {ask.priority}{number}{label}"


def _age(elapsed_ms: int) -> str:
    return duration(max(0, elapsed_ms))
