"""Strangers' access by REST with yarn.acl.enable, as in the recordings of Hadoop's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rm.served_cluster import serving
from tests.rm.web.test_writes import send, served, submit

ACLS = {
    "yarn.acl.enable": "true",
    "yarn.admin.acl": "yarn",
    "yarn.scheduler.capacity.root.acl_submit_applications": " ",
    "yarn.scheduler.capacity.root.acl_administer_queue": " ",
    "yarn.scheduler.capacity.root.default.acl_submit_applications": "alice",
}
HIDDEN = {
    "startedTime": 0,
    "launchTime": 0,
    "elapsedTime": 0,
    "masterNodeId": "",
    "allocatedMB": 0,
    "runningContainers": 0,
    "queueUsagePercentage": 0.0,
}
ABSENT = {"amContainerLogs", "amHostHttpAddress", "logAggregationStatus", "resourceRequests"}


async def test_a_stranger_sees_only_what_anybody_may(tmp_path: Path) -> None:
    async with serving(served(tmp_path, **ACLS)) as cluster:
        app = await submit(cluster)
        own = (await send(cluster, "GET", f"/apps/{app}?user.name=alice")).json["app"]
        for user in ("bob", "dr.who"):
            shown = (await send(cluster, "GET", f"/apps/{app}?user.name={user}")).json["app"]
            assert {name: shown[name] for name in HIDDEN} == HIDDEN
            assert not ABSENT & shown.keys()
        assert own["startedTime"] > 0
        assert "logAggregationStatus" in own
        forbidden = await send(cluster, "GET", f"/apps/{app}/appattempts/appattempt_{app[12:]}_000001?user.name=bob")
        assert forbidden.status == 403


@pytest.mark.parametrize(
    ("path", "body", "what"),
    [
        ("state", {"state": "KILLED"}, "kill appid {}"),
        ("queue", {"queue": "root.dev.a"}, "move appid {}"),
        ("priority", {"priority": 1}, "change priority of appid {}"),
        (
            "timeout",
            {"timeout": {"type": "LIFETIME", "expiryTime": "2099-01-01T00:00:00.000+0000"}},
            "change timeout of app {}",
        ),
    ],
)
async def test_a_stranger_changes_nothing(tmp_path: Path, path: str, body: dict[str, object], what: str) -> None:
    async with serving(served(tmp_path, **ACLS)) as cluster:
        app = await submit(cluster)
        reply = await send(cluster, "PUT", f"/apps/{app}/{path}?user.name=bob", body)
        assert (reply.status, reply.text) == (403, f"Unauthorized attempt to {what.format(app)} by remote user bob")
        assert (await send(cluster, "GET", f"/apps/{app}/state")).json == {"state": "ACCEPTED"}


async def test_a_submission_that_the_queue_does_not_admit_is_a_bad_request(tmp_path: Path) -> None:
    async with serving(served(tmp_path, **ACLS)) as cluster:
        app = (await send(cluster, "POST", "/apps/new-application?user.name=bob")).json["application-id"]
        reply = await send(cluster, "POST", "/apps?user.name=bob", {"application-id": app})
        assert reply.status == 400
        assert "User bob does not have permission to submit" in reply.json["RemoteException"]["message"]
        invalid = await send(cluster, "POST", "/apps?user.name=.bob", {"application-id": app})
        assert invalid.status == 400


async def test_submissions_can_be_disabled(tmp_path: Path) -> None:
    off = {"yarn.webapp.enable-rest-app-submissions": "false"}
    async with serving(served(tmp_path, **off)) as cluster:
        reply = await send(cluster, "POST", "/apps/new-application")
        assert (reply.status, reply.text) == (403, "App submission via REST is disabled.")


async def test_numbers_that_the_rpc_could_not_carry_are_refused(tmp_path: Path) -> None:
    async with serving(served(tmp_path)) as cluster:
        app = (await send(cluster, "POST", "/apps/new-application")).json["application-id"]
        for fields in ({"priority": 2**40}, {"max-app-attempts": "x"}, {"application-name": "\ud800"}):
            reply = await send(cluster, "POST", "/apps", {"application-id": app, **fields})
            assert reply.status == 400, fields
        assert (await send(cluster, "GET", f"/apps/{app}")).status == 404
