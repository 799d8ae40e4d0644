"""Where a local cluster's aggregated logs are: in its own directory, unless the settings name another place."""

from __future__ import annotations

from pathlib import Path

import pytest

from wire.files.hadoop_xml import to_xml
from yarn.settings import nodemanager
from yarn.settings.logs import remote_log_dir
from yarnling.cluster.configuration import composed, with_remote_logs

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


def test_a_local_cluster_has_mapreduce_shuffle_unless_the_user_says_otherwise() -> None:
    key = nodemanager.AUX_SERVICES.key
    assert nodemanager.AUX_SERVICES.of(composed(None, {}, {})) == ("mapreduce_shuffle",)
    assert nodemanager.AUX_SERVICES.of(composed(None, {key: ""}, {})) == ()
