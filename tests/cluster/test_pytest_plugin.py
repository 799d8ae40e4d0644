"""The pytest plugin as users see it: test files of theirs, run by a pytest process of their own."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from tests.cluster.conftest import eventually, gone
from tests.processes import HEARING, running

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 100


def is_installed() -> bool:
    return any(
        point.value == "yarnling.testing.pytest_plugin" for point in importlib.metadata.entry_points(group="pytest11")
    )


PLUGIN = () if is_installed() else ("-p", "yarnling.testing.pytest_plugin")


@pytest.fixture
def tester(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.Pytester:
    """A directory for a user's tests; temporary files are below `tmp_path`."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function")
    return pytester


def left_in(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir() if path.name.startswith("yarnling-")]


def test_the_entry_point_is_the_plugin() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"yarnling": "yarnling.testing.pytest_plugin"}


def test_a_run_without_clusters_imports_nothing_else(tester: pytest.Pytester) -> None:
    tester.makepyfile("""
        import sys

        def test_of_something_else():
            heavy = ("yarnling", "yarn", "wire", "am", "grpc", "rich")
            ours = {name for name in sys.modules if name.partition(".")[0] in heavy}
            assert ours == {"yarnling", "yarnling.testing", "yarnling.testing.pytest_plugin"}
    """)
    tester.runpytest_subprocess(*PLUGIN, "-p", "no:cacheprovider").assert_outcomes(passed=1)


def test_faults_in_markers_are_reported_before_any_test_runs(tester: pytest.Pytester) -> None:
    tester.makepyfile("""
        import pytest

        # The marker nearest to a test wins.
        pytestmark = pytest.mark.yarn_cluster(nodes=2)

        @pytest.mark.yarn_cluster(node=4)
        def test_one(yarn_cluster): ...

        @pytest.mark.yarn_cluster(nodes=-1, scope="module")
        def test_two(yarn_cluster): ...
    """)
    result = tester.runpytest_subprocess(*PLUGIN, "--strict-markers")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*test_one: yarn_cluster: node: unknown argument*", "*nodes = -1: must be 0*"])


@pytest.mark.cluster
@pytest.mark.slow
def test_clusters_by_marker_shared_by_scope_and_awaited(tester: pytest.Pytester, tmp_path: Path) -> None:
    """Two clusters for four tests: one until a test removes a node, and another one after that."""
    tester.makepyfile("""
        import pytest
        from yarn.states import NodeState

        pytestmark = pytest.mark.yarn_cluster(
            nodes=2, memory_mb=1024, scope="module", conf={"yarn.scheduler.minimum-allocation-mb": "64"}
        )
        seen = []

        def test_size_and_configuration(yarn_cluster):
            seen.append(yarn_cluster)
            assert {node.capability.memory_mb for node in yarn_cluster.client.nodes()} == {1024}
            assert yarn_cluster.configuration.get("yarn.scheduler.minimum-allocation-mb") == "64"
            assert len(yarn_cluster.nodes) == 2

        @pytest.mark.asyncio
        async def test_awaited_in_one_loop(async_yarn_cluster, yarn_cluster):
            assert yarn_cluster is seen[0]
            assert len(await async_yarn_cluster.wait_nodes(2)) == 2
            assert (await async_yarn_cluster.client.metrics()).active == 2

        @pytest.mark.asyncio
        async def test_awaited_in_another(async_yarn_cluster):
            async def two():
                return len(await async_yarn_cluster.client.nodes()) == 2

            assert await async_yarn_cluster.until(two)
            with pytest.raises(Exception, match="there are nodes 1 to 2"):
                await async_yarn_cluster.kill_node(3)
            await async_yarn_cluster.remove_node(2)
            await async_yarn_cluster.wait_node(2, NodeState.SHUTDOWN)

        def test_one_that_lost_a_node_is_replaced(yarn_cluster):
            assert yarn_cluster is not seen[0]
            assert [node.alive for node in yarn_cluster.nodes] == [True, True]
    """)
    result = tester.runpytest_subprocess(*PLUGIN, "--strict-markers", "-p", "no:randomly")
    result.assert_outcomes(passed=4)
    assert not left_in(tmp_path)


@pytest.mark.cluster
@pytest.mark.slow
def test_a_failure_shows_the_logs_of_daemons_and_of_containers_that_failed(tester: pytest.Pytester) -> None:
    tester.makepyfile("""
        import pytest
        from am.programs.distributed_shell.client import parse

        @pytest.fixture(scope="module")
        def cluster(yarn_cluster_factory):
            with yarn_cluster_factory(memory_mb=2048) as cluster:
                yield cluster

        def run(cluster, command):
            started = cluster.client.start(parse(["-shell_command", command, "-num_containers", "2"]))
            return cluster.client.wait(started.application_id, timeout_s=60).final_status.name

        def test_before(cluster):
            assert run(cluster, "{ echo from before; exit 1; }") == "FAILED"

        def test_that_fails(cluster):
            assert run(cluster, "test $YARN_SHELL_ID = 1 && echo all is well || { echo that is wrong; exit 3; }") == "?"
    """)
    result = tester.runpytest_subprocess(*PLUGIN, "--yarnling-directory", "kept", "--yarnling-log-lines", "40")
    result.assert_outcomes(passed=1, failed=1)
    shown = result.stdout.str()
    result.stdout.re_match_lines(
        [
            r"-+ yarnling failed applications -+",
            r"application_\d+_0002 \(DistributedShell\): FAILED",
            r" +Application Failure: .* failed = 1",
            r"-+ yarnling container_\d+_0002_01_00000\d stdout on nm-1 -+",
            "that is wrong",
            r"-+ yarnling rm\.log -+",
            r".*RMApp=application_\d+_0002 .*",
            r"-+ yarnling nm-1\.log -+",
            r".*to=EXITED_WITH_FAILURE.*",
        ]
    )
    # Applications that ended well, or before this test, are not shown; but all of it is kept.
    assert "\nall is well" not in shown
    assert "from before\n" not in shown
    assert "_0001 event=START from=NEW" not in shown
    assert "_0001 (DistributedShell)" not in shown
    (kept,) = (tester.path / "kept" / "main").iterdir()
    assert kept.name == "001-factory"
    assert any("from before" in path.read_text() for path in kept.rglob("stdout"))


@pytest.mark.cluster
@pytest.mark.slow
def test_a_timeout_shows_why_the_application_waits_and_no_frames_of_yarnling(tester: pytest.Pytester) -> None:
    tester.makepyfile("""
        import pytest
        from yarnling import Job

        def broken():
            raise RuntimeError("of the user")

        @pytest.mark.yarn_cluster(memory_mb=2048, loopback=True)
        def test_that_waits(yarn_cluster):
            started = yarn_cluster.submit(Job("sleep 600", containers=2, memory_mb=512))
            yarn_cluster.wait_containers(started.application_id, 1)
            yarn_cluster.wait_containers(started.application_id, 2, timeout_s=3)

        @pytest.mark.yarn_cluster(nodes=0, loopback=True)
        def test_of_a_condition(yarn_cluster):
            yarn_cluster.until(broken)
    """)
    shown = tester.runpytest_subprocess(*PLUGIN).stdout
    shown.re_match_lines(
        [
            r"E +yarnling.* 1 containers of application_\d+_0001 run, not 2: it is RUNNING",
            r"E +it waits because .*",
            r"test_.*\.py:\d+: WaitTimeout",
            r"-+ yarnling explain -+",
            r"application_\d+_0001 of .*: RUNNING",
            r" +1 x 1024 MB anywhere, .*",
            r"-+ Captured log call -+",
            r"-+ yarnling rm\.log -+",
            r"E +RuntimeError: of the user",
        ]
    )
    assert "blocking.py" not in shown.str()


@pytest.mark.cluster
@pytest.mark.slow
def test_the_examples_of_the_documentation_run(tester: pytest.Pytester) -> None:
    """Each block of code is a test file; pytest runs all of them together."""
    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs" / "testing.md").read_text(), re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 3
    for number, block in enumerate(blocks):
        (tester.path / f"test_block_{number}.py").write_text(block)
    tests = sum(len(re.findall(r"^(?:async )?def test_", block, re.MULTILINE)) for block in blocks)
    tester.runpytest_subprocess(*PLUGIN, "--strict-markers").assert_outcomes(passed=tests)


@pytest.mark.cluster
@pytest.mark.slow
def test_an_interrupt_of_two_workers_leaves_nothing(tester: pytest.Pytester, tmp_path: Path) -> None:
    """Under xdist, with the same options for all: no port or directory is used twice. Ctrl-C ends everything."""
    tester.makepyfile("""
        import json, os, pathlib, pytest

        @pytest.mark.parametrize("number", [1, 2])
        def test_that_waits(yarn_cluster, number):
            pids = [yarn_cluster.rm.pid, *(node.daemon.pid for node in yarn_cluster.nodes)]
            facts = {"pids": pids, "addresses": yarn_cluster.addresses}
            pathlib.Path(f"{number}.new").write_text(json.dumps(facts))
            os.rename(f"{number}.new", f"{number}.json")
            yarn_cluster.until(lambda: False, timeout_s=100)
    """)
    command = [
        sys.executable,
        "-m",
        "pytest",
        *PLUGIN,
        "-n",
        "2",
        "-p",
        "no:cacheprovider",
        "--yarnling-memory",
        "2048",
    ]
    files = [tester.path / "1.json", tester.path / "2.json"]
    with running(*HEARING, *command, cwd=tester.path, start_new_session=True, stdout=subprocess.DEVNULL) as run:
        eventually(lambda: all(file.exists() for file in files) or run.poll() is not None, TIMEOUT_S)
        facts = [json.loads(file.read_text()) for file in files]
        # As a terminal does: to every process of the group.
        os.killpg(run.pid, signal.SIGINT)
        run.wait(TIMEOUT_S)
    addresses = [address for one in facts for address in one["addresses"].values()]
    assert len(set(addresses)) == len(addresses) == 8
    deadline = time.monotonic() + TIMEOUT_S
    for pid in [pid for one in facts for pid in one["pids"]]:
        eventually(lambda pid=pid: gone(pid), deadline - time.monotonic())
    eventually(lambda: not left_in(tmp_path))
