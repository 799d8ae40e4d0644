"""Which AMs are started and stopped at a time, and what the NMs' answers lead to."""

from __future__ import annotations

from rm.core.am_launcher import (
    AMLauncher,
    AMStartAnswered,
    AMStartFailed,
    AMStopped,
    StartAMContainer,
    StopAMContainer,
)
from rm.core.effects import CleanUpAM, LaunchAM
from rm.core.events import AMLaunched, AMLaunchFailed
from yarn.applications import ApplicationSubmissionContext
from yarn.containers import Container
from yarn.errors import YarnException
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.protocols.container_management import StartContainersResponse
from yarn.resource import Resource

NODE = NodeId("h1", 1)


def launch(number: int) -> LaunchAM:
    application_id = ApplicationId(1700000000000, number)
    attempt_id = ApplicationAttemptId(application_id, 1)
    container = Container(ContainerId(attempt_id, 1), NODE, "h1:80", Resource(512, 1), 0)
    return LaunchAM(attempt_id, container, ApplicationSubmissionContext(application_id), "ann", 5)


def clean_up(number: int) -> CleanUpAM:
    one = launch(number)
    return CleanUpAM(one.attempt_id, one.container.id, NODE)


def started(number: int) -> AMStartAnswered:
    one = launch(number)
    return AMStartAnswered(one.attempt_id, StartContainersResponse((one.container.id,), {}, {}))


def test_at_most_so_many_calls_are_under_way_and_the_next_one_follows_in_order() -> None:
    launcher = AMLauncher(2)
    assert launcher.handle(launch(1)) == [StartAMContainer(launch(1))]
    assert launcher.handle(clean_up(9)) == [StopAMContainer(clean_up(9))]
    assert launcher.handle(launch(2)) == []
    assert launcher.handle(launch(3)) == []
    assert launcher.handle(AMStopped()) == [StartAMContainer(launch(2))]
    assert launcher.handle(started(1)) == [AMLaunched(launch(1).attempt_id), StartAMContainer(launch(3))]


def test_an_am_is_stopped_after_the_answer_to_its_start() -> None:
    launcher = AMLauncher(2)
    launcher.handle(launch(1))
    assert launcher.handle(clean_up(1)) == []
    failed = AMLaunchFailed(
        launch(1).attempt_id, f"Error launching {launch(1).attempt_id}. Got exception: java.net.SocketException: lost"
    )
    assert launcher.handle(AMStartFailed(launch(1).attempt_id, "java.net.SocketException: lost")) == [
        failed,
        StopAMContainer(clean_up(1)),
    ]
    assert launcher.handle(clean_up(1)) == [StopAMContainer(clean_up(1))]


def test_a_refused_or_unreported_container_is_a_failed_launch() -> None:
    launcher = AMLauncher(2)
    one, two = launch(1), launch(2)
    launcher.handle(one)
    launcher.handle(two)
    refusal = StartContainersResponse((), {one.container.id: YarnException("no room")}, {})
    (failed,) = launcher.handle(AMStartAnswered(one.attempt_id, refusal))
    assert isinstance(failed, AMLaunchFailed)
    assert failed.diagnostics.endswith("no room")
    (unreported,) = launcher.handle(AMStartAnswered(two.attempt_id, StartContainersResponse((), {}, {})))
    assert isinstance(unreported, AMLaunchFailed)
    assert "did not report" in unreported.diagnostics
