"""Java for the tests in this directory: a JDK, Hadoop's jars, and our own classes, compiled once.

Where one of them is missing `JavaMissing` says so in one line, and the tests are skipped.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
OLDEST_JAVA = 11
FLAGS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Xmx512m")
"""Short runs: no time for the better compiler, and no more memory than needed."""
OPENED = ("--add-opens", "java.base/java.lang=ALL-UNNAMED", "--add-opens", "java.base/java.util=ALL-UNNAMED")
"""Options that Hadoop's own servers need from Java 17 on."""
SMALL_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto -Xmx300m"
SMALL_JOBS = {
    "yarn.app.mapreduce.am.resource.mb": "512",
    "yarn.app.mapreduce.am.command-opts": SMALL_JVM,
    "mapreduce.map.memory.mb": "512",
    "mapreduce.map.java.opts": SMALL_JVM,
    "mapreduce.reduce.memory.mb": "512",
    "mapreduce.reduce.java.opts": SMALL_JVM,
    "mapreduce.task.io.sort.mb": "50",
}
"""Settings of MapReduce jobs for nodes of 4 GB."""


class JavaMissing(Exception):
    """The line that a skipped test shows."""


@functools.cache
def java() -> str:
    """The `java` command; a JDK of at least OLDEST_JAVA."""
    found, compiler = shutil.which("java"), shutil.which("javac")
    advice = "apt-get install openjdk-17-jdk-headless maven"
    if found is None or compiler is None:
        raise JavaMissing(f"no Java {OLDEST_JAVA}+ found ({advice})")
    said = subprocess.run([found, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(\d+)', said)
    if version is None or int(version[1]) < OLDEST_JAVA:
        raise JavaMissing(f"no Java {OLDEST_JAVA}+ found, only {said.splitlines()[0] if said else found} ({advice})")
    return found


@functools.cache
def jars(name: str) -> Path:
    """The directory with one set of Hadoop's jars (scripts/hadoop-jars)."""
    java()
    fetched = subprocess.run(
        [ROOT / "scripts" / "hadoop-jars", name], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if fetched.returncode != 0:
        lines = fetched.stderr.strip().splitlines()
        raise JavaMissing(lines[-1] if lines else f"scripts/hadoop-jars {name} failed")
    return Path(fetched.stdout.strip())


def jars_or_skip(name: str) -> Path:
    """`jars`, for a fixture: the tests are skipped where Java is missing."""
    try:
        return jars(name)
    except JavaMissing as missing:
        pytest.skip(str(missing))


def compiled(source: str, target: Path, *class_path: Path | str) -> Path:
    """The classes of java/SOURCE, in `target`."""
    sources = sorted((HERE / "java" / source).glob("*.java"))
    subprocess.run(
        [
            "javac",
            "--release",
            str(OLDEST_JAVA),
            "-Xlint:-options",
            "-cp",
            class_path_of(*class_path),
            "-d",
            target,
            *sources,
        ],
        check=True,
        stdin=subprocess.DEVNULL,
    )
    return target


def class_path_of(*parts: Path | str) -> str:
    return os.pathsep.join(str(part) for part in parts)


def command(class_path: str, main: str, *arguments: object, flags: tuple[str, ...] = ()) -> list[str]:
    """The command line of a JVM."""
    return [java(), *FLAGS, *flags, "-cp", class_path, main, *map(str, arguments)]
