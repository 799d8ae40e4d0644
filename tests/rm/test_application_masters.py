"""register, allocate and finish: response ids, completions reported once, refused calls that change nothing."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from rm.core.events import Allocate, FinishApplicationMaster, RegisterApplicationMaster
from tests.rm.builders import RM, done, resource_request
from yarn.containers import ResourceRequest
from yarn.errors import (
    ApplicationAttemptNotFoundException,
    ApplicationMasterNotRegisteredException,
    InvalidApplicationMasterRequestException,
    InvalidContainerReleaseException,
    InvalidResourceBlacklistRequestException,
    InvalidResourceRequestException,
    YarnException,
)
from yarn.ids import ApplicationAttemptId, ApplicationId
from yarn.protocols.master import (
    AllocateRequest,
    FinishApplicationMasterRequest,
    RegisterApplicationMasterRequest,
    ResourceTypeInfo,
)
from yarn.states import FinalApplicationStatus, SchedulerResourceTypes

RESPONSE_ID_MAX = 0x7FFFFFFF


@pytest.fixture
def rm() -> RM:
    rm = RM()
    rm.node("n1")
    return rm


@pytest.fixture
def app(rm: RM) -> ApplicationId:
    app = rm.submit()
    rm.run_am(app)
    return app


def allocate(rm: RM, app: ApplicationId, response_id: int, *asks: ResourceRequest) -> object:
    return rm.send(Allocate(rm.call(), rm.attempt_id(app), AllocateRequest(response_id, asks=asks)))


def beats(rm: RM, duration_ms: int) -> None:
    """Let time pass while n1 stays in touch."""
    for _ in range(duration_ms // 100_000):
        rm.wait(100_000)
        rm.beat()


def ends(rm: RM, app: ApplicationId) -> list[tuple[object, int]]:
    """(container, exit status) of what the AM's next allocate reports."""
    return [(status.container_id, status.exit_status) for status in rm.allocate(app).completed]


# Response ids


def test_a_resent_allocate_gets_the_same_reply_and_does_nothing(rm: RM, app: ApplicationId) -> None:
    """The AM did not get reply 1 and sends request 0 again: reply 1, no second hand-over."""
    first = allocate(rm, app, 0, resource_request(2))
    rm.beat()
    assert allocate(rm, app, 0, resource_request(9)) is first
    containers = allocate(rm, app, 1).allocated  # type: ignore[attr-defined]
    assert len(containers) == 2


@pytest.mark.parametrize("response_id", [2, 3, 17, RESPONSE_ID_MAX])
def test_any_other_response_id_is_refused(rm: RM, app: ApplicationId, response_id: int) -> None:
    allocate(rm, app, 0)
    with pytest.raises(InvalidApplicationMasterRequestException) as refused:
        allocate(rm, app, response_id, resource_request(1))
    assert refused.value.message == (
        f"Invalid responseId in AllocateRequest from application attempt: {rm.attempt_id(app)} "
        f"expect responseId to be 1 but get {response_id}"
    )
    rm.beat()
    assert allocate(rm, app, 1).allocated == ()  # type: ignore[attr-defined]


def test_response_ids_wrap_around_after_the_largest_java_int(rm: RM, app: ApplicationId) -> None:
    session = rm.core.context.sessions[rm.attempt_id(app)]
    session.response_id = RESPONSE_ID_MAX
    assert session.response is not None
    session.response = replace(session.response, response_id=RESPONSE_ID_MAX)
    around = allocate(rm, app, RESPONSE_ID_MAX)
    assert around.response_id == 0  # type: ignore[attr-defined]
    assert allocate(rm, app, RESPONSE_ID_MAX) is around


def test_a_refused_call_counts_as_a_heartbeat(rm: RM, app: ApplicationId) -> None:
    """The ping comes before the checks (ApplicationMasterService.allocate)."""
    beats(rm, 800_000)
    with pytest.raises(InvalidApplicationMasterRequestException):
        allocate(rm, app, 5)
    beats(rm, 600_000)
    assert rm.state(app) == "RUNNING"


# Registering


def test_allocate_before_register_is_refused(rm: RM) -> None:
    app = rm.submit()
    rm.launch(app)
    with pytest.raises(ApplicationMasterNotRegisteredException):
        allocate(rm, app, 0)


def test_a_second_register_is_refused(rm: RM, app: ApplicationId) -> None:
    with pytest.raises(InvalidApplicationMasterRequestException) as refused:
        rm.register(app)
    assert refused.value.message == f"Application Master is already registered : {app}"


def test_a_reply_may_be_repeated_after_a_second_register_was_refused(rm: RM, app: ApplicationId) -> None:
    """The reply has ended containers, and the invariants notice an end that is reported twice."""
    container = rm.get(app, 1)[0]
    rm.beat(ended=[done(container.id)])
    response_id = rm.core.context.sessions[rm.attempt_id(app)].response_id
    first = allocate(rm, app, response_id)
    with pytest.raises(InvalidApplicationMasterRequestException):
        rm.register(app)
    assert allocate(rm, app, response_id) is first


def test_an_unknown_attempt_is_refused(rm: RM, app: ApplicationId) -> None:
    unknown = ApplicationAttemptId(app, 9)
    with pytest.raises(InvalidApplicationMasterRequestException, match="doesn't exist in cache"):
        rm.send(RegisterApplicationMaster(rm.call(), unknown, RegisterApplicationMasterRequest()))
    with pytest.raises(ApplicationAttemptNotFoundException, match="ApplicationMasterService cache"):
        rm.send(Allocate(rm.call(), unknown, AllocateRequest(0)))


def test_register_returns_the_queue_and_its_maximum(rm: RM) -> None:
    app = rm.submit()
    rm.launch(app)
    reply = rm.register(app)
    assert reply.queue == "root.default"
    assert reply.maximum_capability.memory_mb == 8192
    assert reply.resource_types == (ResourceTypeInfo("memory-mb", "Mi"), ResourceTypeInfo("vcores"))
    assert reply.scheduler_resource_types == (SchedulerResourceTypes.MEMORY,)


def test_an_am_may_register_before_the_launcher_has_answered(rm: RM) -> None:
    app = rm.submit()
    rm.beat()
    assert rm.attempt_state(app) == "ALLOCATED"
    rm.register(app)
    assert rm.attempt_state(app) == "RUNNING"
    assert rm.state(app) == "RUNNING"


# Contents of replies


def test_an_am_gets_one_nm_token_for_each_node(rm: RM, app: ApplicationId) -> None:
    rm.allocate(app, [resource_request(2)])
    rm.beat()
    reply = rm.allocate(app)
    assert [token.node_id.host for token in reply.nm_tokens] == ["n1"]
    rm.allocate(app, [resource_request(1)])
    rm.beat()
    assert rm.allocate(app).nm_tokens == ()


def test_a_node_that_registered_again_needs_a_new_token(rm: RM, app: ApplicationId) -> None:
    """Its NM is perhaps a new one, which does not have the keys of the old one (NMTokenSecretManagerInRM)."""
    rm.node("n2")
    rm.get(app, 1, "n2")
    rm.node("n2")
    rm.allocate(app, [resource_request(1)])
    rm.beat("n2")
    assert [token.node_id.host for token in rm.allocate(app).nm_tokens] == ["n2"]


def test_an_am_that_registers_again_gets_new_tokens_for_all_its_nodes() -> None:
    """An unmanaged AM that starts again has lost its tokens (clearNodeSetForAttempt at each registration)."""
    rm = RM()
    for host in ("n1", "n2"):
        rm.node(host)
    app = rm.submit(unmanaged_am=True, keep_containers_across_attempts=True)
    rm.register(app)
    rm.get(app, 1, "n1")
    rm.get(app, 1, "n2")
    again = rm.register(app)
    assert {container.node_id.host for container in again.containers_from_previous_attempts} == {"n1", "n2"}
    assert {token.node_id.host for token in again.nm_tokens} == {"n1", "n2"}


def test_after_a_second_registration_a_node_without_containers_needs_a_new_token_too() -> None:
    rm = RM()
    rm.node("n1")
    app = rm.submit(unmanaged_am=True, keep_containers_across_attempts=True)
    rm.register(app)
    (container,) = rm.get(app, 1)
    rm.beat(ended=[done(container.id)])
    rm.allocate(app)
    assert rm.register(app).nm_tokens == ()
    rm.allocate(app, [resource_request(1)])
    rm.beat()
    assert [token.node_id.host for token in rm.allocate(app).nm_tokens] == ["n1"]


def test_progress_is_clamped_to_0_and_1(rm: RM, app: ApplicationId) -> None:
    attempt = rm.core.context.attempt(rm.attempt_id(app))
    assert attempt is not None
    for response_id, (sent, kept) in enumerate([(0.5, 0.5), (1.5, 1.0), (-1.0, 0.0), (float("nan"), 0.0)]):
        rm.send(Allocate(rm.call(), attempt.attempt_id, AllocateRequest(response_id, progress=sent)))
        assert attempt.progress == kept


# Refused calls


@pytest.mark.case("C3")
def test_nothing_of_a_refused_allocate_is_applied(rm: RM, app: ApplicationId) -> None:
    """A request is too large: the valid one and the release beside it are not applied, the id does not advance."""
    held = rm.get(app, 1)[0]
    request = AllocateRequest(
        rm._response_ids[rm.attempt_id(app)],
        asks=(resource_request(1), resource_request(1, 99_999)),
        releases=(held.id,),
    )
    with pytest.raises(InvalidResourceRequestException):
        rm.send(Allocate(rm.call(), rm.attempt_id(app), request))
    rm.beat()
    assert rm.core.scheduler.container(held.id) is not None
    assert rm.allocate(app).allocated == ()


def test_the_resource_name_any_cannot_be_blacklisted(rm: RM, app: ApplicationId) -> None:
    request = AllocateRequest(0, blacklist_additions=("*",))
    with pytest.raises(InvalidResourceBlacklistRequestException, match="blacklist"):
        rm.send(Allocate(rm.call(), rm.attempt_id(app), request))


def test_a_container_of_another_application_cannot_be_released(rm: RM, app: ApplicationId) -> None:
    other = rm.submit("bob")
    rm.run_am(other)
    theirs = rm.get(other, 1)[0]
    with pytest.raises(InvalidContainerReleaseException, match=str(theirs.id)):
        rm.allocate(app, release=[theirs.id])


# Completions, each reported once


def test_a_completed_container_is_reported_once_and_then_forgotten_by_its_node(rm: RM, app: ApplicationId) -> None:
    """Reply n reports it; allocate n+1 acknowledges that reply, and only then may the node forget it."""
    container = rm.get(app, 1)[0]
    rm.beat(ended=[done(container.id, 3)])
    assert ends(rm, app) == [(container.id, 3)]
    assert rm.beat().containers_to_forget == ()
    assert ends(rm, app) == []
    assert rm.beat().containers_to_forget == (container.id,)
    assert rm.beat().containers_to_forget == ()


def test_a_node_that_reports_the_end_of_another_ones_container_may_forget_it(rm: RM, app: ApplicationId) -> None:
    """The scheduler does not know the container any more; only its own node has to keep the end (I-30)."""
    rm.node("n2")
    container = rm.get(app, 1)[0]
    rm.beat(ended=[done(container.id)])
    rm.beat("n2", ended=[done(container.id)])
    assert rm.beat("n2").containers_to_forget == (container.id,)
    assert rm.beat().containers_to_forget == ()
    assert ends(rm, app) == [(container.id, 0)]


def test_a_completion_reported_twice_by_the_node_reaches_the_am_once(rm: RM, app: ApplicationId) -> None:
    """An NM repeats a completion until it may forget it."""
    container = rm.get(app, 1)[0]
    rm.beat(ended=[done(container.id)])
    rm.beat(ended=[done(container.id)])
    assert ends(rm, app) == [(container.id, 0)]
    rm.beat(ended=[done(container.id)])
    assert ends(rm, app) == []


def test_a_released_container_is_aborted_whatever_its_node_reports_later(rm: RM, app: ApplicationId) -> None:
    container = rm.get(app, 1)[0]
    rm.allocate(app, release=[container.id])
    assert container.id in rm.beat().containers_to_clean_up
    rm.beat(ended=[done(container.id, -106)])
    assert ends(rm, app) == [(container.id, -100)]


# Finishing


def test_finish_is_repeated_until_it_is_stored(rm: RM, app: ApplicationId) -> None:
    """The first call starts it; the null store confirms at once, and the second call returns True."""
    assert rm.finish(app) is False
    assert rm.state(app) == "FINISHING"
    assert rm.finish(app) is True


def test_finish_before_register_is_refused(rm: RM) -> None:
    app = rm.submit()
    rm.launch(app)
    request = FinishApplicationMasterRequest(FinalApplicationStatus.SUCCEEDED)
    with pytest.raises(ApplicationMasterNotRegisteredException):
        rm.send(FinishApplicationMaster(rm.call(), rm.attempt_id(app), request))
    assert rm.state(app) == "ACCEPTED"


def test_after_unregistering_an_am_gets_nothing_more(rm: RM, app: ApplicationId) -> None:
    rm.allocate(app, [resource_request(1)])
    rm.finish(app)
    rm.beat()
    assert rm.allocate(app).allocated == ()
    assert rm.state(app) == "FINISHING"


def test_requests_with_placement_constraints_are_refused_and_change_nothing(rm: RM, app: ApplicationId) -> None:
    """DisabledPlacementProcessor.allocate"""
    request = AllocateRequest(0, asks=(resource_request(1),), has_scheduling_requests=True)
    with pytest.raises(YarnException) as refusal:
        rm.send(Allocate(rm.call(), rm.attempt_id(app), request))
    assert refusal.value.message == (
        f"Found non empty SchedulingRequest in AllocateRequest for application={rm.attempt_id(app)}, but the "
        "configured yarn.resourcemanager.placement-constraints.handler cannot handle placement constraints. Rejecting "
        "this allocate operation"
    )
    assert allocate(rm, app, 0).response_id == 1  # type: ignore[attr-defined]
    rm.beat()
    assert rm.allocate(app).allocated == ()


def test_a_registration_with_placement_constraints_is_refused(rm: RM) -> None:
    """DisabledPlacementProcessor.registerApplicationMaster"""
    app = rm.submit()
    rm.beat()
    rm.launch(app)
    request = RegisterApplicationMasterRequest(has_placement_constraints=True)
    with pytest.raises(YarnException) as refusal:
        rm.send(RegisterApplicationMaster(rm.call(), rm.attempt_id(app), request))
    assert refusal.value.message.startswith(
        "Found non empty placement constraints map in RegisterApplicationMasterRequest for application="
    )
    assert refusal.value.message.endswith("Rejecting this registerApplicationMaster operation")
    rm.register(app)
