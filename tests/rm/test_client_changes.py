"""Clients change the queue and priority of applications (ClientRMService); refusals are those of a real cluster."""

from __future__ import annotations

import pytest

from rm.core.events import (
    GetNewApplication,
    MoveApplication,
    SignalContainer,
    UpdateApplicationPriority,
    UpdateApplicationTimeouts,
)
from rm.core.reports.applications import application_report
from tests.rm.builders import RM
from yarn.errors import ApplicationNotFoundException, YarnException
from yarn.ids import ApplicationId, ContainerId
from yarn.states import SignalContainerCommand
from yarn.times import format_iso8601

CONF = {
    "yarn.scheduler.capacity.root.queues": "default,dev",
    "yarn.scheduler.capacity.root.default.capacity": "50",
    "yarn.scheduler.capacity.root.dev.capacity": "50",
    "yarn.scheduler.capacity.root.dev.queues": "a",
    "yarn.scheduler.capacity.root.dev.a.capacity": "100",
    "yarn.cluster.max-application-priority": "10",
}
STRANGER = ApplicationId(1, 1)


@pytest.fixture
def rm() -> RM:
    rm = RM(CONF)
    rm.node("n1")
    return rm


def test_a_new_application_is_told_the_largest_container_also_if_no_heartbeat_came_for_long() -> None:
    """ClusterNodeTracker.getMaxAllowedAllocation compares its configured wait with the clock."""
    rm = RM()
    rm.node("n1", memory_mb=2048)
    rm.now_ms += 60_000
    answer = rm.send(GetNewApplication(rm.call()))
    assert answer.maximum_capability.memory_mb == 2048


@pytest.mark.case("C6")
def test_a_running_application_is_moved(rm: RM) -> None:
    app = rm.submit()
    rm.run_am(app)
    assert rm.send(MoveApplication(rm.call(), "ann", app, "root.dev.a")) is None
    assert rm.core.context.apps[app].queue == "root.dev.a"


def test_the_containers_of_a_moved_application_are_in_its_new_queue(rm: RM) -> None:
    """Preemption reads the queue of a container to find out whose it is (SchedulerApplicationAttempt.move)."""
    app = rm.submit()
    am = rm.run_am(app)
    task = rm.get(app, 1)[0]
    rm.send(MoveApplication(rm.call(), "ann", app, "root.dev.a"))
    queues = [rm.core.scheduler.container(each.id).queue for each in (am, task)]  # type: ignore[union-attr]
    assert queues == ["root.dev.a", "root.dev.a"]


def test_impossible_moves_are_refused(rm: RM) -> None:
    app = rm.submit()
    with pytest.raises(YarnException, match=r"^The specified Queue: dev is not a Leaf Queue\.$"):
        rm.send(MoveApplication(rm.call(), "ann", app, "dev"))
    with pytest.raises(YarnException, match=r"^The specified Queue: nosuch doesn't exist$"):
        rm.send(MoveApplication(rm.call(), "ann", app, "nosuch"))
    with pytest.raises(ApplicationNotFoundException, match="'application_1_0001' doesn't exist in RM"):
        rm.send(MoveApplication(rm.call(), "ann", STRANGER, "a"))
    rm.kill(app)
    with pytest.raises(YarnException, match=r"^App in KILLED state cannot be moved\.$"):
        rm.send(MoveApplication(rm.call(), "ann", app, "a"))


@pytest.mark.case("C6")
def test_a_changed_priority_is_limited_to_the_clusters_maximum(rm: RM) -> None:
    app = rm.submit()
    assert rm.send(UpdateApplicationPriority(rm.call(), app, 7, "ann")) == 7
    assert rm.send(UpdateApplicationPriority(rm.call(), app, 70, "ann")) == 10
    assert rm.send(UpdateApplicationPriority(rm.call(), app, -3, "ann")) == -3
    assert rm.core.context.apps[app].priority == -3


def test_the_priority_of_a_finished_application_does_not_change(rm: RM) -> None:
    """ClientRMService.updateApplicationPriority answers with the old one, and refuses only an unknown application."""
    app = rm.submit(priority=4)
    rm.kill(app)
    assert rm.send(UpdateApplicationPriority(rm.call(), app, 7, "ann")) == 4
    with pytest.raises(ApplicationNotFoundException, match="Please check that the job submission was successful"):
        rm.send(UpdateApplicationPriority(rm.call(), STRANGER, 7, "ann"))


def test_a_lifetime_is_set_and_changed(rm: RM) -> None:
    app = rm.submit()
    rm.run_am(app)
    until = rm.now_ms + 60_000
    assert rm.send(UpdateApplicationTimeouts(rm.call(), app, until)) == until
    assert rm.send(UpdateApplicationTimeouts(rm.call(), app, until + 30_000)) == until + 30_000
    rm.wait(60_000)
    assert rm.state(app) == "RUNNING"
    rm.wait(40_000)
    assert rm.state(app) == "KILLED"
    assert rm.send(UpdateApplicationTimeouts(rm.call(), app, until)) == until, (
        "an ended application: accepted without effect"
    )


def test_a_lifetime_is_limited_to_the_queues_maximum() -> None:
    """RMAppManager.updateApplicationTimeout: counted from the submission."""
    rm = RM({**CONF, "yarn.scheduler.capacity.root.default.maximum-application-lifetime": "60"})
    app = rm.submit()
    submitted_ms = rm.now_ms
    assert rm.send(UpdateApplicationTimeouts(rm.call(), app, rm.now_ms + 90_000)) == submitted_ms + 60_000


def test_invalid_lifetimes_are_refused(rm: RM) -> None:
    app = rm.submit()
    with pytest.raises(YarnException, match="At least one ApplicationTimeoutType should be configured"):
        rm.send(UpdateApplicationTimeouts(rm.call(), app, None))
    with pytest.raises(YarnException, match="Expire time is less than current time"):
        rm.send(UpdateApplicationTimeouts(rm.call(), app, rm.now_ms - 1))
    with pytest.raises(ApplicationNotFoundException):
        rm.send(UpdateApplicationTimeouts(rm.call(), STRANGER, rm.now_ms + 1))


def test_a_lifetime_is_reported_while_it_applies(rm: RM) -> None:
    """RMAppImpl.createAndGetApplicationReport: an ended application keeps its expiry time, with no time remaining."""
    app = rm.submit()
    assert lifetime(rm, app) == ("UNLIMITED", -1)
    until = rm.now_ms + 60_400
    rm.send(UpdateApplicationTimeouts(rm.call(), app, until))
    assert lifetime(rm, app) == (format_iso8601(until), 60)
    rm.kill(app)
    assert lifetime(rm, app) == (format_iso8601(until), 0)


def test_a_lifetime_in_the_past_is_refused_with_hadoops_message(rm: RM) -> None:
    app = rm.submit()
    now = format_iso8601(rm.now_ms)
    with pytest.raises(YarnException, match=f"current-time={now[:-5]}.0000 expire-time=".replace(".", "[.+]")):
        rm.send(UpdateApplicationTimeouts(rm.call(), app, rm.now_ms - 1))


def test_a_signal_is_sent_once_with_the_nodes_next_heartbeat(rm: RM) -> None:
    app = rm.submit()
    am = rm.run_am(app)
    assert rm.send(SignalContainer(rm.call(), am.id, SignalContainerCommand.OUTPUT_THREAD_DUMP)) is None
    assert rm.beat().containers_to_signal == ((am.id, SignalContainerCommand.OUTPUT_THREAD_DUMP),)
    assert rm.beat().containers_to_signal == ()


def test_an_unknown_container_cannot_be_signalled(rm: RM) -> None:
    app = rm.submit()
    am = rm.run_am(app)
    for absent in (ContainerId(am.id.attempt_id, 9), ContainerId.parse("container_1_0001_01_000001")):
        with pytest.raises(YarnException, match=f"^Trying to signal an absent container {absent}$"):
            rm.send(SignalContainer(rm.call(), absent, SignalContainerCommand.GRACEFUL_SHUTDOWN))
    rm.kill(app)
    with pytest.raises(YarnException, match="absent container"):
        rm.send(SignalContainer(rm.call(), am.id, SignalContainerCommand.FORCEFUL_SHUTDOWN))


def lifetime(rm: RM, app: ApplicationId) -> tuple[str, int]:
    report = application_report(rm.core.context, app)
    return report.lifetime_ends, report.lifetime_remaining_s
