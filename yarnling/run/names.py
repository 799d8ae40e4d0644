"""Short names for ids.

In a simulation of which the applications' names are known (`Names`), `n1` is a node, `ann` an application, `ann-c2` its
second container. In a recorded run (`short`), `app 0001` is an application, `c0001_000002` its second container.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.resource import Resource

RM = "RM"
CLIENT = "client"
RM_LIFELINE = "rm"
_HIDDEN = frozenset({"token", "nm_tokens", "container_token_key", "nm_token_key", "am_rm_token", "key_id"})
"""Fields that say nothing to a reader."""
_CONTAINER = re.compile(r"container(?:_e(\d+))?_\d+_(\d+)_(\d+)_(\d+)")
_ATTEMPT = re.compile(r"appattempt_\d+_(\d+)_(\d+)")
_APPLICATION = re.compile(r"application_\d+_(\d+)")
_SIMULATED_NODE = re.compile(r"\b(n\d{5})(?::\d{1,5})?\b")
_NODE = re.compile(r"[\w.-]{1,255}:\d{1,5}")


class Names:
    """The names of one run. `applications`: {id: name}; the AMs' containers are added when they are started."""

    def __init__(self) -> None:
        self.applications: dict[ApplicationId, str] = {}
        self.am_containers: dict[ContainerId, None] = {}

    def application(self, application_id: ApplicationId) -> str:
        return self.applications.get(application_id, f"application {application_id.id}")

    def attempt(self, attempt_id: ApplicationAttemptId) -> str:
        return f"{self.application(attempt_id.application_id)}, attempt {attempt_id.attempt}"

    def container(self, container_id: ContainerId) -> str:
        """`ann-c2`; in a later attempt `ann-2-c2`."""
        attempt = container_id.attempt_id.attempt
        owner = self.application(container_id.application_id) + (f"-{attempt}" if attempt > 1 else "")
        return f"{owner}-am" if container_id in self.am_containers else f"{owner}-c{container_id.sequence}"

    def subject(self, kind: str, subject: str) -> str:
        """The name of the object of a state change."""
        match kind:
            case "RMNode":
                return f"node {node(NodeId.parse(subject))}"
            case "RMApp":
                return f"application {self.application(ApplicationId.parse(subject))}"
            case "RMAppAttempt":
                return f"attempt {ApplicationAttemptId.parse(subject).attempt} of {self._of_attempt(subject)}"
            case _:
                return f"container {self.container(ContainerId.parse(subject))}"

    def _of_attempt(self, subject: str) -> str:
        return self.application(ApplicationAttemptId.parse(subject).application_id)

    def within(self, text: str) -> str:
        """`text` with the ids of containers, attempts, applications and nodes of a simulation as names."""
        text = _CONTAINER.sub(lambda found: self.container(ContainerId.parse(found[0])), text)
        text = _ATTEMPT.sub(lambda found: self.attempt(ApplicationAttemptId.parse(found[0])), text)
        text = _APPLICATION.sub(lambda found: self.application(ApplicationId.parse(found[0])), text)
        return _SIMULATED_NODE.sub(lambda found: host(found[1]), text)


def node(node_id: NodeId) -> str:
    """The short name of the node's host."""
    return host(node_id.host)


def host(name: str) -> str:
    """`n1` for the simulation's host n00001; other names stay."""
    return f"n{int(name[1:])}" if name[:1] == "n" and name[1:].isdecimal() else name


def nm(name: str) -> str:
    """The participant of a node."""
    return f"NM {name}"


def am(name: str) -> str:
    """The participant of an application's AM."""
    return f"AM {name}"


def amount(resource: Resource) -> str:
    """`2048 MB`, and the vcores if there are more than one."""
    vcores = f", {resource.vcores} vcores" if resource.vcores > 1 else ""
    return f"{resource.memory_mb} MB{vcores}"


def short(text: str) -> str:
    """`text` with ids in short: container_1700000000000_0001_01_000002 is c0001_000002, application_..._0001 app 0001.

    Attempts after the first are named: c0001#2_000001; so is the epoch of ids after a restart of the ResourceManager:
    c0001_e1_000001.
    """
    text = _CONTAINER.sub(lambda found: f"c{found[2]}{_attempt(found[3])}_{_epoch(found[1])}{found[4]}", text)
    text = _ATTEMPT.sub(lambda found: f"app {found[1]} attempt {int(found[2])}", text)
    return _APPLICATION.sub(lambda found: f"app {found[1]}", text)


def shortened(value: Any, nodes: Mapping[str, str], say: Callable[[str], str] = short) -> Any:
    """A request or a reply with ids in short. `nodes` {id of a node: what to call it}; `say`: shortens other ids."""
    if isinstance(value, str):
        return say(_NODE.sub(lambda found: nodes.get(found[0], found[0]), value))
    if isinstance(value, dict):
        return {
            shortened(key, nodes, say): shortened(entry, nodes, say)
            for key, entry in value.items()
            if key not in _HIDDEN
        }
    if isinstance(value, list):
        return [shortened(entry, nodes, say) for entry in value]
    return value


def _attempt(digits: str) -> str:
    return "" if int(digits) == 1 else f"#{int(digits)}"


def _epoch(digits: str | None) -> str:
    return f"e{int(digits)}_" if digits and int(digits) else ""


def node_lifeline(number: int) -> str:
    """The name of the lifeline of a node."""
    return f"nm-{number}"
