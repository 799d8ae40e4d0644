"""A container that a node refused to start is kept as the application's reason (yarnling's own field of heartbeats)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from rm.core.events import FinishApplicationMaster, NodeHeartbeat
from rm.core.explain.application import explanation
from tests.rm.builders import RM, done
from yarn.containers import Container
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.protocols.inspection import RefusedStartReport
from yarn.protocols.master import FinishApplicationMasterRequest
from yarn.protocols.tracker import REFUSAL_CHARS_MAX, RefusedStart
from yarn.states import FinalApplicationStatus

REASON = "The auxService:spark_shuffle does not exist"


@pytest.fixture
def rm() -> RM:
    rm = RM()
    rm.node("n1")
    return rm


def running(rm: RM) -> tuple[ApplicationId, Container]:
    """An application and the container that its AM has got."""
    app = rm.submit()
    rm.run_am(app)
    return app, rm.get(app, 1)[0]


def refuse(rm: RM, *container_ids: ContainerId, reason: str = REASON) -> None:
    node = rm.nodes["n1"]
    refused = tuple(RefusedStart(container_id, reason) for container_id in container_ids)
    node.obey(rm.send(NodeHeartbeat(rm.call(), replace(node.request(), refused_starts=refused))))


def shown(rm: RM, app: ApplicationId) -> RefusedStartReport | None:
    return explanation(rm.core.context, app, rm.now_ms).refused_start


def test_an_explanation_has_the_last_refused_start(rm: RM) -> None:
    app, container = running(rm)
    assert shown(rm, app) is None
    refuse(rm, container.id)
    assert shown(rm, app) == RefusedStartReport(container.id, NodeId("n1", 45454), REASON, rm.now_ms)
    other = ContainerId(container.id.attempt_id, 99)
    refuse(rm, container.id, other, reason="x" * 10_000)
    assert shown(rm, app) == RefusedStartReport(other, NodeId("n1", 45454), "x" * REFUSAL_CHARS_MAX, rm.now_ms)


def test_the_diagnostics_of_a_killed_application_end_with_it(rm: RM) -> None:
    app, container = running(rm)
    refuse(rm, container.id)
    rm.kill(app)
    rm.beat()
    killed = rm.core.context.apps[app]
    assert killed.state.name == "KILLED"
    assert killed.diagnostics == (
        f"Application {app} was killed by user ann\nLast refused start: {container.id} on n1:45454: {REASON}"
    )
    refuse(rm, container.id, reason="too late")
    found = shown(rm, app)
    assert found is not None
    assert found.reason == REASON


def test_what_is_not_the_reason_is_ignored(rm: RM) -> None:
    """The start of the AM itself, which the RM's own launch reports, and an application that nobody knows."""
    app, container = running(rm)
    am = ContainerId(container.id.attempt_id, 1)
    unknown = ContainerId(ApplicationAttemptId(ApplicationId(1, 7), 1), 2)
    refuse(rm, am, unknown)
    assert shown(rm, app) is None


@pytest.mark.parametrize(
    ("status", "added"), [(FinalApplicationStatus.FAILED, True), (FinalApplicationStatus.SUCCEEDED, False)]
)
def test_the_diagnostics_of_an_am_that_gives_up_end_with_it(
    rm: RM, status: FinalApplicationStatus, *, added: bool
) -> None:
    app, container = running(rm)
    refuse(rm, container.id)
    last = FinishApplicationMasterRequest(status, "Max number of executor failures (3) reached")
    rm.send(FinishApplicationMaster(rm.call(), rm.attempt_id(app), last))
    rm.beat(ended=[done(ContainerId(rm.attempt_id(app), 1))])
    ended = rm.core.context.apps[app]
    assert ended.state.name == "FINISHED"
    more = f"\nLast refused start: {container.id} on n1:45454: {REASON}" if added else ""
    assert ended.diagnostics == last.diagnostics + more
