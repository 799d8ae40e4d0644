"""Decides which fuzzed messages may be sent, because containers are real processes of the user who runs the fuzzer.

Random text must never become a command. Commands, variables and names of links come from fixed sets, files lie below
the run's directory, and nodes are on loopback addresses. Records are made that way (`launch_context`), and the bytes of
each message are decoded again before they are sent (`Harmless.allows`), because a changed byte may have changed that.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from msgspec import Struct, structs

from tests.wire.random_records import integer, random_record
from wire.protocols.admin import ResourceManagerAdministrationProtocol
from wire.protocols.client import ApplicationClientProtocol
from wire.protocols.container_management import ContainerManagementProtocol
from wire.protocols.pack import PackTrackerProtocol
from wire.protocols.tracker import ResourceTracker
from wire.rpc import Rpc
from yarn.containers import ContainerLaunchContext, ContainerRetryContext, LocalResource
from yarn.errors import InvalidArgumentException
from yarn.ids import NodeId
from yarn.resource import INT32_MAX, Resource
from yarn.states import ContainerRetryPolicy, LocalResourceType

COMMANDS = ("true", "sleep 0.1", "sleep 2", ":")
ENVIRONMENT = {"COLOR": ("red", "", "a b"), "LANG": ("C",), "DEPTH": ("1", "2147483648")}
LINKS = ("a", "words.txt", "sub/b", "../c", "a", "", ".", "x" * 300)
"""A level up is still inside the application's directory."""
PATTERNS = (None, "", "a.*", "(")
FILES = ("words.txt", "missing.txt", "archive.zip", "directory")
"""Names in `resources`: a text, a missing file, a file that is not an archive, a directory."""
GUARDED = (ApplicationClientProtocol.submit_application, ContainerManagementProtocol.start_containers)
"""The calls whose requests contain commands."""
NODE_LEAST = Resource(128, 1)
"""A real node that is made smaller would be refused when it registers again, and exit."""
REGISTRATIONS = (
    ResourceTracker.register_node_manager,
    ResourceTracker.node_heartbeat,
    PackTrackerProtocol.register_nodes,
    PackTrackerProtocol.pack_heartbeat,
)
"""Calls that make the ResourceManager connect to the named node."""


class Harmless:
    """Decides which messages of a run may be sent. `resources`: the directory of files that containers may use."""

    def __init__(self, directory: Path) -> None:
        self.resources = directory / "resources"
        self.real_nodes: frozenset[NodeId] = frozenset()

    def make_files(self) -> None:
        (self.resources / "directory").mkdir(parents=True, exist_ok=True)
        (self.resources / "words.txt").write_text("some words\n")
        (self.resources / "archive.zip").write_bytes(b"PK\x03\x04 this is not an archive")

    def launch_context(self, rng: Random) -> ContainerLaunchContext:
        """A random launch context with harmless commands, variables and files; the rest is arbitrary."""
        record = random_record(rng, ContainerLaunchContext)
        return structs.replace(
            record,
            commands=tuple(rng.choice(COMMANDS) for _ in range(rng.choice([0, 1, 1, 1]))),
            environment={name: rng.choice(values) for name, values in ENVIRONMENT.items() if rng.random() < 0.3},
            local_resources={link: self._file(rng) for link in rng.sample(LINKS, rng.choice([0, 0, 1, 3]))},
            service_data=record.service_data if rng.random() < 0.1 else {},
            tokens=record.tokens if rng.random() < 0.1 else b"",
            retry=self._retry(rng),
        )

    def allows(self, rpc: Rpc[Any, Any], data: bytes) -> bool:
        """True if these bytes may be sent as a request of `rpc`. Bytes that cannot be decoded run nothing."""
        if (
            rpc not in GUARDED
            and rpc not in REGISTRATIONS
            and rpc is not ResourceManagerAdministrationProtocol.update_node_resource
        ):
            return True
        try:
            record = rpc.request.decode(data)
        except InvalidArgumentException:
            return True
        if rpc is ResourceManagerAdministrationProtocol.update_node_resource:
            return not any(node in self.real_nodes and not _is_enough(option.resource) for node, option in record)
        return all(self._is_harmless(part) for part in _parts(record))

    def _is_harmless(self, part: object) -> bool:
        match part:
            case ContainerLaunchContext():
                return (
                    (not part.commands or (len(part.commands) == 1 and part.commands[0] in COMMANDS))
                    and all(value in ENVIRONMENT.get(name, ()) for name, value in part.environment.items())
                    and all(link in LINKS for link in part.local_resources)
                )
            case LocalResource():
                names = {f"file:{self.resources / name}" for name in FILES}
                return part.url in names and part.pattern in PATTERNS
            case ContainerRetryContext():
                return part.policy is ContainerRetryPolicy.NEVER_RETRY or 0 <= part.max_retries <= 1
            case NodeId():
                return _is_loopback(part.host)
        return True

    def _file(self, rng: Random) -> LocalResource:
        name = rng.choice(FILES)
        path = self.resources / name
        record = random_record(rng, LocalResource)
        is_there = path.exists() and rng.random() < 0.8
        return structs.replace(
            record,
            url=f"file:{path}",
            timestamp_ms=int(path.stat().st_mtime * 1000) if is_there else record.timestamp_ms,
            type=LocalResourceType.FILE if name == "words.txt" else record.type,
            pattern=rng.choice(PATTERNS),
        )

    def _retry(self, rng: Random) -> ContainerRetryContext:
        if rng.random() < 0.8:
            return ContainerRetryContext()
        codes = frozenset(integer(rng, INT32_MAX) for _ in range(rng.randint(0, 2)))
        return ContainerRetryContext(rng.choice(list(ContainerRetryPolicy)), codes, rng.choice([0, 1]), 10)


def _parts(record: object) -> Iterator[object]:
    """The record and all records in it."""
    yield record
    if isinstance(record, (tuple, list, frozenset, set)):
        for entry in record:
            yield from _parts(entry)
    elif isinstance(record, dict):
        for key, value in record.items():
            yield from _parts(key)
            yield from _parts(value)
    elif isinstance(record, Struct):
        for name in record.__struct_fields__:
            yield from _parts(getattr(record, name))


def _is_enough(size: Resource) -> bool:
    return size.memory_mb >= NODE_LEAST.memory_mb and size.vcores >= NODE_LEAST.vcores


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.IPv4Address(host).is_loopback
    except ValueError:
        return False
