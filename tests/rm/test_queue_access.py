"""Placement rules and access lists in submissions, moves and refreshes (RMAppManager, spec 2.11 and 2.12)."""

from __future__ import annotations

import pytest

from rm.core.events import (
    GetNewApplication,
    MoveApplication,
    RefreshQueues,
    SubmitApplication,
    UpdateApplicationPriority,
)
from rm.core.reports.queues import queue_user_acls
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


def submit(rm: RM, user: str, queue: str = "default", groups: tuple[str, ...] = ()) -> ApplicationId:
    app: ApplicationId = rm.send(GetNewApplication(rm.call())).application_id
    context = ApplicationSubmissionContext(app, queue=queue, resource=Resource(1024, 1))
    rm.send(SubmitApplication(rm.call(), user, context, groups))
    return app


@pytest.mark.case("C5")
def test_a_submission_without_a_queue_is_placed_by_the_rules() -> None:
    rm = RM({**QUEUES, PREFIX + "queue-mappings": "u:ann:root.dev,g:staff:root.dev"})
    assert rm.core.context.apps[submit(rm, "ann")].queue == "root.dev"
    assert rm.core.context.apps[submit(rm, "bob", groups=("staff",))].queue == "root.dev"
    assert rm.core.context.apps[submit(rm, "bob")].queue == "root.default"


def test_an_empty_queue_name_is_refused_despite_rules() -> None:
    """RMAppManager.placeApplication looks at the name after the rules; only a missing name means the default queue."""
    rm = RM({**QUEUES, PREFIX + "queue-mappings": "u:ann:root.dev"})
    with pytest.raises(YarnException, match="in a queue and submit context queue is null or empty"):
        submit(rm, "ann", queue="")
    assert not rm.core.context.apps


BY_TAG = {
    **QUEUES,
    "yarn.resourcemanager.application-tag-based-placement.enable": "true",
    "yarn.resourcemanager.application-tag-based-placement.username.whitelist": "hive, knox",
    PREFIX + "queue-mappings": "u:ann:root.dev,g:staff:root.dev,u:%user:root.default",
}


def submit_with_tag(rm: RM, user: str, tag: str, tag_groups: tuple[str, ...] = ()) -> str:
    """The queue of the application."""
    app: ApplicationId = rm.send(GetNewApplication(rm.call())).application_id
    context = ApplicationSubmissionContext(app, resource=Resource(1024, 1), tags=frozenset({tag}))
    rm.send(SubmitApplication(rm.call(), user, context, (), tag_groups))
    return rm.core.context.apps[app].queue


def test_a_tag_names_the_user_for_whom_an_application_is_placed() -> None:
    """RMAppManager.getUserNameForPlacement; the whitelist is not trimmed, so ` knox` is not the user knox."""
    rm = RM(BY_TAG)
    assert submit_with_tag(rm, "hive", "userid=ann") == "root.dev"
    assert submit_with_tag(rm, "hive", "userid=eve", tag_groups=("staff",)) == "root.dev"
    assert {app.user for app in rm.core.context.apps.values()} == {"hive"}
    for user, tag in (("hive", "user=ann"), ("hive", "userid="), ("hive", "userid=a=n"), ("knox", "userid=ann")):
        assert submit_with_tag(rm, user, tag) == "root.default"
    off = {**BY_TAG, "yarn.resourcemanager.application-tag-based-placement.enable": "false"}
    assert submit_with_tag(RM(off), "hive", "userid=ann") == "root.default"


def test_a_tag_does_not_open_a_queue_to_its_submitter() -> None:
    """The submitter needs the right to submit to the queue of the user in the tag; administering it is not enough."""
    lists = {
        "yarn.acl.enable": "true",
        PREFIX + "root.acl_submit_applications": " ",
        PREFIX + "root.default.acl_submit_applications": "*",
        PREFIX + "root.dev.acl_administer_queue": "hive",
    }
    assert submit_with_tag(RM({**BY_TAG, **lists}), "hive", "userid=ann") == "root.default"
    opened = {PREFIX + "root.dev.acl_submit_applications": "hive"}
    assert submit_with_tag(RM({**BY_TAG, **lists, **opened}), "hive", "userid=ann") == "root.dev"


def test_rules_are_refreshed_with_the_queues_or_not_at_all() -> None:
    rm = RM({**QUEUES, PREFIX + "queue-mappings": "u:ann:root.dev"})
    with pytest.raises(ConfigurationException, match="it is not a dynamic parent queue"):
        rm.send(RefreshQueues(rm.call(), Configuration.of({**QUEUES, PREFIX + "queue-mappings": "u:ann:root.new"})))
    assert rm.core.context.apps[submit(rm, "ann")].queue == "root.dev"
    rm.send(RefreshQueues(rm.call(), Configuration.of(QUEUES)))
    assert rm.core.context.apps[submit(rm, "ann")].queue == "root.default"


@pytest.mark.case("C6")
def test_only_users_in_the_lists_may_submit() -> None:
    """The message is that of a real cluster; groups count, and administrators of the queue may submit too."""
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
def test_a_right_to_a_parent_queue_applies_to_its_children() -> None:
    """The authorizer checks the parents too: root admits all users unless configured."""
    conf = {**ACLS, PREFIX + "root.acl_submit_applications": "*"}
    submit(RM(conf), "anybody", "root.dev")
    del conf[PREFIX + "root.acl_submit_applications"]
    submit(RM(conf), "anybody", "root.dev")


def test_access_lists_are_ignored_unless_enabled() -> None:
    submit(RM({**ACLS, "yarn.acl.enable": "false"}), "anybody", "root.dev")


@pytest.mark.case("C6")
def test_moving_an_application_requires_submit_access_to_the_target() -> None:
    rm = RM(ACLS)
    rm.node("n1")
    app = submit(rm, "ann", "root.default")
    with pytest.raises(YarnException, match="User ann cannot submit applications to target queue or the target queue"):
        rm.send(MoveApplication(rm.call(), "ann", app, "root.dev"))
    rm.send(MoveApplication(rm.call(), "bob", app, "root.dev"))
    assert rm.core.context.apps[app].queue == "root.dev"


def test_a_users_rights_are_reported_for_each_queue() -> None:
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


DYNAMIC_ACLS = {
    **ACLS,
    PREFIX + "root.default.capacity": "1w",
    PREFIX + "root.dev.capacity": "1w",
    PREFIX + "root.default.auto-queue-creation-v2.enabled": "true",
    PREFIX + "root.dev.auto-queue-creation-v2.enabled": "true",
    PREFIX + "root.dev.auto-queue-creation-v2.leaf-template.acl_submit_applications": "cid",
    PREFIX + "root.dev.auto-queue-creation-v2.parent-template.acl_administer_queue": "dan",
    PREFIX + "root.dev.team.acl_submit_applications": "eve",
}
REMOVING = {
    "yarn.resourcemanager.scheduler.monitor.enable": "true",
    "yarn.resourcemanager.scheduler.monitor.policies": (
        "org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.AutoCreatedQueueDeletionPolicy"
    ),
}
"""ann and staff may submit below root.default, bob below root.dev; others as the templates of root.dev say."""


@pytest.mark.parametrize(
    ("user", "queue", "is_let_in"),
    [
        ("ann", "root.default.new", True),
        ("cid", "root.default.new", False),
        ("bob", "root.dev.new", True),
        ("cid", "root.dev.new", True),
        ("dan", "root.dev.new", False),
        ("dan", "root.dev.team.new", True),
        ("cid", "root.dev.team.new", False),
        ("eve", "root.dev.team", False),
    ],
)
def test_a_template_defines_who_may_have_a_queue_created(user: str, queue: str, is_let_in: bool) -> None:
    """getPermissionsForDynamicQueue: the template of its kind counts at each level, not the queue's own keys."""
    rm = RM(DYNAMIC_ACLS)
    if is_let_in:
        assert rm.core.context.apps[submit(rm, user, queue)].queue == queue
    else:
        with pytest.raises(YarnException, match=f"User {user} does not have permission to submit"):
            submit(rm, user, queue)


def test_a_template_grants_no_access_to_an_existing_queue_until_a_refresh() -> None:
    """CapacitySchedulerQueueManager.setQueueAcls is called at the start and at refreshes only."""
    rm = RM(DYNAMIC_ACLS)
    submit(rm, "cid", "root.dev.new")
    with pytest.raises(YarnException, match="User cid does not have permission"):
        submit(rm, "cid", "root.dev.new")
    rm.send(RefreshQueues(rm.call(), Configuration.of(DYNAMIC_ACLS)))
    submit(rm, "cid", "root.dev.new")


def test_idle_queues_are_removed_only_with_a_configured_policy() -> None:
    """SchedulingMonitorManager: a round at the start, then one after each expiry.

    The queue is marked at 0 s, found idle but not expired at 300 s, and marked again at 600 s.
    """
    for conf, is_there in ((REMOVING, False), ({}, True), ({key: REMOVING[key] for key in list(REMOVING)[1:]}, True)):
        rm = RM({key: value for key, value in DYNAMIC_ACLS.items() if key != "yarn.acl.enable"} | conf)
        rm.kill(submit(rm, "ann", "root.dev.new"))
        rm.wait(899_999)
        assert rm.core.scheduler.queue("root.dev.new") is not None
        rm.wait(1)
        assert (rm.core.scheduler.queue("root.dev.new") is not None) is is_there


def test_the_policy_can_be_configured_and_removed_at_a_refresh() -> None:
    conf = {key: value for key, value in DYNAMIC_ACLS.items() if key != "yarn.acl.enable"}
    rm = RM(conf)
    rm.kill(submit(rm, "ann", "root.dev.new"))
    rm.wait(1_000_000)
    rm.send(RefreshQueues(rm.call(), Configuration.of(conf | REMOVING)))
    rm.wait(0)
    rm.send(RefreshQueues(rm.call(), Configuration.of(conf)))
    rm.wait(1_000_000)
    assert rm.core.scheduler.queue("root.dev.new") is not None
    rm.send(RefreshQueues(rm.call(), Configuration.of(conf | REMOVING)))
    rm.wait(299_999)
    assert rm.core.scheduler.queue("root.dev.new") is not None
    rm.wait(1)
    assert rm.core.scheduler.queue("root.dev.new") is None


def test_access_lists_of_a_removed_queue_apply_to_the_next_of_its_name() -> None:
    """ConfiguredYarnAuthorizer keeps the lists of removed queues."""
    conf = DYNAMIC_ACLS | REMOVING
    rm = RM(conf)
    app = submit(rm, "cid", "root.dev.new")
    rm.send(RefreshQueues(rm.call(), Configuration.of(conf)))
    rm.kill(app)
    rm.wait(900_000)
    assert rm.core.scheduler.queue("root.dev.new") is None
    without_template = {key: value for key, value in conf.items() if "leaf-template" not in key}
    rm.send(RefreshQueues(rm.call(), Configuration.of(without_template)))
    assert rm.core.context.apps[submit(rm, "cid", "root.dev.new")].queue == "root.dev.new"
    with pytest.raises(YarnException, match="does not have permission"):
        submit(rm, "cid", "root.dev.other")


def test_below_an_existing_queue_access_is_checked_before_existence() -> None:
    """The permissions of an unknown queue are checked before whether it could be created."""
    rm = RM(ACLS)
    with pytest.raises(YarnException, match="User cid does not have permission"):
        submit(rm, "cid", "root.default.new")
    assert rm.core.context.apps[submit(rm, "ann", "root.default.new")].diagnostics.endswith(
        "unknown queue: root.default.new"
    )
    assert rm.core.context.apps[submit(rm, "cid", "nowhere")].diagnostics.endswith("unknown queue: nowhere")


def test_rules_define_whether_queues_are_created() -> None:
    """CSMappingPlacementRule.validateAndNormalizeQueue; otherwise the fallback applies."""
    rules = (
        '{"rules": ['
        '{"type": "user", "matches": "ann", "policy": "user", "parentQueue": "root.dev"},'
        '{"type": "user", "matches": "*", "policy": "user", "parentQueue": "root.dev", "create": false,'
        ' "fallbackResult": "reject"}]}'
    )
    creating = {key: value for key, value in DYNAMIC_ACLS.items() if key != "yarn.acl.enable"}
    json = {PREFIX + "mapping-rule-format": "json", PREFIX + "mapping-rule-json": rules}
    rm = RM({**creating, **json})
    assert rm.core.context.apps[submit(rm, "ann")].queue == "root.dev.ann"
    with pytest.raises(YarnException, match="rejected by a mapping rule"):
        submit(rm, "bob")


MANAGED = {
    **{key: value for key, value in QUEUES.items() if key != "yarn.acl.enable"},
    PREFIX + "queue-mappings": "u:%user:root.dev.%user",
    PREFIX + "root.dev.auto-create-child-queue.enabled": "true",
    PREFIX + "root.dev.leaf-queue-template.capacity": "50",
}


def test_a_rule_creates_leaves_directly_below_a_managed_parent_only() -> None:
    """MappingRuleValidationHelper.validateQueuePathAutoCreation: a grandparent must be of the newer kind."""
    rm = RM(MANAGED)
    for _ in range(2):
        assert rm.core.context.apps[submit(rm, "ann")].queue == "root.dev.ann"
    with pytest.raises(ConfigurationException, match=r"'root\.dev\.a', but it is not a dynamic parent queue"):
        RM({**MANAGED, PREFIX + "queue-mappings": "u:ann:root.dev.a.b"})


def test_the_template_of_a_managed_parent_defines_who_may_have_a_leaf() -> None:
    """getACLsForLegacyAutoCreatedLeafQueue; an existing leaf has lists from the next refresh on."""
    conf = {
        **MANAGED,
        "yarn.acl.enable": "true",
        PREFIX + "root.acl_submit_applications": " ",
        PREFIX + "root.acl_administer_queue": " ",
        PREFIX + "root.dev.leaf-queue-template.acl_submit_applications": "ann",
    }
    rm = RM(conf)
    submit(rm, "ann")
    for user in ("bob", "ann"):
        with pytest.raises(YarnException, match=f"User {user} does not have permission"):
            submit(rm, user)
    rm.send(RefreshQueues(rm.call(), Configuration.of(conf)))
    submit(rm, "ann")


PRIORITIES = {
    **QUEUES,
    "yarn.acl.enable": "true",
    "yarn.cluster.max-application-priority": "10",
    PREFIX + "root.dev.acl_application_max_priority": "[user=ann group=staff max_priority=7 default_priority=3]",
    PREFIX + "root.dev.default-application-priority": "5",
    PREFIX + "root.default.default-application-priority": "4",
}


def submit_at(rm: RM, user: str, priority: int | None, queue: str = "dev") -> int:
    """The application's priority after that."""
    app: ApplicationId = rm.send(GetNewApplication(rm.call())).application_id
    context = ApplicationSubmissionContext(app, queue=queue, priority=priority, resource=Resource(1024, 1))
    rm.send(SubmitApplication(rm.call(), user, context))
    return rm.core.context.apps[app].priority


def test_a_priority_list_limits_submitted_priorities_and_sets_a_default() -> None:
    """CapacityScheduler.checkAndGetApplicationPriority; the message is that of a real cluster."""
    rm = RM(PRIORITIES)
    assert submit_at(rm, "ann", None) == 3
    assert submit_at(rm, "ann", 7) == 7
    assert submit_at(rm, "bob", None, "default") == 4
    refusal = (
        r"^org\.apache\.hadoop\.security\.AccessControlException: User ann \(auth:SIMPLE\) does not have permission to "
        r"submit/update application_\d+_0004 for 8$"
    )
    with pytest.raises(YarnException, match=refusal):
        submit_at(rm, "ann", 8)
    with pytest.raises(YarnException, match=r"for 5$"):
        submit_at(rm, "bob", None)
    without = RM({key: value for key, value in PRIORITIES.items() if key != "yarn.acl.enable"})
    assert submit_at(without, "bob", 8) == 8


def test_a_priority_list_limits_changes_by_the_calling_user() -> None:
    rm = RM(PRIORITIES)
    app = submit(rm, "ann", "dev")
    assert rm.send(UpdateApplicationPriority(rm.call(), app, 6, "cid", ("staff",))) == 6
    with pytest.raises(YarnException, match=r"User ann .* for 9$"):
        rm.send(UpdateApplicationPriority(rm.call(), app, 9, "ann"))
    assert rm.core.context.apps[app].priority == 6
