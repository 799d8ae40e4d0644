"""`from yarnling import ...`: the public names, and what they do without any other import."""

from __future__ import annotations

import inspect
from importlib import metadata

import pytest

import yarnling
from tests.yarnling.apart import output
from yarn.errors import InvalidArgumentException
from yarnling import ApplicationId, ClusterOptions, Job, LocalCluster, NodeState, WaitTimeout

NETWORK = ClusterOptions(loopback=True, network_faults=True)
QUICK = {"yarn.nm.liveness-monitor.expiry-interval-ms": "40000"}


def test_there_are_few_public_names_and_all_exist() -> None:
    assert len(yarnling.__all__) <= 15
    assert yarnling.__all__ == sorted(yarnling.__all__)
    for name in yarnling.__all__:
        assert getattr(yarnling, name).__name__ == name
        assert name in dir(yarnling)
    with pytest.raises(AttributeError, match="has no attribute 'Cluster'"):
        yarnling.Cluster  # noqa: B018


def test_the_package_imports_nothing_until_a_name_is_used() -> None:
    program = "import sys, yarnling; print([name for name in sys.modules if name.partition('.')[0] in {packages}])"
    assert output(program.format(packages="('yarn', 'yarnling', 'grpc', 'am')")) == "['yarnling']\n"


def test_the_version_is_that_of_the_installed_package() -> None:
    assert yarnling.__version__ == metadata.version("yarnling")
    assert "__version__" in dir(yarnling)


def test_a_checkout_that_is_not_installed_has_an_unknown_version(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", fail)
    assert yarnling.__version__ == "0+unknown"


def test_a_cluster_has_seven_keywords_and_an_options_record() -> None:
    assert list(inspect.signature(LocalCluster).parameters) == [
        "nodes", "memory_mb", "vcores", "conf", "settings", "fast", "hadoop", "options",
    ]  # fmt: skip


def test_a_job_runs_and_its_result_has_the_output() -> None:
    with LocalCluster(2, fast=True, options=ClusterOptions(loopback=True)) as cluster:
        result = cluster.run('echo "it is $((40 + 2))"; test $CONTAINER_ID || exit 3', containers=3)
        assert result.succeeded
        assert result.stdout == "it is 42\n" * 3
        assert [container.exit_status for container in result.containers] == [0, 0, 0]

        failed = cluster.run("echo oops >&2; exit 3")
        assert not failed.succeeded
        (container,) = failed.containers
        assert (container.exit_status, container.stderr) == (3, "oops\n")

        with pytest.raises(WaitTimeout):
            cluster.run("sleep 60", timeout_s=0.5)


def test_a_job_is_submitted_explained_and_killed_by_its_id() -> None:
    small = {"yarn.scheduler.minimum-allocation-mb": "128"}
    with LocalCluster(1, memory_mb=1024, settings=small, fast=True, options=ClusterOptions(loopback=True)) as cluster:
        assert cluster.explain() == ()
        app_id = cluster.submit(Job("sleep 60", containers=2, memory_mb=768)).application_id
        cluster.wait_containers(str(app_id), 1)
        (waiting,) = cluster.until(cluster.explain)
        assert waiting.application_id == app_id
        assert cluster.explain(str(app_id))[0].asks == waiting.asks
        cluster.client.kill(str(app_id))
        assert isinstance(app_id, ApplicationId)


async def test_a_job_runs_with_asyncio() -> None:
    async with LocalCluster(1, fast=True, options=ClusterOptions(loopback=True)) as cluster:
        result = await cluster.run("echo hello")
        assert result.stdout == "hello\n"


def test_a_partitioned_node_is_lost_until_recovery() -> None:
    with LocalCluster(2, settings=QUICK, fast=True, options=NETWORK) as cluster:
        cluster.partition_node(2)
        cluster.wait_node(2, NodeState.LOST)
        cluster.heal_node(2)
        cluster.wait_nodes(2)


def test_a_slow_node_delays_its_containers() -> None:
    with LocalCluster(1, fast=True, options=NETWORK) as cluster:
        cluster.slow_node(1, delay_ms=50)
        assert cluster.run("echo slow").stdout == "slow\n"
        cluster.heal_node(1)
        with pytest.raises(InvalidArgumentException, match="delay_ms = -1: must be at least 0"):
            cluster.slow_node(1, delay_ms=-1)


def test_network_faults_need_a_cluster_that_was_started_for_them() -> None:
    with (
        LocalCluster(1, fast=True, options=ClusterOptions(loopback=True)) as cluster,
        pytest.raises(
            InvalidArgumentException, match=r"\(start the cluster with options=ClusterOptions\(network_faults"
        ),
    ):
        cluster.partition_node(1)
    with pytest.raises(InvalidArgumentException, match="network_faults = True: cannot be used with pack"):
        LocalCluster(2, options=ClusterOptions(network_faults=True, pack=2))
