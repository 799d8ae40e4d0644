"""Ids, printed and parsed as in Hadoop.

Ids are named tuples: cheap to create, to hash and to compare. Their order is Hadoop's (by time stamp, then number).
"""

from __future__ import annotations

import re
from typing import NamedTuple, TypeVar

from yarn.errors import InvalidIdException
from yarn.java.hash_order import long_hash, string_hash

EPOCH_BITS = 40
"""The number of bits of a container's number below the RM's epoch (ContainerId.CONTAINER_ID_BITMASK)."""

_SEQUENCE_MASK = (1 << EPOCH_BITS) - 1
_APPLICATION = re.compile(r"application_(\d{1,19})_(\d{1,10})")
_ATTEMPT = re.compile(r"appattempt_(\d{1,19})_(\d{1,10})_(\d{1,10})")
_CONTAINER = re.compile(r"container_(?:e(\d{1,10})_)?(\d{1,19})_(\d{1,10})_(\d{1,10})_(\d{1,13})")
_NODE = re.compile(r"([^:\s]+):(\d{1,5})")
_NUMBER = re.compile(r"(\d{1,9})", re.ASCII)


class ApplicationId(NamedTuple):
    """An application's id, `application_<cluster timestamp, ms>_<number>`.

    The time stamp makes the id unique across restarts of the RM.
    """

    cluster_timestamp: int
    id: int

    def __str__(self) -> str:
        return f"application_{self.cluster_timestamp}_{self.id:04d}"

    @staticmethod
    def parse(text: str) -> ApplicationId:
        """Raises InvalidIdException if `text` is not an application id."""
        match = _match(_APPLICATION, text, "ApplicationId", "application_1700000000000_0001")
        return ApplicationId(int(match[1]), int(match[2]))


class ApplicationAttemptId(NamedTuple):
    """An attempt's id, `appattempt_<cluster timestamp>_<application>_<attempt>`; attempts count from 1."""

    application_id: ApplicationId
    attempt: int

    def __str__(self) -> str:
        app = self.application_id
        return f"appattempt_{app.cluster_timestamp}_{app.id:04d}_{self.attempt:06d}"

    @staticmethod
    def parse(text: str) -> ApplicationAttemptId:
        """Raises InvalidIdException if `text` is not an attempt id."""
        match = _match(_ATTEMPT, text, "ApplicationAttemptId", "appattempt_1700000000000_0001_000001")
        return ApplicationAttemptId(ApplicationId(int(match[1]), int(match[2])), int(match[3]))


class ContainerId(NamedTuple):
    """A container's id, `container_[e<epoch>_]<cluster timestamp>_<application>_<attempt>_<sequence>`.

    `number` is epoch << 40 | sequence. The epoch (restarts of the RM) is printed only if it is above 0.
    """

    attempt_id: ApplicationAttemptId
    number: int

    @property
    def application_id(self) -> ApplicationId:
        return self.attempt_id.application_id

    @property
    def epoch(self) -> int:
        return self.number >> EPOCH_BITS

    @property
    def sequence(self) -> int:
        return self.number & _SEQUENCE_MASK

    def __str__(self) -> str:
        app = self.attempt_id.application_id
        epoch = f"e{self.epoch:02d}_" if self.epoch else ""
        tail = f"{app.cluster_timestamp}_{app.id:04d}_{self.attempt_id.attempt:02d}_{self.sequence:06d}"
        return f"container_{epoch}{tail}"

    @staticmethod
    def parse(text: str) -> ContainerId:
        """Raises InvalidIdException if `text` is not a container id."""
        match = _match(_CONTAINER, text, "ContainerId", "container_1700000000000_0001_01_000001")
        attempt_id = ApplicationAttemptId(ApplicationId(int(match[2]), int(match[3])), int(match[4]))
        return ContainerId(attempt_id, int(match[1] or 0) << EPOCH_BITS | int(match[5]))


class NodeId(NamedTuple):
    """A node's id, `host:port`, with the port of the NM's ContainerManagementProtocol."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def reading_order(self) -> tuple[tuple[str | int, ...], int]:
        """A sort key for lists that people read: 127.0.0.2 comes before 127.0.0.10."""
        parts = _NUMBER.split(self.host)
        return tuple(int(part) if index % 2 else part for index, part in enumerate(parts)), self.port

    @staticmethod
    def parse(text: str) -> NodeId:
        """Raises InvalidIdException if `text` is not host:port."""
        match = _match(_NODE, text, "NodeId", "localhost:45454")
        return NodeId(match[1], int(match[2]))


AnyId = TypeVar("AnyId", ApplicationId, ApplicationAttemptId, ContainerId, NodeId)


def as_id(kind: type[AnyId], given: AnyId | str) -> AnyId:
    """The id given as a record or as text. Raises InvalidIdException for anything else."""
    if isinstance(given, kind):
        return given
    if isinstance(given, str):
        return kind.parse(given)
    raise InvalidIdException(f"Invalid {kind.__name__}: {given!r} (give the id or its text)")


def _match(pattern: re.Pattern[str], text: str, kind: str, example: str) -> re.Match[str]:
    match = pattern.fullmatch(text.strip())
    if match is None:
        raise InvalidIdException(f"Invalid {kind}: {text!r} (an example of one: {example})")
    return match


def node_hash(node_id: NodeId) -> int:
    """The hash code of a node's id (NodeId.hashCode)."""
    return 493217 * (493217 * 8501 + string_hash(node_id.host)) + node_id.port & 0xFFFFFFFF


def attempt_hash(attempt_id: ApplicationAttemptId) -> int:
    """The hash code of an attempt's id (ApplicationAttemptId.hashCode)."""
    app = attempt_id.application_id
    application = 371237 * (371237 * 6521 + long_hash(app.cluster_timestamp)) + app.id
    return 347671 * (347671 * 5501 + application) + attempt_id.attempt & 0xFFFFFFFF


def container_hash(container_id: ContainerId) -> int:
    """The hash code of a container's id (ContainerId.hashCode)."""
    return 31 * long_hash(container_id.number) + attempt_hash(container_id.attempt_id) & 0xFFFFFFFF
