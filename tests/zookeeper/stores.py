"""State stores in ZooKeeper for tests: in the model, whose calls can be lost, and in a real server."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rm.shell.row_state_store import TABLES
from rm.shell.znodes import ConnectionLost, Operation, Znode, Znodes
from rm.shell.zookeeper_fence import ZooKeeperFence
from rm.shell.zookeeper_rows import ZooKeeperRows
from rm.shell.zookeeper_store import ROOT, ZooKeeperStateStore
from wire.cluster_secret import write_cluster_secret
from yarn.configuration import Configuration
from yarn.settings.yarnling import CLUSTER_SECRET_FILE
from yarn.settings.zookeeper import ZK_ADDRESS, ZK_STORE_PARENT_PATH, ZK_TIMEOUT
from yarnling.simulation.zookeeper import ModelZnodes, ZooKeeperModel

SESSION_MS = 2000
SAID = "hadoop.zk.address = zk"


class LossyZnodes(ModelZnodes):
    """Calls to the model that can be lost. `is_cut`: nothing is sent.

    `lose`: what to do with the next commits, one word each: "" carries it out, "request" loses it, "answer" carries it
    out and loses the answer, "late" keeps it in `late` and loses the answer.
    """

    def __init__(self, model: ZooKeeperModel) -> None:
        super().__init__(model)
        self.is_cut = False
        self.lose: list[str] = []
        self.late: list[list[Operation]] = []
        self.commits = 0

    def wait_connected(self, timeout_s: float) -> bool:
        return not self.is_cut

    def read(self, path: str) -> Znode | None:
        if self.is_cut:
            raise ConnectionLost(was_sent=False)
        return super().read(path)

    def children(self, path: str) -> list[str]:
        if self.is_cut:
            raise ConnectionLost(was_sent=False)
        return super().children(path)

    def commit(self, operations: Sequence[Operation]) -> None:
        if self.is_cut:
            raise ConnectionLost(was_sent=False)
        word = self.lose.pop(0) if self.lose else ""
        if word == "late":
            self.late.append(list(operations))
        if word in ("", "answer"):
            super().commit(operations)
            self.commits += 1
        if word:
            raise ConnectionLost(was_sent=True)

    def arrive(self) -> None:
        """Carry out what was kept."""
        kept, self.late = self.late, []
        for operations in kept:
            super().commit(operations)


def store_over(znodes: Znodes, holder: str = "rm1") -> ZooKeeperStateStore:
    """A store over these calls, which has not taken over yet."""
    fence = ZooKeeperFence(znodes, f"/rmstore/{ROOT}", SAID, holder=holder, wait_s=60)
    return ZooKeeperStateStore(ZooKeeperRows(fence, TABLES))


def model_store(model: ZooKeeperModel, holder: str = "rm1", term: int = 0) -> ZooKeeperStateStore:
    """A store in the model that has taken over."""
    store = store_over(LossyZnodes(model), holder)
    store.take_over(term)
    return store


def zookeeper_configuration(address: str, name: str, directory: Path, session_ms: int = SESSION_MS) -> Configuration:
    """The configuration of a store and of elections of the cluster `name`; its secret is in `directory`."""
    secret = directory / "secret"
    if not secret.exists():
        write_cluster_secret(secret)
    return Configuration.of(
        {
            ZK_ADDRESS.key: address,
            ZK_TIMEOUT.key: str(session_ms),
            ZK_STORE_PARENT_PATH.key: f"/{name}",
            CLUSTER_SECRET_FILE.key: str(secret),
            "yarn.resourcemanager.cluster-id": name,
        }
    )


def real_store(address: str, name: str, directory: Path, holder: str = "rm1", term: int = 0) -> ZooKeeperStateStore:
    """A store in a real ZooKeeper that has taken over."""
    store = ZooKeeperStateStore.open(zookeeper_configuration(address, name, directory), holder)
    try:
        store.take_over(term)
    except BaseException:
        store.close()
        raise
    return store
