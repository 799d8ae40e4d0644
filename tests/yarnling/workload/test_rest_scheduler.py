"""A capacity-scheduler.xml from the answer to GET /ws/v1/cluster/scheduler."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rm.scheduler.config.configuration import CapacitySchedulerConfiguration
from yarn.faults import ConfigurationException
from yarn.resource import Resource
from yarnling.cluster.configuration import composed
from yarnling.whatif.run import run_what_if, what_if_configuration
from yarnling.workload.model import TaskGroup, Workload, WorkloadApplication, WorkloadNode
from yarnling.workload.reported_queues import (
    NOT_CONFIGURED,
    NOT_CONFIGURED_OF_PARTITIONS,
    ReportedPartition,
    ReportedQueue,
    fields_of_queues,
)
from yarnling.workload.rest_scheduler import LACKS, PREFIX, QueueSettings, as_xml, read_queues


def queue(name: str, *below: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A queue as the answer has it; `below` are its children."""
    listed = {"queues": {"queue": list(below)}} if below else {"userLimit": 100.0, "userLimitFactor": 1.0}
    return {"queueName": name, "capacity": 100.0, "maxCapacity": 100.0, "mode": "percentage", **listed, **more}


def parsed(*queues: dict[str, Any], **root: Any) -> QueueSettings:
    return read_queues(json.dumps({"scheduler": {"schedulerInfo": queue("root", *queues, **root)}}), "answer")


def read(*queues: dict[str, Any], **root: Any) -> dict[str, str]:
    return {key.removeprefix(PREFIX): value for key, value in parsed(*queues, **root).properties.items()}


def partitions(*each: dict[str, Any]) -> dict[str, Any]:
    return {"capacities": {"queueCapacitiesByPartition": list(each)}}


def test_queues_have_their_capacities() -> None:
    found = read(
        queue("a", capacity=60.000004, maxCapacity=80.0),
        queue("b", queue("c", capacity=12.5, mode="weight", weight=3.0), capacity=40.0),
    )
    assert found["root.queues"] == "a,b"
    assert (found["root.a.capacity"], found["root.a.maximum-capacity"]) == ("60", "80")
    assert found["root.b.queues"] == "c"
    assert found["root.b.c.capacity"] == "3w"


def test_absolute_capacities_and_labels() -> None:
    least, most = {"memory": 4096, "vCores": 4}, {"memory": 8192, "vCores": 8}
    whole = {"partitionName": "", "configuredMinResource": least, "configuredMaxResource": most}
    absolute = {"capacities": {"queueCapacitiesByPartition": [whole]}}
    label = {"capacities": {"queueCapacitiesByPartition": [{"partitionName": "gpu", "capacity": 30.0}]}}
    found = read(
        queue("a", isAbsoluteResource=True, mode="absolute", **absolute), queue("b", nodeLabels=["gpu"], **label)
    )
    assert found["root.a.capacity"] == "[memory=4096,vcores=4]"
    assert found["root.a.maximum-capacity"] == "[memory=8192,vcores=8]"
    assert found["root.b.accessible-node-labels"] == "gpu"
    assert found["root.b.accessible-node-labels.gpu.capacity"] == "30"


def test_limits_that_were_set_are_kept() -> None:
    found = read(
        queue("a", capacity=50.0, absoluteCapacity=50.0, maxApplications=5000, preemptionDisabled=True),
        queue("b", capacity=50.0, absoluteCapacity=50.0, maxApplications=7, preemptionDisabled=False)
        | {"state": "STOPPED", "userLimitFactor": 20.0, "configuredMaxAMResourceLimit": 0.5, "maxParallelApps": 3},
    )
    assert "root.a.maximum-applications" not in found
    assert found["root.b.maximum-applications"] == "7"
    assert (found["root.b.state"], found["root.b.user-limit-factor"]) == ("STOPPED", "20")
    assert (found["root.b.maximum-am-resource-percent"], found["root.b.max-parallel-apps"]) == ("0.5", "3")
    assert (found["root.a.disable_preemption"], found["root.b.disable_preemption"]) == ("true", "false")


@pytest.mark.parametrize(
    ("reported", "written"),
    [
        ("fair", "fair"),
        ("fifo-for-pending-apps", "fifo-for-pending-apps"),
        ("FairOrderingPolicy", "fair"),
        ("FairOrderingPolicy with sizeBasedWeight", "fair"),
        ("FifoOrderingPolicyForPendingApps", "fifo-for-pending-apps"),
        ("FifoOrderingPolicyWithExclusivePartitions", "fifo-with-partitions"),
        ("fifo", None),
        ("FifoOrderingPolicy", None),
        ("utilization", None),
    ],
)
def test_older_answers_have_the_classes_of_ordering_policies(
    tmp_path: Path, reported: str, written: str | None
) -> None:
    """Hadoop up to 3.2 reports OrderingPolicy.getInfo(), later ones getConfigName()."""
    queues = parsed(queue("a", orderingPolicyInfo=reported))
    assert queues.properties.get(f"{PREFIX}root.a.ordering-policy") == written
    assert queues.lacks == LACKS
    size_based = queues.properties.get(f"{PREFIX}root.a.ordering-policy.fair.enable-size-based-weight")
    assert size_based == ("true" if "sizeBasedWeight" in reported else None)
    (tmp_path / "capacity-scheduler.xml").write_text(as_xml(queues))
    conf = composed(tmp_path, {}, {})
    assert CapacitySchedulerConfiguration.read(conf).queues["root.a"].ordering_policy == (written or "fifo")


def test_the_policy_of_a_parent_orders_its_queues() -> None:
    found = read(queue("a"), orderingPolicyInfo="priority-utilization")
    assert found["root.ordering-policy"] == "priority-utilization"


def test_an_unknown_ordering_policy_is_left_out_and_listed(tmp_path: Path) -> None:
    below = queue("b", queue("c", orderingPolicyInfo="org.example.My---Policy"), orderingPolicyInfo="fair")
    queues = parsed(below)
    assert not [key for key in queues.properties if "ordering-policy" in key]
    assert queues.lacks[len(LACKS) :] == (
        "root.b has the ordering policy 'fair', which is not one of utilization, priority-utilization: it is left out, "
        "so the queue has the default.",
        "root.b.c has the ordering policy 'org.example.My---Policy', which is not one of fifo, fair, "
        "fifo-for-pending-apps, fifo-with-partitions: it is left out, so the queue has the default.",
    )
    (tmp_path / "capacity-scheduler.xml").write_text(as_xml(queues))
    assert composed(tmp_path, {}, {}).get("yarn.scheduler.capacity.root.queues") == "b"


def test_the_limit_of_ams_is_kept_for_each_partition() -> None:
    """PartitionQueueCapacitiesInfo.maxAMLimitPercentage, 0 for a parent: older answers have the limit only there."""
    default = {"partitionName": "", "maxAMLimitPercentage": 30.0}
    gpu = {"partitionName": "gpu", "capacity": 50.0, "maxAMLimitPercentage": 40.0}
    other = {"partitionName": "other", "capacity": 0.0, "maxAMLimitPercentage": 0.0}
    parent = partitions({"partitionName": "", "maxAMLimitPercentage": 0.0}, gpu | {"maxAMLimitPercentage": 0.0})
    found = read(queue("p", queue("a", **partitions(default, gpu, other)), **parent))
    assert {key: value for key, value in found.items() if "am-resource" in key} == {
        "root.p.a.maximum-am-resource-percent": "0.3",
        "root.p.a.accessible-node-labels.gpu.maximum-am-resource-percent": "0.4",
    }


def test_the_configured_limit_of_ams_comes_first() -> None:
    default = {"partitionName": "", "maxAMLimitPercentage": 10.0}
    found = read(queue("a", configuredMaxAMResourceLimit=0.2, **partitions(default)))
    assert found["root.a.maximum-am-resource-percent"] == "0.2"


def test_the_path_of_a_fault_is_that_of_jq() -> None:
    with pytest.raises(ConfigurationException) as refused:
        read(queue("a"), queue("b", capacity="much"))
    (fault,) = refused.value.faults
    assert (fault.key, fault.value) == ("scheduler.schedulerInfo.queues.queue[1].capacity", "much")


def test_a_cluster_without_preemption_has_not_disabled_it_for_queues() -> None:
    found = read(queue("a", preemptionDisabled=True))
    assert not [key for key in found if "preemption" in key]


def test_the_file_is_a_valid_configuration(tmp_path: Path) -> None:
    answer = {
        "scheduler": {"schedulerInfo": queue("root", queue("a<b", capacity=30.0), queue("default", capacity=70.0))}
    }
    (tmp_path / "capacity-scheduler.xml").write_text(as_xml(read_queues(json.dumps(answer), "answer")))
    conf = composed(tmp_path, {}, {})
    assert conf.get("yarn.scheduler.capacity.root.queues") == "a<b,default"
    assert conf.get("yarn.scheduler.capacity.root.default.capacity") == "70"


def test_another_answer_is_refused() -> None:
    with pytest.raises(ConfigurationException, match="has no schedulerInfo"):
        read_queues('{"scheduler": {}}', "answer")


# Each field of the answer

COMMON = (
    "capacity usedCapacity maxCapacity weight normalizedWeight queueCapacityVectorInfo queueName queuePath "
    "maxParallelApps isAbsoluteResource queues capacities maximumAllocation queueAcls queuePriority orderingPolicyInfo "
    "mode queueType creationMethod autoCreationEligibility defaultNodeLabelExpression autoQueueTemplateProperties "
    "autoQueueParentTemplateProperties autoQueueLeafTemplateProperties type"
)
FIELDS = {
    "CapacitySchedulerInfo": f"{COMMON} health schedulerName",
    "CapacitySchedulerQueueInfo": (
        f"{COMMON} absoluteCapacity absoluteMaxCapacity absoluteUsedCapacity numApplications state resourcesUsed "
        "hideReservationQueues nodeLabels allocatedContainers reservedContainers pendingContainers resources "
        "minEffectiveCapacity maxEffectiveCapacity autoCreateChildQueueEnabled leafQueueTemplate"
    ),
    "CapacitySchedulerLeafQueueInfo": (
        "numActiveApplications numPendingApplications numContainers maxApplications maxApplicationsPerUser userLimit "
        "users userLimitFactor configuredMaxAMResourceLimit AMResourceLimit usedAMResource userAMResourceLimit "
        "preemptionDisabled intraQueuePreemptionDisabled defaultPriority isAutoCreatedLeafQueue maxApplicationLifetime "
        "defaultApplicationLifetime orderingPolicyDisplayName"
    ),
}
"""The fields of Hadoop 3.4.1's classes in org.apache.hadoop.yarn.server.resourcemanager.webapp.dao."""
OF_PARTITIONS = (
    "partitionName queueCapacityVectorInfo capacity usedCapacity maxCapacity absoluteCapacity absoluteUsedCapacity "
    "absoluteMaxCapacity maxAMLimitPercentage weight normalizedWeight configuredMinResource configuredMaxResource "
    "effectiveMinResource effectiveMaxResource"
)


@pytest.mark.parametrize("name", FIELDS)
def test_every_field_of_an_answer_is_read_or_known_to_configure_nothing(name: str) -> None:
    assert not set(FIELDS[name].split()) - fields_of_queues()
    assert not set(NOT_CONFIGURED) & {field.alias or key for key, field in ReportedQueue.model_fields.items()}


def test_every_field_of_a_partition_is_read_or_known_to_configure_nothing() -> None:
    read_fields = {field.alias or key for key, field in ReportedPartition.model_fields.items()}
    assert set(OF_PARTITIONS.split()) == read_fields | set(NOT_CONFIGURED_OF_PARTITIONS)


def test_an_unknown_field_is_named() -> None:
    queues = parsed(queue("a", queue("b", newLimit=3)), otherThing={})
    assert queues.lacks[-1] == "The answer has fields that are not known, and left out: newLimit, otherThing."


def test_labels_access_priorities_and_sizes_are_carried_over(tmp_path: Path) -> None:
    acls = {"queueAcl": [{"accessType": "SUBMIT_APP", "accessControlList": "ann,bob ops"}]}
    closed = {"queueAcl": [{"accessType": "SUBMIT_APP", "accessControlList": " "}]}
    queues = parsed(
        queue(
            "a",
            capacity=50.0,
            nodeLabels=["gpu"],
            defaultNodeLabelExpression="gpu",
            queueAcls=acls,
            defaultPriority=4,
            maximumAllocation={"memory": 2048, "vCores": 2},
            intraQueuePreemptionDisabled=False,
            **partitions({"partitionName": "gpu", "capacity": 100.0}),
        ),
        queue("b", capacity=50.0, queueAcls=closed, maximumAllocation={"memory": 8192, "vCores": 4})
        | {"intraQueuePreemptionDisabled": True, "defaultNodeLabelExpression": ""},
        queueAcls=closed,
        maximumAllocation={"memory": 8192, "vCores": 4},
        nodeLabels=["*"],
        **partitions({"partitionName": "gpu", "capacity": 100.0}),
    )
    found = {key.removeprefix(f"{PREFIX}root."): value for key, value in queues.properties.items()}
    assert found["a.default-node-label-expression"] == "gpu"
    assert found["a.acl_submit_applications"] == "ann,bob ops"
    assert found["a.default-application-priority"] == "4"
    assert (found["a.maximum-allocation-mb"], found["a.maximum-allocation-vcores"]) == ("2048", "2")
    assert found["a.intra-queue-preemption.disable_preemption"] == "false"
    assert found["b.intra-queue-preemption.disable_preemption"] == "true"
    assert found["acl_submit_applications"] == " "
    absent = ("acl_submit_applications", "default-node-label-expression", "maximum-allocation-mb")
    assert not [name for name in absent if f"b.{name}" in found]
    (tmp_path / "capacity-scheduler.xml").write_text(as_xml(queues))
    conf = composed(tmp_path, {"yarn.node-labels.enabled": "true"}, {})
    assert CapacitySchedulerConfiguration.read(conf).queues["root.a"].default_label == "gpu"


def test_how_queues_are_created_is_carried_over_or_named() -> None:
    template = {"property": {"name": "capacity", "value": "2w"}}
    queues = parsed(
        queue("a", autoCreationEligibility="flexible", autoQueueLeafTemplateProperties=template),
        queue("b", autoCreateChildQueueEnabled=True),
        queue(
            "c", mode="mixed", queueCapacityVectorInfo={"configuredCapacityVector": "[memory-mb=1024.0,vcores=5.0%]"}
        ),
    )
    found = {key.removeprefix(f"{PREFIX}root."): value for key, value in queues.properties.items()}
    assert found["a.auto-queue-creation-v2.enabled"] == "true"
    assert found["a.auto-queue-creation-v2.leaf-template.capacity"] == "2w"
    managed, mixed = queues.lacks[len(LACKS) :]
    assert managed.startswith("root.b creates its queues automatically (autoCreateChildQueueEnabled)")
    assert mixed.startswith("root.c has the capacities [memory-mb=1024.0,vcores=5.0%]")


def test_absolute_maxima_of_labels_and_other_types_are_amounts() -> None:
    gpus = {"resourceInformation": [{"name": "memory-mb", "value": 1024}, {"name": "yarn.io/gpu", "value": 2}]}
    amounts = {"memory": 1024, "vCores": 1, "resourceInformations": gpus}
    gpu = {"partitionName": "gpu", "capacity": 10.0, "configuredMinResource": amounts, "configuredMaxResource": amounts}
    found = read(queue("a", isAbsoluteResource=True, mode="absolute", nodeLabels=["gpu"], **partitions(gpu)))
    assert found["root.a.accessible-node-labels.gpu.maximum-capacity"] == "[memory=1024,vcores=1,yarn.io/gpu=2]"


def test_work_of_a_queue_with_a_default_label_runs_on_its_partition() -> None:
    """The work ran on the default partition when the answer's defaultNodeLabelExpression was dropped."""
    label = {"nodeLabels": ["ded"], "defaultNodeLabelExpression": "ded"}
    whole = {"partitionName": "ded", "capacity": 100.0}
    queues = parsed(
        queue("default", capacity=100.0),
        queue("d", capacity=0.0, **label, **partitions({"partitionName": "", "capacity": 0.0}, whole)),
        nodeLabels=["*"],
        **partitions(whole),
    )
    conf = what_if_configuration(None, {**queues.properties, "yarn.node-labels.enabled": "true"}).conf
    nodes = [WorkloadNode("plain", Resource(16384, 16)), WorkloadNode("ded", Resource(16384, 16), label="ded")]
    work = WorkloadApplication("train", 0, "ann", "root.d", (TaskGroup(Resource(4096, 1), (60_000,) * 3),))
    result = run_what_if(conf, Workload((work,)), nodes)
    assert {each.host for each in result.containers} == {"ded"}


@pytest.mark.parametrize(("kind", "remedy"), [("fair", "yarn fs2cs"), ("fifo", "one queue")])
def test_an_answer_of_another_scheduler_says_what_to_do(kind: str, remedy: str) -> None:
    answer = {"scheduler": {"schedulerInfo": {"type": f"{kind}Scheduler", "rootQueue": {"queueName": "root"}}}}
    with pytest.raises(ConfigurationException, match="runs the F") as refused:
        read_queues(json.dumps(answer), "answer")
    assert remedy in refused.value.faults[0].remedy


def test_percentages_that_are_not_finite_do_not_matter_where_they_are_not_read() -> None:
    text = json.dumps({"scheduler": {"schedulerInfo": queue("root", queue("a", usedCapacity=float("nan")))}})
    assert read_queues(text, "answer").properties[f"{PREFIX}root.queues"] == "a"
    with pytest.raises(ConfigurationException, match="maxCapacity"):
        parsed(queue("a", maxCapacity=float("inf")))
