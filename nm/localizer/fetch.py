"""Copies resources into the node's caches, a few at a time, with the checks of Hadoop's FSDownload.

The source must have the modification time that the AM gave, to the millisecond; its size is not compared, as in Hadoop.
All users must be able to read a public resource, and to enter every directory above it. A copy is made in a temporary
directory and then renamed, so a copy that exists is complete. Diagnostics contain Hadoop's sentence and the name of its
Java exception, without a stack trace. The rules are those of ResourceLocalizationService and ContainerLocalizer.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import stat
from collections.abc import Callable
from datetime import UTC, datetime

from nm.core.effects import FetchResource
from nm.core.events import Event, ResourceFetched, ResourceFetchFailed
from nm.launcher.directories import PLAIN_MODE, DisksFailed, NodeDirectories, cache_dir, make_dir, make_user_dirs
from nm.localizer.archives import DEFAULT_LIMITS, TAR_SUFFIXES, ZIP_SUFFIXES, ArchiveLimits, BadArchive, unpack
from nm.localizer.remote import RemoteFile, remote_file
from nm.localizer.sources import IO_EXCEPTION, NO_MOUNTS, DownloadFailed, FileSource, Mounts, shown
from wire.files.full_disk import full_disk_named
from yarn.containers import LocalResource
from yarn.ids import ContainerId
from yarn.states import LocalResourceType, LocalResourceVisibility
from yarn.times import format_iso8601

_logger = logging.getLogger(f"yarnling.{__name__}")


class Localizer:
    """Carries out FetchResource effects, and sends one event for each.

    `width` is how many resources are copied at once, `limits` are those of one archive, `mounts` the mount tables.
    """

    def __init__(
        self,
        directories: NodeDirectories,
        send: Callable[[Event], None],
        width: int,
        limits: ArchiveLimits,
        mounts: Mounts,
    ) -> None:
        self._directories = directories
        self._send = send
        self._limits = limits
        self._mounts = mounts
        self._slots = asyncio.Semaphore(width)
        self._tasks: asyncio.TaskGroup | None = None

    def use(self, tasks: asyncio.TaskGroup) -> None:
        """Run fetches in this task group; call it before the first `fetch`."""
        self._tasks = tasks

    def fetch(self, request: FetchResource) -> None:
        assert self._tasks is not None, "use() comes first"
        self._tasks.create_task(self._fetch(request))

    async def _fetch(self, request: FetchResource) -> None:
        event: Event
        try:
            async with self._slots:
                path, size_bytes = await asyncio.to_thread(
                    fetch, request, self._directories, self._limits, self._mounts
                )
            event = ResourceFetched(request.fetch_id, path, size_bytes)
        except DownloadFailed as failed:
            event = ResourceFetchFailed(request.fetch_id, diagnostics(failed, request.resource, request.container_id))
        except Exception as bug:
            _logger.exception("cannot fetch url=%s", request.resource.url)
            event = ResourceFetchFailed(request.fetch_id, f"{type(bug).__name__}: {bug}")
        self._send(event)


_COPY_BYTES = 1 << 20


def fetch(
    request: FetchResource,
    directories: NodeDirectories,
    limits: ArchiveLimits = DEFAULT_LIMITS,
    mounts: Mounts = NO_MOUNTS,
) -> tuple[str, int]:
    """Copy a resource into its cache. Returns (path of the copy, its size in bytes).

    Raises DownloadFailed and removes any partial copy.
    """
    resource = request.resource
    source = remote_file(resource.url) or mounts.locate(resource.url)
    directories.make_first()
    try:
        if resource.visibility is not LocalResourceVisibility.PUBLIC:
            make_user_dirs(directories, request.user, request.application_id)
        local = directories.choose_local()
        home = cache_dir(local, resource.visibility, request.user, request.application_id)
        directories.make(home, PLAIN_MODE)
        with full_disk_named(home), directories.open(home) as home_fd:
            # The size is read through the file's descriptor, so a link that a container creates in its place is not
            # followed.
            size_bytes = _fetch_into(f"/proc/self/fd/{home_fd}/{request.number}", resource, source, limits)
    except DisksFailed as error:
        raise DownloadFailed("org.apache.hadoop.util.DiskChecker$DiskErrorException", str(error)) from None
    except (OSError, BadArchive, RecursionError) as error:
        raise DownloadFailed(IO_EXCEPTION, f"Download and unpack failed: {resource.url}: {error}") from None
    return f"{home}/{request.number}/{source.name}", size_bytes


def _fetch_into(final: str, resource: LocalResource, source: FileSource | RemoteFile, limits: ArchiveLimits) -> int:
    """Copy a resource to the new directory `final`, which appears once the copy is complete.

    Returns its size in bytes.
    """
    beside, downloaded = f"{final}_tmp", f"{final}_remote"
    try:
        make_dir(beside, 0o755)
        local = source.download(downloaded) if isinstance(source, RemoteFile) else source
        copy = f"{beside}/{local.name}"
        _check_time(resource, local)
        if local is source and resource.visibility is LocalResourceVisibility.PUBLIC:
            _check_public(local)
        _copy(resource, local.path, copy, limits)
        size_bytes = _restrict(copy, public=resource.visibility is LocalResourceVisibility.PUBLIC)
        os.rename(beside, final)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise
    finally:
        shutil.rmtree(downloaded, ignore_errors=True)
    return size_bytes


def diagnostics(failed: DownloadFailed, resource: LocalResource, container_id: ContainerId) -> str:
    """The diagnostics for the container's AM. Those of a public resource, which Hadoop's NM fetches, are one line."""
    if resource.visibility is LocalResourceVisibility.PUBLIC:
        request = f"{{ {shown(resource.url)}, {resource.timestamp_ms}, {resource.type.name}, {resource.pattern} }}"
        request = request.replace(", None }", ", null }")
        return (
            f"Failed to download resource {{ {request},pending,[({container_id})],0,DOWNLOADING}} "
            f"{failed.java_class}: {failed.sentence}"
        )
    return f"{failed.sentence}\n{failed.java_class}: {failed.sentence}\n"


def _check_time(resource: LocalResource, source: FileSource) -> None:
    try:
        modified_ms = os.stat(source.path).st_mtime_ns // 1_000_000
    except (FileNotFoundError, ValueError):
        # ValueError: the name contains a NUL character, so no such file can exist.
        raise DownloadFailed("java.io.FileNotFoundException", f"File file:{source.path} does not exist") from None
    if modified_ms != resource.timestamp_ms:
        now_ms = int(datetime.now(UTC).timestamp() * 1000)
        raise DownloadFailed(
            IO_EXCEPTION,
            f"Resource {source.shown} changed on src filesystem - expected: {_iso(resource.timestamp_ms)}, "
            f"was: {_iso(modified_ms)}, current time: {_iso(now_ms)}",
        )


def _check_public(source: FileSource) -> None:
    """Check the rights of other users. Those of other file systems are not asked for: object stores have none."""
    if not is_public(source.path, source.root):
        raise DownloadFailed(
            IO_EXCEPTION,
            f"Resource {source.shown} is not publicly accessible and as such cannot be part of the public cache.",
        )


def is_public(source: str, root: str = "/") -> bool:
    """True if all users may read the source with everything below it, and may enter every directory above it.

    `root` is that of its file system, above which nothing is looked at.
    """
    if not _is_readable_by_all(source):
        return False
    parent = os.path.dirname(source)
    while True:
        if not os.stat(parent).st_mode & stat.S_IXOTH:
            return False
        if parent in (root, "/"):
            return True
        parent = os.path.dirname(parent)


def _is_readable_by_all(path: str) -> bool:
    mode = os.stat(path).st_mode
    if not stat.S_ISDIR(mode):
        return bool(mode & stat.S_IROTH)
    if mode & (stat.S_IROTH | stat.S_IXOTH) != stat.S_IROTH | stat.S_IXOTH:
        return False
    return all(_is_readable_by_all(os.path.join(path, name)) for name in os.listdir(path))


def _copy(resource: LocalResource, source: str, copy: str, limits: ArchiveLimits) -> None:
    """Copy a file or unpack an archive. A jar of type PATTERN is both copied and unpacked.

    An archive of unknown type is copied.
    """
    if os.path.isdir(source):
        shutil.copytree(source, copy)
        return
    name = os.path.basename(source).lower()
    unpacks = resource.type is not LocalResourceType.FILE and name.endswith((*ZIP_SUFFIXES, *TAR_SUFFIXES))
    if not unpacks:
        _copy_file(source, copy)
        return
    with open(_open_file(source), "rb") as archive:
        unpack(archive, name, copy, limits)
    if resource.type is LocalResourceType.PATTERN and name.endswith(".jar"):
        # Hadoop unpacks only the files that match the pattern. The jar with all of its content serves the same
        # programs.
        _copy_file(source, os.path.join(copy, os.path.basename(source)))


def _copy_file(source: str, target: str) -> None:
    with open(_open_file(source), "rb") as reading, open(target, "xb") as writing:
        shutil.copyfileobj(reading, writing, _COPY_BYTES)


def _open_file(source: str) -> int:
    """Open a regular file and return its descriptor.

    Other files are refused: opening a pipe, for example, would wait for a writer and delay other fetches.
    """
    descriptor = os.open(source, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{source} is not a regular file")
    return descriptor


def _restrict(path: str, *, public: bool) -> int:
    """Make a copy read-only: r-x for its owner, and for all users if it is public. Returns its size in bytes."""
    file_mode, directory_mode = (0o555, 0o755) if public else (0o500, 0o700)
    if not os.path.isdir(path):
        os.chmod(path, file_mode)
        return os.stat(path).st_size
    size_bytes = 0
    for parent, _, names in os.walk(path):
        os.chmod(parent, directory_mode)
        for name in names:
            file = os.path.join(parent, name)
            if not os.path.islink(file):
                os.chmod(file, file_mode)
                size_bytes += os.stat(file).st_size
    return size_bytes


def _iso(wall_ms: int) -> str:
    return f'"{format_iso8601(wall_ms)}"'
