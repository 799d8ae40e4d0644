"""The stores of the scheduler's configuration where clients can change it: in memory, or in a local directory.

A change is written ahead (`log`), and becomes the stored configuration when the scheduler has applied it (`confirm`),
or is dropped (`cancel`). What was written ahead and never confirmed, because the process ended, is ignored at the next
start. Sources: InMemoryConfigurationStore, FSSchedulerConfigurationStore.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from rm.scheduler.config.mutation import MutationRefused, Values
from wire.files.hadoop_xml import FILE_BYTES_MAX, read_file, to_xml
from yarn.configuration import Configuration
from yarn.faults import ConfigurationException, Fault
from yarn.settings.resourcemanager import CONFIGURATION_FS_MAX_VERSION, CONFIGURATION_FS_PATH, CONFIGURATION_STORE_CLASS

FILE_NAME = "capacity-scheduler.xml"
TEMPORARY = ".tmp"
VERSION_FILE = "ConfigVersion"
VERSION_BYTES = 8
"""A Java long, big-endian."""
FILES_MAX = 100_000
"""The most files in a directory that are looked at."""


class ConfigurationStore(Protocol):
    """Keeps the values of the scheduler's configuration. Its methods block; they raise OSError."""

    def open(self, initial: Values) -> Values:
        """The stored values; `initial`, which are then stored, if there are none."""
        ...

    def log(self, values: Values) -> None:
        """Write values that may become the stored ones."""

    def confirm(self) -> None:
        """Make the values that were written last the stored ones, with the next version."""

    def cancel(self) -> None:
        """Drop the values that were written last."""

    def format(self) -> None:
        """Delete the stored values; `open` must follow."""

    @property
    def version(self) -> int:
        """The number of the stored configuration."""
        ...


class InMemoryConfigurationStore:
    """Keeps nothing: after a restart the configuration is that of capacity-scheduler.xml again, in version 1."""

    def __init__(self) -> None:
        self.version = 1

    def open(self, initial: Values) -> Values:
        self.version = 1
        return initial

    def log(self, values: Values) -> None:
        checked_xml(values)

    def confirm(self) -> None:
        self.version += 1

    def cancel(self) -> None:
        pass

    def format(self) -> None:
        pass


class FSSchedulerConfigurationStore:
    """Keeps each configuration as a file capacity-scheduler.xml.<ms> of a local directory; the last one counts.

    The files, and that of the version, are those of Hadoop. `files_max`: before a change is written, older files than
    so many are deleted. `clock` (ms) names the files.
    """

    def __init__(
        self, directory: Path, files_max: int, clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    ) -> None:
        self._directory = directory
        self._files_max = files_max
        self._clock = clock
        self._written: Path | None = None

    def open(self, initial: Values) -> Values:
        self._directory.mkdir(parents=True, exist_ok=True)
        if not (self._directory / VERSION_FILE).exists():
            self._write_version(0)
        if not self._files():
            self.log(initial)
            self.confirm()
        stored = read_file(self._files()[-1])
        return {key: entry.value for key in stored if (entry := stored.entry(key)) is not None}

    def log(self, values: Values) -> None:
        text = checked_xml(values)
        files = self._files()
        for old in files[: max(0, len(files) - self._files_max)]:
            old.unlink()
        last = max((_time_of(file) for file in files), default=0)
        path = self._directory / f"{FILE_NAME}.{max(self._clock(), last + 1)}{TEMPORARY}"
        with path.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        self._written = path

    def confirm(self) -> None:
        assert self._written is not None, "values were logged before"
        self._written.rename(self._written.with_suffix(""))
        self._written = None
        self._write_version(self.version + 1)

    def cancel(self) -> None:
        if self._written is not None:
            self._written.unlink(missing_ok=True)
        self._written = None

    def format(self) -> None:
        for file in self._files():
            file.unlink()

    @property
    def version(self) -> int:
        return int.from_bytes((self._directory / VERSION_FILE).read_bytes()[:VERSION_BYTES], "big", signed=True)

    def _write_version(self, version: int) -> None:
        # Hadoop's local file system has a checksum beside the file, which would then be wrong.
        (self._directory / f".{VERSION_FILE}.crc").unlink(missing_ok=True)
        temporary = self._directory / f"{VERSION_FILE}{TEMPORARY}"
        temporary.write_bytes(version.to_bytes(VERSION_BYTES, "big", signed=True))
        temporary.rename(self._directory / VERSION_FILE)

    def _files(self) -> list[Path]:
        """The configurations, the last one last."""
        found: list[Path] = []
        for count, path in enumerate(self._directory.iterdir()):
            if count >= FILES_MAX:
                raise OSError(f"{self._directory} has more than {FILES_MAX} files (name a directory of its own)")
            if path.name.startswith(FILE_NAME) and not path.name.endswith(TEMPORARY):
                found.append(path)
        return sorted(found)


def store_of(conf: Configuration) -> ConfigurationStore | None:
    """The configured store; None if queues are read from capacity-scheduler.xml. Raises ConfigurationException."""
    kind = CONFIGURATION_STORE_CLASS.of(conf)
    if kind == "memory":
        return InMemoryConfigurationStore()
    if kind == "fs":
        return FSSchedulerConfigurationStore(_directory_of(conf), CONFIGURATION_FS_MAX_VERSION.of(conf))
    return None


def checked_xml(values: Values) -> str:
    """The values as a file that can be read again. Raises MutationRefused if there is none."""
    try:
        text = to_xml(values)
    except ValueError as error:
        raise MutationRefused(str(error)) from None
    if (size := len(text.encode("utf-8", "replace"))) > FILE_BYTES_MAX:
        raise MutationRefused(
            f"the configuration would have {size} bytes, more than {FILE_BYTES_MAX} (remove queues, or shorten values)"
        )
    return text


def _directory_of(conf: Configuration) -> Path:
    """The local directory of the store fs."""
    text = CONFIGURATION_FS_PATH.maybe_of(conf) or ""
    url = urlsplit(text)
    if url.scheme not in ("", "file") or url.netloc not in ("", "localhost") or not url.path:
        problem = f"is needed for {CONFIGURATION_STORE_CLASS.key} = fs, and must be a local directory"
        remedy = "write the path of a directory of its own"
        fault = Fault(CONFIGURATION_FS_PATH.key, text or None, conf.origin(CONFIGURATION_FS_PATH.key), problem, remedy)
        raise ConfigurationException([fault])
    return Path(unquote(url.path) if url.scheme else text)


def _time_of(file: Path) -> int:
    """The time in a file's name; 0 if it has none."""
    text = file.name.rpartition(".")[2]
    return int(text) if text.isascii() and text.isdigit() else 0
