"""Places of a local cluster: aggregated logs and the store of queues are in its directory unless settings name one."""

from __future__ import annotations

from pathlib import Path

import pytest

from wire.files.hadoop_xml import to_xml
from yarn.settings import nodemanager
from yarn.settings.logs import remote_log_dir
from yarn.settings.resourcemanager import CONFIGURATION_FS_PATH, CONFIGURATION_STORE_CLASS
from yarnling.cluster.configuration import composed, with_queue_store, with_remote_logs

FS_PATH = CONFIGURATION_FS_PATH.key
GENERAL, OF_TFILE = "yarn.nodemanager.remote-app-log-dir", "yarn.log-aggregation.TFile.remote-app-log-dir"


@pytest.mark.parametrize("key", [GENERAL, OF_TFILE])
def test_a_place_in_a_file_is_that_of_another_cluster(tmp_path: Path, key: str) -> None:
    (tmp_path / "yarn-site.xml").write_text(to_xml({key: "hdfs://nn/logs", "yarn.log-aggregation-enable": "true"}))
    conf = with_remote_logs(composed(tmp_path, {}, {}), {}, Path("/cluster"))
    assert remote_log_dir(conf) == "/cluster/remote-logs"


@pytest.mark.parametrize("key", [GENERAL, OF_TFILE])
def test_a_place_in_the_settings_is_used(key: str) -> None:
    settings = {key: "/mine"}
    assert remote_log_dir(with_remote_logs(composed(None, settings, {}), settings, Path("/cluster"))) == "/mine"


@pytest.mark.parametrize("path", ["hdfs://nn/queues", "/var/lib/hadoop-yarn/queues", ""])
def test_the_store_of_queues_in_a_file_is_that_of_another_cluster(tmp_path: Path, path: str) -> None:
    (tmp_path / "yarn-site.xml").write_text(to_xml({CONFIGURATION_STORE_CLASS.key: "fs", FS_PATH: path}))
    conf = with_queue_store(composed(tmp_path, {}, {}), {}, Path("/cluster"))
    assert conf.get(FS_PATH) == "/cluster/queues"


def test_the_store_of_queues_in_the_settings_is_used() -> None:
    settings = {CONFIGURATION_STORE_CLASS.key: "fs", FS_PATH: "/mine"}
    assert with_queue_store(composed(None, settings, {}), settings, Path("/cluster")).get(FS_PATH) == "/mine"


def test_a_local_cluster_has_mapreduce_shuffle_unless_the_user_says_otherwise() -> None:
    key = nodemanager.AUX_SERVICES.key
    assert nodemanager.AUX_SERVICES.of(composed(None, {}, {})) == ("mapreduce_shuffle",)
    assert nodemanager.AUX_SERVICES.of(composed(None, {key: ""}, {})) == ()
