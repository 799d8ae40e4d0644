"""Preemption through the whole core: heartbeats run the rounds, AMs are warned, and losses are counted."""

from __future__ import annotations

from rm.core.effects import Preempted
from rm.core.reports.applications import application_report
from rm.core.reports.queues import queue_info
from tests.rm.builders import RM, resource_request
from yarn.ids import ApplicationId
from yarn.protocols.client import QueueInfoRequest
from yarn.resource import Resource
from yarn.states import ContainerExitStatus

POLICY = "yarn.resourcemanager.monitor.capacity.preemption."
QUEUES = {
    "yarn.scheduler.capacity.root.queues": "a,b",
    "yarn.scheduler.capacity.root.a.capacity": "50",
    "yarn.scheduler.capacity.root.a.user-limit-factor": "2",
    "yarn.scheduler.capacity.root.b.capacity": "50",
    "yarn.resourcemanager.scheduler.monitor.enable": "true",
    POLICY + "monitoring_interval": "3000",
    POLICY + "max_wait_before_kill": "5000",
    POLICY + "total_preemption_per_round": "1.0",
    POLICY + "natural_termination_factor": "1.0",
    POLICY + "max_ignored_over_capacity": "0.0",
}


def crowded(rm: RM) -> tuple[ApplicationId, ApplicationId]:
    """8 GB: `early` in a holds all but the 1 GB of `late`'s AM in b, which requests its other 3."""
    rm.node("n1", 8192)
    late = rm.submit(queue="b")
    rm.run_am(late)
    early = rm.submit(queue="a")
    rm.run_am(early)
    rm.get(early, 6)
    rm.allocate(late, [resource_request(3)])
    return early, late


def pass_time(rm: RM, duration_ms: int) -> list[Preempted]:
    """The preemption effects of that time, which ends with a heartbeat of the node."""
    rm.now_ms += duration_ms
    rm.beat()
    return [effect for effect in rm.effects if isinstance(effect, Preempted)]


def test_containers_are_requested_from_the_am_first_and_killed_later() -> None:
    rm = RM(QUEUES)
    early, late = crowded(rm)
    preempted = pass_time(rm, 3000)
    steps = {(effect.step, effect.reason, effect.serves) for effect in preempted}
    assert steps == {("requested", "GUARANTEE", "root.b")}
    message = rm.allocate(early).preemption
    assert message is not None
    assert {container_id.number for container_id in message.negotiable} == {5, 6, 7}
    assert [offer.count for offer in message.asks] == [3]
    assert pass_time(rm, 3000) == []
    assert {effect.step for effect in pass_time(rm, 3000)} == {"killed"}
    ended = rm.allocate(early).completed
    assert {status.container_id for status in ended} == set(message.negotiable)
    assert {status.exit_status for status in ended} == {ContainerExitStatus.PREEMPTED}
    rm.beat()
    rm.beat()
    assert len(rm.allocate(late).allocated) == 3


def test_an_am_that_releases_containers_in_time_loses_no_others() -> None:
    rm = RM(QUEUES)
    early, late = crowded(rm)
    pass_time(rm, 3000)
    message = rm.allocate(early).preemption
    assert message is not None
    rm.allocate(early, release=message.negotiable)
    rm.beat()
    rm.beat()
    assert len(rm.allocate(late).allocated) == 3
    assert [pass_time(rm, 3000) for _ in range(4)] == [[], [], [], []]


def test_preempted_resources_are_counted_for_the_application_and_its_queues() -> None:
    """RMAppAttemptMetrics and QueueMetrics: containers, sizes, and the seconds that they ran."""
    rm = RM(QUEUES)
    early, _ = crowded(rm)
    for _ in range(3):
        pass_time(rm, 3000)
    app = rm.core.context.apps[early]
    assert (app.preempted_containers, app.preempted_ams) == (3, 0)
    assert (app.losses.containers, app.losses.resource.memory_mb, app.losses.resource.vcores) == (3, 3072, 3)
    assert app.losses.memory_mb_seconds == 3 * 9 * 1024
    usage = application_report(rm.core.context, early).usage
    assert (usage.preempted_memory_seconds, usage.preempted_vcore_seconds) == (3 * 9 * 1024, 3 * 9)
    queues = rm.core.scheduler.queues
    assert [queues[path].losses.containers for path in ("root", "root.a", "root.b")] == [3, 3, 0]
    assert queues["root"].losses.memory_mb_seconds == 3 * 9 * 1024


def test_a_preempted_am_ends_its_attempt_without_counting_as_a_failure() -> None:
    """In a queue that has only AMs, the last application's AM is preempted, down to what AMs may use."""
    shares = {"yarn.scheduler.capacity.root.a.capacity": "25", "yarn.scheduler.capacity.root.b.capacity": "75"}
    rm = RM({**QUEUES, **shares, "yarn.scheduler.capacity.root.a.user-limit-factor": "4"})
    rm.node("n1", 8192)
    late = rm.submit(queue="b")
    rm.run_am(late)
    first, second = (rm.submit(queue="a", resource=Resource(2048, 1)) for _ in range(2))
    for app in (first, second):
        rm.run_am(app)
    rm.allocate(late, [resource_request(5)])
    for _ in range(3):
        pass_time(rm, 3000)
    lost = rm.core.context.apps[second]
    assert (lost.preempted_containers, lost.preempted_ams) == (0, 1)
    assert rm.attempt_id(second).attempt == 2
    assert not next(iter(lost.attempts.values())).counts_as_failure()
    assert rm.core.context.apps[first].preempted_ams == 0


def test_a_queue_reports_whether_it_may_be_preempted() -> None:
    """disable_preemption is inherited, and can be unset below; without monitors preemption is disabled everywhere."""
    conf = {
        **QUEUES,
        "yarn.scheduler.capacity.root.disable_preemption": "true",
        "yarn.scheduler.capacity.root.b.disable_preemption": "false",
        POLICY + "intra-queue-preemption.enabled": "true",
        "yarn.scheduler.capacity.root.a.intra-queue-preemption.disable_preemption": "false",
    }
    assert [switches(RM(conf), queue) for queue in ("root.a", "root.b")] == [(True, True), (False, False)]
    off = {**conf, "yarn.resourcemanager.scheduler.monitor.enable": "false"}
    assert switches(RM(off), "root.b") == (True, True)


def switches(rm: RM, queue: str) -> tuple[bool, bool]:
    info = queue_info(rm.core.context, QueueInfoRequest(queue))
    assert info is not None
    return info.preemption_disabled, info.intra_queue_preemption_disabled
