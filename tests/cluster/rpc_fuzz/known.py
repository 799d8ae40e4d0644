"""Ids and tokens seen in the cluster: with them random records pass the first checks."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from msgspec import Struct, structs

from tests.cluster.rpc_fuzz.harmless import Harmless
from tests.wire.random_records import PROTOCOLS, random_value, record_types
from yarn.containers import ContainerLaunchContext, Token
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.resource import INT32_MAX, INT64_MAX, Resource

KEPT_MAX = 40
HOSTS = tuple(f"127.0.1.{number}" for number in range(1, 9))
"""The hosts of fake nodes. Real ones start at 127.0.0.2."""
TEXTS = ("", "..", "../../x", "/", "*", "a\nb", "\0", "\x1b[2J", "x" * 300, "x" * 70_000, "é𝄞", "%s%n", "'\"`$(x)", " ")
QUEUES = ("default", "root.default", "a", "root.a", "b", "root", "root.b.b1", "b1", "b2", "", "nowhere", "root..a", "%")
LABELS = ("", "*", "gpu", "ssd", "gpu && ssd", "gpu || ssd", "!gpu", "nope", " gpu ", "x" * 300, "(")
NUMBERS = (0, 1, -1, 2, 10, 1024, INT32_MAX, -INT32_MAX - 1, INT32_MAX - 1)
LONGS = (*NUMBERS, INT64_MAX, -INT64_MAX - 1, INT32_MAX + 1)
SIZES = (
    Resource(128, 1),
    Resource(1024, 1),
    Resource(256, 2),
    Resource(0, 0),
    Resource(-1, -1),
    Resource(INT64_MAX, 1),
)

REQUESTS = {rpc.path: record_types(rpc)[0] for protocol in PROTOCOLS for rpc in protocol.rpcs}
"""{path: the type of its request}"""


@dataclass
class Known:
    """The latest values of each kind, at most a few dozen."""

    apps: list[ApplicationId] = field(default_factory=list)
    containers: list[ContainerId] = field(default_factory=list)
    nodes: list[NodeId] = field(default_factory=list)
    real_nodes: tuple[NodeId, ...] = ()
    nodes_list_ended: bool = True
    """True if registrations of fake nodes list containers that they have reported as ended, or that others have.

    The ResourceManager recovers them (AbstractYarnScheduler.recoverContainersOnNode), and they end twice: where
    invariants are checked (I-31), a node with the cluster's secret can make the ResourceManager exit.
    """
    master_tokens: list[Token] = field(default_factory=list)
    nm_tokens: list[tuple[NodeId, Token]] = field(default_factory=list)
    container_tokens: list[Token] = field(default_factory=list)

    def keep(self, rng: Random, those: list[Any], one: Any) -> None:
        """Add `one`; it replaces a random one if there are enough."""
        if len(those) < KEPT_MAX:
            those.append(one)
        else:
            those[rng.randrange(KEPT_MAX)] = one

    def token(self, rng: Random) -> Token | None:
        """A token of any kind."""
        those = [*self.master_tokens, *(token for _, token in self.nm_tokens), *self.container_tokens]
        return rng.choice(those) if those else None

    def request(self, rng: Random, path: str, harmless: Harmless) -> Any:
        """A random request of an RPC, mostly with ids that exist."""
        return self.at_home(rng, random_value(rng, REQUESTS[path]), harmless)

    def at_home(self, rng: Random, value: Any, harmless: Harmless, name: str = "") -> Any:
        """`value` with some fields replaced by existing ids, or by texts and numbers near the limits of checks."""
        if isinstance(value, (str, int, ApplicationId, ApplicationAttemptId, ContainerId)) and rng.random() < 0.25:
            return value
        match value:
            case ContainerLaunchContext():
                return harmless.launch_context(rng)
            case ApplicationId():
                return rng.choice(self.apps) if self.apps else value
            case ApplicationAttemptId():
                return self._attempt(rng) or value
            case ContainerId():
                return self._container(rng) or value
            case NodeId():
                return self._node(rng)
            case Resource():
                return rng.choice(SIZES)
            case Token():
                return self._token(rng) or value
            case str():
                return self._text(rng, value, name)
            case bool() | None | float() | bytes():
                return value
            case int():
                return rng.choice(LONGS) if rng.random() < 0.3 else rng.choice((value, rng.randint(0, 5)))
        return self._of_parts(rng, value, harmless)

    def _of_parts(self, rng: Random, value: Any, harmless: Harmless) -> Any:
        if isinstance(value, tuple):
            return tuple(self.at_home(rng, entry, harmless) for entry in value)
        if isinstance(value, frozenset):
            return frozenset(self.at_home(rng, entry, harmless) for entry in value)
        if isinstance(value, dict):
            return {key: self.at_home(rng, entry, harmless) for key, entry in value.items()}
        if isinstance(value, Struct):
            changes = {one: self.at_home(rng, getattr(value, one), harmless, one) for one in value.__struct_fields__}
            return structs.replace(value, **changes)
        return value

    def _attempt(self, rng: Random) -> ApplicationAttemptId | None:
        if not self.apps:
            return None
        return ApplicationAttemptId(rng.choice(self.apps), rng.choice((1, 1, 1, 2, 0, -1, INT32_MAX)))

    def _container(self, rng: Random) -> ContainerId | None:
        if self.containers and rng.random() < 0.6:
            return rng.choice(self.containers)
        attempt_id = self._attempt(rng)
        return None if attempt_id is None else ContainerId(attempt_id, rng.choice((1, 2, 0, 7, 1 << 40 | 1, INT64_MAX)))

    def _node(self, rng: Random) -> NodeId:
        if self.nodes and rng.random() < 0.8:
            return rng.choice(self.nodes)
        return NodeId(rng.choice(HOSTS), rng.choice((0, 1, 45454, 65535)))

    def _token(self, rng: Random) -> Token | None:
        return rng.choice(self.container_tokens) if self.container_tokens and rng.random() < 0.7 else self.token(rng)

    def _text(self, rng: Random, value: str, name: str) -> str:
        if "queue" in name:
            return rng.choice(QUEUES)
        if "label" in name:
            return rng.choice(LABELS)
        if name == "resource_name":
            places = ("*", "*", "/default-rack", *(node.host for node in self.nodes), "", "nowhere", "x" * 300)
            return rng.choice(places)
        return rng.choice(TEXTS) if rng.random() < 0.3 else value
