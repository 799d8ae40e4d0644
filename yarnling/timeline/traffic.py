"""The costs of a run's containers: how many RPCs, of which method, and how many bytes.

A call belongs to the containers whose ids are in its request or its reply: the `allocate` that delivers a container,
the `startContainers` that starts it, each `nodeHeartbeat` that reports its state, and so on. The call counts once for
each of them, and its bytes are divided equally between them. So the bytes of all containers, of the applications' calls
without a container and of the other calls add up to the bytes of the run. An ApplicationMaster's heartbeats without
news belong to its application only, a node's heartbeats without a container to nobody.

For example, a heartbeat of 90 bytes that reports three containers is one call for each, and 30 bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from msgspec import Struct, field

from yarnling.run.builder import applications_in
from yarnling.run.records import Call, RecordedRun, What

_CONTAINER = re.compile(r"container(?:_e\d+)?_\d+_\d+_\d+_\d+")


class Tally(Struct):
    """Calls and bytes by method. Bytes are 0 if the run does not have them."""

    calls: dict[str, int] = field(default_factory=dict)
    bytes: dict[str, float] = field(default_factory=dict)

    def add(self, rpc: str, size: float) -> None:
        self.calls[rpc] = self.calls.get(rpc, 0) + 1
        self.bytes[rpc] = self.bytes.get(rpc, 0.0) + size

    @property
    def all_calls(self) -> int:
        return sum(self.calls.values())

    @property
    def all_bytes(self) -> float:
        return sum(self.bytes.values())


class ContainerTraffic(Struct, frozen=True):
    """The traffic of one container. `node`: the title of its node, "" if it is not known."""

    container: str
    node: str
    tally: Tally


class ApplicationTraffic(Struct, frozen=True):
    """The traffic of one application.

    `tally`: all its calls, each once. `containers`: those that a call names, in the order of their ids.
    """

    application: str
    tally: Tally
    containers: tuple[ContainerTraffic, ...]

    def per_container(self, amount: float) -> float:
        """`amount` divided by the number of containers; 0 without any."""
        return amount / len(self.containers) if self.containers else 0.0


class Traffic(Struct, frozen=True):
    """The traffic of a run.

    `others`: the calls that name no application. `has_bytes`: False if the lengths of the messages are not known.
    """

    title: str
    total: Tally
    applications: tuple[ApplicationTraffic, ...]
    others: Tally
    has_bytes: bool

    def only(self, application: str) -> Traffic:
        """The traffic of one application. Of a call that it shares with others, its part of the bytes counts."""
        (found,) = (one for one in self.applications if one.application == application)
        return Traffic(self.title, found.tally, (found,), Tally(), self.has_bytes)


def traffic_of(timeline: RecordedRun) -> Traffic:
    """The traffic of a run, or of a part of it."""
    total, others = Tally(), Tally()
    by_application: dict[str, Tally] = {}
    by_container: dict[str, Tally] = {}
    for message in timeline.calls:
        size = message.bytes_sent() or 0
        total.add(message.rpc, size)
        containers = containers_in(message.request, message.reply)
        for container in containers:
            by_container.setdefault(container, Tally()).add(message.rpc, size / len(containers))
        shares = _shares(message, containers)
        for application, share in shares.items():
            by_application.setdefault(application, Tally()).add(message.rpc, size * share)
        if not shares:
            others.add(message.rpc, size)
    node_of = _nodes_of_containers(timeline)
    has_bytes = any(one.bytes_sent() is not None for one in timeline.calls)
    return Traffic(timeline.title, total, _applications(by_application, by_container, node_of), others, has_bytes)


def containers_in(*records: object) -> tuple[str, ...]:
    """The containers whose ids are values or keys in the records, each once."""
    found: dict[str, None] = {}
    waiting = list(records)
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            if _CONTAINER.fullmatch(value):
                found[value] = None
        elif isinstance(value, dict):
            waiting += [*value.keys(), *value.values()]
        elif isinstance(value, list | tuple):
            waiting += value
    return tuple(found)


def _shares(message: Call, containers: tuple[str, ...]) -> dict[str, float]:
    """{application: its share of the call's bytes}, by the containers of each, or else equal."""
    shares: dict[str, float] = {}
    owners = [applications_in(one)[0] for one in containers] or message.applications
    for application in owners:
        shares[application] = shares.get(application, 0.0) + 1 / len(owners)
    return shares


def _nodes_of_containers(timeline: RecordedRun) -> Callable[[str], str]:
    """The title of the node of each container that was allocated, or that a node has reported."""
    titles = {one.name: one.title for one in timeline.lifelines}
    nodes = {one.container: one.node for one in timeline.decisions if one.what is What.ALLOCATED}
    for change in timeline.changes:
        if change.kind == "NMContainer":
            nodes.setdefault(change.subject, change.host)
    return lambda container: titles.get(nodes.get(container, ""), nodes.get(container, ""))


def _applications(
    by_application: dict[str, Tally], by_container: dict[str, Tally], node_of: Callable[[str], str]
) -> tuple[ApplicationTraffic, ...]:
    containers: dict[str, list[ContainerTraffic]] = {}
    for container in sorted(by_container):
        entry = ContainerTraffic(container, node_of(container), by_container[container])
        containers.setdefault(applications_in(container)[0], []).append(entry)
    return tuple(
        ApplicationTraffic(application, by_application[application], tuple(containers.get(application, ())))
        for application in sorted(by_application)
    )


def methods_of(tallies: Iterable[Tally]) -> list[str]:
    """The methods of these calls, the most frequent first."""
    calls: dict[str, int] = {}
    for tally in tallies:
        for rpc, count in tally.calls.items():
            calls[rpc] = calls.get(rpc, 0) + count
    return sorted(calls, key=lambda rpc: (-calls[rpc], rpc))
