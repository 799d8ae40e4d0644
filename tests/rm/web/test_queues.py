"""The tree of queues in REST answers: notations of capacities, created queues, templates, access lists."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rm.shell.web.queues import scheduler_document
from tests.rm.builders import RM
from wire.web.document import Document, json_text

PREFIX = "yarn.scheduler.capacity."


def tree(rm: RM) -> dict[str, Any]:
    """The scheduler's answer."""
    steps = scheduler_document(rm.core.context)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            document: Document = end.value
            return dict(json.loads(json_text(document))["scheduler"]["schedulerInfo"])


def cluster(settings: dict[str, str]) -> RM:
    rm = RM({PREFIX + key: value for key, value in settings.items()})
    rm.node("n1", 16384, 16)
    return rm


def queue(info: dict[str, Any], name: str) -> dict[str, Any]:
    """The queue of that short name, anywhere in the tree."""
    for child in info.get("queues", {}).get("queue", []):
        if child["queueName"] == name:
            return dict(child)
        if "queues" in child and (found := queue(child, name)):
            return found
    return {}


@pytest.mark.parametrize(
    ("a", "b", "legacy", "mode", "vector"),
    [
        ("12.5", "87.5", "true", "percentage", "[memory-mb=12.5%,vcores=12.5%]"),
        ("4w", "12w", "true", "weight", "[memory-mb=4.0w,vcores=4.0w]"),
        ("[memory=4096,vcores=4]", "[memory=1024,vcores=1]", "true", "absolute", "[memory-mb=4096.0,vcores=4.0]"),
        ("[memory=50%,vcores=2w]", "[memory=50%,vcores=6w]", "false", "mixed", "[memory-mb=50.0%,vcores=2.0w]"),
    ],
)
def test_a_queue_shows_how_its_capacity_is_written(a: str, b: str, legacy: str, mode: str, vector: str) -> None:
    settings = {"root.queues": "a,b", "root.a.capacity": a, "root.b.capacity": b, "legacy-queue-mode.enabled": legacy}
    found = queue(tree(cluster(settings)), "a")
    assert (found["mode"], found["isAbsoluteResource"]) == (mode, mode == "absolute")
    (partition,) = found["capacities"]["queueCapacitiesByPartition"]
    assert partition["queueCapacityVectorInfo"]["configuredCapacityVector"] == vector


def test_created_queues_and_the_templates_they_are_made_from_are_shown() -> None:
    rm = cluster(
        {
            "root.queues": "default,users,old",
            "root.default.capacity": "1w",
            "root.users.capacity": "1w",
            "root.users.auto-queue-creation-v2.enabled": "true",
            "root.users.auto-queue-creation-v2.template.capacity": "3w",
            "root.users.auto-queue-creation-v2.leaf-template.priority": "2",
            "root.old.capacity": "1w",
        }
    )
    rm.submit("ann", "root.users.ann")
    info = tree(rm)
    users, ann = queue(info, "users"), queue(info, "ann")
    assert (users["autoCreationEligibility"], users["creationMethod"]) == ("flexible", "static")
    assert users["autoQueueTemplateProperties"] == {"property": [{"name": "capacity", "value": "3w"}]}
    assert users["autoQueueLeafTemplateProperties"] == {"property": [{"name": "priority", "value": "2"}]}
    assert users["autoQueueParentTemplateProperties"] == {}
    assert (ann["creationMethod"], ann["queueType"], ann["queuePriority"]) == ("dynamicFlexible", "leaf", 2)


def test_the_older_kind_of_template_is_shown_with_its_prefix() -> None:
    settings = {
        "root.queues": "default,users",
        "root.default.capacity": "50",
        "root.users.capacity": "50",
        "root.users.auto-create-child-queue.enabled": "true",
        "root.users.leaf-queue-template.capacity": "25",
    }
    users = queue(tree(cluster(settings)), "users")
    assert (users["autoCreationEligibility"], users["autoCreateChildQueueEnabled"]) == ("legacy", True)
    assert users["leafQueueTemplate"] == {"property": [{"name": "leaf-queue-template.capacity", "value": "25"}]}


def test_access_lists_are_written_as_hadoop_writes_them() -> None:
    settings = {
        "root.queues": "a,b",
        "root.a.capacity": "50",
        "root.b.capacity": "50",
        "root.a.acl_submit_applications": "bob,ann staff",
        "root.a.acl_administer_queue": "*",
    }
    info = tree(cluster(settings))
    lists = {acl["accessType"]: acl["accessControlList"] for acl in queue(info, "a")["queueAcls"]["queueAcl"]}
    assert lists["ADMINISTER_QUEUE"] == lists["APPLICATION_MAX_PRIORITY"] == "*"
    users, _, groups = lists["SUBMIT_APP"].partition(" ")
    assert (sorted(users.split(",")), groups) == (["ann", "bob"], "staff")
    assert queue(info, "b")["queueAcls"]["queueAcl"][2]["accessControlList"] == " "


def test_am_limits_of_a_queue_and_its_user_are_those_of_the_last_activation() -> None:
    rm = cluster({"root.queues": "a", "root.a.capacity": "100", "maximum-am-resource-percent": "0.5"})
    rm.submit("ann", "a")
    found = queue(tree(rm), "a")
    (user,) = found["users"]["user"]
    assert found["AMResourceLimit"]["memory"] == 8192
    assert found["userAMResourceLimit"]["memory"] == 8192
    assert user["resources"]["resourceUsagesByPartition"][0]["amLimit"]["memory"] == 8192
    assert found["resources"]["resourceUsagesByPartition"][0]["userAmLimit"]["memory"] == 8192
