"""Copy one set of Hadoop's jars, with all that they depend on, from Maven's repositories into a directory.

A set is a profile of tests/hadoop/pom.xml, with a version of Hadoop if it is not the profile's own. A complete set has
a stamp with the hash of that file: then nothing is done. One call fetches at a time; others wait for it. What fails is
said in one line.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
POM = ROOT / "tests" / "hadoop" / "pom.xml"
ZOOKEEPER = "zookeeper"
ZOOKEEPER_POM = ROOT / "tests" / "zookeeper" / "pom.xml"
OTHER_VERSIONS = ("2.10.2", "3.3.6", "3.4.2", "3.5.0")
OTHER_CLIENTS = ("services", "tez", "distributedshell", "streaming")
SETS = (
    *("client", "mapreduce", "minicluster", "minicluster-3.5.0"),
    *OTHER_CLIENTS,
    *(f"commands-{version}" for version in OTHER_VERSIONS),
    ZOOKEEPER,
)
SECONDS = int(os.environ.get("HADOOP_JARS_SECONDS", "600"))


class FetchFailed(Exception):
    """The one line for the user."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/hadoop-jars", description="Fetch Hadoop's jars, once.")
    parser.add_argument("set", choices=SETS, help="which jars")
    parser.add_argument("--offline", action="store_true", help="fail if they are not there yet")
    arguments = parser.parse_args()
    try:
        print(jars(arguments.set, offline=arguments.offline))
    except (FetchFailed, OSError) as failure:
        print(f"Hadoop's jars could not be fetched: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def jars(name: str, *, offline: bool = False) -> Path:
    """The directory with the jars of this set; they are fetched if they are not there."""
    home = Path(os.environ.get("YARNLING_HADOOP_JARS") or ROOT / ".hadoop-jars")
    target = home / name
    if is_complete(name, target):
        return target
    if offline:
        raise FetchFailed(f"{target} has no complete set of jars (scripts/hadoop-jars {name} fetches it)")
    home.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + SECONDS
    with (home / f"{name}.lock").open("w") as lock:
        wait_for(lock.fileno(), deadline)
        if not is_complete(name, target):
            fetch(name, target, max(deadline - time.monotonic(), 1))
    return target


def is_complete(name: str, target: Path) -> bool:
    stamp = target / "pom.sha256"
    return stamp.exists() and stamp.read_text() == pom_hash(name)


def pom_of(name: str) -> Path:
    return ZOOKEEPER_POM if name == ZOOKEEPER else POM


def pom_hash(name: str) -> str:
    return hashlib.sha256(pom_of(name).read_bytes()).hexdigest()


def wait_for(lock: int, deadline: float) -> None:
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise FetchFailed(f"another scripts/hadoop-jars has run for more than {SECONDS} s") from None
            time.sleep(0.5)


def fetch(name: str, target: Path, seconds: float) -> None:
    if shutil.which("mvn") is None:
        raise FetchFailed("no mvn found (apt-get install openjdk-17-jdk-headless maven)")
    shutil.rmtree(target, ignore_errors=True)
    print(f"fetching Hadoop's jars ({name}) into {target} ...", file=sys.stderr)
    profile, _, version = name.partition("-")
    command = ["mvn", "-B", "-q", "-f", str(pom_of(name)), *([] if name == ZOOKEEPER else ["-P", profile])]
    command += ["dependency:copy-dependencies", f"-DoutputDirectory={target}"]
    if version:
        command.append(f"-Dhadoop.version={version}")
    # A session of its own, so that a Maven that takes too long is killed together with its JVM.
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as maven:
        try:
            output, _ = maven.communicate(timeout=seconds)
        except BaseException as interruption:
            os.killpg(maven.pid, 9)
            if isinstance(interruption, subprocess.TimeoutExpired):
                raise FetchFailed(f"Maven had not finished after {SECONDS} s (HADOOP_JARS_SECONDS)") from None
            raise
    if maven.returncode != 0:
        raise FetchFailed(first_error(output) or f"mvn ended with exit status {maven.returncode}")
    (target / "pom.sha256").write_text(pom_hash(name))


def first_error(output: str) -> str:
    """Maven's first line that says something."""
    lines = [line.removeprefix("[ERROR]").strip() for line in output.splitlines()]
    return next((line for line in lines if line), "")


if __name__ == "__main__":
    sys.exit(main())
