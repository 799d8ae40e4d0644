"""A capacity-scheduler.xml from the answer to GET /ws/v1/cluster/scheduler."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from yarn.faults import ConfigurationException
from yarnling.cluster.configuration import composed
from yarnling.workload.rest_scheduler import PREFIX, as_xml, read_queues


def queue(name: str, *below: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A queue as the answer has it; `below` are its children."""
    listed = {"queues": {"queue": list(below)}} if below else {"userLimit": 100.0, "userLimitFactor": 1.0}
    return {"queueName": name, "capacity": 100.0, "maxCapacity": 100.0, "mode": "percentage", **listed, **more}


def read(*queues: dict[str, Any]) -> dict[str, str]:
    properties = read_queues(json.dumps({"scheduler": {"schedulerInfo": queue("root", *queues)}}), "answer")
    return {key.removeprefix(PREFIX): value for key, value in properties.items()}


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
