"""Files of other file systems (s3a, gs, hdfs), which fsspec downloads: the extra `yarnling[fsspec]`.

fsspec needs a driver for each of them (s3fs, gcsfs, adlfs, pyarrow), which finds its credentials in the NodeManager's
environment and in fsspec's own configuration.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from urllib.parse import urlsplit

from nm.localizer.sources import IO_EXCEPTION, UNSUPPORTED, DownloadFailed, FileSource, shown

SCHEMES = frozenset({"abfs", "ftp", "gs", "hdfs", "http", "https", "oss", "s3", "s3a", "sftp", "webhdfs"})
"""Schemes for which Hadoop has a file system as well, and fsspec knows a driver."""
_CHAIN = "::"
"""With it fsspec would take the rest of a URL for another one, of any file system."""


class RemoteFile:
    """A file or a directory of another file system."""

    def __init__(self, url: str) -> None:
        """Raises DownloadFailed without fsspec, or without its driver."""
        self.shown = shown(url)
        self.name = os.path.basename(self.shown)
        scheme = urlsplit(url).scheme
        missing = f'No FileSystem for scheme "{scheme}"'
        if _CHAIN in url:
            raise DownloadFailed(IO_EXCEPTION, f"{url} has `{_CHAIN}`, which is not supported (rename the file)")
        try:
            from fsspec.core import url_to_fs
        except ImportError:
            remedy = "pip install 'yarnling[fsspec]' where NodeManagers run, or copy the file into the cluster's files"
            raise DownloadFailed(UNSUPPORTED, f"{missing} ({remedy})") from None
        try:
            self._file_system, self._path = url_to_fs(self.shown)
        except ImportError as error:
            raise DownloadFailed(UNSUPPORTED, f"{missing}: {error}") from None
        except Exception as error:
            raise self._failed(error) from None

    def download(self, directory: str) -> FileSource:
        """Copy it into the new directory, with its modification time. Raises DownloadFailed and OSError."""
        os.mkdir(directory)
        target = f"{directory}/{self.name}"
        with self._failing():
            self._file_system.invalidate_cache()
            is_directory = self._file_system.info(self._path)["type"] == "directory"
            modified_ms = self._modified_ms()
            self._file_system.get(self._path, target, recursive=is_directory)
        modified_ns = modified_ms * 1_000_000
        os.utime(target, ns=(modified_ns, modified_ns))
        return FileSource(target, directory, self.shown)

    def _modified_ms(self) -> int:
        """The modification time of what exists; 0 where the file system has none, as Hadoop's for http."""
        try:
            moment: datetime = self._file_system.modified(self._path)
        except (NotImplementedError, FileNotFoundError):
            return 0
        aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        return int(aware.timestamp() * 1000)

    @contextlib.contextmanager
    def _failing(self) -> Iterator[None]:
        """Turn the errors of drivers, which are of any class, into DownloadFailed."""
        try:
            yield
        except FileNotFoundError:
            raise DownloadFailed("java.io.FileNotFoundException", f"File {self.shown} does not exist") from None
        except Exception as error:
            raise self._failed(error) from None

    def _failed(self, error: Exception) -> DownloadFailed:
        return DownloadFailed(IO_EXCEPTION, f"{self.shown}: {type(error).__name__}: {error}")


def remote_file(url: str) -> RemoteFile | None:
    """The file of a URL whose scheme is in SCHEMES; None for another scheme."""
    return RemoteFile(url) if url.partition(":")[0] in SCHEMES else None
