"""The files of a cluster on this machine: configuration, secret, racks, logs, and each node's own directories.

    conf/yarn-site.xml            with the addresses that the RM really has, once it is ready
    conf/capacity-scheduler.xml
    conf/topology.table           the rack of each host, if there is more than one
    conf/excluded-hosts           the hosts of nodes that were decommissioned
    cluster-secret                mode 0600
    rm-state.sqlite               applications, if the RM is to keep them over a restart; a new cluster begins without
    logs/rm.log, logs/nm-1.log    what the daemons say
    staging                       what applications of this cluster's clients need
    nm-1/local, nm-1/userlogs     work directories and logs of containers

It is a directory of its own under the system's temporary one, deleted at the end, or one that the user names, kept.
"""

from __future__ import annotations

import ipaddress
import tempfile
from collections.abc import Mapping
from pathlib import Path

from wire.cluster_secret import write_cluster_secret
from wire.hadoop_xml import to_xml
from yarn.errors import YarnException
from yarn.nodes import DEFAULT_RACK
from yarn.records import dataclass
from yarn.settings.scheduler import PREFIX

STATE_STORE = "rm-state.sqlite"
FIRST_NODE = ipaddress.IPv4Address("127.0.0.2")
NODES_MAX = 60_000
"""Loopback has 16 million addresses; a machine's process table is what ends first."""


@dataclass(frozen=True, slots=True)
class NodePlace:
    """What is a node's own: `number` from 1, `name` nm-1, a loopback address as its host, its directories.

    `process` is the name of its NodeManager's process, which has other nodes too if it `is_packed`.
    """

    number: int
    name: str
    host: str
    rack: str
    local_dir: Path
    log_dir: Path
    process: str
    is_packed: bool = False


class ClusterDirectory:
    """The directory of one cluster. `temporary`: made for it, to be deleted with it."""

    def __init__(self, path: Path, *, temporary: bool) -> None:
        self.path = path
        self.temporary = temporary
        self.conf = path / "conf"
        self.logs = path / "logs"
        self.staging = path / "staging"
        self.watch = path / "watch"
        self.secret_file = path / "cluster-secret"
        self.topology_table = self.conf / "topology.table"
        self.excluded_hosts = self.conf / "excluded-hosts"

    @staticmethod
    def make(path: Path | None) -> ClusterDirectory:
        """The directory, with an empty structure. Raises YarnException if it cannot be had or has a cluster."""
        try:
            if path is None:
                directory = ClusterDirectory(Path(tempfile.mkdtemp(prefix="yarnling-")), temporary=True)
            else:
                directory = ClusterDirectory(path.absolute(), temporary=False)
            for part in (directory.conf, directory.logs):
                part.mkdir(parents=True, exist_ok=True)
            directory.secret_file.unlink(missing_ok=True)
            for name in (STATE_STORE, f"{STATE_STORE}-wal"):
                (directory.path / name).unlink(missing_ok=True)
            directory.excluded_hosts.write_text("")
            write_cluster_secret(directory.secret_file)
        except OSError as error:
            place = path or Path(tempfile.gettempdir())
            raise YarnException(
                f"{place}: a cluster cannot keep its files there: {error.strerror} (name another directory)"
            ) from None
        return directory

    def log_file(self, name: str) -> Path:
        """What the daemon `name` says."""
        return self.logs / f"{name}.log"

    def node(self, number: int, racks: int) -> NodePlace:
        """The place of node `number` with a process of its own; nodes go round the racks in turn."""
        name = f"nm-{number}"
        home = self.path / name
        return NodePlace(number, name, _host(number), _rack(number, racks), home / "local", home / "userlogs", name)

    def pack(self, first: int, last: int, racks: int) -> list[NodePlace]:
        """The places of nodes that share a process; a node's directories have its host's name."""
        if first == last:
            return [self.node(first, racks)]
        process = f"nm-{first}-to-{last}"
        home = self.path / process
        return [
            NodePlace(
                number,
                f"nm-{number}",
                host := _host(number),
                _rack(number, racks),
                home / "local" / host,
                home / "userlogs" / host,
                process,
                is_packed=True,
            )
            for number in range(first, last + 1)
        ]

    def write_racks(self, places: list[NodePlace]) -> None:
        """The table that the RM looks hosts up in."""
        _replace(self.topology_table, "".join(f"{place.host} {place.rack}\n" for place in places))

    def write_configuration(self, values: Mapping[str, str]) -> None:
        """Both files, each replaced as a whole: daemons and AMs may be reading them."""
        queues = {key: value for key, value in values.items() if key.startswith(PREFIX)}
        site = {key: value for key, value in values.items() if key not in queues}
        _replace(self.conf / "yarn-site.xml", to_xml(site))
        _replace(self.conf / "capacity-scheduler.xml", to_xml(queues))


def _host(number: int) -> str:
    return str(FIRST_NODE + (number - 1))


def _rack(number: int, racks: int) -> str:
    return f"/rack-{(number - 1) % racks + 1}" if racks > 1 else DEFAULT_RACK


def _replace(path: Path, text: str) -> None:
    beside = path.with_name(f".{path.name}.new")
    beside.write_text(text)
    beside.replace(path)
