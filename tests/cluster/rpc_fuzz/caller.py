"""Sends fuzzed messages to a cluster and checks each answer: it may be a refusal, but not a crash or a hang."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

import grpc
import grpc.aio

from tests.cluster.rpc_fuzz.harmless import Harmless
from tests.cluster.rpc_fuzz.mutations import mutated
from wire.caller import TOKEN_KEY, USER_KEY, caller_metadata
from wire.channel import MESSAGE_BYTES_MAX, METADATA_BYTES_MAX
from wire.errors import ERROR_KEY, error_of
from wire.protocols.admin import ResourceManagerAdministrationProtocol
from wire.protocols.client import ApplicationClientProtocol
from wire.protocols.container_management import ContainerManagementProtocol
from wire.protocols.inspection import InspectionProtocol
from wire.protocols.master import ApplicationMasterProtocol
from wire.protocols.pack import PackTrackerProtocol
from wire.protocols.tracker import ResourceTracker
from wire.rpc import Rpc
from yarn.containers import Token
from yarn.errors import InvalidArgumentException, RemoteError, YarnException
from yarn.ids import NodeId

DEADLINE_S = 20.0
"""The time a call may take: as long as clients wait (wire.rpc). A call that takes longer hangs."""
SHOWN_BYTES = 300
"""The number of bytes of a message that are recorded."""
EARLIER_MAX = 200
"""The number of messages kept to be sent again."""
USERS = ("ann", "bob", "cay")
ODD_USERS = ("", "..", "../x", "a b", "-rf", "a$b", "x" * 128, "x" * 256, "'", "root", "\x1b[31m", "\t")
PLACES: tuple[tuple[tuple[Rpc[Any, Any], ...], str], ...] = (
    (ApplicationClientProtocol.rpcs, "yarn.resourcemanager.address"),
    (InspectionProtocol.rpcs, "yarn.resourcemanager.address"),
    (ApplicationMasterProtocol.rpcs, "yarn.resourcemanager.scheduler.address"),
    (ResourceTracker.rpcs, "yarn.resourcemanager.resource-tracker.address"),
    (PackTrackerProtocol.rpcs, "yarn.resourcemanager.resource-tracker.address"),
    (ResourceManagerAdministrationProtocol.rpcs, "yarn.resourcemanager.admin.address"),
)
CLIENT_RPCS = frozenset(
    (*ApplicationClientProtocol.rpcs, *InspectionProtocol.rpcs, *ResourceManagerAdministrationProtocol.rpcs)
)
RPCS: tuple[Rpc[Any, Any], ...] = (*(rpc for rpcs, _ in PLACES for rpc in rpcs), *ContainerManagementProtocol.rpcs)
KEY_OF = {rpc.path: key for rpcs, key in PLACES for rpc in rpcs}
REFUSED_BY_GRPC = frozenset({grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.RESOURCE_EXHAUSTED})
"""gRPC statuses without a YARN exception that are right for unknown methods and for messages that are too large."""


class BudgetSpent(Exception):
    """All messages of the run have been sent."""


Metadata = tuple[tuple[str, str | bytes], ...]


@dataclass(frozen=True)
class Message:
    """A call that was sent and may be sent again."""

    rpc: Rpc[Any, Any]
    target: str
    data: bytes
    metadata: Metadata


@dataclass
class Outcomes:
    """The results of calls: {RPC: {"ok" or the class of the error: count}}, and the answers that are faults."""

    by_rpc: dict[str, Counter[str]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    slowest_ms: dict[str, float] = field(default_factory=dict)
    sent: int = 0
    withheld: int = 0
    """Mutated messages that were not sent because they might have run other commands than the fixed ones."""

    def note(self, name: str, outcome: str, elapsed_ms: float) -> None:
        self.by_rpc.setdefault(name, Counter())[outcome] += 1
        self.slowest_ms[name] = max(self.slowest_ms.get(name, 0.0), elapsed_ms)

    def add(self, other: Outcomes) -> None:
        for name, counts in other.by_rpc.items():
            self.by_rpc.setdefault(name, Counter()).update(counts)
            self.slowest_ms[name] = max(self.slowest_ms.get(name, 0.0), other.slowest_ms[name])
        self.faults += other.faults
        self.sent += other.sent
        self.withheld += other.withheld


class FuzzCaller:
    """Sends all fuzzed messages to one cluster. `record` is the file that lists them, for debugging.

    `client_token` is sent with calls of clients and operators that have no other token.
    """

    def __init__(
        self,
        addresses: dict[str, str],
        harmless: Harmless,
        budget: int,
        record: Path,
        client_token: Token | None = None,
    ) -> None:
        self.addresses = addresses
        self.harmless = harmless
        self.budget = budget
        self.outcomes = Outcomes()
        self.client_token = client_token
        self.earlier: list[Message] = []
        self._channels: dict[str, grpc.aio.Channel] = {}
        self._record = record.open("a")

    async def close(self) -> None:
        for channel in self._channels.values():
            await channel.close()
        self._channels = {}
        self._record.close()

    async def drop_channels(self) -> None:
        """Connect again at the next call: the ResourceManager was restarted."""
        channels, self._channels = self._channels, {}
        for channel in channels.values():
            await channel.close()

    def spend(self) -> None:
        """Count a message. Raises BudgetSpent after the last one."""
        if self.outcomes.sent >= self.budget:
            raise BudgetSpent
        self.outcomes.sent += 1

    async def ask(
        self,
        rng: Random,
        rpc: Rpc[Any, Any],
        record: Any,
        *,
        user: str = "",
        token: Token | None = None,
        node: NodeId | None = None,
        damage: float = 0.0,
    ) -> Any:
        """Send a record, damaged with probability `damage`; returns the reply, or the YarnException that refused it.

        None if the record does not fit its message.
        """
        try:
            data = rpc.request.encode(record)
        except (ValueError, InvalidArgumentException):
            return None
        if rng.random() < damage:
            data = mutated(rng, data)
        if token is None and rpc in CLIENT_RPCS and rng.random() < 0.99:
            token = self.client_token
        target = str(node) if node is not None else self.addresses[KEY_OF[rpc.path]]
        return await self.send(rng, Message(rpc, target, data, metadata_of(user, token)))

    async def replay(self, rng: Random) -> Any:
        """Send an earlier message again, sometimes as another user or with the token of another."""
        if not self.earlier:
            return None
        message = rng.choice(self.earlier)
        if rng.random() < 0.3:
            other = rng.choice(self.earlier)
            message = Message(message.rpc, message.target, message.data, other.metadata)
        return await self.send(rng, message)

    async def send(self, rng: Random, message: Message) -> Any:
        """The reply's record, or the YarnException that refused it; any other answer is noted as a fault."""
        if not self.harmless.allows(message.rpc, message.data):
            self.outcomes.withheld += 1
            return None
        self.spend()
        self._keep(rng, message)
        started = time.perf_counter()
        try:
            reply = await self._call(message)
            result = message.rpc.reply.decode(reply)
            outcome = "ok"
        except grpc.aio.AioRpcError as failure:
            result = error_of(failure, target=message.target, method=message.rpc.name)
            outcome = type(result).__name__
            self._judge(message, failure, result)
        except InvalidArgumentException as error:
            result, outcome = error, "unreadable reply"
            self._fault(message, f"the reply cannot be read: {error.message}")
        self.outcomes.note(message.rpc.name, outcome, (time.perf_counter() - started) * 1000)
        self._write(message, outcome)
        return result

    def channel(self, target: str) -> grpc.aio.Channel:
        channel = self._channels.get(target)
        if channel is None:
            channel = self._channels[target] = grpc.aio.insecure_channel(target, options=_OPTIONS)
        return channel

    def note(self, name: str, outcome: str, fault: str = "") -> None:
        """Note the result of a message that is not a call of a known RPC."""
        self.outcomes.note(name, outcome, 0.0)
        if fault:
            self.outcomes.faults.append(f"{name}: {fault}")

    async def _call(self, message: Message) -> bytes:
        call: Any = self.channel(message.target).unary_unary(message.rpc.path)
        # gRPC keeps its own deadline; ours catches a client that hangs as well.
        async with asyncio.timeout(DEADLINE_S * 2):
            reply: bytes = await call(message.data, metadata=message.metadata, timeout=DEADLINE_S)
        return reply

    def _judge(self, message: Message, failure: grpc.aio.AioRpcError, error: YarnException) -> None:
        is_ours = any(key == ERROR_KEY for key, _ in failure.trailing_metadata() or ())
        if is_ours and not (type(error) is RemoteError and "trace" in error.message):
            return
        if not is_ours and failure.code() in REFUSED_BY_GRPC:
            return
        self._fault(message, f"{failure.code().name}: {failure.details()}"[:SHOWN_BYTES])

    def _fault(self, message: Message, text: str) -> None:
        self.outcomes.faults.append(f"{message.rpc.name} at {message.target}: {text} ({_shown(message.data)})")

    def _keep(self, rng: Random, message: Message) -> None:
        if len(self.earlier) < EARLIER_MAX:
            self.earlier.append(message)
        else:
            self.earlier[rng.randrange(EARLIER_MAX)] = message

    def _write(self, message: Message, outcome: str) -> None:
        now = datetime.now().astimezone().strftime("%H:%M:%S,%f")[:-3]
        self._record.write(f"{now} {message.rpc.name} {message.target} {outcome} {_shown(message.data)}\n")


def metadata_of(user: str = "", token: Token | None = None) -> Metadata:
    """A caller's metadata, even with a user name that no proxy would send."""
    if user.isascii() and user.isprintable():
        return caller_metadata(user, token)
    return ((f"{USER_KEY}-bin", user.encode()), *caller_metadata("", token))


def odd_metadata(rng: Random) -> Metadata:
    """Metadata that no proxy sends: a malformed token, two tokens, unknown keys."""
    rubbish = rng.randbytes(rng.choice([0, 1, 20, 20_000]))
    return rng.choice(
        [
            ((TOKEN_KEY, rubbish),),
            ((TOKEN_KEY, rubbish), (TOKEN_KEY, b""), (USER_KEY, "ann")),
            ((USER_KEY, "ann"), (USER_KEY, "bob")),
            tuple((f"x-{number}", "y") for number in range(100)),
            (("x-large", "y" * rng.choice([100, METADATA_BYTES_MAX - 2000])),),
        ]
    )


def forged(rng: Random, token: Token) -> Token:
    """`token` with a change: other bytes, another kind, no password."""
    return rng.choice(
        [
            Token(mutated(rng, token.identifier), token.password, token.kind, token.service),
            Token(token.identifier, mutated(rng, token.password), token.kind, token.service),
            Token(token.identifier, token.password, rng.choice(["", "x" * 1000, "NMToken", "a\nb"]), token.service),
            Token(token.identifier, b"", token.kind, token.service),
            Token(b"", token.password, token.kind, "x" * 5000),
        ]
    )


def _shown(data: bytes) -> str:
    text = data[:SHOWN_BYTES].hex()
    return text if len(data) <= SHOWN_BYTES else f"{text}... {len(data)} bytes"


_OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_send_message_length", 2 * MESSAGE_BYTES_MAX),
    ("grpc.max_metadata_size", 4 * METADATA_BYTES_MAX),
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
)
