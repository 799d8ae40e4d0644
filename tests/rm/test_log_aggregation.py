"""The RM's reports of log aggregation, from what nodes report (RMAppLogAggregation)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from rm.core.events import NodeHeartbeat, RegisterNode
from rm.core.log_aggregation import AppLogAggregation
from rm.core.reports.applications import application_report
from tests.rm.builders import RM, done
from yarn.ids import ApplicationId, NodeId
from yarn.protocols.tracker import LogAggregationReport, RegisterNodeManagerRequest
from yarn.states import LogAggregationStatus as Status

TIMEOUT_MS = 600_000
N1, N2 = NodeId("n1", 1), NodeId("n2", 1)


class Logs:
    """The log aggregation of one application that ends at 1000 ms."""

    def __init__(self, *, enabled: bool = True) -> None:
        self.logs = AppLogAggregation(enabled=enabled, timeout_ms=TIMEOUT_MS)
        self.is_over = False

    def report(self, node_id: NodeId, status: Status) -> Status:
        self.logs.report(node_id, status, is_over=self.is_over)
        return self.status()

    def status(self, now_ms: int = 1000) -> Status:
        return self.logs.status(is_over=self.is_over, finish_ms=1000, now_ms=now_ms)


@pytest.fixture
def logs() -> Logs:
    """An application that runs on two nodes."""
    logs = Logs()
    logs.logs.add_node(N1)
    logs.logs.add_node(N2)
    return logs


def test_it_is_disabled_or_not_started() -> None:
    disabled = Logs(enabled=False)
    disabled.logs.add_node(N1)
    assert disabled.report(N1, Status.SUCCEEDED) is Status.DISABLED
    assert Logs().status() is Status.NOT_START


def test_it_has_succeeded_when_every_node_has(logs: Logs) -> None:
    assert logs.status() is Status.NOT_START
    assert logs.report(N1, Status.RUNNING) is Status.RUNNING
    logs.is_over = True
    assert logs.report(N1, Status.SUCCEEDED) is Status.RUNNING
    assert logs.report(N2, Status.SUCCEEDED) is Status.SUCCEEDED


def test_one_node_that_failed_is_enough(logs: Logs) -> None:
    logs.is_over = True
    logs.report(N1, Status.FAILED)
    assert logs.report(N2, Status.SUCCEEDED) is Status.FAILED


def test_the_outcome_is_final(logs: Logs) -> None:
    logs.is_over = True
    logs.report(N1, Status.SUCCEEDED)
    logs.report(N2, Status.SUCCEEDED)
    assert logs.report(N2, Status.FAILED) is Status.SUCCEEDED
    logs.logs.add_node(NodeId("n3", 1))
    assert logs.status(10 * TIMEOUT_MS) is Status.SUCCEEDED


def test_nothing_is_final_before_the_application_is(logs: Logs) -> None:
    logs.report(N1, Status.SUCCEEDED)
    assert logs.report(N2, Status.SUCCEEDED) is Status.RUNNING
    logs.is_over = True
    assert logs.status() is Status.SUCCEEDED


def test_a_failure_while_it_runs_is_shown(logs: Logs) -> None:
    assert logs.report(N1, Status.RUNNING_WITH_FAILURE) is Status.RUNNING_WITH_FAILURE
    assert logs.report(N1, Status.RUNNING) is Status.RUNNING_WITH_FAILURE


def test_a_node_that_reports_nothing_times_out_after_the_end(logs: Logs) -> None:
    logs.is_over = True
    logs.report(N1, Status.SUCCEEDED)
    assert logs.status(1000 + TIMEOUT_MS) is Status.RUNNING
    assert logs.status(1001 + TIMEOUT_MS) is Status.TIME_OUT


# In the core


def heartbeat(rm: RM, host: str, app: ApplicationId, status: Status) -> None:
    node = rm.nodes[host]
    request = replace(node.request(), log_aggregation_reports=(LogAggregationReport(app, status),))
    node.obey(rm.send(NodeHeartbeat(rm.call(), request)))


def shown(rm: RM, app: ApplicationId) -> Status:
    return application_report(rm.core.context, app).log_aggregation


@pytest.mark.parametrize(
    ("enabled", "before", "after"),
    [("true", Status.NOT_START, Status.SUCCEEDED), ("false", Status.DISABLED, Status.DISABLED)],
)
def test_the_report_of_an_application_shows_it(enabled: str, before: Status, after: Status) -> None:
    """As recorded on a Hadoop cluster: NOT_START while it runs, SUCCEEDED in the end."""
    rm = RM({"yarn.log-aggregation-enable": enabled})
    rm.node("n1")
    app = rm.submit()
    am = rm.run_am(app)
    assert shown(rm, app) is before
    rm.finish(app)
    rm.beat(ended=[done(am.id)])
    assert rm.state(app) == "FINISHED"
    assert shown(rm, app) is before
    heartbeat(rm, "n1", app, Status.SUCCEEDED)
    assert shown(rm, app) is after


def test_a_report_of_an_unknown_application_is_ignored() -> None:
    rm = RM({"yarn.log-aggregation-enable": "true"})
    rm.node("n1")
    heartbeat(rm, "n1", ApplicationId(1, 1), Status.SUCCEEDED)


def test_a_registering_node_may_report_too() -> None:
    """After a restart of the RM, which may have missed it."""
    rm = RM({"yarn.log-aggregation-enable": "true"})
    rm.node("n1")
    app = rm.submit()
    am = rm.run_am(app)
    rm.finish(app)
    rm.beat(ended=[done(am.id)])
    node = rm.nodes["n1"]
    reports = (LogAggregationReport(app, Status.FAILED, "No space left on device"),)
    request = RegisterNodeManagerRequest(node.node_id, 8042, node.resource, log_aggregation_reports=reports)
    rm.send(RegisterNode(rm.call(), request, "/default-rack"))
    assert shown(rm, app) is Status.FAILED
