"""Unpacks archives that are not trusted.

An archive is a list of paths and contents from an unknown author. Unpackers that trust archives have been exploited
with `../`, with absolute names, with a link that leads outside and a file written through it, and with a few kilobytes
that unpack to a full disk. So only regular files and directories are unpacked. The names of members must stay below the
target, links are not followed, and the number and the size of members have limits. An archive that violates this is
refused as a whole. Neither a shell, nor the system's tar, nor the extraction functions of the standard library are
used.
"""

from __future__ import annotations

import gzip
import os
import stat
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Protocol

ENTRIES_MAX = 10_000
"""The limit on the members of one archive. A Python or Java distribution has several thousand."""
UNPACKED_BYTES_MAX = 1 << 30
"""The limit on the total unpacked size of one archive: 1 GiB."""
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


class Limits:
    """The limits for one archive, and how much of each has been used."""

    def __init__(self, entries_max: int = ENTRIES_MAX, bytes_max: int = UNPACKED_BYTES_MAX) -> None:
        self.entries_max = entries_max
        self.bytes_max = bytes_max
        self.entries = 0
        self.bytes = 0

    def count_entry(self) -> None:
        self.entries += 1
        if self.entries > self.entries_max:
            raise BadArchive(f"the archive has more than {self.entries_max} members")

    def count_bytes(self, number: int) -> None:
        self.bytes += number
        if self.bytes > self.bytes_max:
            raise BadArchive(f"the archive unpacks to more than {self.bytes_max} bytes")


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


def unpack(source: IO[bytes], name: str, target: str, limits: Limits | None = None) -> None:
    """Unpack the archive `source` into the new directory `target`. The suffix of `name` determines the format.

    Raises BadArchive, or OSError for a disk error. After an error, the caller must delete what was written.
    """
    os.mkdir(target, 0o700)
    root = os.open(target, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if name.lower().endswith(ZIP_SUFFIXES):
            _unzip(source, root, limits or Limits())
        else:
            _untar(source, root, limits or Limits(), zipped=name.lower().endswith("gz"))
    finally:
        os.close(root)


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


def _unzip(source: IO[bytes], root: int, limits: Limits) -> None:
    try:
        with zipfile.ZipFile(source) as archive:
            for member in archive.infolist():
                limits.count_entry()
                _check_zip_member(member)
                if member.is_dir():
                    _make_directory(root, parts_of(member.filename))
                    continue
                with archive.open(member) as content:
                    _write_file(root, parts_of(member.filename), content, limits)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, ValueError, LookupError) as error:
        raise BadArchive(f"not a readable zip archive: {error}") from None
    except Exception as error:
        raise _unpacking_failed(error) from None


def _check_zip_member(member: zipfile.ZipInfo) -> None:
    kind = stat.S_IFMT(member.external_attr >> 16)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise BadArchive(f"{member.filename!r} is neither a file nor a directory")


def _untar(source: IO[bytes], root: int, limits: Limits, *, zipped: bool) -> None:
    plain = gzip.GzipFile(fileobj=source, mode="rb") if zipped else source
    try:
        with tarfile.open(fileobj=_Bounded(plain, limits.bytes_max), mode="r:") as archive:  # type: ignore[call-overload]
            for member in archive:
                limits.count_entry()
                if member.isdir():
                    _make_directory(root, parts_of(member.name))
                elif member.isreg():
                    content = archive.extractfile(member)
                    assert content is not None, "a regular file has content"
                    _write_file(root, parts_of(member.name), content, limits)
                else:
                    raise BadArchive(f"{member.name!r} is neither a file nor a directory")
                # tarfile keeps a list of the members that were read; emptying it saves memory.
                archive.members = []
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, ValueError, LookupError) as error:
        raise BadArchive(f"not a readable tar archive: {error}") from None
    except Exception as error:
        raise _unpacking_failed(error) from None


def _unpacking_failed(error: Exception) -> Exception:
    """The exception to raise for `error`: a damaged archive may raise nearly any exception (zlib's is
    not documented).
    """
    if isinstance(error, (BadArchive, OSError, MemoryError)):
        return error
    return BadArchive(f"the archive cannot be unpacked: {type(error).__name__}: {error}")


class _Bounded:
    """A file that limits the size of each read and its position, because tar headers may claim any size."""

    def __init__(self, file: IO[bytes] | gzip.GzipFile, bytes_max: int) -> None:
        self._file = file
        # The limit covers the contents of the members, and at most a kilobyte of header and padding for each.
        self._end = bytes_max + 2 * tarfile.RECORDSIZE + ENTRIES_MAX * 4 * tarfile.BLOCKSIZE

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


def _write_file(root: int, parts: tuple[str, ...], content: _Readable, limits: Limits) -> None:
    if not parts:
        raise BadArchive("a file in the archive has no name")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with _directory(root, parts[:-1]) as parent:
        try:
            descriptor = os.open(parts[-1], flags, 0o600, dir_fd=parent)
        except IsADirectoryError:
            raise BadArchive(f"{'/'.join(parts)!r} is a file and a directory") from None
        with open(descriptor, "wb") as file:
            while chunk := content.read(_CHUNK_BYTES):
                limits.count_bytes(len(chunk))
                file.write(chunk)


def _make_directory(root: int, parts: tuple[str, ...]) -> None:
    with _directory(root, parts):
        pass


@contextmanager
def _directory(root: int, parts: tuple[str, ...]) -> Iterator[int]:
    """Open the directory `parts` below `root` and yield its descriptor.

    Missing directories are created; links are not followed.
    """
    current = os.dup(root)
    try:
        for part in parts:
            with suppress(FileExistsError):
                os.mkdir(part, 0o700, dir_fd=current)
            try:
                below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=current)
            except NotADirectoryError:
                raise BadArchive(f"{'/'.join(parts)!r} is a file and a directory") from None
            os.close(current)
            current = below
        yield current
    finally:
        os.close(current)
