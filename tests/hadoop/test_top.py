"""Hadoop's `yarn top` on a cluster: RPCs for queues and applications, and HTTP for the start of the ResourceManager."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from pathlib import Path
from subprocess import PIPE

import pytest

from tests.hadoop import toolchain
from yarn.applications import ApplicationSubmissionContext
from yarn.settings.resourcemanager import WEBAPP_ADDRESS
from yarn.settings.yarnling import WEB_ENABLED
from yarnling.cluster.local_cluster import LocalCluster

pytestmark = [pytest.mark.hadoop, pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def jars() -> Path:
    """Not those of `client`: `yarn top` needs a library for JSON that they lack."""
    return toolchain.jars_or_skip("mapreduce")


def test_yarn_top_shows_the_cluster(jars: Path, tmp_path: Path) -> None:
    """`yarn top` begins each request with OPTIONS; without status 200 it never learns the start."""
    classes = toolchain.compiled("top", tmp_path / "classes", jars / "*")
    with LocalCluster(nodes=2, hadoop=True, settings={WEB_ENABLED.key: "true"}) as cluster:
        application = cluster.client.new_application()
        cluster.client.submit(ApplicationSubmissionContext(application.application_id, unmanaged_am=True))
        address = cluster.addresses[WEBAPP_ADDRESS.key]
        with urllib.request.urlopen(f"http://{address}/ws/v1/cluster/info") as reply:
            started = json.load(reply)["clusterInfo"]["startedOn"]
        path = toolchain.class_path_of(cluster.directory.conf, classes, jars / "*")
        main = "org.apache.hadoop.yarn.client.cli.Top"
        command = toolchain.command(path, main, "-rows", 20, "-cols", 120, "-delay", 1)
        with (
            (tmp_path / "log").open("w") as log,
            subprocess.Popen(command, stdin=PIPE, stdout=PIPE, stderr=log, text=True) as process,
        ):
            assert process.stdin
            assert process.stdout
            lines = [line for line, _ in zip(process.stdout, range(9), strict=False)]
            process.stdin.write("q\n")
            process.stdin.flush()
            lines += process.stdout
    text = "".join(lines)
    assert process.returncode == 0, (tmp_path / "log").read_text()
    assert f"started {started}\n" in text
    assert "NodeManager(s): 2 total, 2 active, 0 unhealthy" in text
    assert "1 submitted" in text
