"""Each situation in which a request waits: the verdict of the core, the text of `yarnling explain`, and REST's JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from rich.console import Console

from rm.core.events import Allocate, RefreshNodes
from rm.core.host_lists import HostLists
from rm.shell.inspection_service import InspectionService
from rm.shell.web.live import LiveService
from tests.rm.builders import RM, resource_request
from tests.rm.test_preemption import QUEUES, crowded
from tests.rm.test_turn import two_queues
from tests.rm.test_verdicts import AMS, CAPACITY, TWO_QUEUES, running, start
from tests.rm.test_verdicts_of_nodes import labelled, reserved
from tests.wire.web.asgi import NoCheck, ask
from wire.web.application import WebApplication
from yarn.containers import ANY, ResourceRequest
from yarn.ids import ApplicationId
from yarn.protocols.inspection import Explanation
from yarn.protocols.master import AllocateRequest
from yarn.resource import Resource
from yarn.states import DecommissionType
from yarnling.cli.shared.output import print_indented
from yarnling.cluster.explanations import explained

Scene = Callable[[], tuple[RM, ApplicationId]]


class Situation(NamedTuple):
    """`words`: what the verdict's sentence contains; `more`: a line below it, such as a change that would help."""

    cause: str
    scene: Scene
    words: str
    more: str = ""


def waiting(rm: RM, app: ApplicationId, *asks: ResourceRequest) -> tuple[RM, ApplicationId]:
    rm.allocate(app, asks=asks or (resource_request(1),))
    return rm, app


def cluster_full() -> tuple[RM, ApplicationId]:
    rm = start()
    app = running(rm)
    rm.get(app, 7)
    return waiting(rm, app)


def queue_maximum_of_a_parent() -> tuple[RM, ApplicationId]:
    parent = {f"{CAPACITY}root.a.maximum-capacity": "50", f"{CAPACITY}root.a.queues": "x"}
    leaf = {f"{CAPACITY}root.a.x.capacity": "100", f"{CAPACITY}root.a.x.user-limit-factor": "10"}
    rm = start({**TWO_QUEUES, **parent, **leaf})
    app = running(rm, "x")
    rm.get(app, 3)
    return waiting(rm, app)


def user_limit() -> tuple[RM, ApplicationId]:
    rm = start({**TWO_QUEUES, f"{CAPACITY}root.b.user-limit-factor": "1.5"})
    app = running(rm, "b")
    rm.get(app, 6)
    return waiting(rm, app)


def am_limit_of_the_queue() -> tuple[RM, ApplicationId]:
    rm = start({**TWO_QUEUES, f"{CAPACITY}maximum-am-resource-percent": "0.1"})
    rm.submit(queue="a")
    return rm, rm.submit(queue="a")


def am_limit_of_the_user() -> tuple[RM, ApplicationId]:
    rm = start({**TWO_QUEUES, f"{CAPACITY}root.a.user-limit-factor": "0.5"})
    rm.submit(queue="a")
    rm.submit(queue="a")
    return rm, rm.submit(queue="a")


def too_many_applications() -> tuple[RM, ApplicationId]:
    rm = start({**TWO_QUEUES, f"{CAPACITY}root.a.maximum-applications": "1"})
    rm.submit(queue="a")
    return rm, rm.submit(queue="a")


def too_many_run_in_parallel() -> tuple[RM, ApplicationId]:
    rm = start({**TWO_QUEUES, f"{CAPACITY}root.a.max-parallel-apps": "1"})
    rm.submit(queue="a")
    return rm, rm.submit(queue="a")


def locality_delay() -> tuple[RM, ApplicationId]:
    rm = start(AMS, 8192, 8192, 8192)
    app = running(rm)
    rm.allocate(app, asks=[ResourceRequest(1, place, Resource(1024, 1), 3) for place in ("far", "/far", ANY)])
    rm.beat("n2")
    return rm, app


def reservation() -> tuple[RM, ApplicationId]:
    rm, app, _ = reserved()
    rm.wait(3000)
    return rm, app


def reserved_for_others() -> tuple[RM, ApplicationId]:
    rm, _, app = reserved()
    return rm, app


def blacklist() -> tuple[RM, ApplicationId]:
    rm = start()
    app = running(rm)
    request = AllocateRequest(0, asks=(resource_request(1),), blacklist_additions=("n1",))
    rm.send(Allocate(rm.call(), rm.attempt_id(app), request))
    return rm, app


def place_that_does_not_exist() -> tuple[RM, ApplicationId]:
    rm = start()
    app = running(rm)
    strict = [ResourceRequest(1, place, Resource(1024, 1), 1, relax_locality=False) for place in ("/far", ANY)]
    return waiting(rm, app, ResourceRequest(1, "far", Resource(1024, 1), 1), *strict)


def larger_than_every_node() -> tuple[RM, ApplicationId]:
    rm = start(AMS, 2048, 4096)
    return waiting(rm, running(rm), resource_request(1, 8192))


def nodes_out_of_service() -> tuple[RM, ApplicationId]:
    rm = start()
    app = running(rm)
    rm.send(RefreshNodes(rm.call(), HostLists(excluded=(("n1", None),)), DecommissionType.GRACEFUL, 60))
    return waiting(rm, app)


def another_queue_first() -> tuple[RM, ApplicationId]:
    rm, app, _ = two_queues()
    return rm, app


def overtaken_in_a_full_cluster() -> tuple[RM, ApplicationId]:
    rm, app, _ = two_queues(containers=4)
    return rm, app


def preemption() -> tuple[RM, ApplicationId]:
    rm = RM(QUEUES)
    _, late = crowded(rm)
    return rm, late


def preemption_off() -> tuple[RM, ApplicationId]:
    rm = RM({**QUEUES, "yarn.resourcemanager.scheduler.monitor.enable": "false"})
    _, late = crowded(rm)
    return rm, late


SITUATIONS = [
    Situation("NODE_FULL", cluster_full, "the cluster is full: the most free is on n1: 0 MB free, 1024 needed"),
    Situation(
        "QUEUE_MAXIMUM", queue_maximum_of_a_parent, "queue root.a is at its maximum: it would use 5120 of 4096 MB"
    ),
    Situation("USER_LIMIT", user_limit, "queue root.b is at its user limit: ann holds 7168 of 6144 MB", "with "),
    Situation("AM_QUEUE_LIMIT", am_limit_of_the_queue, "at its limit for AMs: they would use 2048 of 1024 MB"),
    Situation("AM_USER_LIMIT", am_limit_of_the_user, "user ann in queue root.a is at its limit for AMs"),
    Situation("APPLICATION_LIMIT", too_many_applications, "was refused: Queue root.a already has 1 applications"),
    Situation("PARALLEL_LIMIT", too_many_run_in_parallel, "queue root.a already runs 1 application"),
    Situation("LABEL_WITHOUT_NODES", lambda: labelled({}, 50), "label gpu has no running node"),
    Situation("LABEL_WITHOUT_CAPACITY", lambda: labelled({"n2": "gpu"}, 0), "root.a has no capacity on label gpu"),
    Situation("LOCALITY_DELAY", locality_delay, "until it has missed 2 scheduling opportunities; it has missed 1"),
    Situation("RESERVATION", reservation, "its reservation on n1, made 3 s ago", "Reserved for it"),
    Situation("RESERVED_FOR_OTHERS", reserved_for_others, "n1 is reserved for other applications"),
    Situation("BLACKLIST", blacklist, "the application has blacklisted every node that it may use"),
    Situation("PLACE", place_that_does_not_exist, "it may run only on far, /far, and no such node runs"),
    Situation("TOO_LARGE", larger_than_every_node, "n2 has 4096 MB in all, 8192 needed"),
    Situation(
        "NODE_STATE", nodes_out_of_service, "every node that it may use is out of service", "n1 is DECOMMISSIONING"
    ),
    Situation(
        "OTHERS_FIRST",
        another_queue_first,
        "queue root.b comes first (root.b uses 25 % of its guarantee, root.a 150 %), and what is left is kept",
        "1024 MB left, 2048 needed",
    ),
    Situation(
        "NODE_FULL",
        overtaken_in_a_full_cluster,
        "1 container of at least its size was placed for others, in root.b, which comes first",
    ),
    Situation("NODE_FULL", preemption, "the cluster is full", " s by preemption of "),
    Situation("NODE_FULL", preemption_off, "the cluster is full", "preemption is off"),
]


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda situation: situation.scene.__name__.strip("<>"))
async def test_a_situation_is_explained_everywhere(situation: Situation) -> None:
    rm, app = situation.scene()
    inspections = InspectionService(rm.core, lambda: rm.now_ms)
    found = inspections.explained(app, (rm.core.context.apps[app].user, ()), what_if=True)
    (verdict,) = found.verdicts
    assert verdict.cause == situation.cause
    assert situation.words in verdict.sentence
    text = printed(found)
    assert situation.words in text
    assert situation.more in text
    answered = await rest(rm, inspections, f"/apps/{app}/explain")
    (of_rest,) = answered["verdicts"]
    assert (of_rest["cause"], of_rest["sentence"]) == (situation.cause, verdict.sentence)
    assert [setting["key"] for setting in of_rest["settings"]] == [setting.key for setting in verdict.settings]


def printed(found: Explanation) -> str:
    """The output of the command, on one line as long as needed."""
    console = Console(width=400, force_terminal=False)
    with console.capture() as capture:
        for line in explained(found):
            print_indented(console, line)
    return capture.get()


async def rest(rm: RM, inspections: InspectionService, path: str) -> Any:
    application = WebApplication(LiveService(rm.core, inspections).rows(), NoCheck())  # type: ignore[arg-type]
    reply = await ask(application, f"/ws/yarnling/v1{path}")
    assert reply.status == 200, reply.text
    return reply.json
