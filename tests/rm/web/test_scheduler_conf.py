"""Changes of the scheduler's configuration by REST, as Hadoop's own ResourceManager answered them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.hadoop.scheduler_conf import RECORDING, ask
from tests.hadoop.scheduler_conf_scenes import (
    FORMAT,
    POLICY,
    QUEUE_ADMINS,
    SCENES,
    SWAP,
    Command,
    Files,
    Request,
    Restart,
    Scene,
    put,
    queue,
    update,
)
from tests.rm.served_cluster import Cluster, configuration, serving
from tests.rm.web import http
from yarn.configuration import Configuration
from yarn.errors import YarnException

RECORDED: dict[str, list[dict[str, Any]]] = json.loads(RECORDING.read_text())
WEB = "yarn.resourcemanager.webapp.address"
NOT_A_NUMBER = "Hadoop names the text alone; yarnling names the key, the value and the remedy"
UNREADABLE = "Hadoop's message is that of its parser"
DIFFERENCES = {
    'For input string: "abc"': NOT_A_NUMBER,
    'For input string: "x"': NOT_A_NUMBER,
    "No enum constant org.apache.hadoop.yarn.api.records.QueueState.SLEEPING": NOT_A_NUMBER,
    "javax.xml.bind.UnmarshalException": UNREADABLE,
    "NullPointerException": "yarnling refuses a queue without a name as a bad request",
    "com.sun.jersey.api.MessageException": "the server admits bodies of JSON and XML only, before it looks at the path",
    "<exception>WebApplicationException</exception>": "the same",
}
"""{what Hadoop's answer contains: why yarnling's has another text}."""

SWAP_PATH = put(SWAP).target


def conf_of(scene: Scene, tmp_path: Path) -> Configuration:
    values = {"yarn.yarnling.web.enabled": "true", WEB: "127.0.0.1:0", **scene.site(tmp_path / "store"), **scene.queues}
    base = configuration(tmp_path)
    queues = base.keys("yarn.scheduler.capacity.")
    kept = {key: entry for key in base if key not in queues and (entry := base.entry(key)) is not None}
    return Configuration(kept).overridden(values, "test")


def listed(store: Path) -> dict[str, Any]:
    names = sorted(path.name for path in store.iterdir())
    numbered = [".".join(part if not part.isdigit() else "TIME" for part in name.split(".")) for name in names]
    return {"step": "files", "files": numbered, "version": (store / "ConfigVersion").read_bytes().hex()}


async def answer(cluster: Cluster, step: Request) -> dict[str, Any]:
    return await asyncio.to_thread(ask, cluster.addresses, step)


def check(recorded: dict[str, Any], played: dict[str, Any]) -> None:
    reason = next((why for text, why in DIFFERENCES.items() if text in recorded["body"]), None)
    if reason is not None:
        assert played["status"] >= 400, (recorded, played)
        assert played["body"].splitlines()[0] != recorded["body"], f"no longer different: {recorded}"
        return
    body = played["body"] if played["status"] == 200 else played["body"].splitlines()[0]
    assert {**played, "body": body} == {key: recorded[key] for key in ("status", "contentType", "body")}, recorded


@pytest.mark.parametrize("scene", [scene for scene in SCENES if scene.name != "commands"], ids=lambda scene: scene.name)
async def test_answers_are_those_of_hadoop(scene: Scene, tmp_path: Path) -> None:
    conf = conf_of(scene, tmp_path)
    steps, recorded = list(scene.steps), list(RECORDED[scene.name])
    assert len(steps) == len(recorded)
    while steps:
        async with serving(conf) as cluster:
            while steps and not isinstance(steps[0], Restart):
                step, expected = steps.pop(0), recorded.pop(0)
                if isinstance(step, Files):
                    assert listed(tmp_path / "store") == expected
                else:
                    assert isinstance(step, Request)
                    assert not isinstance(step, Command)
                    check(expected, await answer(cluster, step))
        if steps:
            steps.pop(0), recorded.pop(0)


def memory(tmp_path: Path, **settings: str) -> Configuration:
    (scene,) = (scene for scene in SCENES if scene.name == "memory")
    return conf_of(scene, tmp_path).overridden(settings, "test")


async def test_the_scheduler_has_the_change_and_rmadmin_may_not_refresh(tmp_path: Path) -> None:
    async with serving(memory(tmp_path)) as cluster:
        await answer(cluster, put(SWAP))
        queues = cluster.rm.core.scheduler.queues
        assert queues["root.default"].configuration.capacities[""].capacity == pytest.approx(0.4)
        admin = await cluster.admin()
        with pytest.raises(YarnException, match="Scheduler configuration is mutable"):
            await admin.refresh_queues(None)


async def test_a_refusal_names_key_value_and_remedy_of_every_fault(tmp_path: Path) -> None:
    wrong = update(queue("root.default", capacity="x"), queue("root.dev", state="SLEEPING"))
    async with serving(memory(tmp_path)) as cluster:
        first, *lines = (await answer(cluster, put(wrong)))["body"].splitlines()
    assert first.startswith("Failed to re-init queues : ")
    assert [line.partition(": ")[2].partition(":")[0] for line in lines] == [
        "yarn.scheduler.capacity.root.default.capacity = 'x'",
        "yarn.scheduler.capacity.root.dev.state = 'SLEEPING'",
    ]
    assert lines[0].endswith("(write a percentage from 0 to 100)")


@pytest.mark.parametrize(
    "body",
    [
        {"add-queue": [7]},
        {"update-queue": "root.default"},
        {"remove-queue": [{"a": 1}]},
        {"add-queue": {"params": {}}},
        update(queue("root.default", **{"user\0": "1"})),
        {"remove-queue": [f"root.q{number}" for number in range(1001)]},
    ],
    ids=["number", "text", "object", "no name", "no XML", "too many"],
)
async def test_a_body_that_is_no_change_is_a_bad_request(tmp_path: Path, body: object) -> None:
    async with serving(memory(tmp_path)) as cluster:
        before = cluster.rm.core.scheduler.context.settings
        assert (await answer(cluster, put(body)))["status"] == 400
        assert cluster.rm.core.scheduler.context.settings is before


async def test_a_page_of_another_site_cannot_reset_the_configuration(tmp_path: Path) -> None:
    """`format` is the only GET that changes something."""
    async with serving(memory(tmp_path)) as cluster:
        await answer(cluster, put(SWAP))
        reply = await http.ask(
            cluster.addresses[WEB], FORMAT.target, headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
        )
        assert reply.status == 403
        assert cluster.rm.core.scheduler.queues["root.default"].configuration.capacities[""].capacity < 0.5


async def test_an_administrator_of_a_queue_cannot_set_keys_that_are_no_queues(tmp_path: Path) -> None:
    """The path user.dev would be a user's limit; its last name is the queue dev, which dora administers."""
    admins = {"yarn.admin.acl": "admin", POLICY: QUEUE_ADMINS}
    change = update(queue("user.dev", max_parallel_apps="1"))
    async with serving(memory(tmp_path, **admins)) as cluster:
        reply = await answer(cluster, put(change, user="dora"))
    assert reply["body"] == "User is not admin of all modified queues."


async def test_a_page_behind_a_proxy_that_keeps_the_host_may_change_queues(tmp_path: Path) -> None:
    """Web interfaces for queues are served beside the ResourceManager."""
    page = {"Host": "localhost:8080", "Content-Type": "application/json"}
    async with serving(memory(tmp_path)) as cluster:
        for origin, status in (("http://localhost:8080", 200), ("http://example.org", 403)):
            headers = {**page, "Origin": origin}
            reply = await http.ask(cluster.addresses[WEB], SWAP_PATH, method="PUT", body=SWAP, headers=headers)
            assert reply.status == status, reply.text
