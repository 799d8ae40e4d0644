"""Short names for the ids of a lesson: `n1` is a node, `ann` an application, `ann-c2` its second container."""

from __future__ import annotations

from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.resource import Resource

RM = "RM"
CLIENT = "client"


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
