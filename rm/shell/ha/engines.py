"""The choice of the two engines of several ResourceManagers: who leads, and where the state is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from rm.shell.ha.interfaces import Elector
from rm.shell.ha.lease_elector import LeaseElector
from rm.shell.ha.lease_store import LeaseStore
from rm.shell.sqlite_store import SHARED_FORM, SQLiteStateStore
from rm.shell.state_store_engine import StateStoreEngine
from wire.files.store_file import StoreFile
from yarn.configuration import Configuration
from yarn.settings.high_availability import LEASE
from yarn.settings.yarnling import STATE_STORE_FILE
from yarn.settings.zookeeper import has_store


class Engines(Struct, frozen=True):
    """An elector, and a function that opens the store for one term. `close` is called last."""

    elector: Elector
    open_store: Callable[[], StateStoreEngine]
    close: Callable[[], None]


def engines_of(conf: Configuration, rm_id: str) -> Engines:
    """The engines that the configuration names.

    Blocks. Raises YarnException, StoreDamaged among them, if the state store cannot be opened.
    """
    return _in_zookeeper(conf, rm_id) if has_store(conf) else _embedded(conf, rm_id)


def _in_zookeeper(conf: Configuration, rm_id: str) -> Engines:
    """An election by ZooKeeper, and the state in it: for any number of machines."""
    # kazoo is needed only here, and may be missing.
    from rm.shell.ha.zookeeper_elector import ZooKeeperElector
    from rm.shell.zookeeper_store import ZooKeeperStateStore

    elector = ZooKeeperElector.read(conf, rm_id)
    return Engines(elector, lambda: ZooKeeperStateStore.open(conf, rm_id), lambda: None)


def _embedded(conf: Configuration, rm_id: str) -> Engines:
    """A lease in the state store's SQLite file: needs no other program, and all ResourceManagers on one machine."""
    path = Path(STATE_STORE_FILE.of(conf))
    file = StoreFile.open(path, f"{STATE_STORE_FILE.key} = {path}", SHARED_FORM)
    elector = LeaseElector(LeaseStore(file), rm_id, path, LEASE.of(conf))
    return Engines(elector, lambda: SQLiteStateStore(file, owns_file=False), file.close)
