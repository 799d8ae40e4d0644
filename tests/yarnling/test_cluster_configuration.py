"""Precedence in a local cluster: the user's files, what the cluster must set itself, the user's settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from wire.files.hadoop_xml import load_configuration, to_xml
from yarn.faults import ConfigurationException
from yarn.settings import nodemanager, resourcemanager, yarnling
from yarnling.cluster.configuration import (
    composed,
    emulation_setting,
    file_values,
    first_addresses,
    log_dirs,
    node_overrides,
    node_sizes,
)
from yarnling.cluster.directory import ClusterDirectory

MEMORY = nodemanager.RESOURCE_MEMORY_MB.key
VMEM = nodemanager.VMEM_CHECK_ENABLED.key


def test_settings_override_sizes_and_sizes_override_files(tmp_path: Path) -> None:
    (tmp_path / "yarn-site.xml").write_text(to_xml({MEMORY: "1111"}))
    assert composed(tmp_path, {}, {}).get(MEMORY) == "1111"
    assert composed(tmp_path, {}, node_sizes(2222, None)).get(MEMORY) == "2222"
    assert composed(tmp_path, {MEMORY: "3333"}, node_sizes(2222, None)).get(MEMORY) == "3333"
    assert composed(None, {}, node_sizes(-1, -1)).get(MEMORY) == "-1", "8192, as in Hadoop's default file"


def test_files_and_settings_override_the_clusters_defaults(tmp_path: Path) -> None:
    assert composed(None, {}, {}).get(VMEM) == "false"
    assert composed(None, {VMEM: "true"}, {}).get(VMEM) == "true"
    (tmp_path / "yarn-site.xml").write_text(to_xml({VMEM: "true"}))
    assert composed(tmp_path, {}, {}).get(VMEM) == "true"


def test_all_faults_of_files_and_settings_are_reported_at_once(tmp_path: Path) -> None:
    (tmp_path / "yarn-site.xml").write_text(to_xml({MEMORY: "lots"}))
    with pytest.raises(ConfigurationException) as refusal:
        composed(tmp_path, {VMEM: "true", nodemanager.RESOURCE_CPU_VCORES.key: "0"}, {})
    assert {fault.key for fault in refusal.value.faults} == {MEMORY, nodemanager.RESOURCE_CPU_VCORES.key}


def test_each_faulty_queue_is_reported(tmp_path: Path) -> None:
    """Each fault is reported once, with its file and line. The error at which Hadoop would stop comes first."""
    queues = {
        "root.queues": "a,b",
        "root.a.capacity": "70",
        "root.a.maximum-capacity": "50",
        "root.b.capacity": "40",
        "root.b.minimum-user-limit-percent": "400",
        "root.c.capacity": "10",
        "minimum-user-limit-percent": "500",
    }
    conf = {f"yarn.scheduler.capacity.{key}": value for key, value in queues.items()}
    (tmp_path / "capacity-scheduler.xml").write_text(to_xml(conf))
    with pytest.raises(ConfigurationException) as refusal:
        composed(tmp_path, {}, {})
    first, *others = str(refusal.value).splitlines()
    assert "Illegal capacity sum of 1.1" in first
    assert all(line.startswith("warning: capacity-scheduler.xml:") for line in others)
    assert sorted(fault.key.removeprefix("yarn.scheduler.capacity.") for fault in refusal.value.faults) == [
        "minimum-user-limit-percent",
        "root.a.maximum-capacity",
        "root.b.minimum-user-limit-percent",
        "root.c.capacity",
        "root.queues",
    ]


def test_addresses_in_files_are_ignored_and_those_in_settings_are_used() -> None:
    address = resourcemanager.ADDRESS.key
    assert first_addresses({})[address] == "127.0.0.1:0"
    assert first_addresses({address: "127.0.0.1:8032"})[address] == "127.0.0.1:8032"


def test_the_clusters_files_contain_the_configuration_and_its_places(tmp_path: Path) -> None:
    directory = ClusterDirectory.make(tmp_path)
    directory.conf.mkdir()
    conf = composed(None, {MEMORY: "4096"}, {})
    directory.write_configuration(
        file_values(conf, {"yarn.resourcemanager.address": "127.0.0.1:7"}, directory, racks=True)
    )
    read = load_configuration(directory.conf)
    assert read.get(MEMORY) == "4096"
    assert resourcemanager.ADDRESS.of(read) == ("127.0.0.1", 7)
    assert yarnling.TOPOLOGY_TABLE_FILE.of(read) == str(directory.topology_table)
    assert read.keys("yarn.scheduler.capacity.root.")


def test_the_clusters_name_is_for_its_pages_unless_the_users_files_name_it(tmp_path: Path) -> None:
    directory = ClusterDirectory(tmp_path, temporary=False)

    def cluster_id(settings: dict[str, str], name: str) -> str | None:
        return file_values(composed(None, settings, {}), {}, directory, racks=False, name=name).get(key)

    key = resourcemanager.CLUSTER_ID.key
    assert cluster_id({}, "demo") == "demo"
    assert cluster_id({key: "prod"}, "demo") == "prod"
    assert cluster_id({}, "") is None


def test_each_node_has_its_own_host_and_directories(tmp_path: Path) -> None:
    directory = ClusterDirectory(tmp_path, temporary=False)
    settings = {nodemanager.LOCAL_DIRS.key: "/a, /b"}
    first, second = (node_overrides([directory.node(number, 1)], settings) for number in (1, 2))
    assert first[nodemanager.LOCAL_DIRS.key] == "/a/nm-1,/b/nm-1"
    assert all(first[key] != second[key] for key in first.keys() - {yarnling.PACK.key})


def test_a_packed_process_has_the_host_of_its_first_node_and_a_directory_for_each(tmp_path: Path) -> None:
    directory = ClusterDirectory(tmp_path, temporary=False)
    places = directory.pack(5, 7, 2)
    assert [place.name for place in places] == ["nm-5", "nm-6", "nm-7"]
    assert [(place.host, place.rack) for place in places] == [
        ("127.0.0.6", "/rack-1"),
        ("127.0.0.7", "/rack-2"),
        ("127.0.0.8", "/rack-1"),
    ]
    overrides = node_overrides(places, {nodemanager.LOG_DIRS.key: "/logs"})
    assert overrides == {
        nodemanager.HOSTNAME.key: "127.0.0.6",
        nodemanager.ADDRESS.key: "127.0.0.6:0",
        nodemanager.WEBAPP_ADDRESS.key: "127.0.0.6:0",
        nodemanager.LOCAL_DIRS.key: str(tmp_path / "nm-5-to-7" / "local"),
        nodemanager.LOG_DIRS.key: "/logs/nm-5-to-7",
        yarnling.PACK.key: "3",
    }
    assert log_dirs(places[1], {nodemanager.LOG_DIRS.key: "/logs"}) == [Path("/logs/nm-5-to-7/127.0.0.7")]
    assert places[1].local_dir == tmp_path / "nm-5-to-7" / "local" / "127.0.0.7"
    assert [place.is_packed for place in directory.pack(8, 8, 1)] == [False]


def test_a_port_in_the_settings_is_used_by_every_node(tmp_path: Path) -> None:
    directory = ClusterDirectory(tmp_path, temporary=False)
    addresses = [
        node_overrides([directory.node(number, 1)], {nodemanager.ADDRESS.key: "0.0.0.0:8041"})[nodemanager.ADDRESS.key]
        for number in (1, 2)
    ]
    assert addresses == ["127.0.0.2:8041", "127.0.0.3:8041"]
    assert node_overrides([directory.node(1, 1)], {})[nodemanager.ADDRESS.key] == "127.0.0.2:0"


def test_hosts_continue_in_the_next_block_of_addresses(tmp_path: Path) -> None:
    directory = ClusterDirectory(tmp_path, temporary=False)
    assert [directory.node(number, 1).host for number in (1, 253, 254, 255, 300)] == [
        "127.0.0.2",
        "127.0.0.254",
        "127.0.0.255",
        "127.0.1.0",
        "127.0.1.45",
    ]


def test_the_path_of_the_table_of_emulated_containers_is_made_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "table.yaml").write_text("rules: [{run: real}]")
    directory = ClusterDirectory(tmp_path / "cluster", temporary=False)

    def named(emulated: bool | str) -> str | None:
        conf = composed(None, emulation_setting(emulated), {})
        return file_values(conf, {}, directory, racks=False).get(yarnling.EMULATION_TABLE.key)

    assert (named(False), named(True), named("table.yaml")) == (None, "default", str(tmp_path / "table.yaml"))
