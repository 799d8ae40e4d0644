"""The CPU share of a container as cgroup values: those that Hadoop's own tests expect, and the kernel's limits."""

from __future__ import annotations

import pytest

from nm.core.container_limits import (
    ContainerCpu,
    NodeCpu,
    Quota,
    container_cpu,
    files_of_version_1,
    files_of_version_2,
    node_quota,
    quota_files_of_version_2,
    quota_of,
)
from yarn.configuration import Configuration

SECOND = 1_000_000


@pytest.mark.parametrize(
    ("cores", "quota"),
    [
        (1.0, Quota(SECOND, SECOND)),
        (0.5, Quota(SECOND, SECOND // 2)),
        (3.0, Quota(333_333, SECOND)),
        (4.0, Quota(250_000, SECOND)),
        (0.01, Quota(SECOND, 10_000)),
        (1000.0, Quota(1000, SECOND)),
        # A shorter period is not possible: unlimited.
        (1001.0, Quota(SECOND, -1)),
    ],
)
def test_a_quota_of_cores(cores: float, quota: Quota) -> None:
    assert quota_of(cores) == quota


def test_less_than_a_hundredth_of_a_core_is_refused() -> None:
    with pytest.raises(ValueError, match=r"0\.009 cores: must be at least 0\.01"):
        quota_of(0.009)


def test_intermediate_results_are_rounded_to_32_bits_as_in_java() -> None:
    """1e6 / 2.4f is 416666.65625 in 32 bits; 1e6 * 0.7f is 700000.0, in 64 bits 699999.988."""
    assert quota_of(2.4000000953674316).period_us == 416_666
    assert quota_of(0.699999988079071).quota_us == 700_000


def test_containers_may_use_the_whole_machine_unless_a_percentage_is_set() -> None:
    assert node_quota(NodeCpu(8, 4)) is None
    assert node_quota(NodeCpu(8, 4, 80)) == Quota(312_500, SECOND)
    assert node_quota(NodeCpu(8, 4, 75)) == Quota(333_333, SECOND)
    # 99 % of 200 cores are 198; 100 % are all cores.
    assert node_quota(NodeCpu(8, 200, 99)) == Quota(5050, SECOND)


def test_vcores_are_weights() -> None:
    assert files_of_version_1(ContainerCpu(2)) == {"cpu.shares": "2048"}
    assert files_of_version_1(ContainerCpu(2, opportunistic=True)) == {"cpu.shares": "2"}
    assert files_of_version_2(ContainerCpu(2)) == {"cpu.weight": "200"}
    assert files_of_version_2(ContainerCpu(2, opportunistic=True)) == {"cpu.weight": "1"}
    assert files_of_version_2(ContainerCpu(101)) == {"cpu.weight": "10000"}, "the most that the kernel takes"


def test_with_strict_usage_a_container_gets_its_share_of_the_cores() -> None:
    """A machine of 4 cores with 8 vcores: half a core for each vcore; with 75 % of the machine, three eighths."""
    whole, cut = NodeCpu(8, 4, strict=True), NodeCpu(8, 4, 75, strict=True)
    assert container_cpu(whole, 1) == ContainerCpu(1, quota=Quota(SECOND, 500_000))
    assert container_cpu(cut, 2).quota == Quota(SECOND, 750_000)
    assert container_cpu(cut, 4).quota == Quota(666_666, SECOND)
    assert container_cpu(whole, 8).quota is None, "all vcores: the node's own limit is its limit"
    assert container_cpu(NodeCpu(8, 4), 1).quota is None, "not strict"


def test_quotas_in_files() -> None:
    cpu = ContainerCpu(1, quota=Quota(SECOND, 500_000))
    assert list(files_of_version_1(cpu).items()) == [
        ("cpu.shares", "1024"),
        ("cpu.cfs_period_us", "1000000"),
        ("cpu.cfs_quota_us", "500000"),
    ]
    assert files_of_version_2(cpu) == {"cpu.weight": "100", "cpu.max": "500000 1000000"}
    assert quota_files_of_version_2(Quota(SECOND, -1)) == {"cpu.max": "max 1000000"}


def test_settings_are_read_from_the_configuration() -> None:
    assert NodeCpu.read(Configuration(), 8, 4, 16) == NodeCpu(8, 4, 100, strict=False)
    conf = Configuration.of(
        {
            "yarn.nodemanager.resource.count-logical-processors-as-cores": "true",
            "yarn.nodemanager.resource.percentage-physical-cpu-limit": "50",
            "yarn.nodemanager.linux-container-executor.cgroups.strict-resource-usage": "true",
        }
    )
    assert NodeCpu.read(conf, 8, 4, 16) == NodeCpu(8, 16, 50, strict=True)
