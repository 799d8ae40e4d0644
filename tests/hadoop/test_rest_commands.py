"""Hadoop's commands that call REST: `yarn schedulerconf`, and `yarn logs` of containers that run."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hadoop import toolchain
from tests.hadoop.scheduler_conf import RECORDING, run_command
from tests.hadoop.scheduler_conf_scenes import SCENES, Command
from yarn.applications import ApplicationSubmissionContext
from yarn.containers import ContainerLaunchContext
from yarn.resource import Resource
from yarn.settings.yarnling import WEB_ENABLED
from yarnling.cluster.blocking import BlockingCluster
from yarnling.cluster.local_cluster import LocalCluster

pytestmark = [pytest.mark.hadoop, pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(300)]

CLI = "org.apache.hadoop.yarn.client.cli."


@pytest.fixture(scope="module")
def jars() -> Path:
    """Not those of `client`, which lack the library for JSON."""
    return toolchain.jars_or_skip("mapreduce")


@pytest.fixture(scope="module")
def cluster() -> Iterator[BlockingCluster]:
    with LocalCluster(nodes=1, hadoop=True, settings={WEB_ENABLED.key: "true"}) as started:
        yield started


def ran(cluster: BlockingCluster, jars: Path, main: str, *words: object) -> subprocess.CompletedProcess[str]:
    command = toolchain.command(toolchain.class_path_of(cluster.directory.conf, jars / "*"), CLI + main, *words)
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (
            ["-getconf"],
            "Failed to get scheduler configuration: This API only supports to retrieve scheduler configuration from a "
            "mutable-conf scheduler, underneath scheduler CapacityScheduler is not an instance of MutableConfScheduler",
        ),
        (
            ["-format"],
            "Failed to format scheduler configuration: "
            "Scheduler Configuration format only supported by MutableConfScheduler",
        ),
        (
            ["-update", "root.default:capacity=100"],
            "Configuration change unsuccessful: Configuration change only supported by mutable configuration store.",
        ),
    ],
    ids=["get", "format", "update"],
)
def test_a_configuration_that_is_a_file_is_not_changed(
    cluster: BlockingCluster, jars: Path, words: list[str], problem: str
) -> None:
    """RMWebServices refuses all of them unless yarn.scheduler.configuration.store.class names another store."""
    refused = ran(cluster, jars, "SchedConfCLI", *words)
    assert refused.returncode == 255
    assert refused.stderr.splitlines()[-1] == problem


@pytest.fixture(scope="module")
def changeable(jars: Path) -> Iterator[BlockingCluster]:
    (scene,) = (scene for scene in SCENES if scene.name == "commands")
    settings = {WEB_ENABLED.key: "true", **scene.settings, **scene.queues}
    with LocalCluster(nodes=1, hadoop=True, settings=settings) as started:
        yield started


def test_changes_by_schedulerconf_show_what_they_show_on_hadoop(changeable: BlockingCluster) -> None:
    """The first line of a refusal; yarnling adds a line with key, value and remedy."""
    (scene,) = (scene for scene in SCENES if scene.name == "commands")
    recorded = json.loads(RECORDING.read_text())[scene.name]
    for step, expected in zip(scene.steps, recorded, strict=True):
        if not isinstance(step, Command):
            continue
        shown = run_command(changeable.directory.conf, step)
        shown["stderr"] = shown["stderr"][:1]
        assert {"step": str(step), **shown} == expected


def test_the_logs_of_a_running_container_come_from_its_node(cluster: BlockingCluster, jars: Path) -> None:
    """An ApplicationMaster that only writes; nothing is aggregated yet."""
    app = cluster.client.new_application().application_id
    launch = ContainerLaunchContext(("echo it has started > <LOG_DIR>/words; exec sleep 300",))
    cluster.client.submit(ApplicationSubmissionContext(app, launch, Resource(512, 1)))
    cluster.until(lambda: any("has started" in log.text() for log in cluster.client.logs(app) if log.name == "words"))
    shown = ran(cluster, jars, "LogsCLI", "-applicationId", app)
    assert shown.returncode == 0, shown.stderr
    assert "LogAggregationType: LOCAL\n" in shown.stdout
    assert "LogType:words\n" in shown.stdout
    assert "\nLogContents:\nit has started\n" in shown.stdout
    listed = ran(cluster, jars, "LogsCLI", "-applicationId", app, "-show_container_log_info")
    assert listed.returncode == 0, listed.stderr
    (words,) = [line.split() for line in listed.stdout.splitlines() if line.split()[:1] == ["words"]]
    assert (words[1], words[-1]) == ("15", "LOCAL")
