"""Replies in the form that recordings have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.conformance.recording import Json
from yarn.ids import ApplicationId, ContainerId
from yarn.protocols.master import AllocateResponse
from yarn.resource import Resource

Names = Mapping[ApplicationId, str]
"""{application: the name that the scenario gives it}"""


def show(resource: Resource) -> str:
    """`memory vcores others`"""
    return " ".join(str(amount) for amount in resource.values())


def container_name(names: Names, container_id: ContainerId) -> str:
    """`application/attempt/number`"""
    return f"{names[container_id.application_id]}/{container_id.attempt_id.attempt}/{container_id.number}"


def show_allocate(names: Names, answers: Sequence[AllocateResponse]) -> Json:
    """A reply, or the union of several, with the headroom of the last."""
    last = answers[-1]
    reply: Json = {
        "headroom": show(last.headroom),
        "nodes": last.cluster_nodes,
        "allocated": [container_name(names, container.id) for answer in answers for container in answer.allocated],
    }
    optional: dict[str, list[str]] = {
        "completed": sorted(
            f"{container_name(names, status.container_id)} exit {status.exit_status}"
            for answer in answers
            for status in answer.completed
        ),
        "updated": [
            f"{container_name(names, updated.container.id)} {updated.type.name} "
            f"{show(updated.container.resource)} version {updated.container.version}"
            for answer in answers
            for updated in answer.updated_containers
        ],
        "update_errors": [
            f"{container_name(names, error.request.container_id)} {error.reason}"
            for answer in answers
            for error in answer.update_errors
        ],
    }
    reply.update({key: values for key, values in optional.items() if values})
    messages = [answer.preemption for answer in answers if answer.preemption is not None]
    if messages:
        message = messages[-1]
        preemption = reply["preemption"] = {
            "negotiable": sorted(container_name(names, container_id) for container_id in message.negotiable),
            "asks": [f"{ask.count} x {show(ask.capability)}" for ask in message.asks],
        }
        if message.strict:
            preemption["strict"] = sorted(container_name(names, found) for found in message.strict)
    return reply
