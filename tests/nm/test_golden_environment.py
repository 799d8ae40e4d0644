"""A container's surroundings, compared with a real NodeManager: variables, directories, modes, descriptors, ancestry.

The facts are in golden/environment.json. An AM with resources of all kinds and a task with one run for real; what they
see is written down by a probe script that is their command, what lies on the disks is walked from outside.

Not compared: Hadoop's checksum files (.crc), which its file system library makes; the numbers in LOCALIZATION_COUNTERS
(bytes count those files too); PATH, which is bash's own and differs from system to system, is held against what bash
says here. The wrapper has a session of its own here, so that a Ctrl-C in the NM's terminal does not reach it; in Hadoop
it is in the NM's.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import stat
import subprocess
import tarfile
import zipfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.nm.golden_text import neutral
from tests.nm.lone_node import WAIT_S, LoneNode, lone_node
from yarn.containers import ContainerLaunchContext, LocalResource
from yarn.ids import ContainerId
from yarn.states import LocalResourceType, LocalResourceVisibility

pytestmark = pytest.mark.cluster

GOLDEN = json.loads((Path(__file__).parent / "golden" / "environment.json").read_text())

PROBE = r"""
env
echo == pwd; pwd
echo == umask; umask
echo == fds
for fd in 0 1 2; do echo "$fd -> $(readlink /proc/$$/fd/$fd)"; done
echo == ancestry
pid=$$
for i in 1 2 3; do ps -o pid=,ppid=,pgid=,sid= -p $pid; pid=$(ps -o ppid= -p $pid | tr -d ' '); done
echo == end
while [ ! -e go ]; do sleep 0.05; done
"""
ENVIRON = {"HADOOP_HOME": "/opt/hadoop", "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "TZ": "UTC"}
COMMAND = "bash ./probe.sh 1><LOG_DIR>/stdout 2><LOG_DIR>/stderr"
A, P, U = LocalResourceVisibility.APPLICATION, LocalResourceVisibility.PRIVATE, LocalResourceVisibility.PUBLIC


class Sources:
    """The files that containers request."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(mode=0o755)
        self.directory = directory
        for name, content in (
            ("probe.sh", PROBE),
            ("hello.txt", "hello\n"),
            ("two.txt", "two\n"),
            ("world.txt", "wrld\n"),
        ):
            (directory / name).write_text(content)
        (directory / "in.txt").write_text("inside\n")
        with tarfile.open(directory / "data.tgz", "w:gz") as tar:
            tar.add(directory / "in.txt", "data/in.txt")
        with zipfile.ZipFile(directory / "prog.jar", "w") as jar:
            jar.writestr("lib/a.txt", "a\n")
        for parent in (directory, *directory.parents):
            # The public cache accepts only files that all users can read.
            if parent != Path("/") and parent.stat().st_uid == os.getuid():
                parent.chmod(parent.stat().st_mode | stat.S_IXOTH | stat.S_IROTH)

    def __call__(
        self, name: str, visibility: LocalResourceVisibility = A, kind: LocalResourceType = LocalResourceType.FILE
    ) -> LocalResource:
        file = self.directory / name
        found = file.stat()
        return LocalResource(f"file://{file}", found.st_size, found.st_mtime_ns // 1_000_000, kind, visibility)


def master_launch(sources: Sources, application: str) -> ContainerLaunchContext:
    """The launch context of the golden AM: its own part, and what the RM adds."""
    environment = {
        "APPLICATION_WEB_PROXY_BASE": f"/proxy/{application}",
        "APP_SUBMIT_TIME_ENV": "1795222138400",
        "CLASSPATH": "{{PWD}}<CPS>{{PWD}}/*",
        "JAVA_HOME": "/my/java",
        "MY_QUOTED": 'it\'s "quoted" $HOME `id`',
        "MY_EXPAND": "{{HOME}}:$PWD",
        "MY_LOG": "<LOG_DIR>/z",
        "MY_PLAIN": "x y",
        "HOLD": "12",
    }
    resources = {
        "probe.sh": sources("probe.sh"),
        "hello.txt": sources("hello.txt"),
        "pat.jar": sources("prog.jar", A, LocalResourceType.PATTERN),
        "sub/dir.txt": sources("data.tgz"),
        "arch": sources("data.tgz", P, LocalResourceType.ARCHIVE),
        "priv.txt": sources("world.txt", P),
        "pub.txt": sources("two.txt", U),
    }
    return ContainerLaunchContext((COMMAND,), environment, resources)


async def fill_caches(node: LoneNode, sources: Sources) -> None:
    """Put into the shared caches what earlier applications left there on the golden node."""
    public = {"a": sources("hello.txt", U), "b": sources("two.txt", U)}
    private = {
        "c": sources("data.tgz", P, LocalResourceType.ARCHIVE),
        "d": sources("hello.txt", P),
        "e": sources("world.txt", P),
    }
    for resources in (private, public):
        await node.run(ContainerLaunchContext(("true",), {}, resources))
    await node.finish_application()
    await node.node.shell.parts.deletion.join()  # type: ignore[union-attr]


@asynccontextmanager
async def probed(node: LoneNode, launch: ContainerLaunchContext) -> AsyncIterator[tuple[ContainerId, dict[str, str]]]:
    """Run a container until its probe has written a report, and yield the report by heading.

    The container runs until the context ends.
    """
    container_id = await node.start(launch)
    stdout = node.logs_of(container_id) / "stdout"
    async with asyncio.timeout(60):
        while not (stdout.exists() and "== end\n" in stdout.read_text()):  # noqa: ASYNC110  a file has no event
            await asyncio.sleep(0.01)
    parts = re.split(r"^== (\w+)\n", "== env\n" + stdout.read_text(), flags=re.MULTILINE)
    yield container_id, dict(zip(parts[1::2], parts[2::2], strict=True))
    work = next(node.local_dir.glob(f"usercache/alice/appcache/*/{container_id}"))
    (work / "go").touch()
    await node.end_of(container_id)


def variables(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines())


def comparable(seen: dict[str, str], node: LoneNode) -> dict[str, str]:
    """Variables without parts that differ between runs or machines."""
    directories = {str(node.local_dir): "${LOCAL_DIR}", str(node.log_dir): "${LOG_DIR}"}
    result = {name: neutral(value, directories) for name, value in seen.items()}
    for name in ("NM_HOST", "NM_PORT", "NM_HTTP_PORT", "JVM_PID", "PATH", "LOCALIZATION_COUNTERS"):
        result[name] = f"<{name}>"
    result["MY_QUOTED"] = re.sub(r"uid=.*", "`id`", result.get("MY_QUOTED", ""))
    result["APPLICATION_WEB_PROXY_BASE"] = result.get("APPLICATION_WEB_PROXY_BASE", "")
    return result


async def test_an_am_sees_hadoops_variables(tmp_path: Path) -> None:
    """env-am-probe.txt: exactly these variables; the NM's own environment is not inherited.

    One value differs: Hadoop ran the `id` in MY_QUOTED. Here, too, its quotes are removed and its reference expanded.
    """
    sources = Sources(tmp_path / "sources")
    environ = {**ENVIRON, "HADOOP_CONF_DIR": "${CONF_DIR}", "SECRET": "of the NM"}
    async with lone_node(tmp_path, environ=environ) as node:
        application = str(node.attempt.application_id)
        async with probed(node, master_launch(sources, application)) as (_, said):
            seen = variables(said["env"])
    theirs = comparable(GOLDEN["master"], node)
    assert GOLDEN["master"]["MY_QUOTED"].startswith("it's quoted /home/ uid=")
    assert seen["MY_QUOTED"] == "it's quoted /home/ `id`"
    assert comparable(seen, node) == theirs
    assert seen["PATH"] == path_of_bash()
    assert re.fullmatch(r"\d+,0,7,0,\d+", seen["LOCALIZATION_COUNTERS"])
    assert (seen["NM_HOST"], seen["NM_PORT"]) == (node.node.node_id.host, str(node.node.node_id.port))


async def test_a_task_sees_hadoops_variables(tmp_path: Path) -> None:
    """env-task-probe.txt: with the NM's JAVA_HOME, which is in the whitelist."""
    sources = Sources(tmp_path / "sources")
    environ = {**ENVIRON, "HADOOP_CONF_DIR": "/etc/hadoop", "JAVA_HOME": "/opt/java"}
    launch = ContainerLaunchContext((COMMAND,), {"MY_PLAIN": "x", "HOLD": "6"}, {"probe.sh": sources("probe.sh")})
    async with lone_node(tmp_path, environ=environ) as node, probed(node, launch) as (_, said):
        seen = variables(said["env"])
    theirs = comparable(GOLDEN["task"], node) | {"HADOOP_CONF_DIR": "/etc/hadoop", "JAVA_HOME": "/opt/java"}
    assert comparable(seen, node) == theirs


async def test_a_container_is_a_session_with_hadoops_descriptors(tmp_path: Path) -> None:
    """env-am-probe.txt: work directory, umask 0022, stdin a pipe; the command's shell leads session and group."""
    sources = Sources(tmp_path / "sources")
    launch = ContainerLaunchContext((COMMAND,), {}, {"probe.sh": sources("probe.sh")})
    async with lone_node(tmp_path) as node, probed(node, launch) as (container_id, said):
        logs = node.logs_of(container_id)
        work = next(node.local_dir.glob(f"usercache/alice/appcache/*/{container_id}"))
        assert said["pwd"].strip() == str(work)
        assert said["umask"].strip() == "0022"
        stdin, stdout, stderr = said["fds"].splitlines()
        assert re.fullmatch(r"0 -> pipe:\[\d+\]", stdin)
        assert (stdout, stderr) == (f"1 -> {logs}/stdout", f"2 -> {logs}/stderr")
        probe, shell, wrapper = ([int(number) for number in line.split()] for line in said["ancestry"].splitlines())
        leader = shell[0]
        assert (shell[2], shell[3], probe[2], probe[3]) == (leader, leader, leader, leader)
        assert int(variables(said["env"])["JVM_PID"]) == leader
        assert wrapper[1] == os.getpid()
        pid_file = next(node.local_dir.glob(f"nmPrivate/*/{container_id}/{container_id}.pid"))
        assert int(pid_file.read_text()) == leader


async def test_an_am_has_hadoops_directories(tmp_path: Path) -> None:
    """env-directories.txt: names, modes and links of an AM's directories, while it runs and after its application has
    ended.
    """
    sources = Sources(tmp_path / "sources")
    async with lone_node(tmp_path) as node:
        await fill_caches(node, sources)
        clear_logs(node)
        async with probed(node, master_launch(sources, str(node.attempt.application_id))):
            await comes_to(lambda: walked(node.local_dir, node), golden("local (AM running)"))
            await comes_to(lambda: walked(node.log_dir, node), golden("logs (AM running)"))
        await node.finish_application()
        await node.node.shell.parts.deletion.join()  # type: ignore[union-attr]
        await comes_to(lambda: walked(node.local_dir, node), golden("local (application ended)"))
        await comes_to(lambda: walked(node.log_dir, node), golden("logs (application ended)"))


async def test_a_task_has_hadoops_directories(tmp_path: Path) -> None:
    """env-directories.txt: directories of a task while it runs, after its end, and after the end of its application."""
    sources = Sources(tmp_path / "sources")
    launch = ContainerLaunchContext((COMMAND,), {}, {"probe.sh": sources("probe.sh")})
    async with lone_node(tmp_path) as node:
        await fill_caches(node, sources)
        clear_logs(node)
        async with probed(node, launch):
            await comes_to(lambda: walked(node.local_dir, node), golden("local (task running)"))
            await comes_to(lambda: walked(node.log_dir, node), golden("logs (task running)"))
        await node.node.shell.parts.deletion.join()  # type: ignore[union-attr]
        await comes_to(lambda: walked(node.local_dir, node), golden("local (task ended, application running)"))
        await node.finish_application()
        await node.node.shell.parts.deletion.join()  # type: ignore[union-attr]
        await comes_to(lambda: walked(node.local_dir, node), golden("local (task's application ended)"))
        await comes_to(lambda: walked(node.log_dir, node), golden("logs (task's application ended)"))


async def test_two_disks_are_used_as_hadoop_does(tmp_path: Path) -> None:
    """env-two-local-dirs.txt: every disk gets the container's directory, one of them its files; nothing localized
    means plain modes. Hadoop chooses a disk for each private file, here a container's are on one: compared together."""
    places = {
        "yarn.nodemanager.local-dirs": f"{tmp_path}/local1,{tmp_path}/local2",
        "yarn.nodemanager.log-dirs": f"{tmp_path}/logs1,{tmp_path}/logs2",
    }
    command = "env > <LOG_DIR>/stdout; while [ ! -e go ]; do sleep 0.05; done"
    async with lone_node(tmp_path, places) as node:
        container_id = await node.start(ContainerLaunchContext((command,)))
        async with asyncio.timeout(60):
            # `_` is the last variable that `env` prints.
            while "\n_=" not in (report := _report_of(tmp_path, container_id)):  # noqa: ASYNC110  a file has no event
                await asyncio.sleep(0.01)
        seen = variables(report)
        disks = [tmp_path / "local1", tmp_path / "local2"]
        logs = [tmp_path / "logs1", tmp_path / "logs2"]
        await comes_to(
            lambda: union(disks, node), sorted({*golden("local1 (both running)"), *golden("local2 (both running)")})
        )
        await comes_to(lambda: union(logs, node), golden("logs1 (both running)"))
        for disk in disks:
            assert "drwx--x--- usercache/alice/appcache/<application>/<container>" in walked(disk, node)
        for directory in logs:
            assert "drwx--x--- <application>/<container>" in walked(directory, node)
        application = str(node.attempt.application_id)
        assert seen["LOCAL_DIRS"] == ",".join(f"{disk}/usercache/alice/appcache/{application}" for disk in disks)
        assert seen["LOCAL_USER_DIRS"] == ",".join(f"{disk}/usercache/alice/" for disk in disks)
        assert seen["LOG_DIRS"] == ",".join(f"{directory}/{application}/{container_id}" for directory in logs)
        (Path(seen["PWD"]) / "go").touch()
        await node.end_of(container_id)
        await node.finish_application()
        await node.node.shell.parts.deletion.join()  # type: ignore[union-attr]
        await comes_to(lambda: union(disks, node), golden("local1 (application ended)"))


def _report_of(directory: Path, container_id: ContainerId) -> str:
    return "".join(file.read_text() for file in directory.glob(f"logs?/*/{container_id}/stdout"))


def golden(stage: str) -> list[str]:
    found = GOLDEN["directories"].get(stage) or GOLDEN["two_disks"][stage]
    return sorted(found)


def union(directories: list[Path], node: LoneNode) -> list[str]:
    return sorted({line for directory in directories for line in walked(directory, node)})


async def comes_to(look: Callable[[], list[str]], expected: list[str]) -> None:
    """Wait until `look` returns what is expected, because directories are made and deleted asynchronously."""
    seen: list[str] = []
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(WAIT_S):
            while seen != expected:
                # An entry was deleted during the walk, so walk again.
                with contextlib.suppress(FileNotFoundError):
                    seen = look()
                await asyncio.sleep(0.01)
    assert seen == expected


def walked(directory: Path, node: LoneNode) -> list[str]:
    """`mode path [-> target]` of everything below a directory, as in the golden listing; our lock file is left out."""
    lines = {f"{stat.filemode(directory.stat().st_mode)} ."}
    for path in directory.rglob("*"):
        if path.name == ".nm.lock":
            continue
        mode = stat.filemode(path.lstat().st_mode)
        target = f" -> {os.readlink(path)}" if path.is_symlink() else ""
        text = neutral(f"{mode} {path.relative_to(directory)}{target}", {str(node.local_dir): "${LOCAL_DIR}"})
        lines.add(re.sub(r"filecache/\d+", "filecache/<n>", text))
    return sorted(lines)


def clear_logs(node: LoneNode) -> None:
    for directory in node.log_dir.iterdir():
        subprocess.run(["rm", "-r", str(directory)], check=True)


def path_of_bash() -> str:
    """The PATH that bash sets if it gets none."""
    report = subprocess.run(["/bin/bash", "-c", "echo $PATH"], env={}, capture_output=True, text=True, check=True)
    return report.stdout.strip()
