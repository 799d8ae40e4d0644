"""The answers to the page of stepping."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.wire.web.asgi import Reply, ask
from wire.web.access import AccessCheck
from wire.web.application import WebApplication
from yarn.configuration import Configuration
from yarn.settings.yarnling import OPEN_TO_LOCAL_USERS
from yarnling.lessons.chapters import preemption
from yarnling.stepping.controls import BRANCHES_MAX, Controls
from yarnling.stepping.sources import Scene
from yarnling.stepping.web.service import AFTER, BEFORE, BODY_BYTES_MAX, StepService

OPEN = Configuration.of({OPEN_TO_LOCAL_USERS.key: "true"})
JSON = {"content-type": "application/json"}


@pytest.fixture
def controls() -> Iterator[Controls]:
    opened = Controls(Scene(preemption.LESSON))
    yield opened
    opened.close()


@pytest.fixture
def application(controls: Controls) -> WebApplication:
    return WebApplication(StepService(controls).rows(), AccessCheck(OPEN, ()))


async def command(application: WebApplication, name: str, argument: str = "") -> Reply:
    body = json.dumps({"command": name, "argument": argument}).encode()
    return await ask(application, "/command", method="POST", body=body, headers=JSON)


async def test_the_state_has_the_step_and_the_cluster(application: WebApplication) -> None:
    first = (await ask(application, "/state")).json
    assert (first["position"], first["step"], first["view"]["rm"]) == (0, None, "down")
    await command(application, "time", "8")
    state = (await command(application, "heartbeat")).json
    assert state["step"]["title"].startswith("nodeHeartbeat from NM n")
    assert "placed" in [line["kind"] for line in state["step"]["lines"]]
    assert [node["name"] for node in state["view"]["nodes"]] == ["n1", "n2"]
    numbers = [step["number"] for step in state["around"]]
    assert numbers == list(range(state["position"] - BEFORE, state["position"] + 1))
    back = (await command(application, "back", "20")).json
    assert [step["number"] for step in back["around"]][-1] == back["position"] + AFTER


async def test_a_fork_is_another_run_that_can_be_left_again(application: WebApplication) -> None:
    await command(application, "time", "8")
    forked = (await command(application, "fork", "kill n2")).json
    assert forked["branches"][0] == "the run"
    assert forked["branches"][1].startswith("kill n2 (after step ")
    assert forked["current"] == 1
    assert forked["view"]["nodes"][1]["process"] == "down"
    position = forked["position"] - 1
    assert f"--change '{position}: kill n2'" in forked["repeated"]
    first = (await command(application, "branch", "0")).json
    assert first["view"]["nodes"][1]["process"] == "running"


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"{", "the body is not a command"),
        (b'{"command": 1}', "the body is not a command"),
        (b'{"command": "next", "times": 2}', "the body is not a command"),
        (b'{"command": "dance"}', "there is no command 'dance'"),
        (b'{"command": "fork", "argument": "kill n9"}', "there is no node n9"),
        (b'{"command": "next", "argument": "-1"}', "is not a whole number"),
        (b'{"command": "step", "argument": "999999999999"}', "is not a whole number"),
        (b'{"command": "time", "argument": "nan"}', "is not a time in seconds"),
        (b'{"command": "branch", "argument": "1"}', "is not the number of a run"),
        (b'{"command": "%s"}' % (b"x" * BODY_BYTES_MAX), "is too long"),
    ],
)
async def test_what_is_refused_changes_nothing(application: WebApplication, body: bytes, problem: str) -> None:
    before = (await ask(application, "/state")).json
    reply = await ask(application, "/command", method="POST", body=body, headers=JSON)
    assert reply.status == 400
    assert problem in reply.json["RemoteException"]["message"]
    assert (await ask(application, "/state")).json == before


async def test_other_origins_may_not_give_commands(application: WebApplication) -> None:
    headers = {**JSON, "origin": "http://elsewhere.example"}
    reply = await ask(application, "/command", method="POST", body=b'{"command": "next"}', headers=headers)
    assert reply.status == 403


async def test_the_page_and_what_it_loads_are_served(application: WebApplication) -> None:
    page = await ask(application, "/")
    assert "/static/step/app.js" in page.text
    assert "script-src 'self'" in page.headers["content-security-policy"]
    for path in ("/static/step/app.js", "/static/step/happened.js", "/static/step/cluster.js", "/static/step/step.css"):
        assert (await ask(application, path)).status == 200


def test_the_number_of_runs_is_bounded(controls: Controls) -> None:
    controls.do("time", "1")
    for _ in range(BRANCHES_MAX - 1):
        controls.do("branch", "0")
        controls.do("fork", "pause n1")
    with pytest.raises(Exception, match=f"there are {BRANCHES_MAX} runs already"):
        controls.do("fork", "resume n1")


def test_the_ends_of_a_run_are_said(controls: Controls) -> None:
    assert controls.do("back") == "this is the start of the run"
    assert controls.do("previous change") == "there is no change before this position"
    assert controls.do("previous moment") == "no moment is before this position"
    controls.do("end")
    assert controls.do("moment") == "no moment follows in this run"
    assert controls.do("moments") == "these are all moments of the run"
    assert controls.do("next") == "this is the end of the run"
    assert controls.do("heartbeat", "n1") == "no heartbeat that the ResourceManager handles follows in this run"
    assert controls.do("previous heartbeat", "n1") == ""
    step = controls.session.step
    assert step is not None
    assert step.node == "n1"
