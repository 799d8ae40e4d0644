"""ZooKeeper by kazoo (the extra `zookeeper`): a client for a configuration, and the calls of the state store.

A session belongs to an identity, by default one that is made of the cluster's secret. Znodes are created for that
identity alone: the state store contains keys and users' credentials.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rm.shell.znodes import (
    ConnectionLost,
    CreateZnode,
    DeleteZnode,
    Operation,
    OperationRefused,
    SetZnode,
    WrongVersion,
    Znode,
)
from wire.cluster_secret import read_cluster_secret
from yarn.configuration import Configuration
from yarn.errors import YarnException
from yarn.settings.zookeeper import ZK_ADDRESS, ZK_AUTH, ZK_RETRY_INTERVAL, ZK_TIMEOUT

if TYPE_CHECKING:
    from kazoo.client import KazooClient

IDENTITY = "yarnling"
AUTH_BYTES_MAX = 4096
RETRIES_PER_SESSION = 5
"""The least number of attempts to connect again within a session timeout."""
Result = TypeVar("Result")
Identity = tuple[str, str]
"""A scheme of ZooKeeper and its credential, such as ("digest", "name:password")."""
_logger = logging.getLogger(f"yarnling.{__name__}")


def zookeeper_client(conf: Configuration) -> KazooClient:
    """A client that is not connected yet.

    Raises YarnException if kazoo is not installed, or if no address or no identity is configured.
    """
    try:
        from kazoo.client import KazooClient
        from kazoo.security import CREATOR_ALL_ACL
    except ImportError as error:
        raise YarnException(
            f"{ZK_ADDRESS.key}: ZooKeeper needs {error.name} (pip install 'yarnling[zookeeper]')"
        ) from None
    address = ZK_ADDRESS.maybe_of(conf)
    if not address:
        raise YarnException(f"{ZK_ADDRESS.key} is not set (name ZooKeeper's servers, such as host1:2181,host2:2181)")
    timeout_s = ZK_TIMEOUT.of(conf) / 1000
    longest_s = min(ZK_RETRY_INTERVAL.of(conf) / 1000, timeout_s / RETRIES_PER_SESSION)
    # Its own messages say less than ours, and come with each attempt to connect.
    logger = _logger.getChild("kazoo")
    logger.setLevel(logging.ERROR)
    return KazooClient(
        hosts=address,
        timeout=timeout_s,
        default_acl=CREATOR_ALL_ACL,
        auth_data=identities(conf),
        connection_retry={"max_tries": -1, "delay": longest_s / 10, "backoff": 2, "max_delay": longest_s},
        logger=logger,
    )


def identities(conf: Configuration) -> list[Identity]:
    """The identities of the sessions. Raises YarnException for a value that is not SCHEME:CREDENTIAL."""
    text = ZK_AUTH.maybe_of(conf)
    if not text:
        password = hmac.digest(read_cluster_secret(conf), b"zookeeper", hashlib.sha256).hex()
        return [("digest", f"{IDENTITY}:{password}")]
    if text.startswith("@"):
        text = _content_of(Path(text[1:]))
    found = [part.strip().partition(":") for part in text.split(",") if part.strip()]
    if not found or any(not scheme or not credential for scheme, _, credential in found):
        raise YarnException(f"{ZK_AUTH.key}: not SCHEME:CREDENTIAL (write digest:NAME:PASSWORD, or @FILE)")
    return [(scheme, credential) for scheme, _, credential in found]


class KazooZnodes:
    """The calls of a started client (Znodes)."""

    def __init__(self, client: KazooClient) -> None:
        self._client = client
        self._connected = threading.Event()
        client.add_listener(self._note_state)
        if client.start_async().is_set():
            self._connected.set()

    def wait_connected(self, timeout_s: float) -> bool:
        """Wait until calls can be sent; False if they still cannot after this time."""
        return self._connected.wait(timeout_s)

    def read(self, path: str) -> Znode | None:
        """The znode; None if there is none."""
        (znode,) = self.read_all([path])
        return znode

    def read_all(self, paths: Sequence[str]) -> list[Znode | None]:
        """The znodes, with all calls sent before the first answer is awaited."""

        def read() -> list[Znode | None]:
            return [_found(answer.get) for answer in [self._client.get_async(path) for path in paths]]

        return self._answered(read)

    def children(self, path: str) -> list[str]:
        """The names of the znodes below `path`, in no order."""
        names: list[str] = self._answered(lambda: self._client.get_children(path) or [])
        return names

    def ensure(self, path: str, *, shared: bool = False) -> None:
        """Create the znode and those above it, without data, if they do not exist. `shared`: open to all identities."""
        from kazoo.security import OPEN_ACL_UNSAFE

        acl = OPEN_ACL_UNSAFE if shared else None
        self._answered(lambda: self._client.ensure_path(path, acl))

    def commit(self, operations: Sequence[Operation]) -> None:
        """Carry out all operations at once, or none."""
        from kazoo.exceptions import BadVersionError, RolledBackError, RuntimeInconsistency

        transaction = self._client.transaction()
        for operation in operations:
            match operation:
                case CreateZnode(path, data):
                    transaction.create(path, data)
                case SetZnode(path, data, version):
                    transaction.set_data(path, data, version)
                case DeleteZnode(path):
                    transaction.delete(path)
        results: list[Any] = self._answered(transaction.commit)
        for place, result in enumerate(results):
            if isinstance(result, BadVersionError):
                raise WrongVersion(place, _name_of(result))
            if isinstance(result, Exception) and not isinstance(result, RolledBackError | RuntimeInconsistency):
                raise OperationRefused(place, _name_of(result))

    def close(self) -> None:
        """End the session; closing twice is a no-op."""
        self._client.stop()
        self._client.close()

    def _note_state(self, state: str) -> None:
        from kazoo.protocol.states import KazooState

        if state == KazooState.CONNECTED:
            self._connected.set()
        else:
            self._connected.clear()

    def _answered(self, call: Callable[[], Result]) -> Result:
        from kazoo import exceptions

        if not self._connected.is_set():
            raise ConnectionLost(was_sent=False)
        try:
            return call()
        except (
            exceptions.ConnectionLoss,
            exceptions.ConnectionClosedError,
            exceptions.SessionExpiredError,
            exceptions.SessionMovedError,
            exceptions.OperationTimeoutError,
        ):
            raise ConnectionLost(was_sent=True) from None
        except exceptions.ZookeeperError as error:
            raise OperationRefused(0, _name_of(error)) from None


def _found(get: Callable[[], Any]) -> Znode | None:
    from kazoo.exceptions import NoNodeError

    try:
        data, stat = get()
    except NoNodeError:
        return None
    return Znode(data, stat.version)


def _name_of(error: Exception) -> str:
    """The name of an error of ZooKeeper, as its command line prints it."""
    return type(error).__name__.removesuffix("Error")


def _content_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(AUTH_BYTES_MAX).decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise YarnException(f"{ZK_AUTH.key}: {path} cannot be read: {error}") from None
