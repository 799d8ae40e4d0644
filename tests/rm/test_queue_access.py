"""Placement rules and access lists as submissions, moves and refreshes meet them (RMAppManager, spec 2.11 and 2.12)."""

from __future__ import annotations

import pytest

from rm.events import GetNewApplication, MoveApplication, RefreshQueues, SubmitApplication
from rm.queue_reports import queue_user_acls
from tests.rm.builders import ONE_QUEUE, RM
from yarn.applications import ApplicationSubmissionContext
from yarn.configuration import Configuration
from yarn.errors import YarnException
from yarn.faults import ConfigurationException
from yarn.ids import ApplicationId
from yarn.resource import Resource
from yarn.states import QueueACL

PREFIX = "yarn.scheduler.capacity."
QUEUES = {
    **ONE_QUEUE,
    PREFIX + "root.queues": "default,dev",
    PREFIX + "root.default.capacity": "50",
    PREFIX + "root.dev.capacity": "50",
}
ACLS = {
    **QUEUES,
    "yarn.acl.enable": "true",
    PREFIX + "root.acl_submit_applications": " ",
    PREFIX + "root.acl_administer_queue": " ",
    PREFIX + "root.default.acl_submit_applications": "ann staff",
    PREFIX + "root.dev.acl_administer_queue": "bob",
}


def submit(rm: RM, user: str, queue: str = "", groups: tuple[str, ...] = ()) -> ApplicationId:
    app: ApplicationId = rm.send(GetNewApplication(rm.call())).application_id
    context = ApplicationSubmissionContext(app, queue=queue, resource=Resource(1024, 1))
    rm.send(SubmitApplication(rm.call(), user, context, groups))
    return app


@pytest.mark.case("C5")
def test_a_submission_without_a_queue_goes_where_the_rules_say() -> None:
    rm = RM({**QUEUES, PREFIX + "queue-mappings": "u:ann:root.dev,g:staff:root.dev"})
    assert rm.core.context.apps[submit(rm, "ann")].queue == "root.dev"
    assert rm.core.context.apps[submit(rm, "bob", groups=("staff",))].queue == "root.dev"
    assert rm.core.context.apps[submit(rm, "bob")].queue == "root.default"


def test_rules_are_refreshed_with_the_queues_or_not_at_all() -> None:
    rm = RM({**QUEUES, PREFIX + "queue-mappings": "u:ann:root.dev"})
    with pytest.raises(ConfigurationException, match="it is not a dynamic parent queue"):
        rm.send(RefreshQueues(rm.call(), Configuration.of({**QUEUES, PREFIX + "queue-mappings": "u:ann:root.new"})))
    assert rm.core.context.apps[submit(rm, "ann")].queue == "root.dev"
    rm.send(RefreshQueues(rm.call(), Configuration.of(QUEUES)))
    assert rm.core.context.apps[submit(rm, "ann")].queue == "root.default"


@pytest.mark.case("C6")
def test_only_whom_the_lists_name_may_submit() -> None:
    """In the words of a real cluster; groups count, and who may administer may submit too."""
    rm = RM(ACLS)
    submit(rm, "ann", "root.default")
    submit(rm, "eve", "root.default", ("guests", "staff"))
    submit(rm, "bob", "root.dev")
    with pytest.raises(YarnException) as refused:
        submit(rm, "bob", "root.default")
    assert refused.value.message.endswith(
        "AccessControlException: User bob does not have permission to submit application_1700000000000_0004 to queue "
        "root.default"
    )
    assert len(rm.core.context.apps) == 3


@pytest.mark.case("C6")
def test_a_right_above_holds_below() -> None:
    """The authoriser walks up: root lets everybody in unless told otherwise."""
    conf = {**ACLS, PREFIX + "root.acl_submit_applications": "*"}
    submit(RM(conf), "anybody", "root.dev")
    del conf[PREFIX + "root.acl_submit_applications"]
    submit(RM(conf), "anybody", "root.dev")


def test_lists_are_not_looked_at_unless_enabled() -> None:
    submit(RM({**ACLS, "yarn.acl.enable": "false"}), "anybody", "root.dev")


@pytest.mark.case("C6")
def test_whoever_moves_an_application_must_be_let_into_the_target() -> None:
    rm = RM(ACLS)
    rm.node("n1")
    app = submit(rm, "ann", "root.default")
    with pytest.raises(YarnException, match="User ann cannot submit applications to target queue or the target queue"):
        rm.send(MoveApplication(rm.call(), "ann", app, "root.dev"))
    rm.send(MoveApplication(rm.call(), "bob", app, "root.dev"))
    assert rm.core.context.apps[app].queue == "root.dev"


def test_a_user_is_told_its_rights_queue_by_queue() -> None:
    """ParentQueue.getQueueUserAclInfo: each list by itself, with those above it."""
    submits, administers = QueueACL.SUBMIT_APPLICATIONS, QueueACL.ADMINISTER_QUEUE
    rm = RM({**ACLS, PREFIX + "root.acl_administer_queue": "eve"})
    assert rights(rm, "ann") == {"root": set(), "root.default": {submits}, "root.dev": set()}
    assert rights(rm, "carol", "staff") == {"root": set(), "root.default": {submits}, "root.dev": set()}
    assert rights(rm, "bob") == {"root": set(), "root.default": set(), "root.dev": {administers}}
    assert rights(rm, "eve") == {"root": {administers}, "root.default": {administers}, "root.dev": {administers}}
    assert rights(RM(QUEUES), "eve") == {queue: set(QueueACL) for queue in ("root", "root.default", "root.dev")}


def rights(rm: RM, user: str, *groups: str) -> dict[str, set[QueueACL]]:
    return {queue.queue: set(queue.acls) for queue in queue_user_acls(rm.core.context, user, groups)}
