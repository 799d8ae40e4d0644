"""Why nothing is placed, in the shape of Hadoop's scheduler activities."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.rm.web import scene
from tests.rm.web.test_golden import served
from tests.wire.web.asgi import ask
from wire.web.application import WebApplication

BASE = "/ws/v1/cluster/scheduler"
FULL = "Node does not have sufficient resource for request, insufficient resources=[vcores]"


@pytest.fixture(scope="module")
def played() -> scene.Scene:
    return scene.play()


@pytest.fixture(scope="module")
def application(played: scene.Scene) -> WebApplication:
    return served(played.rm.core, lambda: played.rm.now_ms)


async def get(application: WebApplication, path: str) -> Any:
    reply = await ask(application, BASE + path)
    assert reply.status == 200
    return reply.json


async def test_the_tree_of_a_visit_ends_at_the_node_that_was_too_small(
    application: WebApplication, played: scene.Scene
) -> None:
    node = "localhost:45454"
    visit = (await get(application, f"/activities?nodeId={node}"))["activities"]
    assert list(visit) == ["nodeId", "timestamp", "dateTime", "allocations"]
    (allocation,) = visit["allocations"]
    assert allocation["finalAllocationState"] == "SKIPPED"
    queues = {queue["name"]: queue for queue in allocation["root"]["children"]}
    satisfied = "Queue does not need more resource"
    assert queues["root.few"] == {"name": "root.few", "allocationState": "SKIPPED", "diagnostic": satisfied}
    leaf = next(queue for queue in queues["root.dev"]["children"] if queue["name"] == "root.dev.b")
    (app,) = leaf["children"]
    assert app["name"] == str(played.running)
    assert app["children"] == [
        {
            "name": "request_5_0",
            "requestPriority": 5,
            "allocationRequestId": 0,
            "allocationState": "SKIPPED",
            "children": [
                {
                    "allocationState": "SKIPPED",
                    "diagnostic": f"{FULL}\nrequired=<memory:1024, vCores:4>, available=<memory:1664, vCores:2>",
                    "nodeId": node,
                }
            ],
        }
    ]


async def test_an_applications_activities_are_listed_node_by_node(
    application: WebApplication, played: scene.Scene
) -> None:
    path = f"/app-activities/{played.running}?groupBy=diagnostic"
    listed = (await get(application, path))["appActivities"]
    assert list(listed) == ["applicationId", "allocations"]
    first = listed["allocations"][0]
    fields = ["nodeId", "timestamp", "dateTime", "queueName", "appPriority", "allocationState", "children"]
    assert list(first) == fields
    (request,) = first["children"]
    assert request["children"][0]["diagnostic"] == FULL
    assert request["children"][0]["nodeIds"] == [first["nodeId"]]
    assert len((await get(application, f"{path}&limit=1"))["appActivities"]["allocations"]) == 1


@pytest.mark.parametrize(
    ("path", "diagnostic"),
    [
        ("/activities?nodeId=nosuch:1", "Cannot find node manager with given node id"),
        ("/app-activities/application_1_0001", "fail to get application activities after finished"),
        ("/app-activities/nosuch", "Cannot find application with given appId"),
        ("/app-activities/application_1_0001?limit=0", "limit must be greater than 0!"),
        ("/app-activities/application_1_0001?limit=x", "limit must be integer!"),
        ("/app-activities/application_1_0001?requestPriorities=x", "request priorities must be integers!"),
        ("/app-activities/application_1_0001?allocationRequestIds=x", "allocation request Ids must be integers!"),
        ("/app-activities/application_1_0001?actions=a", "Got invalid action: a, valid actions: [REFRESH, GET]"),
        ("/app-activities/application_1_0001?actions=refresh", "Successfully received action: refresh"),
    ],
)
async def test_what_is_wrong_is_a_diagnostic_not_an_error(
    application: WebApplication, path: str, diagnostic: str
) -> None:
    (answer,) = (await get(application, path)).values()
    assert answer["diagnostic"] == diagnostic


async def test_bulk_activities_have_one_entry_for_a_node(application: WebApplication) -> None:
    bulk = (await get(application, "/bulk-activities?activitiesCount=1"))["bulkActivities"]
    assert len(bulk["activities"]) == 1
    assert json.dumps(bulk).count("finalAllocationState") == 1
