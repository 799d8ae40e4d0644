"""The events of the ResourceManager's lifecycles, in Hadoop's spelling, and what some of them carry."""

from __future__ import annotations

from enum import Enum, auto

from msgspec import Struct

from yarn.containers import ContainerStatus, NMContainerStatus
from yarn.ids import ApplicationId, NodeId
from yarn.nodes import NodeHealth
from yarn.resource import Resource


class RMAppEventType(Enum):
    """What can happen to an application."""

    START = auto()
    RECOVER = auto()
    KILL = auto()
    APP_REJECTED = auto()
    APP_ACCEPTED = auto()
    ATTEMPT_REGISTERED = auto()
    ATTEMPT_UNREGISTERED = auto()
    ATTEMPT_FINISHED = auto()
    ATTEMPT_FAILED = auto()
    ATTEMPT_KILLED = auto()
    NODE_UPDATE = auto()
    ATTEMPT_LAUNCHED = auto()
    APP_RUNNING_ON_NODE = auto()
    APP_NEW_SAVED = auto()
    APP_UPDATE_SAVED = auto()
    APP_SAVE_FAILED = auto()


class RMAppAttemptEventType(Enum):
    """What can happen to an attempt."""

    START = auto()
    KILL = auto()
    FAIL = auto()
    LAUNCHED = auto()
    LAUNCH_FAILED = auto()
    EXPIRE = auto()
    REGISTERED = auto()
    STATUS_UPDATE = auto()
    UNREGISTERED = auto()
    CONTAINER_ALLOCATED = auto()
    CONTAINER_FINISHED = auto()
    ATTEMPT_NEW_SAVED = auto()
    ATTEMPT_UPDATE_SAVED = auto()
    ATTEMPT_ADDED = auto()
    RECOVER = auto()


class RMNodeEventType(Enum):
    """What can happen to a node."""

    STARTED = auto()
    STATUS_UPDATE = auto()
    REBOOTING = auto()
    RECONNECTED = auto()
    SHUTDOWN = auto()
    EXPIRE = auto()
    DECOMMISSION = auto()
    GRACEFUL_DECOMMISSION = auto()
    RECOMMISSION = auto()
    RESOURCE_UPDATE = auto()
    CLEANUP_APP = auto()
    CLEANUP_CONTAINER = auto()
    FINISHED_CONTAINERS_PULLED_BY_AM = auto()
    UPDATE_CONTAINER = auto()
    SIGNAL_CONTAINER = auto()


class AttemptFailed(Struct, frozen=True):
    """ATTEMPT_FAILED: why, and whether the next attempt takes over the containers that run."""

    diagnostics: str
    transfers_containers: bool


class FinishedContainer(Struct, frozen=True):
    """CONTAINER_FINISHED: how a container of the attempt ended, and where."""

    node_id: NodeId
    status: ContainerStatus


class NodeStarted(Struct, frozen=True):
    """STARTED: what an NM that was not known reports when it registers."""

    containers: tuple[NMContainerStatus, ...]
    running_applications: tuple[ApplicationId, ...]
    health: NodeHealth


class NodeReconnected(Struct, frozen=True):
    """RECONNECTED: what an NM that the RM believed connected reports when it registers once more."""

    http_port: int
    capability: Resource
    containers: tuple[NMContainerStatus, ...]
    running_applications: tuple[ApplicationId, ...]
