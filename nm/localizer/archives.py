"""Unpacks archives that are not trusted.

An archive is a list of paths and contents from an unknown author. Unpackers that trust archives have been exploited
with `../`, with absolute names, with a link that leads outside and a file written through it, and with a few kilobytes
that unpack to a full disk. So names must stay below the target, devices are refused, and the number and the size of
members have limits. Symbolic links are made after everything else is unpacked, so nothing is ever written through
one. An archive that violates this is refused as a whole.

A link may lead to something inside the archive, or to a program of this machine: `bin/python3.11 ->
/usr/bin/python3.11` is in every packed virtual environment. For that link tarfile's `data` filter (PEP 706, from Python
3.11.4 on) refuses such archives, which is why it is not used here. In a zip archive a link is a file that contains the
name of its target, as Hadoop's FileUtil.unZip writes it.
"""

from __future__ import annotations

import gzip
import os
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from typing import IO

from msgspec import Struct

from yarn.configuration import Configuration
from yarn.settings.yarnling import ARCHIVE_ENTRIES_MAX, ARCHIVE_SIZE_MAX_MB

NAME_BYTES_MAX = 255
"""The size limit of one part of a member's name, which file systems impose."""
DEPTH_MAX = 64
"""The limit on the directories above a member."""
_CHUNK_BYTES = 1 << 16
_READ_BYTES_MAX = 1 << 20
"""The limit on one read by the tar reader: a header that claims a larger size would exhaust memory."""

TAR_SUFFIXES = (".tar", ".tgz", ".tar.gz")
ZIP_SUFFIXES = (".zip", ".jar")


class BadArchive(Exception):
    """The archive is damaged, or has a member that is refused. The message names the member."""


class ArchiveLimits(Struct, frozen=True):
    """The number of members that an archive may have, and how many bytes they may have together."""

    entries_max: int = int(ARCHIVE_ENTRIES_MAX.default or 0)
    bytes_max: int = int(ARCHIVE_SIZE_MAX_MB.default or 0) << 20

    @staticmethod
    def read(conf: Configuration) -> ArchiveLimits:
        return ArchiveLimits(ARCHIVE_ENTRIES_MAX.of(conf), ARCHIVE_SIZE_MAX_MB.of(conf) << 20)


DEFAULT_LIMITS = ArchiveLimits()


def unpack(source: IO[bytes], name: str, target: str, limits: ArchiveLimits = DEFAULT_LIMITS) -> None:
    """Unpack the archive `source` into the new directory `target`. The suffix of `name` determines the format.

    Raises BadArchive, or OSError for a disk error. After an error, the caller must delete what was written.
    """
    is_zip = name.lower().endswith(ZIP_SUFFIXES)
    try:
        tree = _UnpackedTree(target, limits)
        if is_zip:
            _unzip(source, tree)
        else:
            _untar(source, tree, zipped=name.lower().endswith("gz"))
        tree.make_links()
    except (BadArchive, OSError, MemoryError) as error:
        # gzip reports damage with a kind of OSError.
        if not isinstance(error, gzip.BadGzipFile):
            raise
        raise BadArchive(f"not a readable tar archive: {error}") from None
    except Exception as error:
        # A damaged archive may raise nearly any exception (zlib's is not documented).
        text = str(error) or type(error).__name__
        raise BadArchive(f"not a readable {'zip' if is_zip else 'tar'} archive: {text}") from None


def parts_of(name: str) -> tuple[str, ...]:
    """Split a member's name into its parts. Raises BadArchive for a name that may lead outside the target."""
    if name.startswith("/") or "\0" in name:
        raise BadArchive(f"{name!r} is not a relative name")
    parts = tuple(part for part in name.split("/") if part not in ("", "."))
    if ".." in parts:
        raise BadArchive(f"{name!r} leads out of the archive")
    if len(parts) > DEPTH_MAX:
        raise BadArchive(f"{name[:80]!r}... is more than {DEPTH_MAX} directories deep")
    for part in parts:
        if len(os.fsencode(part)) > NAME_BYTES_MAX:
            raise BadArchive(f"{part[:80]!r}... is longer than {NAME_BYTES_MAX} bytes")
    return parts


def _unzip(source: IO[bytes], tree: _UnpackedTree) -> None:
    with zipfile.ZipFile(source) as archive:
        for member in archive.infolist():
            path = tree.place(member.filename, is_dir=member.is_dir())
            if not member.is_dir():
                with archive.open(member) as content:
                    tree.write(path, content.read)


def _untar(source: IO[bytes], tree: _UnpackedTree, *, zipped: bool) -> None:
    plain = gzip.GzipFile(fileobj=source, mode="rb") if zipped else source
    with tarfile.open(fileobj=_Bounded(plain, tree.limits), mode="r:") as archive:  # type: ignore[call-overload]
        for member in archive:
            path = tree.place(member.name, is_dir=member.isdir())
            if member.isreg():
                content = archive.extractfile(member)
                assert content is not None, "a regular file has content"
                tree.write(path, content.read)
            elif member.islnk():
                tree.link_file(path, member.linkname)
            elif member.issym():
                tree.links[path] = member.linkname
            elif not member.isdir():
                raise BadArchive(f"{member.name!r} is neither a file, a directory nor a link")
            # tarfile keeps a list of the members that were read; emptying it saves memory.
            archive.members = []


class _UnpackedTree:
    """The directory that an archive is unpacked to. It has no symbolic link before `make_links`."""

    def __init__(self, root: str, limits: ArchiveLimits) -> None:
        os.mkdir(root, 0o700)
        self.limits = limits
        self.links: dict[str, str] = {}
        """{path: target} of the symbolic links that `make_links` will make."""
        self._root = root
        self._entries = 0
        self._bytes = 0

    def place(self, name: str, *, is_dir: bool) -> str:
        """Count a member, and return its path, for which the directories exist."""
        self._entries += 1
        if self._entries > self.limits.entries_max:
            raise BadArchive(f"has more than {self.limits.entries_max} members (raise {ARCHIVE_ENTRIES_MAX.key})")
        parts = parts_of(name)
        if not parts and not is_dir:
            raise BadArchive("a file in the archive has no name")
        path = os.path.join(self._root, *parts)
        try:
            os.makedirs(path if is_dir else os.path.dirname(path), 0o700, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise BadArchive(f"{name!r} is a file and a directory") from None
        return path

    def write(self, path: str, read: Callable[[int], bytes]) -> None:
        try:
            # Replace an earlier member of this name instead of overwriting it: hard links to it keep their content.
            if os.path.lexists(path):
                os.unlink(path)
        except (IsADirectoryError, PermissionError):
            raise BadArchive(f"{self._shown(path)!r} is a file and a directory") from None
        with open(path, "xb") as file:
            while chunk := read(_CHUNK_BYTES):
                self._bytes += len(chunk)
                if self._bytes > self.limits.bytes_max:
                    limit = f"more than {self.limits.bytes_max} bytes"
                    raise BadArchive(f"unpacks to {limit} (raise {ARCHIVE_SIZE_MAX_MB.key})")
                file.write(chunk)

    def link_file(self, path: str, target: str) -> None:
        """Make a hard link to a file that has been unpacked."""
        existing = os.path.join(self._root, *parts_of(target))
        if not os.path.isfile(existing) or os.path.lexists(path):
            raise BadArchive(f"{self._shown(path)!r} is a hard link to {target!r}, which is not a file before it")
        os.link(existing, path)

    def make_links(self) -> None:
        """Make the symbolic links, the last step. Raises BadArchive if one is refused."""
        for path, target in self.links.items():
            try:
                os.symlink(target, path)
            except FileExistsError:
                raise BadArchive(f"{self._shown(path)!r} is a link and another member") from None
        root = os.path.realpath(self._root)
        for path, target in self.links.items():
            found = os.path.realpath(path)
            inside = found == root or found.startswith(f"{root}/")
            if not inside and shutil.which(found) is None:
                raise BadArchive(
                    f"{self._shown(path)!r} is a link to {target!r}, which is neither in the archive nor a program here"
                )

    def _shown(self, path: str) -> str:
        return os.path.relpath(path, self._root)


class _Bounded:
    """A file that limits the size of each read and its position, because tar headers may claim any size."""

    def __init__(self, file: IO[bytes] | gzip.GzipFile, limits: ArchiveLimits) -> None:
        self._file = file
        # The limit covers the contents of the members, and at most a kilobyte of header and padding for each.
        self._end = limits.bytes_max + 2 * tarfile.RECORDSIZE + limits.entries_max * 4 * tarfile.BLOCKSIZE

    def read(self, size: int = -1) -> bytes:
        if size < 0 or size > _READ_BYTES_MAX:
            raise BadArchive(f"a header of the archive claims a size of {size} bytes")
        return self._file.read(size)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if whence == os.SEEK_SET and not 0 <= offset <= self._end:
            raise BadArchive(f"a member of the archive ends at byte {offset}, which is too large")
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()
