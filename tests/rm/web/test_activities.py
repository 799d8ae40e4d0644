"""Why nothing is placed, in the shape of Hadoop's scheduler activities."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rm.shell.web.placements import KEPT_MS
from tests.rm.builders import done, resource_request
from tests.rm.test_verdicts import TWO_QUEUES, running, start
from tests.rm.test_verdicts_of_nodes import reserved
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


def descend(node: Any) -> Iterator[Any]:
    """An element and those below it, each the only child."""
    while True:
        children = node.get("children", [])
        yield {key: value for key, value in node.items() if key != "children"}
        if not children:
            return
        (node,) = children


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
    allocation = visit["allocations"][-1]
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


async def test_a_reserved_node_says_that_its_reservation_waits(
    application: WebApplication, played: scene.Scene
) -> None:
    """As recorded from Hadoop: the visit goes to the leaf at once."""
    (allocation,) = (await get(application, f"/activities?nodeId={scene.NODE_2}"))["activities"]["allocations"]
    (reserved,) = played.rm.core.scheduler.attempt_of(played.running).reserved_containers  # type: ignore[union-attr]
    node = {
        "allocationState": "RE_RESERVED",
        "diagnostic": f"{FULL}\nrequired=<memory:1024, vCores:4>, available=<memory:1792, vCores:3>",
        "nodeId": f"{scene.NODE_2}:45454",
    }
    request = {
        "name": "request_5_0",
        "requestPriority": 5,
        "allocationRequestId": 0,
        "allocationState": "RE_RESERVED",
        "children": [node],
    }
    app = {"name": str(played.running), "appPriority": 0, "allocationState": "RE_RESERVED", "children": [request]}
    assert allocation == {
        "partition": "",
        "updatedContainerId": str(reserved.id),
        "finalAllocationState": "RESERVED",
        "root": {"name": "root.dev.b", "allocationState": "RE_RESERVED", "children": [app]},
    }


async def test_a_visit_that_placed_containers_names_them_and_the_queues_they_came_through() -> None:
    rm = start(TWO_QUEUES)
    app = running(rm, "a")
    rm.wait(1000)
    first, second = rm.get(app, 2)
    visit = (await get(served(rm.core, lambda: rm.now_ms), "/activities"))["activities"]
    assert (visit["nodeId"], visit["timestamp"]) == ("n1:45454", rm.now_ms)
    allocations = visit["allocations"]
    ids = [(one.get("updatedContainerId"), one["finalAllocationState"]) for one in allocations]
    assert ids == [(str(first.id), "ALLOCATED"), (str(second.id), "ALLOCATED"), (None, "SKIPPED")]
    path = list(descend(allocations[0]["root"]))
    assert [(one["name"], one["allocationState"]) for one in path[:4]] == [
        ("root", "ACCEPTED"),
        ("root.a", "ACCEPTED"),
        (str(app), "ALLOCATED"),
        ("request_1_-1", "ALLOCATED"),
    ]
    assert path[4] == {
        "name": f"Container: [ContainerId: {first.id}, AllocationRequestId: -1, Version: 0, NodeId: n1:45454, "
        "NodeHttpAddress: n1:8042, Resource: <memory:1024, vCores:1>, Priority: 1, Token: null, "
        "ExecutionType: GUARANTEED, ]",
        "allocationState": "ALLOCATED",
        "nodeId": "n1:45454",
    }
    rm.beat("n1", [done(first.id)])
    again = (await get(served(rm.core, lambda: rm.now_ms), "/activities"))["activities"]
    placed = {one.get("updatedContainerId") for one in again["allocations"]}
    assert placed >= {str(first.id), str(second.id)}, "one that has ended since was placed, too"


async def test_a_later_visit_that_placed_nothing_is_the_last_one() -> None:
    rm = start()
    app = running(rm)
    rm.get(app, 2)
    rm.wait(1000)
    rm.allocate(app, asks=[resource_request(1, 8192)])
    rm.beat("n1")
    visit = (await get(served(rm.core, lambda: rm.now_ms), "/activities"))["activities"]
    assert visit["timestamp"] == rm.now_ms
    assert [one["finalAllocationState"] for one in visit["allocations"]] in (["SKIPPED"], ["RESERVED"])


async def test_a_filled_reservation_is_told_from_other_placements() -> None:
    rm, app, _ = reserved()
    rm.wait(1000)
    rm.beat("n1", [done(container_id) for container_id in list(rm.nodes["n1"].running)[:3]])
    rm.beat("n1")
    found = (await get(served(rm.core, lambda: rm.now_ms), "/activities?nodeId=n1"))["activities"]["allocations"]
    (filled,) = [one for one in found if one["finalAllocationState"] == "ALLOCATED_FROM_RESERVED"]
    names = [(one["name"], one["allocationState"]) for one in descend(filled["root"])]
    assert names[:2] == [("root.default", "ACCEPTED"), (str(app), "ALLOCATED")]


async def test_an_application_lists_what_it_was_given_for_ten_minutes() -> None:
    rm = start(None, 8192, 8192)
    app = running(rm)
    rm.wait(1000)
    rm.get(app, 1)
    rm.wait(1000)
    (second,) = rm.get(app, 1, "n2")
    rm.beat("n2", [done(second.id)])

    async def listed(query: str = "") -> Any:
        path = f"/app-activities/{app}{query}"
        found = (await get(served(rm.core, lambda: rm.now_ms), path))["appActivities"]
        return [one for one in found.get("allocations", ()) if one["allocationState"] == "ALLOCATED"]

    newest, older, am = await listed()
    assert newest["children"] == [
        {
            "requestPriority": 1,
            "allocationRequestId": -1,
            "allocationState": "ALLOCATED",
            "children": [{"name": str(second.id), "allocationState": "ALLOCATED", "nodeId": "n2:45454"}],
        }
    ]
    assert (newest["nodeId"], older["nodeId"], older["queueName"]) == ("n2:45454", "n1:45454", "default")
    assert newest["timestamp"] - older["timestamp"] == 1000
    (of_am,) = await listed("?requestPriorities=0&groupBy=diagnostic")
    assert of_am["children"][0]["children"] == [{"allocationState": "ALLOCATED", "count": 1, "nodeIds": [am["nodeId"]]}]
    assert len(await listed("?requestPriorities=1&limit=2")) == 2
    rm.now_ms += KEPT_MS
    assert [one["nodeId"] for one in await listed()] == ["n2:45454"]
    rm.now_ms += 1
    assert await listed() == []


async def test_an_applications_activities_are_listed_node_by_node(
    application: WebApplication, played: scene.Scene
) -> None:
    path = f"/app-activities/{played.running}?groupBy=diagnostic"
    listed = (await get(application, path))["appActivities"]
    assert list(listed) == ["applicationId", "allocations"]
    first = listed["allocations"][0]
    fields = ["nodeId", "timestamp", "dateTime", "queueName", "appPriority", "allocationState", "children"]
    assert list(first) == fields
    refused = {one["nodeId"]: one for one in listed["allocations"] if one["allocationState"] == "SKIPPED"}
    states = {node: one["children"][0]["allocationState"] for node, one in refused.items()}
    assert states == {"localhost:45454": "SKIPPED", "127.0.0.9:45454": "RE_RESERVED"}, "a reservation is not filled yet"
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
    assert [one["nodeId"] for one in bulk["activities"]] == ["localhost:45454"]
