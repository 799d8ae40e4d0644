"""Releases of Hadoop: one setting chooses the rules; only 3.4.1's are the default."""

from __future__ import annotations

from itertools import pairwise

import pytest

from wire.files.hadoop_xml import hadoop_keys
from yarn.configuration import Configuration
from yarn.faults import ConfigurationException
from yarn.java.versions import HADOOP_VERSION, compare_versions
from yarn.settings.release import RELEASE, RELEASES, HadoopRelease
from yarn.settings.report import HadoopKeys, describe
from yarn.settings.scheduler import SCHEDULE_ASYNCHRONOUSLY


def on(release: str, **more: str) -> Configuration:
    return Configuration.of({RELEASE.key: release, **more})


def test_the_default_shares_all_rules_with_3_4_1() -> None:
    assert RELEASE.of(Configuration()) == HadoopRelease(version="3.4.1")
    assert HADOOP_VERSION == "3.4.1"


def test_releases_are_listed_in_their_order() -> None:
    versions = list(RELEASES)
    assert all(compare_versions(one, other) < 0 for one, other in pairwise(versions))
    assert [release.version for release in RELEASES.values()] == versions


def test_keys_of_later_releases_are_known() -> None:
    cgroups = "yarn.nodemanager.linux-container-executor.cgroups.v2.enabled"
    keys = {"yarn.webapp.scheduler-ui.enable": "true", cgroups: "true"}
    assert {key.key for key in describe(Configuration.of(keys), HadoopKeys(hadoop_keys())).ignored} == set(keys)


def test_an_unknown_release_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigurationException) as refusal:
        RELEASE.of(on("3.3.6"))
    message = str(refusal.value)
    assert "'3.3.6': is not a release whose rules are known" in message
    assert "write 3.4.1, 3.4.2, 3.4.3 or 3.5.0" in message
    assert "EMR 7.13 and Cloudera 7.3.3 are based on 3.4.2" in message


@pytest.mark.parametrize(("release", "default"), [("3.4.1", False), ("3.4.3", False), ("3.5.0", True)])
def test_asynchronous_scheduling_is_the_default_of_3_5_0(release: str, default: bool) -> None:
    assert SCHEDULE_ASYNCHRONOUSLY.of(on(release)) is default
    assert SCHEDULE_ASYNCHRONOUSLY.of(on(release, **{SCHEDULE_ASYNCHRONOUSLY.key: "false"})) is False
    assert SCHEDULE_ASYNCHRONOUSLY.of(on(release, **{SCHEDULE_ASYNCHRONOUSLY.key: "true"})) is True
    shown = {key.key: key.value for key in describe(on(release), HadoopKeys(())).defaulted}
    assert shown[SCHEDULE_ASYNCHRONOUSLY.key] == str(default).lower()
