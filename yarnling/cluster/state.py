"""The state file: how commands find a cluster that `yarnling up` has started, and whether it is still up.

Each cluster has a file `<name>.json`, mode 0600, in $XDG_RUNTIME_DIR/yarnling or else ~/.cache/yarnling. A process is
identified by its id and its start time, because an id may be reused. A file whose supervisor has ended is stale; `up`
and `down` clean up after it.

A cluster that ends by itself leaves `<name>.end`, which says why. If its directory is temporary, it also leaves
`<name>.log` with the end of its logs. Both files stay until the next cluster of that name starts.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path

import psutil
from msgspec import Struct, convert, to_builtins

from wire.files.full_disk import full_disk_named
from yarn.errors import InvalidArgumentException, YarnException
from yarn.settings.resourcemanager import WEBAPP_ADDRESS
from yarnling.cluster.processes import ProcessIdentity, end_orphans

DEFAULT_NAME = "default"
STATE_VERSION = 3

END_BYTES_MAX = 4096
"""The size limit of the note that a cluster leaves when it ends by itself: a sentence with paths."""

NAMES_MAX = 20
"""The number of nodes that an error about an unknown node lists."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


class NoCluster(YarnException):
    """No cluster of that name is up."""


class UnreadableState(NoCluster):
    """The state file exists but cannot be read; the cluster may still be running."""


class NodeEntry(Struct, frozen=True):
    """A NodeManager of the cluster. `log_dirs` contain the logs of its containers.

    `is_partitioned`: its connections are cut (`partition-node`).
    """

    number: int
    name: str
    node_id: str
    process: ProcessIdentity
    log_dirs: tuple[str, ...]
    is_partitioned: bool = False


def conditions(nodes: Iterable[NodeEntry]) -> dict[str, str]:
    """{node id: "ended", "paused" or "partitioned"} of the nodes that do not work.

    The ResourceManager may not know this yet. Each process is looked at once, however many nodes it has.
    """
    processes: dict[ProcessIdentity, str] = {}
    found = {}
    for entry in nodes:
        if entry.process not in processes:
            processes[entry.process] = _condition(entry.process)
        condition = processes[entry.process] or ("partitioned" if entry.is_partitioned else "")
        if condition:
            found[entry.node_id] = condition
    return found


def _condition(identity: ProcessIdentity) -> str:
    """The reason why the process does not work: "ended", "paused", or ""."""
    process = identity.process()
    try:
        if process is not None:
            return "paused" if process.status() == psutil.STATUS_STOPPED else ""
    except psutil.NoSuchProcess:
        pass
    return "ended"


class ClusterState(Struct, frozen=True):
    """The data that commands need about a cluster. `addresses` is {configuration key: host:port of the RM}.

    If `temporary`, the cluster's directory is deleted when the cluster ends. `rm`: the ResourceManager, or of several
    the first that runs; `other_rms`: the others. With several, each key has the id as a suffix.
    """

    name: str
    supervisor: ProcessIdentity
    rm: ProcessIdentity
    directory: str
    temporary: bool
    conf_dir: str
    addresses: dict[str, str]
    nodes: tuple[NodeEntry, ...]
    time_factor: float
    other_rms: tuple[ProcessIdentity, ...] = ()

    @property
    def web(self) -> str:
        """The host:port of a ResourceManager's web pages, "" if there are none; a standby redirects to the active."""
        return next((value for key, value in self.addresses.items() if key.startswith(WEBAPP_ADDRESS.key)), "")

    @property
    def rm_is_down(self) -> bool:
        """True if no ResourceManager runs."""
        return all(rm.process() is None for rm in (self.rm, *self.other_rms))

    def node(self, wanted: str) -> NodeEntry:
        """Find a node by number, name or id. Raises InvalidArgumentException, which lists the nodes."""
        number = number_of_node(wanted, self.name, [(node.number, node.name, node.node_id) for node in self.nodes])
        return next(node for node in self.nodes if node.number == number)

    def pack_of(self, node: NodeEntry) -> tuple[NodeEntry, ...]:
        """The nodes that share the process of a node, including the node itself."""
        return tuple(entry for entry in self.nodes if entry.process == node.process)

    def write(self) -> None:
        """Replace the state file in one step. Only its owner can read it."""
        path = state_path(self.name)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(path, json.dumps({"version": STATE_VERSION, **to_builtins(self)}).encode())

    def remove(self) -> None:
        """Delete the state file, unless it describes a newer cluster of that name."""
        with contextlib.suppress(NoCluster):
            if read_state(self.name).supervisor == self.supervisor:
                state_path(self.name).unlink(missing_ok=True)
                control_path(self.name).unlink(missing_ok=True)


@contextlib.contextmanager
def name_taken(name: str) -> Iterator[None]:
    """Reserve the name for a new cluster, once an earlier cluster of that name has been cleaned up and forgotten.

    Raises YarnException if one is up or is being started, or if no state file can be written.
    """
    # The check comes before the lock is taken, because its error says more about a cluster that is up.
    check_free(name)
    with name_held(name):
        check_free(name)
        forget_end(name)
        yield


def check_free(name: str) -> None:
    """Clean up after a cluster of that name whose supervisor was killed.

    Raises YarnException if a cluster of that name is up, or if no state file can be written.
    """
    check_state_directory()
    try:
        state = read_state(name)
    except UnreadableState:
        raise
    except NoCluster:
        return
    if state.supervisor.process() is None:
        clean_up(state)
        return
    raise YarnException(
        f"a cluster {name!r} is up, process {state.supervisor.pid} "
        f"(end it: yarnling down --name {name}; or give this one another --name)"
    )


@contextlib.contextmanager
def name_held(name: str) -> Iterator[None]:
    """Keep other processes from starting a cluster of that name.

    Raises YarnException if another process is starting one.
    """
    path = state_path(name).with_suffix(".lock")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise unusable_state_directory(path.parent, error) from None
    try:
        if not _lock(descriptor, path):
            remedy = "wait until it has finished, or use another --name"
            raise YarnException(f"cluster {name!r} is being started or stopped by another process ({remedy})")
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, path: Path) -> bool:
    """Try to take the lock. Returns False if it is taken, or if its last holder has just deleted the file."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.stat(path).st_ino == os.fstat(descriptor).st_ino
    except (BlockingIOError, FileNotFoundError):
        return False


def check_name(name: str) -> str:
    """Return `name` if it is usable as a file name. Raises YarnException otherwise."""
    if not _NAME.fullmatch(name):
        raise YarnException(
            f"--name {name!r}: must be at most 64 letters, digits, `.`, `_` or `-` (for example {DEFAULT_NAME})"
        )
    return name


def state_directory() -> Path:
    """The directory of state files."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and os.access(runtime, os.W_OK):
        return Path(runtime) / "yarnling"
    return Path.home() / ".cache" / "yarnling"


def check_state_directory() -> None:
    """Raises YarnException if no state file can be written."""
    directory = state_directory()
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            pass
    except OSError as error:
        raise unusable_state_directory(directory, error) from None


def unusable_state_directory(directory: Path, error: OSError) -> YarnException:
    """The error for a directory in which no state file can be written.

    The remedy depends on why this directory was chosen.
    """
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if not runtime:
        why, remedy = "", "set XDG_RUNTIME_DIR to a directory that you can write to"
    elif directory.is_relative_to(runtime):
        why, remedy = "", "XDG_RUNTIME_DIR names it: set it to a directory that you can write to"
    else:
        why = f"XDG_RUNTIME_DIR = {runtime} cannot be written to, and "
        remedy = "set XDG_RUNTIME_DIR to a directory that you can write to"
    return YarnException(f"{why}{directory}: cannot keep the cluster's state: {error.strerror} ({remedy})")


def state_path(name: str) -> Path:
    return state_directory() / f"{check_name(name)}.json"


def control_path(name: str) -> Path:
    """The control socket of the cluster's supervisor."""
    return state_path(name).with_suffix(".sock")


def end_log_path(name: str) -> Path:
    """The path of the file with the end of the logs of a cluster that had a temporary directory."""
    return state_path(name).with_suffix(".log")


def write_end(name: str, reason: str, logs: str) -> None:
    """Leave a note that the cluster has ended by itself. `logs` is the path of the cluster's logs."""
    first, _, _ = reason.partition("\n")
    moment = datetime.now().astimezone()
    text = f"the last one ended by itself at {moment:%Y-%m-%d %H:%M:%S}: {first} (its logs: {logs})"
    write_private(_end_path(name), text.encode())


def forget_end(name: str) -> None:
    """Delete the note and the logs that an earlier cluster of that name left."""
    for path in (_end_path(name), end_log_path(name)):
        path.unlink(missing_ok=True)


def write_private(path: Path, content: bytes) -> None:
    """Replace a file in one step; only its owner can read it."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with (
        full_disk_named(path),
        os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file,
    ):
        file.write(content)
    temporary.replace(path)


def read_state(name: str) -> ClusterState:
    """Read a state file. Raises NoCluster if there is none, UnreadableState if it cannot be read."""
    path = state_path(name)
    try:
        fields = json.loads(path.read_text())
        if fields.pop("version") != STATE_VERSION:
            raise UnreadableState(
                f"{path}: written by another version of yarnling (end that cluster with it, or delete the file)"
            )
        return convert(fields, ClusterState)
    except FileNotFoundError:
        raise NoCluster(_none_up(name)) from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UnreadableState(f"{path}: cannot be read as a cluster's state: {error} (delete it)") from None


def find_cluster(name: str) -> ClusterState:
    """Find a cluster that is up, and return its state. Raises NoCluster if there is none of that name."""
    state = read_state(name)
    if state.supervisor.process() is None:
        gone = f"the last one, process {state.supervisor.pid}, was killed"
        raise NoCluster(f"{_none_up(name)}; {gone} (yarnling down{name_option(name)} cleans up after it)")
    return state


def known_clusters() -> list[ClusterState]:
    """The clusters that have a state file, sorted by name. The supervisor of a cluster may have been killed."""
    found: list[ClusterState] = []
    for path in sorted(state_directory().glob("*.json")):
        with contextlib.suppress(YarnException):
            found.append(read_state(path.stem))
    return found


def number_of_node(wanted: str, cluster: str, nodes: Sequence[tuple[int, str, str]]) -> int:
    """The number of the node that `wanted`, a number, name or id, refers to.

    `nodes` are (number, name, id) of all nodes. Raises InvalidArgumentException, which lists the nodes.
    """
    for number, name, node_id in nodes:
        if wanted in (str(number), name, node_id):
            return number
    known = ", ".join(name for _, name, _ in nodes[:NAMES_MAX]) or "none"
    if len(nodes) > NAMES_MAX:
        known += f", ... {nodes[-1][1]}"
    raise InvalidArgumentException(f"node {wanted}: the cluster {cluster} has {known}")


def clean_up(state: ClusterState) -> int:
    """End the processes of a cluster whose supervisor has ended, and delete its files. Returns how many were killed.

    Files in a directory that the user named are kept. If another cluster uses the directory now, only the state file is
    deleted. Raises YarnException if a process cannot be ended.
    """
    # This import takes 70 ms, and shell completion imports this module for the names of clusters.
    from yarnling.cluster.directory import DirectoryInUse, DirectoryLock

    directories = [Path(state.directory), *(Path(path) for node in state.nodes for path in node.log_dirs)]
    with contextlib.ExitStack() as stack:
        try:
            stack.callback(DirectoryLock.take(directories[0], state.name).release)
        except FileNotFoundError:
            # A temporary directory is deleted with its cluster.
            pass
        except DirectoryInUse:
            state.remove()
            return 0
        killed = end_orphans(directories, [node.process for node in state.nodes])
        if state.temporary:
            shutil.rmtree(state.directory, ignore_errors=True)
    state.remove()
    return killed


def _none_up(name: str) -> str:
    none = f"no cluster {name!r} is up (start one: yarnling up --detach{name_option(name)})"
    try:
        with _end_path(name).open("rb") as file:
            return f"{none}; {file.read(END_BYTES_MAX).decode(errors='replace')}"
    except OSError:
        return none


def _end_path(name: str) -> Path:
    return state_path(name).with_suffix(".end")


def name_option(name: str) -> str:
    """The option that makes a command use this cluster, with a space before it; "" for the default cluster."""
    return "" if name == DEFAULT_NAME else f" --name {name}"
