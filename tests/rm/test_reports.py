"""Reports for clients: lists, usage, containers, queues, and why an application waits."""

from __future__ import annotations

import pytest

from rm.core.reports.applications import (
    application_report,
    applications,
    attempt_reports,
    container_report,
    container_reports,
)
from rm.core.reports.queues import queue_info
from tests.rm.builders import RM, done, resource_request
from yarn.applications import ApplicationFilter
from yarn.errors import ApplicationAttemptNotFoundException, ApplicationNotFoundException, ContainerNotFoundException
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId
from yarn.protocols.client import QueueInfoRequest
from yarn.states import ContainerState, QueueState, YarnApplicationAttemptState, YarnApplicationState

TREE = {
    "yarn.scheduler.capacity.root.queues": "dev,ops",
    "yarn.scheduler.capacity.root.dev.capacity": "75",
    "yarn.scheduler.capacity.root.ops.capacity": "25",
    "yarn.scheduler.capacity.root.dev.queues": "web,db",
    "yarn.scheduler.capacity.root.dev.web.capacity": "40",
    "yarn.scheduler.capacity.root.dev.db.capacity": "60",
}


@pytest.fixture
def rm() -> RM:
    rm = RM(TREE)
    rm.node("n1")
    return rm


def ids(rm: RM, **wanted: object) -> list[int]:
    return [report.application_id.id for report in applications(rm.core.context, ApplicationFilter(**wanted))]  # type: ignore[arg-type]


class CountedText(str):
    """Counts how often it is lowered."""

    lowered = 0

    def lower(self) -> str:
        CountedText.lowered += 1
        return super().lower()


# Applications


def test_a_filter_is_prepared_once_and_not_for_each_application(rm: RM) -> None:
    """A client may send a thousand types, against ten thousand applications."""
    for _ in range(5):
        rm.submit(queue="web", type="SPARK")
    CountedText.lowered = 0
    assert len(ids(rm, types=frozenset({CountedText("Spark")}))) == 5
    assert CountedText.lowered == 1


def test_label_expressions_are_reported_in_hadoops_form(rm: RM) -> None:
    """RMAppImpl.getAppNodeLabelExpression and getAmNodeLabelExpression."""
    managed = application_report(rm.core.context, rm.submit(queue="web"))
    assert (managed.label_expression, managed.am_label_expression) == ("<Not set>", "<DEFAULT_PARTITION>")
    unmanaged = application_report(rm.core.context, rm.submit(queue="web", unmanaged_am=True))
    assert (unmanaged.label_expression, unmanaged.am_label_expression) == ("<Not set>", None)
    blank = application_report(rm.core.context, rm.submit(queue="web", node_label_expression=""))
    assert blank.label_expression == "<DEFAULT_PARTITION>"


def test_an_application_without_an_attempt_has_a_report(rm: RM) -> None:
    app = rm.submit(queue="nosuch")
    report = application_report(rm.core.context, app)
    assert report.current_attempt_id == ApplicationAttemptId(app, -1)
    assert (report.host, report.rpc_port, report.progress) == ("N/A", -1, 0.0)


def test_a_report_names_the_queue_by_its_full_path(rm: RM) -> None:
    assert application_report(rm.core.context, rm.submit(queue="web")).queue == "root.dev.web"


def test_an_ending_application_is_reported_in_its_previous_state(rm: RM) -> None:
    """KILLING and FINAL_SAVING are reported as the state before."""
    app = rm.submit(queue="web")
    rm.run_am(app)
    rm.finish(app)
    assert rm.state(app) == "FINISHING"
    assert application_report(rm.core.context, app).state is YarnApplicationState.FINISHED


def test_filters_are_combined_with_and_their_values_with_or(rm: RM) -> None:
    rm.submit("ann", "web", type="SPARK", tags=frozenset(["Night", "big"]))
    rm.submit("bob", "db")
    rm.kill(rm.submit("ann", "ops"))
    assert ids(rm) == [1, 2, 3]
    assert ids(rm, users=frozenset(["ann"])) == [1, 3]
    assert ids(rm, users=frozenset(["ann"]), states=frozenset([YarnApplicationState.KILLED])) == [3]
    assert ids(rm, queues=frozenset(["web", "root.dev.db"])) == [1, 2]
    assert ids(rm, types=frozenset(["spark"])) == [1]
    assert ids(rm, tags=frozenset(["Night", "other"])) == [1]
    assert ids(rm, tags=frozenset(["night"])) == [], "ClientRMService.getApplications compares them as they are"
    assert ids(rm, limit=2) == [1, 2]
    assert ids(rm, limit=0) == []


def test_unknown_ids_are_refused(rm: RM) -> None:
    with pytest.raises(ApplicationNotFoundException):
        application_report(rm.core.context, ApplicationId(1, 1))
    app = rm.submit(queue="web")
    with pytest.raises(ApplicationAttemptNotFoundException):
        container_reports(rm.core.context, ApplicationAttemptId(app, 5))
    with pytest.raises(ContainerNotFoundException):
        container_report(rm.core.context, ContainerId(ApplicationAttemptId(app, 1), 1))
    with pytest.raises(ApplicationAttemptNotFoundException):
        container_report(rm.core.context, ContainerId(ApplicationAttemptId(app, 2), 1))
    with pytest.raises(ApplicationNotFoundException):
        container_report(rm.core.context, ContainerId.parse("container_1_0001_01_000001"))


def test_attempts_are_reported_with_their_containers(rm: RM) -> None:
    app = rm.submit(queue="web")
    first = rm.run_am(app)
    task = rm.get(app, 1)[0]
    live = container_reports(rm.core.context, rm.attempt_id(app))
    assert [(c.container_id, c.state) for c in live] == [
        (first.id, ContainerState.RUNNING),
        (task.id, ContainerState.RUNNING),
    ]
    assert container_report(rm.core.context, task.id).node_http_address == "http://n1:8042"
    rm.beat(ended=[done(first.id, 1)])
    states = [report.state for report in attempt_reports(rm.core.context, app)]
    assert states == [YarnApplicationAttemptState.FAILED, YarnApplicationAttemptState.SCHEDULED]
    assert container_reports(rm.core.context, ApplicationAttemptId(app, 1)) == ()


def test_a_container_is_reported_running_from_its_allocation_on(rm: RM) -> None:
    """RMContainerImpl.getContainerState has no state between allocation and end."""
    app = rm.submit(queue="web")
    rm.run_am(app)
    rm.allocate(app, [resource_request(1)])
    rm.beat()
    (acquired,) = rm.allocate(app).allocated
    assert container_report(rm.core.context, acquired.id).state is ContainerState.RUNNING


# Waiting applications


@pytest.mark.case("C2")
def test_the_diagnostics_of_a_pending_application_name_the_am_limit() -> None:
    """C2: with the reason, the limit and what AMs use now; the first application is always activated."""
    rm = RM({"yarn.scheduler.capacity.maximum-am-resource-percent": "0.1"})
    rm.node("n1")
    first, second = rm.submit(), rm.submit()
    rm.run_am(first)
    assert (rm.state(second), rm.attempt_state(second)) == ("ACCEPTED", "SCHEDULED")
    text = application_report(rm.core.context, second).diagnostics
    assert text.startswith(
        "[Tue Nov 14 22:13:20 +0000 2023] Application is added to the scheduler and is not yet activated. "
    )
    assert "Queue's AM resource limit exceeded.  Details : AM Partition = <DEFAULT_PARTITION>; " in text
    assert (
        "AM Resource Request = <memory:1024, vCores:1>; Queue Resource Limit for AM = <memory:1024, vCores:1>; " in text
    )
    assert text.endswith("Queue AM Resource Usage = <memory:1024, vCores:1>; ")
    rm.kill(first)
    assert "Application is Activated, waiting for resources" in application_report(rm.core.context, second).diagnostics


def test_an_application_held_back_by_max_parallel_apps_has_no_diagnostics() -> None:
    """LeafQueue.addApplicationAttempt returns before it stores a diagnostic; `explain` has the reason."""
    rm = RM({"yarn.scheduler.capacity.max-parallel-apps": "1"})
    rm.node("n1")
    rm.submit()
    second = rm.submit()
    assert (rm.state(second), rm.attempt_state(second)) == ("ACCEPTED", "SCHEDULED")
    assert application_report(rm.core.context, second).diagnostics == ""


def test_without_any_node_an_application_waits_for_the_cluster() -> None:
    rm = RM()
    assert (
        "Skipping AM assignment as cluster resource is empty."
        in application_report(rm.core.context, rm.submit()).diagnostics
    )


def test_the_diagnostics_of_an_activated_application_show_the_use_of_its_queue(rm: RM) -> None:
    """As on a real cluster: the report of an application that waits."""
    app = rm.submit(queue="ops")
    assert application_report(rm.core.context, app).diagnostics == (
        "[Tue Nov 14 22:13:20 +0000 2023] Application is Activated, waiting for resources to be assigned for AM. "
        " Details : AM Partition = <DEFAULT_PARTITION> ; Partition Resource = <memory:8192, vCores:8> ; "
        "Queue's Absolute capacity = 25.0 % ; Queue's Absolute used capacity = 0.0 % ; "
        "Queue's Absolute max capacity = 100.0 % ; Queue's capacity (absolute resource) = <memory:2048, vCores:2> ; "
        "Queue's used capacity (absolute resource) = <memory:0, vCores:0> ; "
        "Queue's max capacity (absolute resource) = <memory:8192, vCores:8> ; "
    )


def test_an_allocated_am_waits_for_its_launch(rm: RM) -> None:
    app = rm.submit(queue="ops")
    rm.beat()
    assert application_report(rm.core.context, app).diagnostics.endswith(
        "] Scheduler has assigned a container for AM, waiting for AM container to be launched"
    )


# Queues


def test_a_queue_is_reported_with_its_children(rm: RM) -> None:
    app = rm.submit(queue="web")
    rm.run_am(app)
    rm.allocate(app, [resource_request(9)])
    rm.beat()
    info = queue_info(rm.core.context, QueueInfoRequest("root", applications=True, recursive=True))
    assert info is not None
    dev, ops = info.children
    web, db = dev.children
    assert [child.path for child in (dev, ops, web, db)] == ["root.dev", "root.ops", "root.dev.web", "root.dev.db"]
    assert (web.name, web.state, round(web.absolute_capacity, 6)) == ("web", QueueState.RUNNING, 0.3)
    assert [report.application_id for report in info.applications] == [app]
    assert web.applications == ()
    for queue in (info, dev, web):
        held = queue.statistics
        assert (held.apps_running, held.apps_pending) == (1, 0)
        assert held.allocated_memory_mb == held.allocated_containers * 1024
        assert held.pending_containers == 10 - held.allocated_containers
    assert ops.statistics.available_memory_mb == 2048


def test_a_non_recursive_queue_report_has_only_direct_children(rm: RM) -> None:
    info = queue_info(rm.core.context, QueueInfoRequest("root", children=True))
    assert info is not None
    assert [child.children for child in info.children] == [(), ()]
    alone = queue_info(rm.core.context, QueueInfoRequest("web"))
    assert alone is not None
    assert (alone.path, alone.children) == ("root.dev.web", ())


def test_an_unknown_queue_has_no_report(rm: RM) -> None:
    assert queue_info(rm.core.context, QueueInfoRequest("nosuch")) is None


def test_reports_change_nothing(rm: RM) -> None:
    rm.submit(queue="web")
    before = repr(application_report(rm.core.context, rm.submit("eve", queue="db")))
    users = list(rm.core.scheduler.queues["root.dev.db"].users.users)  # type: ignore[attr-defined]
    for app in rm.core.context.apps:
        application_report(rm.core.context, app)
    queue_info(rm.core.context, QueueInfoRequest("root", applications=True, recursive=True))
    assert list(rm.core.scheduler.queues["root.dev.db"].users.users) == users  # type: ignore[attr-defined]
    assert repr(application_report(rm.core.context, ApplicationId(1_700_000_000_000, 2))) == before
