"""An ApplicationMaster in Java (java/am/ShellMaster.java) over Hadoop's AMRMClientAsync and NMClientAsync."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.conftest import eventually
from tests.hadoop import toolchain
from tests.hadoop.scenes import client_configuration
from yarn.applications import ApplicationSubmissionContext
from yarn.containers import ContainerLaunchContext
from yarn.ids import ApplicationId, ContainerId
from yarn.resource import Resource
from yarn.states import ContainerExitStatus, FinalApplicationStatus, YarnApplicationState
from yarnling.cluster.blocking import BlockingCluster
from yarnling.cluster.local_cluster import ClusterOptions, LocalCluster

pytestmark = [pytest.mark.hadoop, pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(300)]

CONF = Path(__file__).parent / "conf" / "base"
PATIENCE_S = 120.0
"""A JVM starts in a second on a quiet machine, in half a minute on a loaded one."""


@pytest.fixture(params=[None, 3], ids=["processes", "pack"])
def cluster(client_jars: Path, request: pytest.FixtureRequest) -> Iterator[BlockingCluster]:
    settings = {"yarn.yarnling.hadoop-rpc.enabled": "true", "yarn.acl.enable": "false"}
    options = ClusterOptions(pack=request.param)
    with LocalCluster(nodes=3, memory_mb=4096, vcores=4, conf=CONF, settings=settings, options=options) as cluster:
        yield cluster


def test_an_am_in_java_survives_the_rm(cluster: BlockingCluster, client_jars: Path, tmp_path: Path) -> None:
    journal, go = tmp_path / "journal", tmp_path / "go"
    wait = f"while ! test -e {go}; do sleep 0.1; done"
    app = _submit(cluster, client_jars, tmp_path, [f"{wait}; exit 7", f"{wait}; sleep 300", f"{wait}; exit 0"])
    eventually(lambda: len(_lines(journal, "started")) == 3, PATIENCE_S)
    containers = [ContainerId.parse(line.split()[1]) for line in _lines(journal, "start")]

    cluster.kill_rm()
    cluster.restart_rm()
    eventually(lambda: cluster.client.report(app).state is YarnApplicationState.RUNNING, PATIENCE_S)
    go.touch()
    eventually(lambda: len(_lines(journal, "end")) == 2, PATIENCE_S)
    cluster.kill_container(containers[1])

    report = cluster.client.wait(app, timeout_s=PATIENCE_S)
    assert (report.final_status, report.current_attempt_id.attempt) == (FinalApplicationStatus.SUCCEEDED, 1)
    ends = dict(line.split()[1:] for line in _lines(journal, "end"))
    assert [ends.pop(str(container)) for container in containers] == ["7", "137", "0"]
    # AMRMClient repeats its requests to the new RM; the AM releases what it gets for them, if it still gets anything.
    assert set(ends.values()) <= {str(int(ContainerExitStatus.ABORTED))}
    assert _lines(journal, "error") == _lines(journal, "shutdown") == []


def _submit(cluster: BlockingCluster, jars: Path, work: Path, commands: list[str]) -> ApplicationId:
    classes = toolchain.compiled("am", work / "classes", jars / "*")
    conf = client_configuration(work / "conf", (CONF / "yarn-site.xml").read_text(), cluster.addresses)
    words = toolchain.command(
        toolchain.class_path_of(conf, classes, jars / "*"), "am.ShellMaster", work / "journal", *commands
    )
    line = " ".join(f"'{word}'" for word in words) + " 1><LOG_DIR>/stdout 2><LOG_DIR>/stderr"
    context = ApplicationSubmissionContext(
        cluster.client.new_application().application_id,
        queue="default",
        resource=Resource(512, 1),
        am_container=ContainerLaunchContext((line,)),
        max_app_attempts=1,
    )
    return cluster.client.submit(context).application_id


def _lines(journal: Path, kind: str) -> list[str]:
    lines = journal.read_text().splitlines() if journal.exists() else []
    return [line for line in lines if line.split()[0] == kind]
