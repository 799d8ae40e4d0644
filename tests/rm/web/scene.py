"""The cluster on which Hadoop's REST answers were recorded, brought into the same state in a core.

Two nodes of 2,048 MB and 4 vcores. One application of each kind: finished and running ones with an unmanaged AM, a
failed one, and one whose AM has not registered.
"""

from __future__ import annotations

from dataclasses import dataclass

from rm.core.events import Allocate, FinishApplicationMaster, RegisterApplicationMaster
from tests.rm.builders import RM, done
from yarn.containers import ANY, ResourceRequest
from yarn.ids import ApplicationId
from yarn.protocols.master import AllocateRequest, FinishApplicationMasterRequest, RegisterApplicationMasterRequest
from yarn.resource import Resource
from yarn.states import FinalApplicationStatus

_QUEUES = {
    "root.queues": "default,dev,limited,few,stopped",
    "root.default.capacity": "50",
    "root.dev.capacity": "20",
    "root.dev.maximum-capacity": "80",
    "root.dev.queues": "a,b",
    "root.dev.a.capacity": "60",
    "root.dev.b.capacity": "40",
    "root.dev.b.user-limit-factor": "20",
    "root.limited.capacity": "10",
    "root.limited.maximum-allocation-mb": "256",
    "root.few.capacity": "10",
    "root.few.maximum-applications": "1",
    "root.stopped.capacity": "10",
    "root.stopped.state": "STOPPED",
    "resource-calculator": "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
    "maximum-am-resource-percent": "0.5",
    "per-node-heartbeat.maximum-offswitch-assignments": "1",
}
SETTINGS = {
    **{f"yarn.scheduler.capacity.{key}": value for key, value in _QUEUES.items()},
    "yarn.scheduler.minimum-allocation-mb": "128",
    "yarn.scheduler.maximum-allocation-mb": "1024",
    "yarn.scheduler.maximum-allocation-vcores": "4",
    "yarn.resourcemanager.webapp.address": "localhost:8088",
}
TASK, TOO_LARGE, AM = Resource(256, 1), Resource(1024, 4), Resource(128, 1)
NODE_1, NODE_2 = "localhost", "127.0.0.9"
"""The second node of the recording had the same host and another port."""


FAILURE = (
    "[2026-11-21 00:58:59.200]Exception from container-launch.\nContainer id: {}\nExit code: 1\n\n"
    "[2026-11-21 00:58:59.202]Container exited with a non-zero exit code 1. Error file: prelaunch.err.\n"
    "Last 4096 bytes of prelaunch.err :\n\n"
    "[2026-11-21 00:58:59.202]Container exited with a non-zero exit code 1. Error file: prelaunch.err.\n"
    "Last 4096 bytes of prelaunch.err :\n\n"
)


@dataclass
class Scene:
    """The core, and the ids of its applications."""

    rm: RM
    finished: ApplicationId
    failed: ApplicationId
    running: ApplicationId
    managed: ApplicationId

    @property
    def names(self) -> dict[str, str]:
        """{text in the recording: text here}."""
        theirs = {"0056": self.finished, "0057": self.failed, "0058": self.running, "0059": self.managed}
        ids = {f"1795222023200_{number}": str(app).partition("_")[2] for number, app in theirs.items()}
        return {
            **ids,
            "localhost:45455": f"{NODE_2}:45454",
            "localhost:28042": f"{NODE_2}:8042",
        }


def play() -> Scene:
    """Bring a core into the recorded state."""
    rm = RM(SETTINGS)
    for host in (NODE_1, NODE_2):
        rm.node(host, 2048, 4)
        rm.core.context.nodes[rm.nodes[host].node_id].nm_version = "3.4.1"
    rm.wait(10_000)
    finished = _unmanaged(rm, "finished-one", "default", type="golden", tags=frozenset({"blue", "red"}))
    _unregister(rm, finished)
    failed = rm.submit("alice", "a", name="failed-one", resource=AM, max_app_attempts=1)
    am = rm.launch(failed, NODE_2)
    rm.beat(NODE_2)
    rm.beat(NODE_2, [done(am.id, 1, FAILURE.format(am.id))])
    running = _unmanaged(rm, "running-one", "b", tags=frozenset({"green"}))
    rm.allocate(running, [ResourceRequest(0, ANY, TASK, 2, allocation_request_id=0)])
    rm.beat(NODE_1)
    rm.beat(NODE_2)
    rm.run(*rm.allocate(running).allocated)
    managed = rm.submit("alice", "default", name="managed-one", resource=AM)
    rm.launch(managed, NODE_1)
    rm.beat(NODE_1)
    rm.beat(NODE_2)
    rm.allocate(running, [ResourceRequest(5, ANY, TOO_LARGE, 7, allocation_request_id=0)])
    rm.beat(NODE_2)
    rm.beat(NODE_1)
    _report_progress(rm, running)
    return Scene(rm, finished, failed, running, managed)


def _unmanaged(rm: RM, name: str, queue: str, **context: object) -> ApplicationId:
    app = rm.submit("alice", queue, name=name, resource=AM, unmanaged_am=True, **context)
    request = RegisterApplicationMasterRequest("localhost", -1)
    attempt_id = rm.attempt_id(app)
    rm._response_ids[attempt_id] = 0
    rm.send(RegisterApplicationMaster(rm.call(), attempt_id, request))
    return app


def _report_progress(rm: RM, app: ApplicationId) -> None:
    attempt_id = rm.attempt_id(app)
    request = AllocateRequest(rm._response_ids[attempt_id], progress=0.5)
    rm._response_ids[attempt_id] = rm.send(Allocate(rm.call(), attempt_id, request)).response_id


def _unregister(rm: RM, app: ApplicationId) -> None:
    request = FinishApplicationMasterRequest(
        FinalApplicationStatus.SUCCEEDED, "all done", "http://example.org/history/1"
    )
    rm.send(FinishApplicationMaster(rm.call(), rm.attempt_id(app), request))
