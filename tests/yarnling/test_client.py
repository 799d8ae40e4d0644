"""Clients: the names of queues that they list, and the ids that they accept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.rm.served_cluster import configuration, serving
from yarn.applications import ApplicationFilter, ApplicationSubmissionContext
from yarn.errors import InvalidIdException
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, as_id
from yarn.queues import QueueInfo, QueueStatistics
from yarn.settings.resourcemanager import FORCE_LOWER_CASE_TAGS
from yarn.states import QueueState, SignalContainerCommand
from yarnling.cluster.client import Client, leaf_queue_names


def queue(path: str, *children: QueueInfo) -> QueueInfo:
    name = path.rpartition(".")[2]
    return QueueInfo(name, path, QueueState.RUNNING, 1.0, 1.0, 0.0, 1.0, 1.0, 0.0, QueueStatistics(), children)


def test_listed_queue_names_can_be_submitted_to() -> None:
    """`support.training` is not a queue name: a path begins with root, and a short name must be unique."""
    support = queue("root.support", queue("root.support.training"), queue("root.support.dev"))
    sales = queue("root.sales", queue("root.sales.dev"))
    root = queue("root", support, sales, queue("root.default"))
    assert leaf_queue_names(root) == ["training", "root.support.dev", "root.sales.dev", "default"]


METHODS = ["report", "wait", "kill", "move", "update_priority", "update_lifetime", "explain", "attempts", "logs"]
METHODS += ["explain_container", "attempt", "fail_attempt", "containers", "container", "signal_container"]
FURTHER: dict[str, tuple[Any, ...]] = {
    "move": ("q",),
    "update_priority": (1,),
    "update_lifetime": ("UNLIMITED",),
    "signal_container": (SignalContainerCommand.OUTPUT_THREAD_DUMP,),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("wrong", ["x", "application_1", "", 7, None, (1, 1)])
async def test_invalid_ids_are_refused_before_a_call(method: str, wrong: Any) -> None:
    client = Client({"yarn.resourcemanager.address": "127.0.0.1:9"})

    async def call() -> None:
        await getattr(client, method)(wrong, *FURTHER.get(method, ()))

    with pytest.raises(InvalidIdException, match=r"Invalid (Application|ApplicationAttempt|Container)Id: "):
        await call()
    await client.close()


def test_an_id_may_be_text() -> None:
    app_id = ApplicationId(1, 1)
    assert as_id(ApplicationId, "application_1_1") == as_id(ApplicationId, app_id) == app_id
    container_id = ContainerId(ApplicationAttemptId(app_id, 1), 2)
    assert as_id(ContainerId, str(container_id)) == container_id
    with pytest.raises(InvalidIdException):
        as_id(ContainerId, app_id)  # type: ignore[type-var]


@pytest.mark.parametrize(
    ("conf", "sent"), [({}, {"red", "blue"}), ({FORCE_LOWER_CASE_TAGS.key: "false"}, {"Red", "blue"})]
)
async def test_tags_are_sent_in_lower_case_unless_configured(
    tmp_path: Path, conf: dict[str, str], sent: set[str]
) -> None:
    """ApplicationSubmissionContextPBImpl.setApplicationTags and GetApplicationsRequestPBImpl.setApplicationTags."""
    async with serving(configuration(tmp_path)) as cluster:
        own = configuration(tmp_path).overridden(conf)
        async with Client(cluster.addresses, conf=own) as client:
            app_id = (await client.new_application()).application_id
            context = ApplicationSubmissionContext(app_id, unmanaged_am=True, tags=frozenset({"Red", "blue"}))
            assert (await client.submit(context)).tags == sent
            for tag, found in (("Red", True), ("BLUE", not conf)):
                reports = await client.applications(ApplicationFilter(tags=frozenset({tag})))
                assert [report.application_id for report in reports] == ([app_id] if found else []), tag
