"""A configuration as a distribution's cluster manager writes it for a cluster with 578 queues: generated, typical keys.

17 departments with 33 leaves each. It requests much that yarnling does not do, and nothing that Hadoop refuses.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from pathlib import Path

DEPARTMENTS = 17
LEAVES = 33
QUEUES = DEPARTMENTS * (LEAVES + 1)
SCHEDULER = "yarn.scheduler.capacity."
_PACKAGE = "org.apache.hadoop.yarn.server.resourcemanager."
_CAPACITY = _PACKAGE + "scheduler.capacity."

SITE = {
    "yarn.resourcemanager.ha.enabled": "true",
    "yarn.resourcemanager.ha.rm-ids": "rm1546335872,rm1546335873",
    "yarn.resourcemanager.cluster-id": "yarnRM",
    "yarn.resourcemanager.address.rm1546335872": "master1.example.org:8032",
    "yarn.resourcemanager.recovery.enabled": "true",
    "yarn.resourcemanager.store.class": _PACKAGE + "recovery.ZKRMStateStore",
    "yarn.resourcemanager.zk-address": "zk1.example.org:2181",
    "yarn.resourcemanager.scheduler.class": _CAPACITY + "CapacityScheduler",
    "yarn.resourcemanager.scheduler.monitor.enable": "true",
    "yarn.resourcemanager.scheduler.monitor.policies": (
        f"{_PACKAGE}monitor.capacity.ProportionalCapacityPreemptionPolicy,"
        f"{_CAPACITY}AutoCreatedQueueDeletionPolicy,{_CAPACITY}QueueConfigurationAutoRefreshPolicy"
    ),
    "yarn.resourcemanager.monitor.capacity.preemption.monitoring_interval": "3000",
    "yarn.resourcemanager.monitor.capacity.preemption.max_wait_before_kill": "15000",
    "yarn.resourcemanager.monitor.capacity.preemption.total_preemption_per_round": "0.1",
    "yarn.resourcemanager.monitor.capacity.preemption.natural_termination_factor": "1",
    "yarn.resourcemanager.monitor.capacity.preemption.intra-queue-preemption.enabled": "true",
    "yarn.resourcemanager.monitor.capacity.preemption.intra-queue-preemption.preemption-order-policy": (
        "priority_first"
    ),
    "yarn.resourcemanager.opportunistic-container-allocation.enabled": "true",
    "yarn.resourcemanager.placement-constraints.handler": "scheduler",
    "yarn.resourcemanager.nodes.exclude-path": "/var/run/yarn/nodes_exclude.txt",
    "yarn.resourcemanager.am.max-attempts": "2",
    "yarn.scheduler.configuration.store.class": "zk",
    "yarn.scheduler.minimum-allocation-mb": "1024",
    "yarn.scheduler.maximum-allocation-mb": "65536",
    "yarn.scheduler.maximum-allocation-vcores": "16",
    "yarn.scheduler.include-port-in-node-name": "true",
    "yarn.cluster.max-application-priority": "10",
    "yarn.cluster.scaling.recommendation.enable": "true",
    "yarn.cluster.scaling.recommendation.downscale-factor": "0.5",
    "yarn.acl.enable": "true",
    "yarn.admin.acl": "yarn,hive hadoop-admins",
    "yarn.authorization-provider": "org.apache.ranger.authorization.yarn.authorizer.RangerYarnAuthorizer",
    "yarn.node-labels.enabled": "true",
    "yarn.node-labels.fs-store.root-dir": "hdfs:///yarn/node-labels",
    "yarn.timeline-service.enabled": "true",
    "yarn.log-aggregation-enable": "true",
    "yarn.log-aggregation.file-formats": "IFile,TFile",
    "yarn.nodemanager.remote-app-log-dir": "hdfs:///tmp/logs",
    "yarn.nodemanager.recovery.enabled": "true",
    "yarn.nodemanager.aux-services": "mapreduce_shuffle,spark_shuffle,spark2_shuffle",
    "yarn.nodemanager.container-executor.class": ("org.apache.hadoop.yarn.server.nodemanager.LinuxContainerExecutor"),
    "yarn.nodemanager.linux-container-executor.group": "yarn",
    "yarn.nodemanager.resource.memory-mb": "131072",
    "yarn.nodemanager.resource.cpu-vcores": "32",
    "yarn.http.policy": "HTTPS_ONLY",
}
"""yarn-site.xml."""

_WHOLE_SCHEDULER = {
    "maximum-applications": "20000",
    "maximum-am-resource-percent": "0.33",
    "resource-calculator": "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
    "node-locality-delay": "-1",
    "schedule-asynchronously.enable": "true",
    "schedule-asynchronously.maximum-threads": "1",
    "schedule-asynchronously.scheduling-interval-ms": "10",
    "multi-node-placement-enabled": "true",
    "multi-node-sorting.policy": "default",
    "multi-node-sorting.policy.names": "default",
    "multi-node-sorting.policy.default.class": (f"{_PACKAGE}scheduler.placement.ResourceUsageMultiNodeLookupPolicy"),
    "per-node-heartbeat.maximum-container-assignments": "100",
    "queue-mappings": "u:etl:root.d1.q1,u:%user:root.users.%user,g:analysts:root.d2.q2,u:%user:%primary_group",
    "queue-mappings-override.enable": "false",
    "workflow-priority-mappings": "nightly:root.d1.q1:5,adhoc:root.d2.q2:1",
    "root.accessible-node-labels": "*",
    "root.accessible-node-labels.gpu.capacity": "100",
    "root.acl_submit_applications": " ",
    "root.acl_administer_queue": "yarn hadoop-admins",
    "root.users.acl_submit_applications": "*",
    "root.users.auto-queue-creation-v2.enabled": "true",
    "root.users.auto-queue-creation-v2.template.user-limit-factor": "10",
    "root.users.auto-queue-creation-v2.leaf-template.maximum-application-lifetime": "86400",
}


def settings() -> dict[str, str]:
    """{key: value} of capacity-scheduler.xml, in weights, so that a parent can create queues."""
    names = [f"d{number}" for number in range(1, DEPARTMENTS + 1)]
    keys = {**_WHOLE_SCHEDULER, "root.queues": ",".join([*names, "users"]), "root.users.capacity": "1w"}
    for name in names:
        leaves = [f"q{number}" for number in range(1, LEAVES + 1)]
        keys |= {f"root.{name}.queues": ",".join(leaves), f"root.{name}.ordering-policy": "priority-utilization"}
        keys |= _queue(f"root.{name}")
        for leaf in leaves:
            keys |= _queue(f"root.{name}.{leaf}") | _leaf(f"root.{name}.{leaf}")
    return {SCHEDULER + key: value for key, value in keys.items()}


def _queue(path: str) -> dict[str, str]:
    return {
        f"{path}.capacity": "3w",
        f"{path}.maximum-capacity": "100",
        f"{path}.accessible-node-labels": "gpu",
        f"{path}.accessible-node-labels.gpu.capacity": "1w",
        f"{path}.state": "RUNNING",
        f"{path}.acl_submit_applications": "etl analysts",
        f"{path}.acl_administer_queue": " hadoop-admins",
        f"{path}.priority": "2",
        f"{path}.disable_preemption": "false",
        f"{path}.multi-node-sorting.policy": "default",
    }


def _leaf(path: str) -> dict[str, str]:
    return {
        f"{path}.ordering-policy": "fair",
        f"{path}.ordering-policy.fair.enable-size-based-weight": "true",
        f"{path}.minimum-user-limit-percent": "25",
        f"{path}.user-limit-factor": "5",
        f"{path}.user-settings.etl.weight": "1.5",
        f"{path}.maximum-allocation-mb": "32768",
        f"{path}.maximum-allocation-vcores": "8",
        f"{path}.maximum-am-resource-percent": "0.5",
        f"{path}.intra-queue-preemption.disable_preemption": "false",
        f"{path}.acl_application_max_priority": "[user=etl group=analysts max_priority=7 default_priority=3]",
        f"{path}.maximum-application-lifetime": "172800",
        f"{path}.default-application-lifetime": "86400",
        f"{path}.default-application-priority": "1",
    }


def write(directory: Path) -> None:
    """Write the two files into `directory`."""
    for name, values in (("yarn-site.xml", SITE), ("capacity-scheduler.xml", settings())):
        (directory / name).write_text(_xml(values), encoding="utf-8")


def _xml(values: Mapping[str, str]) -> str:
    rows = "\n".join(
        f"  <property>\n    <name>{escape(key)}</name>\n    <value>{escape(value)}</value>\n  </property>"
        for key, value in values.items()
    )
    return f'<?xml version="1.0"?>\n<configuration>\n{rows}\n</configuration>\n'
