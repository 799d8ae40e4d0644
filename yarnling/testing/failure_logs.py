"""The logs of a cluster during a test: of every daemon, and of the containers that did not succeed.

Of a shared cluster only what was logged since the test began is shown: `mark` records the size of each file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from yarnling.cluster.blocking import BlockingCluster
from yarnling.cluster.containers import NO_OUTPUT, TEXT_LENGTH_MAX

Section = tuple[str, str]
"""A heading and its text."""

DAEMONS_MAX = 20
"""The number of NodeManagers' logs in a report."""
CONTAINERS_MAX = 20

_SUCCEEDED = re.compile(r" NMContainer=(container_\S+) event=\S+ from=\S+ to=EXITED_WITH_SUCCESS\b")


def mark(cluster: BlockingCluster) -> dict[Path, int]:
    """Record the sizes of all log files, for `sections`: {file: bytes}."""
    return {path: path.stat().st_size for path in (*_daemon_logs(cluster), *_container_files(cluster))}


def sections(cluster: BlockingCluster, since: Mapping[Path, int], lines_max: int) -> list[Section]:
    """The text added since `mark`, by file: of containers that did not succeed, then of daemons, the RM first.

    At most the last `lines_max` lines of each file are included (0: all). Files without new text are left out.
    """
    succeeded = _succeeded(cluster)
    files = [
        path for path in _container_files(cluster) if path.parent.name not in succeeded and path.name not in NO_OUTPUT
    ]
    of_containers = list(dict.fromkeys(path.parent for path in files))
    shown = set(of_containers[:CONTAINERS_MAX])
    found = list(_sections((path for path in files if path.parent in shown), since, lines_max))
    if len(of_containers) > CONTAINERS_MAX:
        found.append(("yarnling", f"and {len(of_containers) - CONTAINERS_MAX} more containers"))
    found += _first(_sections(_daemon_logs(cluster), since, lines_max), DAEMONS_MAX + 1, "daemons")
    return found


def _first(found: Iterable[Section], most: int, what: str) -> Iterator[Section]:
    every = list(found)
    yield from every[:most]
    if len(every) > most:
        yield "yarnling", f"and {len(every) - most} more {what}"


def _sections(paths: Iterable[Path], since: Mapping[Path, int], lines_max: int) -> Iterator[Section]:
    for path in paths:
        text = _text(path, since.get(path, 0), lines_max)
        if text:
            yield _heading(path), text


def _heading(path: Path) -> str:
    """`yarnling rm.log`; for a file of a container, the container and its node."""
    if path.suffix == ".log" and path.parent.name == "logs":
        return f"yarnling {path.name}"
    node = next((parent.name for parent in path.parents if parent.name.startswith("nm-")), "")
    return f"yarnling {path.parent.name} {path.name}{f' on {node}' if node else ''}"


def _text(path: Path, start: int, lines_max: int) -> str:
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(start if start <= size else 0, size - TEXT_LENGTH_MAX))
        lines = file.read(TEXT_LENGTH_MAX).decode(errors="replace").splitlines()
    left_out = len(lines) - lines_max if lines_max else 0
    if left_out > 0:
        lines = [f"({left_out} lines before)", *lines[-lines_max:]]
    return "\n".join(lines)


def _daemon_logs(cluster: BlockingCluster) -> list[Path]:
    names = ["rm", *(node.name for node in cluster.nodes)]
    return [path for name in names if (path := cluster.directory.log_file(name)).exists()]


def _container_files(cluster: BlockingCluster) -> list[Path]:
    roots = [path for node in cluster.nodes for path in cluster.log_dirs_of(node)]
    return [path for root in roots for path in sorted(root.glob("application_*/container_*/*")) if path.is_file()]


def _succeeded(cluster: BlockingCluster) -> set[str]:
    """The containers that exited by themselves with status 0, as their NodeManagers logged."""
    texts = (path.read_text(errors="replace") for path in _daemon_logs(cluster))
    return {container for text in texts for container in _SUCCEEDED.findall(text)}
