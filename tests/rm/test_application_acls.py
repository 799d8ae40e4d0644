"""Who may view and change applications (ApplicationACLsManager; spec 2.12)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rm.core.events import (
    Event,
    FailApplicationAttempt,
    KillApplication,
    MoveApplication,
    SignalContainer,
    UpdateApplicationPriority,
    UpdateApplicationTimeouts,
)
from rm.core.explain.application import explanation
from rm.core.reports import applications as reports
from rm.core.reports.queues import queue_info
from tests.rm.builders import RM
from yarn.applications import ApplicationFilter
from yarn.containers import ContainerLaunchContext
from yarn.errors import YarnException
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId
from yarn.protocols.client import QueueInfoRequest
from yarn.resource import Resource
from yarn.states import ApplicationAccessType, ApplicationsRequestScope, SignalContainerCommand

PREFIX = "yarn.scheduler.capacity."
ACLS = {
    "yarn.acl.enable": "true",
    "yarn.admin.acl": "root wheel",
    PREFIX + "root.acl_administer_queue": " ",
    PREFIX + "root.default.acl_administer_queue": "boss",
}
LISTS = {ApplicationAccessType.VIEW_APP: "vic watchers", ApplicationAccessType.MODIFY_APP: "mod"}
MAY_MODIFY = ("ann", "mod", "root", "boss", "yarn")
MAY_VIEW = ("ann", "vic", "root", "boss", "yarn")


def started(conf: dict[str, str] = ACLS) -> tuple[RM, ApplicationId]:
    """ann's application runs; the ResourceManager's own user is yarn."""
    rm = RM(conf, user="yarn")
    rm.node("n1")
    app = rm.submit("ann", am_container=ContainerLaunchContext(application_acls=LISTS))
    rm.run_am(app)
    return rm, app


CALLS: dict[str, Callable[[RM, ApplicationId, str], Event]] = {
    "kill": lambda rm, app, user: KillApplication(rm.call(), app, "enough", user),
    "fail": lambda rm, app, user: FailApplicationAttempt(rm.call(), rm.attempt_id(app), user),
    "move": lambda rm, app, user: MoveApplication(rm.call(), user, app, "default"),
    "priority": lambda rm, app, user: UpdateApplicationPriority(rm.call(), app, 0, user),
    "timeouts": lambda rm, app, user: UpdateApplicationTimeouts(rm.call(), app, rm.now_ms + 60_000, user),
    "signal": lambda rm, app, user: SignalContainer(
        rm.call(), ContainerId(ApplicationAttemptId(app, 1), 1), SignalContainerCommand.OUTPUT_THREAD_DUMP, user
    ),
}


@pytest.mark.case("C6")
@pytest.mark.parametrize("call", CALLS)
def test_only_users_in_the_modify_list_may_change_an_application(call: str) -> None:
    """The owner, administrators, the queue's administrators and users of MODIFY_APP; VIEW_APP is not enough."""
    rm, app = started()
    for user in ("vic", "eve"):
        with pytest.raises(YarnException) as refused:
            rm.send(CALLS[call](rm, app, user))
        assert refused.value.message == (
            f"java.security.AccessControlException: User {user} cannot perform operation MODIFY_APP on {app}"
        )
        assert [effect for effect in rm.effects if type(effect).__name__ != "Refuse"] == []
    for user in MAY_MODIFY:
        rm, app = started()
        rm.send(CALLS[call](rm, app, user))


@pytest.mark.case("C6")
@pytest.mark.parametrize("conf", [{**ACLS, "yarn.acl.enable": "false"}, {**ACLS, "yarn.admin.acl": "*"}])
def test_access_is_unrestricted_until_acls_and_an_admin_list_are_set(conf: dict[str, str]) -> None:
    """YarnConfiguration.DEFAULT_YARN_ADMIN_ACL is everybody."""
    rm, app = started(conf)
    rm.send(KillApplication(rm.call(), app, "enough", "eve"))
    assert rm.state(app) == "KILLED"


def test_access_lists_apply_to_groups() -> None:
    rm, app = started()
    assert reports.application_report(rm.core.context, app, ("eve", ("watchers",))).diagnostics != "N/A"
    rm.send(KillApplication(rm.call(), app, "enough", "eve", ("wheel",)))
    assert rm.state(app) == "KILLED"


@pytest.mark.case("C6")
def test_a_user_without_view_access_gets_a_report_with_few_fields() -> None:
    """RMAppImpl.createAndGetApplicationReport."""
    rm, app = started()
    for user in MAY_VIEW:
        shown = reports.application_report(rm.core.context, app, (user, ()))
        assert shown == reports.application_report(rm.core.context, app)
    for user in ("mod", "eve"):
        report = reports.application_report(rm.core.context, app, (user, ()))
        assert (report.user, report.queue, report.state) == (shown.user, shown.queue, shown.state)
        assert report.current_attempt_id.attempt == -1
        assert (report.host, report.rpc_port, report.progress) == ("N/A", -1, 0.0)
        assert (report.tracking_url, report.original_tracking_url, report.diagnostics) == ("N/A", "N/A", "N/A")
        assert (report.usage.used_containers, report.usage.used) == (-1, Resource(-1, -1))
        assert (report.usage.memory_seconds, report.usage.vcore_seconds) == (0, 0)


def test_attempts_and_containers_are_refused_without_view_access() -> None:
    rm, app = started()
    context, attempt_id, eve = rm.core.context, rm.attempt_id(app), ("eve", ())
    of_application = f"^User eve does not have privilege to see this application {app}$"
    with pytest.raises(YarnException, match=f"^User eve does not have privilege to see this attempt {attempt_id}$"):
        reports.attempt_report(context, attempt_id, eve)
    with pytest.raises(YarnException, match=of_application):
        reports.attempt_reports(context, app, eve)
    with pytest.raises(YarnException, match=of_application):
        reports.container_report(context, ContainerId(attempt_id, 1), eve)
    with pytest.raises(YarnException, match=of_application):
        reports.container_reports(context, attempt_id, eve)
    with pytest.raises(YarnException, match=of_application):
        explanation(context, app, rm.now_ms, eve)
    assert explanation(context, app, rm.now_ms, ("vic", ())) == explanation(context, app, rm.now_ms)
    vic = ("vic", ())
    assert reports.attempt_reports(context, app, vic) == (reports.attempt_report(context, attempt_id, vic),)
    containers = reports.container_reports(context, attempt_id, vic)
    assert containers == (reports.container_report(context, ContainerId(attempt_id, 1), vic),)


def test_a_list_of_applications_is_limited_to_the_requested_scope() -> None:
    rm, app = started()
    own = rm.submit("vic")
    hidden = rm.submit("bob")

    def listed(scope: ApplicationsRequestScope, user: str) -> list[ApplicationId]:
        found = reports.applications(rm.core.context, ApplicationFilter(scope=scope), (user, ()))
        return [report.application_id for report in found]

    assert listed(ApplicationsRequestScope.ALL, "vic") == [app, own, hidden]
    assert listed(ApplicationsRequestScope.VIEWABLE, "vic") == [app, own]
    assert listed(ApplicationsRequestScope.OWN, "vic") == [own]
    assert listed(ApplicationsRequestScope.OWN, "root") == []
    found = reports.applications(rm.core.context, ApplicationFilter(), ("vic", ()))
    assert [report.diagnostics == "N/A" for report in found] == [False, False, True]


def test_a_queue_reports_only_viewable_applications() -> None:
    rm, app = started()
    request = QueueInfoRequest("root", applications=True)
    for user, expected in (("vic", [app]), ("eve", [])):
        info = queue_info(rm.core.context, request, (user, ()))
        assert info is not None
        assert [report.application_id for report in info.applications] == expected


def test_an_am_gets_the_access_lists_of_its_application() -> None:
    rm = RM(ACLS)
    rm.node("n1")
    app = rm.submit("ann", am_container=ContainerLaunchContext(application_acls=LISTS))
    rm.launch(app)
    assert rm.register(app).application_acls == LISTS
