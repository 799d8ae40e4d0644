"""The directory of a cluster: configuration, secret, racks, logs, and each node's own directories.

    conf/yarn-site.xml            with the addresses that the RM really has, once it is ready
    conf/capacity-scheduler.xml
    conf/topology.table           the rack of each host, if there is more than one
    conf/excluded-hosts           the hosts of nodes that were decommissioned
    cluster.lock                  locked while a cluster uses the directory; names the cluster
    cluster-secret                mode 0600
    rm-state.sqlite               applications, with recovery; the next cluster with recovery resumes them
    logs/rm.log, logs/nm-1.log    the daemons' logs
    staging                       files that clients ship with applications
    remote-logs                   aggregated logs, if aggregation is on
    files                         the file system of Hadoop's own clients, if they are answered: its tmp, its user
    nm-1/local, nm-1/userlogs     work directories and logs of containers
    conf-nm-1                     configuration of one node's containers, with network faults

The directory is either a temporary one, which is deleted with the cluster, or one that the user names, which is kept.
"""

from __future__ import annotations

import contextlib
import fcntl
import ipaddress
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from wire.cluster_secret import write_cluster_secret
from wire.files.full_disk import full_disk_named
from wire.files.hadoop_xml import to_xml
from wire.files.store_file import store_files
from yarn.errors import YarnException
from yarn.nodes import DEFAULT_RACK
from yarn.settings.scheduler import PREFIX
from yarnling.cluster.processes import LOCK_FILE

STATE_STORE = "rm-state.sqlite"
REMOTE_LOGS = "remote-logs"
QUEUE_STORE = "queues"
"""The store fs of queues that clients change."""
CLIENT_FILES = CORE_SITE, MAPRED_SITE = "core-site.xml", "mapred-site.xml"
"""Files that Hadoop's own clients read besides yarn-site.xml."""
LOG4J = "log4j.properties"
"""Their settings of logs: without this file, they print neither the progress of a job nor why it failed."""
HOLDER_BYTES_MAX = 4096
"""The number of bytes of a lock file that are read; it contains a process id and a name."""
FIRST_NODE = ipaddress.IPv4Address("127.0.0.2")
NODES_MAX = 60_000
"""The limit on nodes, which is far below the 16 million loopback addresses."""


class NodePlace(Struct, frozen=True):
    """The identity of a node: its `number` from 1, its `name` (nm-1), a loopback address as its host, its directories.

    `process` is the name of its NodeManager's process, which it shares with other nodes if it `is_packed`.
    """

    number: int
    name: str
    host: str
    rack: str
    local_dir: Path
    log_dir: Path
    process: str
    is_packed: bool = False


class DirectoryInUse(YarnException):
    """Another cluster uses the directory."""


class DirectoryLock:
    """An exclusive lock on a directory. The lock lasts until it is released or this process ends.

    The lock is a kernel lock (flock), so it does not outlive a killed process. Programs that this process starts do not
    inherit it.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @staticmethod
    def take(directory: Path, name: str) -> DirectoryLock:
        """Lock an existing directory for this process's cluster, whose name is `name` ("" if it has none).

        Raises DirectoryInUse, which names the holder, and OSError.
        """
        path = directory / LOCK_FILE
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, json.dumps({"pid": os.getpid(), "name": name}).encode(), 0)
        except BlockingIOError:
            holder = os.pread(descriptor, HOLDER_BYTES_MAX, 0)
            os.close(descriptor)
            raise DirectoryInUse(f"{directory}: in use by {_described(holder)}") from None
        except BaseException:
            os.close(descriptor)
            raise
        return DirectoryLock(descriptor)

    def release(self) -> None:
        """Release the lock; releasing twice is a no-op. The lock file stays, because deleting it would cause a race."""
        if self._descriptor >= 0:
            # A child that was forked without an exec has a copy of the descriptor, so closing ours would not unlock.
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            os.close(self._descriptor)
            self._descriptor = -1


class ClusterDirectory:
    """The directory of one cluster. A `temporary` directory is made for the cluster and deleted with it."""

    def __init__(self, path: Path, *, temporary: bool, lock: DirectoryLock | None = None) -> None:
        self.path = path
        self._lock = lock
        self.temporary = temporary
        self.conf = path / "conf"
        self.logs = path / "logs"
        self.staging = path / "staging"
        self.files = path / "files"
        self.watch = path / "watch"
        self.secret_file = path / "cluster-secret"
        self.topology_table = self.conf / "topology.table"
        self.excluded_hosts = self.conf / "excluded-hosts"

    @staticmethod
    def make(path: Path | None, name: str = "") -> ClusterDirectory:
        """Lock the directory `path` for the cluster `name` and leave it unchanged. None makes a temporary directory.

        Raises DirectoryInUse if another cluster uses the directory, and YarnException if the directory cannot be made.
        """
        with _refusing(path or Path(tempfile.gettempdir())):
            if path is None:
                made = Path(tempfile.mkdtemp(prefix="yarnling-"))
            else:
                made = path.absolute()
                made.mkdir(parents=True, exist_ok=True)
            return ClusterDirectory(made, temporary=path is None, lock=DirectoryLock.take(made, name))

    def release(self) -> None:
        """Let another cluster use the directory."""
        if self._lock is not None:
            self._lock.release()

    def check_state(self, store: Path, *, recovery: bool, discard: bool) -> None:
        """Raises YarnException if an earlier cluster left state in `store` that this cluster can neither resume nor
        discard."""
        if not _has_content(store):
            return
        is_inside = store.is_relative_to(self.path)
        if discard and not is_inside:
            raise YarnException(
                f"{store}: is outside of the cluster's directory (delete it yourself, or leave out --discard-state)"
            )
        if is_inside and not recovery and not discard:
            raise YarnException(
                f"{store}: has the applications of an earlier cluster (resume them with --recovery, delete them with "
                "--discard-state, or name another directory; in Python: settings "
                "yarn.resourcemanager.recovery.enabled=true, or discard_state=True)"
            )

    def prepare(self, store: Path, *, discard: bool) -> None:
        """Make the files and directories of a cluster without nodes.

        The state of an earlier cluster, `store`, changed queues and the secret, is kept so that this one can resume,
        unless `discard`.
        """
        with _refusing(self.path):
            for part in (self.conf, self.logs):
                part.mkdir(parents=True, exist_ok=True)
            if discard:
                for file in (*_files_of(store), *self.path.glob(QUEUE_STORE)):
                    shutil.rmtree(file) if file.is_dir() else file.unlink()
            # The new cluster has as many nodes as requested, even if nodes of an earlier cluster were decommissioned.
            self.excluded_hosts.write_text("")
            if not (_has_content(store) and self.secret_file.exists()):
                self.secret_file.unlink(missing_ok=True)
                write_cluster_secret(self.secret_file)

    def make_files(self, user: str) -> None:
        """Make the file system of Hadoop's own clients, with the directories that HDFS has, and that of `user`."""
        with _refusing(self.path):
            for part, mode in {"": 0o755, "tmp": 0o1777, "user": 0o755, f"user/{user}": 0o755}.items():
                made = self.files / part
                made.mkdir(exist_ok=True)
                made.chmod(mode)

    def log_file(self, name: str) -> Path:
        """The log file of the daemon `name`."""
        return self.logs / f"{name}.log"

    def node(self, number: int, racks: int) -> NodePlace:
        """The place of node `number` with a process of its own; nodes are assigned to racks in turn."""
        name = f"nm-{number}"
        home = self.path / name
        return NodePlace(number, name, _host(number), _rack(number, racks), home / "local", home / "userlogs", name)

    def pack(self, first: int, last: int, racks: int) -> list[NodePlace]:
        """The places of nodes that share a process; each node's directories are named after its host."""
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
        """Write the table from which the RM takes the racks of hosts."""
        _replace(self.topology_table, "".join(f"{place.host} {place.rack}\n" for place in places))

    def write_configuration(
        self, values: Mapping[str, str], of_clients: Mapping[str, Mapping[str, str]] | None = None, log4j: str = ""
    ) -> None:
        """Write the files, each replaced in one step, because daemons and AMs may be reading them.

        `of_clients` {file name: {key: value}}: CLIENT_FILES, if Hadoop's own clients are to be answered, and `log4j` is
        the content of LOG4J; None deletes those that an earlier cluster may have left.
        """
        queues = {key: value for key, value in values.items() if key.startswith(PREFIX)}
        site = {key: value for key, value in values.items() if key not in queues}
        for name, content in {"yarn-site.xml": site, "capacity-scheduler.xml": queues, **(of_clients or {})}.items():
            _replace(self.conf / name, to_xml(content))
        if of_clients is None:
            for name in (*CLIENT_FILES, LOG4J):
                (self.conf / name).unlink(missing_ok=True)
        else:
            _replace(self.conf / LOG4J, log4j)


@contextlib.contextmanager
def _refusing(path: Path) -> Iterator[None]:
    """Turn an OSError into a YarnException that names the directory and a remedy."""
    try:
        yield
    except OSError as error:
        raise YarnException(
            f"{path}: a cluster cannot keep its files there: {error.strerror} (name another directory)"
        ) from None


def _described(holder: bytes) -> str:
    """Describe the cluster that a lock file names, with the remedy. The content of the file is not trusted."""
    elsewhere = "name another directory"
    try:
        record = json.loads(holder)
        pid, name = int(record["pid"]), str(record["name"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return f"another cluster (end it, or {elsewhere})"
    if name and name.isprintable():
        return f"the cluster {name!r}, process {pid} (end it: yarnling down --name {name}; or {elsewhere})"
    return f"a cluster of process {pid} (end it, or {elsewhere})"


def _files_of(store: Path) -> list[Path]:
    """The files and directories of a state store that exist."""
    return [file for file in store_files(store) if file.exists()]


def _has_content(store: Path) -> bool:
    """True if a ResourceManager has written to the store.

    An RM that was killed before that leaves an empty directory.
    """
    return any(file.is_file() and file.stat().st_size > 0 for file in _files_of(store))


def _host(number: int) -> str:
    return str(FIRST_NODE + (number - 1))


def _rack(number: int, racks: int) -> str:
    return f"/rack-{(number - 1) % racks + 1}" if racks > 1 else DEFAULT_RACK


def _replace(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.new")
    with full_disk_named(path):
        temporary.write_text(text)
    temporary.replace(path)
