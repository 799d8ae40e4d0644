"""A cluster started for Hadoop's own clients: what they find in its directory, and what its containers see."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.conftest import Yarnling
from wire.files.hadoop_xml import read_file
from yarn.errors import InvalidArgumentException
from yarn.settings import yarnling as own_settings
from yarnling.cluster.configuration import RM_ADDRESSES
from yarnling.cluster.local_cluster import ClusterOptions, LocalCluster
from yarnling.testing.spec import ClusterSpec

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


@pytest.fixture(scope="module")
def java(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of a program `java`."""
    home = tmp_path_factory.mktemp("jdk with space")
    (home / "bin").mkdir()
    (home / "bin" / "java").write_text("#!/bin/sh\n")
    (home / "bin" / "java").chmod(0o755)
    return home


@pytest.fixture(scope="module")
def up(
    yarnling: Yarnling, environment: dict[str, str], java: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[subprocess.CompletedProcess[str]]:
    """The output of `up --hadoop`; JAVA_HOME is not set, and `java` is in PATH. A shell has to quote the directory."""
    directory = tmp_path_factory.mktemp("it's here; $HOME")
    environment.pop("JAVA_HOME", None)
    environment["PATH"] = f"{java}/bin{os.pathsep}{environment['PATH']}"
    started = yarnling("up", "--name", "with-hadoop", "--hadoop", "--fast", "--detach", "--directory", str(directory))
    assert started.returncode == 0, started.stderr
    yield started
    yarnling("down", "--name", "with-hadoop")


def test_up_prints_how_clients_find_it_and_which_java_containers_get(
    up: subprocess.CompletedProcess[str], java: Path
) -> None:
    assert 'For Hadoop\'s own clients: eval "$(yarnling env --name with-hadoop)"' in up.stdout.splitlines()
    assert f"containers get JAVA_HOME={java}, " in up.stderr


@pytest.mark.usefixtures("up")
def test_a_shell_takes_the_exports(yarnling: Yarnling) -> None:
    exports = yarnling("env", "--name", "with-hadoop")
    assert exports.returncode == 0, exports.stderr
    script = f'{exports.stdout}\nprintf "%s\\n" "$HADOOP_CONF_DIR" "$YARN_CONF_DIR"; env'
    hadoop, yarn, *exported = subprocess.check_output(["sh", "-c", script], text=True).splitlines()
    assert hadoop == yarn
    assert f"HADOOP_CONF_DIR={hadoop}" in exported
    printed = json.loads(yarnling("env", "--name", "with-hadoop", "--json").stdout)
    assert printed == {"HADOOP_CONF_DIR": hadoop, "YARN_CONF_DIR": yarn}
    assert {"core-site.xml", "log4j.properties", "mapred-site.xml", "yarn-site.xml"} <= {
        path.name for path in Path(hadoop).iterdir()
    }


@pytest.mark.usefixtures("up")
def test_java_can_connect_to_the_addresses(yarnling: Yarnling) -> None:
    """They are host:port with the ports that the ResourceManager listens on."""
    state = json.loads(yarnling("status", "--name", "with-hadoop", "--json").stdout)["cluster"]
    site = read_file(Path(state["conf_dir"]) / "yarn-site.xml")
    assert set(RM_ADDRESSES) <= state["addresses"].keys()
    addresses = {key: site.get(key) for key in state["addresses"]}
    assert addresses == state["addresses"]
    assert not any(str(address).endswith(":0") for address in addresses.values())
    assert site.get(own_settings.HADOOP_RPC_ENABLED.key) == "true"


@pytest.mark.usefixtures("up")
def test_containers_get_the_java_that_was_found(yarnling: Yarnling, java: Path) -> None:
    ran = yarnling("run", "--name", "with-hadoop", "echo $JAVA_HOME")
    assert ran.stdout.rstrip("\n").endswith(f" | {java}")


def test_a_cluster_without_hadoop_says_how_to_start_it_with(yarnling: Yarnling) -> None:
    started = yarnling("up", "--name", "without-hadoop", "--nodes", "0", "--fast", "--detach")
    try:
        assert "Hadoop's own clients" not in started.stdout
        refused = yarnling("env", "--name", "without-hadoop")
        assert (refused.returncode, refused.stdout) == (1, "")
        assert "yarnling up --hadoop --detach --name without-hadoop" in refused.stderr
    finally:
        yarnling("down", "--name", "without-hadoop")


def test_a_wrong_class_path_is_a_wrong_command_line(yarnling: Yarnling) -> None:
    refused = yarnling("up", "--hadoop", "--hadoop-classpath", "nowhere/*", "--detach")
    assert refused.returncode == 2
    assert "nowhere has no jars" in refused.stderr
    refused = yarnling("up", "--hadoop-classpath", "nowhere/*", "--detach")
    assert refused.returncode == 2
    assert "--hadoop-classpath needs --hadoop" in refused.stderr


def test_a_test_gets_such_a_cluster_by_its_marker() -> None:
    with ClusterSpec(nodes=0, hadoop=True).cluster() as cluster:
        assert cluster.hadoop_environment["YARN_CONF_DIR"] == str(cluster.directory.conf)


def test_a_setting_overrides_the_argument() -> None:
    with LocalCluster(0, hadoop=True, settings={own_settings.HADOOP_RPC_ENABLED.key: "false"}) as cluster:
        with pytest.raises(InvalidArgumentException, match="start it with hadoop=True"):
            _ = cluster.hadoop_environment
        assert not (cluster.directory.conf / "core-site.xml").exists()


def test_a_cluster_in_python_comes_up_without_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with the addresses of a node's own, which its containers read from another directory."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr("yarnling.cluster.hadoop_clients.java_home", lambda environ: None)
    with LocalCluster(hadoop=True, fast=True, options=ClusterOptions(network_faults=True)) as cluster:
        assert cluster.hadoop_environment["HADOOP_CONF_DIR"] == str(cluster.directory.conf)
        seen = cluster.run('echo "$JAVA_HOME"; ls $HADOOP_CONF_DIR').stdout.split()
    assert set(seen) == {"core-site.xml", "mapred-site.xml", "yarn-site.xml"}
