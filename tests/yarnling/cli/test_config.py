"""The notices about configuration keys that `yarnling up` prints before it starts."""

from pathlib import Path

import pytest

from wire.files.hadoop_xml import to_xml
from yarn.faults import ConfigurationException
from yarnling.cli.config import LONG_LIST, print_key_notices, report
from yarnling.cluster.configuration import compose

Q = "yarn.scheduler.capacity.root"
TREE = {f"{Q}.queues": "a,b", f"{Q}.a.capacity": "60", f"{Q}.b.capacity": "40"}


def conf(tmp_path: Path, values: dict[str, str]) -> Path:
    (tmp_path / "capacity-scheduler.xml").write_text(to_xml(values))
    return tmp_path


def test_without_keys_nothing_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    print_key_notices(compose(None, {}))
    assert capsys.readouterr() == ("", "")


def test_keys_are_counted_and_unknown_or_suspicious_ones_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    late = {"yarn.nm.liveness-monitor.expiry-interval-ms": "2000"}
    values = {**TREE, f"{Q}.b.maximum-capactiy": "50", **late, "yarn.sharedcache.enabled": "true"}
    print_key_notices(compose(conf(tmp_path, values), {"yarn.nodemanager.vmem-check-enabled": "false"}))
    out, err = capsys.readouterr()
    assert out == ""
    counted, unknown, warning = err.splitlines()
    assert counted.startswith("Configuration: 5 keys read, 1 ignored, 1 unknown (yarnling config --conf ")
    assert unknown == (
        f"unknown: capacity-scheduler.xml:6: {Q}.b.maximum-capactiy = '50', perhaps {Q}.b.maximum-capacity"
    )
    assert warning.startswith("warning: capacity-scheduler.xml:7: yarn.nm.liveness-monitor.expiry-interval-ms = '2000'")


def test_addresses_that_the_cluster_replaces_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = {**TREE, "yarn.nodemanager.address": "0.0.0.0:8041", "yarn.resourcemanager.address": "rm:8032"}
    print_key_notices(compose(conf(tmp_path, values), {"yarn.resourcemanager.address": "127.0.0.1:8032"}))
    assert capsys.readouterr().err.splitlines()[1] == (
        "Set by the cluster itself (override with -D): yarn.nodemanager.address (capacity-scheduler.xml:6)"
    )


def test_errors_of_queues_and_settings_are_reported_together(tmp_path: Path) -> None:
    directory = conf(tmp_path, {**TREE, f"{Q}.b.capacity": "50"})
    with pytest.raises(ConfigurationException) as refusal:
        print_key_notices(compose(directory, {"yarn.resourcemanager.am.max-attempts": "0"}))
    assert [fault.key for fault in refusal.value.faults] == ["yarn.resourcemanager.am.max-attempts", f"{Q}.queues"]


def test_faults_and_counts_come_first_and_last_around_a_long_list(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    users = {f"yarn.scheduler.capacity.user.u{number}.max-parallel-apps": "1" for number in range(LONG_LIST)}
    directory = conf(tmp_path, {**TREE, **users, f"{Q}.user-limit-factor": "2"})
    report(directory, [], None, every=False, as_json=False)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 4
    assert lines[:2] == lines[2:]
    assert lines[0].startswith(f"warning: capacity-scheduler.xml:{LONG_LIST + 6}: {Q}.user-limit-factor")
    assert lines[1].endswith("0 ignored, 0 unknown; 0 errors, 1 warnings")


def test_many_warnings_have_their_number_and_the_counts_last(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("yarnling.cluster.configuration.FAULTS_COUNTED", 1)
    print_key_notices(
        compose(conf(tmp_path, {**TREE, f"{Q}.user-limit-factor": "2", f"{Q}.a.max-parallel-apps": "0"}), {})
    )
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(": ")[0] for line in lines[:3]] == ["Configuration", "warning", "warning"]
    assert lines[3:] == ["2 kinds of warnings, 5 keys read, 0 ignored, 0 unknown"]


def test_a_file_without_queues_is_refused_as_hadoop_refuses_it(tmp_path: Path) -> None:
    """CapacitySchedulerQueueManager.validateParent: root would be a leaf without a parent."""
    with pytest.raises(ConfigurationException, match="Queue configuration missing child queue names for root"):
        print_key_notices(compose(conf(tmp_path, {}), {}))


def test_mapping_rules_and_other_faults_are_named_together(tmp_path: Path) -> None:
    values = {**TREE, f"{Q}.b.capacity": "50", "yarn.scheduler.capacity.queue-mappings": "u:ann:nosuch"}
    with pytest.raises(ConfigurationException) as refusal:
        print_key_notices(compose(conf(tmp_path, values), {}))
    assert [fault.key for fault in refusal.value.faults] == [f"{Q}.queues", "yarn.scheduler.capacity.queue-mappings"]
