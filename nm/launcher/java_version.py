"""Which Java a node has. Nothing here runs it: that would take longer than the start of a node."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping

_RELEASE_BYTES_MAX = 64 * 1024
"""The file lists the modules of the JDK, in a few kilobytes."""
_VERSION = re.compile(r'^JAVA_VERSION="(?:1\.)?(\d{1,4})\b', re.MULTILINE)
_LEVELS = 3
"""`java` is in <home>/bin, in Java 8 also in <home>/jre/bin."""


def java_version(environ: Mapping[str, str]) -> int:
    """The major version (8, 17) of the Java in JAVA_HOME, else of `java` in PATH; 0 if neither says.

    It is the Java that a Hadoop NodeManager with these variables would run in, and, unless an AM sets another
    JAVA_HOME, the one of its containers. A JDK and its runtime have a file `release` in their home that names it.
    """
    home = environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java", path=environ.get("PATH", os.defpath))
    if java is None:
        return 0
    directory = os.path.realpath(java)
    for _ in range(_LEVELS):
        directory = os.path.dirname(directory)
        version = _version_in(os.path.join(directory, "release"))
        if version:
            return version
    return 0


def _version_in(release: str) -> int:
    try:
        with open(release, encoding="utf-8", errors="replace") as file:
            found = _VERSION.search(file.read(_RELEASE_BYTES_MAX))
    except OSError:
        return 0
    return int(found[1]) if found else 0
