"""The logs of containers as `yarn logs` reads them from the node: lists of files, and files with head and tail lines.

Whatever a container wrote into its log directory is not trusted: links are not followed, and only regular files below
the directory are opened.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncIterator, Iterable

from msgspec import Struct

from nm.launcher.directories import log_dir
from wire.web.document import Document, Element, many
from wire.web.records import java_date
from yarn.ids import ContainerId, NodeId

FILES_MAX = 1000
"""Files listed of one container."""
PART_BYTES = 256 * 1024
_UNREADABLE_NAMES = ("", ".", "..")


class LogFile(Struct, frozen=True):
    """A log file: its name, its size in bytes, when it was changed."""

    name: str
    size: int
    modified_ms: int


def log_files(log_dirs: Iterable[str], container_id: ContainerId) -> list[LogFile]:
    """The regular files in a container's log directories, in the order of the disk, at most FILES_MAX."""
    found: list[LogFile] = []
    for directory in log_dirs:
        try:
            with os.scandir(log_dir(directory, container_id)) as entries:
                for entry in entries:
                    if len(found) < FILES_MAX and entry.is_file(follow_symlinks=False):
                        status = entry.stat(follow_symlinks=False)
                        found.append(LogFile(entry.name, status.st_size, status.st_mtime_ns // 1_000_000))
        except OSError:
            continue
    return found


def log_document(files: Iterable[LogFile], container_id: ContainerId, node_id: NodeId) -> Document:
    """The answer to /ws/v1/node/containers/{id}/logs; sizes are texts, as in Hadoop."""
    listed = many(
        Element(
            {
                "fileName": file.name,
                "fileSize": str(file.size),
                "lastModifiedTime": java_date(file.modified_ms, with_offset=True),
            }
        )
        for file in files
    )
    return Document(
        "containerLogsInfo",
        Element(
            {
                "containerLogInfo": listed,
                "logAggregationType": "LOCAL",
                "containerId": str(container_id),
                "nodeId": str(node_id),
            }
        ),
    )


class OpenLog:
    """A log file to send: a part of it, between Hadoop's head and tail lines. `size`: bytes from its start, or from
    its end if negative; None: all."""

    def __init__(
        self, descriptor: int, name: str, container_id: ContainerId, node_id: NodeId, *, running: bool, size: int | None
    ) -> None:
        self._descriptor = descriptor
        status = os.fstat(descriptor)
        length = status.st_size
        count = length if size is None else min(abs(size), length)
        self._start = length - count if size is not None and size < 0 else 0
        self._count = count
        modified = java_date(status.st_mtime_ns // 1_000_000, with_offset=True)
        self._head = _head(name, container_id, node_id, modified, length)
        self._tail = _tail(name, container_id, running=running)

    @property
    def length(self) -> int:
        """Bytes that `parts` yields."""
        return len(self._head) + self._count + len(self._tail)

    async def parts(self) -> AsyncIterator[bytes]:
        """The bytes; the file is closed at the end. A file that shrank meanwhile is filled up with zeros."""
        try:
            yield self._head
            left, position = self._count, self._start
            while left:
                part = await asyncio.to_thread(os.pread, self._descriptor, min(left, PART_BYTES), position)
                part = part or bytes(min(left, PART_BYTES))
                left -= len(part)
                position += len(part)
                yield part
            yield self._tail
        finally:
            self.close()

    def close(self) -> None:
        """Calling it again is a no-op."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def open_log(log_dirs: Iterable[str], container_id: ContainerId, name: str) -> int | None:
    """A descriptor of the file; None if there is no such regular file."""
    if name in _UNREADABLE_NAMES or "/" in name or "\0" in name:
        return None
    for directory in log_dirs:
        try:
            parent = os.open(log_dir(directory, container_id), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
        except OSError:
            continue
        finally:
            os.close(parent)
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return descriptor
        os.close(descriptor)
    return None


def _head(name: str, container_id: ContainerId, node_id: NodeId, modified: str, length: int) -> bytes:
    first = f"Container: {container_id} on {node_id}"
    lines = [
        first,
        "LogAggregationType: LOCAL",
        "=" * len(first),
        f"LogType:{name}",
        f"LogLastModifiedTime:{modified}",
        f"LogLength:{length}",
        "LogContents:",
    ]
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")


def _tail(name: str, container_id: ContainerId, *, running: bool) -> bytes:
    end = f"End of LogType:{name}"
    note = ""
    if running:
        note = f"This log file belongs to a running container ({container_id}) and so may not be complete."
    return f"{end}.{note}\n{'*' * (len(end) + 50)}\n\n".encode("utf-8", "replace")
