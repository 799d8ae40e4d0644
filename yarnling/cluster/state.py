"""The state file: how commands find the cluster that `yarnling up` has started, and whether it still lives.

One file a cluster, `<name>.json`, mode 0600, in $XDG_RUNTIME_DIR/yarnling or else ~/.cache/yarnling. A process is named
by its id and the time it started: an id alone may belong to somebody else by now. A file whose supervisor has gone is
stale; `up` and `down` clean up after it.

A cluster that ends by itself leaves `<name>.end`, which says why, and, if its directory is temporary, `<name>.log` with
the end of its logs. Both stay until the next cluster of that name starts.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

import psutil
from msgspec import Struct, to_builtins

from yarn.errors import InvalidArgumentException, YarnException

DEFAULT_NAME = "default"
STATE_VERSION = 3
START_TOLERANCE_S = 0.02
"""Two readings of one process's start may differ by a clock tick."""

END_BYTES_MAX = 4096
"""Of the note that a cluster leaves when it ends by itself: a sentence with paths."""

NAMES_MAX = 20
"""Nodes that are named where none is found."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


class NoCluster(YarnException):
    """No cluster of that name is up."""


class UnreadableState(NoCluster):
    """There is a state file, and it tells nothing: its cluster may be up."""


class ProcessIdentity(Struct, frozen=True):
    """A process for good: `started` is its start in s since the epoch."""

    pid: int
    started: float

    @staticmethod
    def of(pid: int) -> ProcessIdentity:
        """Raises psutil.NoSuchProcess if there is none."""
        return ProcessIdentity(pid, psutil.Process(pid).create_time())

    @staticmethod
    def of_one_that_may_be_gone(pid: int) -> ProcessIdentity:
        try:
            return ProcessIdentity.of(pid)
        except psutil.NoSuchProcess:
            return ProcessIdentity(pid, 0.0)

    def process(self) -> psutil.Process | None:
        """The process, if it still lives."""
        try:
            found = psutil.Process(self.pid)
            same = abs(found.create_time() - self.started) <= START_TOLERANCE_S
            return found if same and found.status() != psutil.STATUS_ZOMBIE else None
        except psutil.NoSuchProcess:
            return None


class NodeEntry(Struct, frozen=True):
    """A NodeManager of the cluster; `log_dirs` hold its containers' logs."""

    number: int
    name: str
    node_id: str
    process: ProcessIdentity
    log_dirs: tuple[str, ...]

    @property
    def condition(self) -> str:
        """What the ResourceManager cannot know at once: "paused", "ended", or nothing."""
        process = self.process.process()
        if process is None:
            return "ended"
        try:
            return "paused" if process.status() == psutil.STATUS_STOPPED else ""
        except psutil.NoSuchProcess:
            return "ended"


class ClusterState(Struct, frozen=True):
    """What other commands need of a cluster. `addresses` {configuration key: host:port of the ResourceManager}.

    `temporary`: its directory goes with it.
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

    def node(self, wanted: str) -> NodeEntry:
        """By number, name or id. Raises InvalidArgumentException, naming those that there are."""
        number = number_of_node(wanted, self.name, [(node.number, node.name, node.node_id) for node in self.nodes])
        return next(node for node in self.nodes if node.number == number)

    def pack_of(self, node: NodeEntry) -> tuple[NodeEntry, ...]:
        """The nodes of a node's process, itself among them."""
        return tuple(entry for entry in self.nodes if entry.process == node.process)

    def write(self) -> None:
        """Write the file, readable by its owner alone, never half."""
        path = state_path(self.name)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(path, json.dumps({"version": STATE_VERSION, **to_builtins(self)}).encode())

    def remove(self) -> None:
        """Delete the file, unless another cluster of that name has taken its place."""
        with contextlib.suppress(NoCluster):
            if read_state(self.name).supervisor == self.supervisor:
                state_path(self.name).unlink(missing_ok=True)
                control_path(self.name).unlink(missing_ok=True)


@contextlib.contextmanager
def name_held(name: str) -> Iterator[None]:
    """No other process starts a cluster of that name meanwhile. Raises YarnException if one does, or has."""
    path = state_path(name).with_suffix(".lock")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise unusable_state_directory(path.parent, error) from None
    try:
        if not _lock(descriptor, path):
            remedy = "wait for it, or give this one another --name"
            raise YarnException(f"a cluster {name!r} is being started or ended ({remedy})")
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, path: Path) -> bool:
    """Whether the lock is ours now: on the file that has this path, not on one that its last holder has deleted."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.stat(path).st_ino == os.fstat(descriptor).st_ino
    except (BlockingIOError, FileNotFoundError):
        return False


def check_name(name: str) -> str:
    """The name; YarnException if it cannot be a file's."""
    if not _NAME.fullmatch(name):
        raise YarnException(f"--name {name!r}: letters, digits, `.`, `_` and `-`, at most 64 (such as {DEFAULT_NAME})")
    return name


def state_directory() -> Path:
    """Where state files are."""
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
    """The refusal of a directory for state files. Its remedy depends on why that directory was taken."""
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
    """The socket of the cluster's supervisor."""
    return state_path(name).with_suffix(".sock")


def end_log_path(name: str) -> Path:
    """Where a cluster with a temporary directory leaves the end of its logs."""
    return state_path(name).with_suffix(".log")


def write_end(name: str, reason: str, logs: str) -> None:
    """Leave a note that the cluster has ended by itself. `logs`: where they are."""
    first, _, _ = reason.partition("\n")
    moment = datetime.now().astimezone()
    text = f"the last one ended by itself at {moment:%Y-%m-%d %H:%M:%S}: {first} (its logs: {logs})"
    write_private(_end_path(name), text.encode())


def forget_end(name: str) -> None:
    """Delete what an earlier cluster of that name has left about its end."""
    for path in (_end_path(name), end_log_path(name)):
        path.unlink(missing_ok=True)


def write_private(path: Path, content: bytes) -> None:
    """Replace a file as a whole; only its owner can read it."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)
    beside.replace(path)


def read_state(name: str) -> ClusterState:
    """The state as written. Raises NoCluster if there is no such file, or it cannot be read as one."""
    path = state_path(name)
    try:
        fields = json.loads(path.read_text())
        if fields.pop("version") != STATE_VERSION:
            raise UnreadableState(
                f"{path}: of another version of yarnling (end that cluster with it, or delete the file)"
            )
        fields["supervisor"] = ProcessIdentity(**fields["supervisor"])
        fields["rm"] = ProcessIdentity(**fields["rm"])
        fields["nodes"] = tuple(_node(entry) for entry in fields["nodes"])
        return ClusterState(**fields)
    except FileNotFoundError:
        raise NoCluster(_none_up(name)) from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UnreadableState(f"{path}: cannot be read as a cluster's state: {error} (delete it)") from None


def find_cluster(name: str) -> ClusterState:
    """The state of a cluster that is up. Raises NoCluster if there is none."""
    state = read_state(name)
    if state.supervisor.process() is None:
        gone = f"the last one, process {state.supervisor.pid}, has gone without a word"
        raise NoCluster(f"{_none_up(name)}; {gone} (yarnling down{name_option(name)} cleans up after it)")
    return state


def known_clusters() -> list[ClusterState]:
    """The clusters that are up or have gone without a word, by name."""
    found: list[ClusterState] = []
    for path in sorted(state_directory().glob("*.json")):
        with contextlib.suppress(YarnException):
            found.append(read_state(path.stem))
    return found


def number_of_node(wanted: str, cluster: str, nodes: Sequence[tuple[int, str, str]]) -> int:
    """The number of a node that is meant by number, name or id, of (number, name, id) of all.

    Raises InvalidArgumentException, naming those that there are.
    """
    for number, name, node_id in nodes:
        if wanted in (str(number), name, node_id):
            return number
    known = ", ".join(name for _, name, _ in nodes[:NAMES_MAX]) or "none"
    if len(nodes) > NAMES_MAX:
        known += f", ... {nodes[-1][1]}"
    raise InvalidArgumentException(f"node {wanted}: the cluster {cluster} has {known}")


def _node(fields: dict[str, object]) -> NodeEntry:
    process = ProcessIdentity(**fields.pop("process"))  # type: ignore[arg-type]
    log_dirs = tuple(fields.pop("log_dirs"))  # type: ignore[arg-type, var-annotated]
    return NodeEntry(**fields, process=process, log_dirs=log_dirs)  # type: ignore[arg-type]


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
    """What a command has to add to mean this cluster."""
    return "" if name == DEFAULT_NAME else f" --name {name}"
