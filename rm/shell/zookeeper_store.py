"""The state store in ZooKeeper, in the place of Hadoop's ZKRMStateStore.

    store = ZooKeeperStateStore.open(conf, "rm1")
    epoch = store.take_over(term)                                from now on no other ResourceManager writes
    state = store.load()
    store.write([SaveApplication(...), SaveAttempt(...)])        all of it durable, or an error

`rm/shell/row_state_store.py` has the records as rows, `zookeeper_rows.py` the rows as znodes, `zookeeper_fence.py` says
which ResourceManager writes.
"""

from __future__ import annotations

from rm.core.effects import SaveApplication
from rm.core.stored_state import RMState
from rm.shell.kazoo_znodes import KazooZnodes, zookeeper_client
from rm.shell.row_state_store import TABLES, RowStateStore, application_content
from rm.shell.store_rows import RecordTooLarge
from rm.shell.znodes import Znodes
from rm.shell.zookeeper_fence import ZooKeeperFence
from rm.shell.zookeeper_rows import RECORD_BYTES_MAX, ZooKeeperRows, record_bytes
from yarn.configuration import Configuration
from yarn.settings.zookeeper import ZK_ADDRESS, ZK_STORE, ZK_STORE_PARENT_PATH, ZK_TIMEOUT, ZNODE_SIZE_MAX

ROOT = "yarnling"
"""The znode of the store: its records are not those of Hadoop, whose root beside it is ZKRMStateRoot."""


class ZooKeeperStateStore(RowStateStore):
    """A state store in ZooKeeper. Call `take_over` first."""

    description = ZK_STORE

    def __init__(self, rows: ZooKeeperRows, *, record_bytes_max: int = RECORD_BYTES_MAX) -> None:
        super().__init__(rows)
        self._znodes = rows
        self._record_bytes_max = min(record_bytes_max, RECORD_BYTES_MAX)

    @classmethod
    def open(cls, conf: Configuration, holder: str = "") -> ZooKeeperStateStore:
        """The store of this configuration, which need not exist. `holder`: the id of this ResourceManager.

        Connects in the background. Raises YarnException if kazoo is not installed, or address or identity are missing.
        """
        znodes = KazooZnodes(zookeeper_client(conf))
        said = f"{ZK_ADDRESS.key} = {ZK_ADDRESS.of(conf)}"
        rows = rows_of(znodes, ZK_STORE_PARENT_PATH.of(conf), said, holder=holder, wait_s=ZK_TIMEOUT.of(conf) / 1000)
        return cls(rows, record_bytes_max=ZNODE_SIZE_MAX.of(conf))

    def take_over(self, term: int) -> int:
        """Become the ResourceManager that writes, and read everything; returns the epoch, 0 for the first one.

        `term`: of the election that this one has won; 0 if there are no elections. Raises StoreFenced if one with a
        later term has taken over, StoreUnavailable if ZooKeeper does not answer, StoreDamaged, and YarnException if
        ZooKeeper does not allow it.
        """
        return self._znodes.take_over(term)

    def recover(self) -> RMState:
        self.take_over(0)
        return self.load()

    def epoch(self) -> int:
        return self._znodes.epoch

    def refusal(self, effect: SaveApplication) -> RecordTooLarge | None:
        """The error for an application whose record is too large."""
        application = effect.application
        size = record_bytes("application", application.application_id, application_content(application))
        if size <= self._record_bytes_max:
            return None
        return RecordTooLarge(
            f"{application.application_id} takes {size} bytes in ZooKeeper, more than {self._record_bytes_max} "
            f"(submit it with shorter commands, environment and credentials, or raise {ZNODE_SIZE_MAX.key}, up to "
            f"{RECORD_BYTES_MAX})"
        )


def rows_of(znodes: Znodes, parent: str, said: str, *, holder: str, wait_s: float) -> ZooKeeperRows:
    """The rows of the store below the znode `parent`. `said`: how errors refer to it."""
    fence = ZooKeeperFence(znodes, f"{parent.rstrip('/')}/{ROOT}", said, holder=holder, wait_s=wait_s)
    return ZooKeeperRows(fence, TABLES)
