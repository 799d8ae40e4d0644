"""Puts messages into words: of each request and reply the fields that matter to a learner."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from yarn.containers import ANY, Container, ContainerStatus, ResourceRequest
from yarn.ids import ContainerId
from yarn.protocols.client import GetNewApplicationResponse
from yarn.protocols.master import AllocateRequest, AllocateResponse, RegisterApplicationMasterResponse
from yarn.protocols.tracker import (
    NodeHeartbeatRequest,
    NodeHeartbeatResponse,
    RegisterNodeManagerRequest,
    RegisterNodeManagerResponse,
)
from yarn.states import ContainerState, NodeAction
from yarnling.lessons.names import Names, amount, host, node

LISTED_MAX = 3
"""The number of containers that are named in one message; the others are counted."""


def listed(names: Sequence[str]) -> str:
    """`a, b, c and 4 more`."""
    more = len(names) - LISTED_MAX
    return ", ".join(names[:LISTED_MAX]) + (f" and {more} more" if more > 0 else "")


class Wording:
    """Words for the messages of one run."""

    def __init__(self, names: Names) -> None:
        self._names = names

    # NM and RM

    def node_registration(self, request: RegisterNodeManagerRequest) -> str:
        parts = [f"node {node(request.node_id)} with {amount(request.resource)}"]
        if request.containers:
            parts.append(f"still running {self._ids(status.container_id for status in request.containers)}")
        return "; ".join(parts)

    def node_registration_reply(self, reply: RegisterNodeManagerResponse) -> str:
        return reply.action.name + (f": {reply.diagnostics.strip()}" if reply.diagnostics else "")

    def node_heartbeat(self, request: NodeHeartbeatRequest) -> str:
        parts = [f"response id {request.response_id}"]
        for state in ContainerState:
            ids = [status.container_id for status in request.containers if status.state is state]
            if ids:
                parts.append(f"{state.name} {self._ids(ids)}")
        return "; ".join(parts)

    def node_heartbeat_reply(self, reply: NodeHeartbeatResponse) -> str:
        parts = [f"response id {reply.response_id}"]
        if reply.action is not NodeAction.NORMAL:
            parts.append(f"{reply.action.name}: {reply.diagnostics}")
        if reply.containers_to_clean_up:
            parts.append(f"stop {self._ids(reply.containers_to_clean_up)}")
        if reply.applications_to_clean_up:
            ended = listed([self._names.application(each) for each in reply.applications_to_clean_up])
            parts.append(f"clean up application {ended}")
        return "; ".join(parts)

    # AM and RM

    def am_registration_reply(self, reply: RegisterApplicationMasterResponse) -> str:
        return f"queue {reply.queue}, largest container {amount(reply.maximum_capability)}"

    def allocate(self, request: AllocateRequest) -> str:
        parts = [f"response id {request.response_id}"]
        parts += [self._request(ask) for ask in request.asks]
        if request.releases:
            parts.append(f"releases {self._ids(request.releases)}")
        return "; ".join(parts)

    def allocate_reply(self, reply: AllocateResponse) -> str:
        parts = [f"response id {reply.response_id}", f"headroom {reply.headroom.memory_mb} MB"]
        if reply.allocated:
            parts.append(f"allocated {self._allocated(reply.allocated)}")
        if reply.completed:
            parts.append(f"ended {self._ended(reply.completed)}")
        if reply.preemption is not None:
            parts.append(f"will be preempted: {self._ids((*reply.preemption.strict, *reply.preemption.negotiable))}")
        if reply.containers_from_previous_attempts:
            kept = self._ids(container.id for container in reply.containers_from_previous_attempts)
            parts.append(f"from before {kept}")
        return "; ".join(parts)

    def new_application_reply(self, reply: GetNewApplicationResponse) -> str:
        largest = amount(reply.maximum_capability)
        return f"application {reply.application_id.id}; largest container {largest}"

    # Parts

    def _request(self, ask: ResourceRequest) -> str:
        where = "anywhere (*)" if ask.resource_name == ANY else f"on {host(ask.resource_name)}"
        strict = "" if ask.relax_locality else ", nowhere else"
        return f"requests {ask.count} x {amount(ask.capability)} {where}{strict}"

    def _allocated(self, containers: Iterable[Container]) -> str:
        places = Counter(node(container.node_id) for container in containers)
        if sum(places.values()) <= LISTED_MAX:
            return ", ".join(f"{self._names.container(each.id)} on {node(each.node_id)}" for each in containers)
        return ", ".join(f"{count} on {name}" for name, count in sorted(places.items()))

    def _ended(self, statuses: Sequence[ContainerStatus]) -> str:
        return listed([f"{self._names.container(each.container_id)} (exit {each.exit_status})" for each in statuses])

    def _ids(self, ids: Iterable[ContainerId]) -> str:
        return listed([self._names.container(container_id) for container_id in ids])
