"""What the nodes of a process stand on: their addresses, their directories, who empties those."""

from __future__ import annotations

import ipaddress
import logging
import os
import random
from collections.abc import Iterable, Sequence

from nm.launcher.deletion import TreeDeleter
from nm.launcher.directories import (
    NM_PRIVATE,
    PLAIN_MODE,
    NodeDirectories,
    make_dir,
)
from nm.launcher.leftovers import begun_containers, end_leftovers, lock_directories, stale_paths
from wire.address import Address
from yarn.configuration import Configuration
from yarn.errors import YarnException
from yarn.ids import ContainerId
from yarn.settings import nodemanager
from yarn.settings.yarnling import PACK

_logger = logging.getLogger(__name__)


class Ground:
    """The ground of all nodes of a process. `hosts` has one address a node; there are several only in a pack.

    `address` is what masters call, and part of the node's name; `listening` may be at another host (buildNodeId).
    A packed node has a directory of its own, by the name of its host, in each of the directories of the settings.
    """

    def __init__(self, conf: Configuration) -> None:
        """Raises YarnException if the hosts of a pack cannot be told from its first one, or listen elsewhere."""
        self.conf = conf
        self.address = Address.read(conf, nodemanager.ADDRESS)
        self.hosts = _hosts(self.address, PACK.of(conf))
        self.listening = _listening(conf, self.address, is_pack=self.is_pack)
        self.deleter = TreeDeleter()
        self.local_dirs = tuple(os.path.abspath(directory) for directory in nodemanager.LOCAL_DIRS.of(conf))
        self._log_dirs = nodemanager.LOG_DIRS.of(conf)
        self._begun: dict[str, tuple[ContainerId, ...]] = {}

    @property
    def is_pack(self) -> bool:
        return len(self.hosts) > 1

    def directories(self, host: str) -> NodeDirectories:
        """Those of the node on `host`."""
        below = f"/{host}" if self.is_pack else ""
        return NodeDirectories(
            [f"{directory}{below}" for directory in self.local_dirs],
            [f"{directory}{below}" for directory in self._log_dirs],
            random.Random(),
        )

    def begun(self, host: str) -> tuple[ContainerId, ...]:
        """What an earlier NM had begun in the directories of the node on `host`, once they are taken."""
        return self._begun.get(host, ())

    def take(self) -> list[int]:
        """Make the local directories ours, and end what an earlier NM has left in them; descriptors that hold them.

        Raises DirectoriesInUse.
        """
        for local in self.local_dirs:
            _make(local)
        held = lock_directories(self.local_dirs)
        homes = self._homes()
        used = [home for home in homes if _entries(f"{home}/{NM_PRIVATE}")]
        if used:
            self._begun = self._begun_in(used)
            for process in end_leftovers(self.local_dirs):
                _logger.warning("killed a process that an earlier NodeManager left pid=%d", process.pid)
        for path in stale_paths(homes):
            self.deleter.delete_tree(os.path.dirname(path), path)
        return held

    def _begun_in(self, homes: Sequence[str]) -> dict[str, tuple[ContainerId, ...]]:
        """{host: its containers}."""
        if not self.is_pack:
            return {self.hosts[0]: begun_containers(homes)}
        by_host: dict[str, list[str]] = {}
        for home in homes:
            by_host.setdefault(os.path.basename(home), []).append(home)
        return {host: begun_containers(theirs) for host, theirs in by_host.items()}

    def _homes(self) -> Sequence[str]:
        """The nodes' own directories, of a pack those that are there."""
        if not self.is_pack:
            return self.local_dirs
        known = frozenset(self.hosts)
        return [f"{local}/{name}" for local in self.local_dirs for name in _entries(local) if name in known]


def _listening(conf: Configuration, address: Address, *, is_pack: bool) -> Address:
    key, host = nodemanager.BIND_HOST.key, nodemanager.BIND_HOST.maybe_of(conf)
    if not host:
        return address
    if is_pack:
        raise YarnException(f"{key} = {host}: nodes of a pack listen where they are called (unset it, or {PACK.key})")
    return Address(host, address.port, key)


def _hosts(address: Address, count: int) -> tuple[str, ...]:
    """`count` addresses, of which that of the settings is the first."""
    if count == 1:
        return (address.host,)
    try:
        first = ipaddress.IPv4Address(address.host)
    except ValueError:
        first = ipaddress.IPv4Address(0)
    if not first.is_loopback or not (first + (count - 1)).is_loopback:
        raise YarnException(
            f"{PACK.key} = {count}: the nodes of a pack have the loopback addresses from that of {address.said} on, "
            f"which are not so many (set {nodemanager.HOSTNAME.key} to such as 127.0.0.2)"
        )
    return tuple(str(first + number) for number in range(count))


def _make(local: str) -> None:
    """What cannot be made now is left out by the disk checker, which says so in the node's health."""
    try:
        make_dir(local, PLAIN_MODE)
    except OSError as error:
        _logger.warning("cannot use local directory=%s problem=%s", local, error.strerror)


def _entries(directory: str) -> Iterable[str]:
    try:
        return sorted(os.listdir(directory))
    except OSError:
        return ()
