"""Where the resources to copy are: `file:` URLs, and `viewfs://NAME/` ones that stand for a folder of this machine.

A mount table of Hadoop gives the folder: `fs.viewfs.mounttable.NAME.linkFallback` = file:///FOLDER, without any other
link. Tables with other links are not known here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from urllib.parse import unquote

from msgspec import Struct

from yarn.configuration import Configuration

IO_EXCEPTION = "java.io.IOException"
UNSUPPORTED = "org.apache.hadoop.fs.UnsupportedFileSystemException"
_URL = re.compile(r"(?:(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):)?(?://(?P<host>[^/]*))?(?P<path>/.*)?", re.S)
_DEFAULT_FS = "fs.defaultFS"
_TABLES, _LINK = "fs.viewfs.mounttable.", ".link"
_FALLBACK = f"{_LINK}Fallback"
_NO_NAME = "default"
"""Hadoop's name of the mount table of `viewfs:///`."""


class DownloadFailed(Exception):
    """A resource could not be fetched. The container's AM gets `java_class` and `sentence`."""

    def __init__(self, java_class: str, sentence: str) -> None:
        super().__init__(sentence)
        self.java_class = java_class
        self.sentence = sentence


class FileSource(Struct, frozen=True):
    """A file or a directory: its path, the root of its file system, and its address as Hadoop prints it."""

    path: str
    root: str
    shown: str

    @property
    def name(self) -> str:
        return os.path.basename(self.path)


class Mounts(Struct, frozen=True):
    """The folders of mount tables {NAME: folder}. `default`: the table in which a URL without a scheme is looked up."""

    folders: Mapping[str, str] = {}
    default: str = ""

    @staticmethod
    def read(conf: Configuration) -> Mounts:
        """The mount tables that are a local folder."""
        folders = {}
        for key in conf.keys(_TABLES):
            table = key.removesuffix(_FALLBACK)
            target = _URL.fullmatch(conf.get_trimmed(key))
            if conf.keys(f"{table}{_LINK}") == (key,) and target is not None and target["scheme"] == "file":
                folders[table.removeprefix(_TABLES)] = _normal(unquote(target["path"] or "/"))
        default = _URL.fullmatch(conf.get_trimmed(_DEFAULT_FS))
        is_mounted = default is not None and default["scheme"] == "viewfs"
        return Mounts(folders, (default["host"] or _NO_NAME) if default is not None and is_mounted else "")

    def locate(self, url: str) -> FileSource:
        """The file of a URL. As in Hadoop's Path, %-escapes are not decoded. Raises DownloadFailed."""
        match = _URL.fullmatch(url)
        scheme = "" if match is None else match["scheme"] or ("viewfs" if self.default else "file")
        if match is None or scheme not in ("file", "viewfs"):
            name = scheme or url.partition(":")[0]
            raise DownloadFailed(UNSUPPORTED, f'No FileSystem for scheme "{name}"')
        path = _normal(match["path"] or "/")
        if scheme == "file":
            return FileSource(path, self._root_of(path), shown(url))
        return self._mounted(match["host"] or (_NO_NAME if match["scheme"] else self.default), path)

    def _mounted(self, name: str, path: str) -> FileSource:
        """The file `path` of a mount table. Neither `..` nor a symbolic link leads out of its folder."""
        folder = self.folders.get(name)
        if folder is None:
            raise DownloadFailed(
                IO_EXCEPTION, f"ViewFs: Cannot initialize: Empty Mount table in config for viewfs://{name}/"
            )
        source = FileSource(_normal(f"{folder}/{path}"), folder, f"viewfs://{name}{path}")
        # No file has a name with a NUL.
        real = source.path if "\0" in path else os.path.realpath(source.path)
        if not _is_within(real, os.path.realpath(folder)):
            raise DownloadFailed(
                IO_EXCEPTION, f"{source.shown} leads out of its file system, to {real} (name it as file:{real})"
            )
        return source

    def _root_of(self, path: str) -> str:
        """The root up to which directories must be public: clients also name a mounted file by its `file:` URL."""
        return next((folder for folder in self.folders.values() if _is_within(path, folder)), "/")


NO_MOUNTS = Mounts()


def shown(url: str) -> str:
    """Format a URL as Hadoop prints it: that of a file has one slash."""
    match = _URL.fullmatch(url)
    if match is None:
        return url
    place = "file:" if match["scheme"] in (None, "file") else f"{match['scheme']}://{match['host'] or ''}"
    return f"{place}{_normal(match['path'] or '/')}"


def _normal(path: str) -> str:
    return "/" + os.path.normpath(path).lstrip("/")


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")
