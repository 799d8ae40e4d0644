"""AMs and containers that keep running while the ResourceManager restarts.

Named after TestWorkPreservingRMRestart where that has the case.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from rm.core.events import NodeHeartbeat, RegisterNode
from rm.core.reports.applications import application_report
from tests.rm.builders import NM, done, resource_request
from tests.rm.stored import StoredRM
from yarn.containers import Container, NMContainerStatus
from yarn.errors import ApplicationMasterNotRegisteredException
from yarn.ids import ApplicationId, NodeId
from yarn.protocols.tracker import NodeHeartbeatRequest, NodeHeartbeatResponse, RegisterNodeManagerRequest
from yarn.resource import Resource
from yarn.states import ContainerState, YarnApplicationState

WAIT_MS = 10_000


def used(rm: StoredRM) -> tuple[int, int, int]:
    """MB in use: on all nodes, in the root queue, by all of the user."""
    scheduler = rm.core.scheduler
    nodes = sum(node.allocated.memory_mb for node in scheduler.nodes.values())
    root, leaf = scheduler.queues["root"], scheduler.queue("default")
    users = sum(user.usage.used("").memory_mb for user in leaf.users.users.values())  # type: ignore[union-attr]
    return nodes, root.usage.used("").memory_mb, users


class Job:
    """An application with its AM on one node and two tasks on another."""

    def __init__(self, conf: Mapping[str, str] | None = None, **context: object) -> None:
        self.rm = StoredRM(conf)
        for host in ("n1", "n2"):
            self.rm.node(host)
        self.app: ApplicationId = self.rm.submit(**context)
        self.am: Container = self.rm.run_am(self.app, "n1")
        self.tasks = self.rm.get(self.app, 2, "n2")

    def restart(self) -> StoredRM:
        self.rm = self.rm.restart()
        return self.rm


@pytest.fixture
def job() -> Job:
    return Job()


def test_nodes_report_their_containers_after_a_restart(job: Job) -> None:
    before = used(job.rm)
    rm = job.restart()
    assert (rm.state(job.app), rm.attempt_state(job.app)) == ("ACCEPTED", "LAUNCHED")
    rm.comes_back("n1")
    rm.comes_back("n2")
    assert used(rm) == before == (3072, 3072, 3072)
    containers = rm.core.scheduler.containers_of(job.app)
    assert set(containers) == {job.am.id, *(task.id for task in job.tasks)}
    assert [c.id for c in containers.values() if c.is_am] == [job.am.id]
    assert list(rm.core.context.apps[job.app].ran_nodes) == [
        rm.nodes["n1"].node_id,
        rm.nodes["n2"].node_id,
    ]


def test_an_am_registers_again_and_its_application_finishes(job: Job) -> None:
    rm = job.restart()
    rm.comes_back("n1")
    rm.comes_back("n2")
    with pytest.raises(ApplicationMasterNotRegisteredException, match="AM should re-register"):
        rm.allocate(job.app)
    answer = rm.register(job.app)
    assert answer.containers_from_previous_attempts == ()
    assert rm.state(job.app) == "RUNNING"
    rm.beat("n2", ended=[done(task.id) for task in job.tasks])
    assert {status.container_id for status in rm.allocate(job.app).completed} == {task.id for task in job.tasks}
    rm.finish(job.app)
    rm.beat("n1", ended=[done(job.am.id)])
    assert application_report(rm.core.context, job.app).state is YarnApplicationState.FINISHED
    assert used(rm) == (0, 0, 0)
    assert rm.attempt_id(job.app).attempt == 1


def test_a_new_container_has_the_new_epoch_in_its_id(job: Job) -> None:
    rm = job.restart().restart()
    for host in ("n1", "n2"):
        rm.comes_back(host)
    rm.register(job.app)
    rm.wait(WAIT_MS + 1)
    (container,) = rm.get(job.app, 1, "n2")
    assert (container.id.epoch, container.id.sequence) == (2, 1)
    assert "container_e02_" in str(container.id)


def test_nothing_is_allocated_before_nodes_and_ams_had_time_to_return(job: Job) -> None:
    """testNewContainersNotAllocatedDuringSchedulerRecovery"""
    rm = job.restart()
    rm.comes_back("n1")
    rm.comes_back("n2")
    rm.register(job.app)
    rm.allocate(job.app, [resource_request(1)])
    rm.wait(WAIT_MS - 1)
    rm.beat("n2")
    rm.wait(1)
    rm.beat("n2")
    assert rm.allocate(job.app).allocated == ()
    rm.wait(1)
    rm.beat("n2")
    assert len(rm.allocate(job.app).allocated) == 1


def test_a_recovered_container_frees_its_resources_when_it_completes(job: Job) -> None:
    """The queue counts it at once, like any running container."""
    rm = job.restart()
    rm.comes_back("n1")
    rm.comes_back("n2")
    rm.register(job.app)
    rm.allocate(job.app, release=[job.tasks[0].id])
    assert used(rm) == (3072, 2048, 2048)
    rm.beat("n2")
    rm.beat("n2")
    assert used(rm) == (2048, 2048, 2048)


def test_a_recovered_attempt_does_not_wait_for_its_am(job: Job) -> None:
    """The AM's own blacklist is restored, not the RM's blacklist for AMs."""
    rm = job.restart()
    attempt = rm.core.scheduler.applications[job.app].current_attempt
    assert attempt is not None
    assert not attempt.is_waiting_for_master
    attempt.update_blacklist(["n1"], [])
    assert (attempt.blacklist, attempt.system_blacklist) == ({"n1"}, set())


def test_without_applications_scheduling_starts_at_once() -> None:
    rm = StoredRM().restart()
    rm.node("n1")
    app = rm.submit()
    rm.run_am(app)
    assert rm.state(app) == "RUNNING"


def test_a_task_that_ended_during_the_outage_is_reported_to_its_am(job: Job) -> None:
    rm = job.restart()
    rm.comes_back("n1")
    rm.comes_back("n2", ended={job.tasks[0].id: 3})
    rm.register(job.app)
    (status,) = rm.allocate(job.app).completed
    assert (status.container_id, status.exit_status) == (job.tasks[0].id, 3)
    assert used(rm) == (2048, 2048, 2048)


def test_an_am_that_died_during_the_outage_is_retried_and_its_tasks_are_killed(job: Job) -> None:
    rm = job.restart()
    rm.comes_back("n1", ended={job.am.id: 1})
    assert rm.attempt_id(job.app).attempt == 2
    rm.comes_back("n2")
    assert set(rm.beat("n2").containers_to_clean_up) == {task.id for task in job.tasks}
    assert used(rm) == (0, 0, 0)
    rm.wait(WAIT_MS + 1)
    assert rm.run_am(job.app).id.epoch == 1


def test_orphaned_containers_are_killed(job: Job) -> None:
    """A container of an application that ended before the restart, and one of an unknown application."""
    rm = job.rm
    other = rm.submit()
    stray = rm.run_am(other, "n2")
    rm.kill(other)
    rm.nodes["n2"].running[stray.id] = None
    unknown = stray.id._replace(attempt_id=stray.id.attempt_id._replace(application_id=ApplicationId(1, 1)))
    rm.nodes["n1"].running[unknown] = None
    rm = job.restart()
    rm.comes_back("n1")
    rm.comes_back("n2")
    replies = {host: rm.beat(host) for host in ("n1", "n2")}
    assert replies["n1"].applications_to_clean_up == (ApplicationId(1, 1),)
    assert replies["n1"].containers_to_clean_up == (unknown,)
    assert replies["n2"].applications_to_clean_up == (other,)
    assert replies["n2"].containers_to_clean_up == (stray.id,)
    assert used(rm) == (3072, 3072, 3072)


def test_a_node_that_returns_unhealthy_loses_its_containers(job: Job) -> None:
    """As one that becomes unhealthy does.

    RMNodeImpl.AddNodeTransition gives the scheduler no such node and forgets its containers: they would run, uncounted,
    beside a later attempt (docs/fidelity.md).
    """
    rm = job.restart()
    rm.comes_back("n1")
    rm.comes_back("n2", healthy=False, ended={job.tasks[0].id: 3})
    rm.register(job.app)
    ends = {status.container_id: status.exit_status for status in rm.allocate(job.app).completed}
    assert ends == {job.tasks[0].id: 3, job.tasks[1].id: -100}
    assert used(rm) == (1024, 1024, 1024)
    assert rm.beat("n2", healthy=False).containers_to_clean_up == (job.tasks[1].id,)
    rm.beat("n2", healthy=True)
    rm.beat("n2", ended=[done(job.tasks[1].id, -106)])
    assert rm.allocate(job.app).completed == ()


def test_an_am_on_a_node_that_returns_unhealthy_is_retried(job: Job) -> None:
    rm = job.restart()
    rm.comes_back("n1", healthy=False)
    assert rm.attempt_id(job.app).attempt == 2
    assert rm.beat("n1", healthy=False).containers_to_clean_up == (job.am.id,)


def test_an_unhealthy_node_cannot_end_a_container_that_runs_on_another(job: Job) -> None:
    rm = job.restart()
    rm.comes_back("n1")
    rm.comes_back("n2")
    stranger = rm.nodes["n3"] = NM(NodeId("n3", 45454), Resource(8192, 8))
    stranger.running[job.am.id] = None
    rm.comes_back("n3", healthy=False, ended={job.tasks[0].id: 3})
    assert rm.beat("n3", healthy=False).containers_to_clean_up == (job.am.id,)
    rm.register(job.app)
    assert rm.allocate(job.app).completed == ()
    assert (rm.attempt_id(job.app).attempt, used(rm)) == (1, (3072, 3072, 3072))


def test_a_container_released_before_its_node_returns_is_killed_when_it_does(job: Job) -> None:
    """testReleaseWhileRunningAfterRestart: the AM returns before the node."""
    rm = job.restart()
    rm.comes_back("n1")
    rm.register(job.app)
    rm.allocate(job.app, release=[job.tasks[0].id])
    rm.comes_back("n2")
    assert rm.beat("n2").containers_to_clean_up == (job.tasks[0].id,)
    rm.beat("n2")
    assert used(rm) == (2048, 2048, 2048)
    assert [status.container_id for status in rm.allocate(job.app).completed] == [job.tasks[0].id]


def test_kept_containers_return_to_the_am_of_the_next_attempt() -> None:
    """Those whose node registers after the AM are reported by an allocate, with a token for the node."""
    job = Job(keep_containers_across_attempts=True, max_app_attempts=3)
    rm = job.rm
    rm.beat("n1", ended=[done(job.am.id, 1)])
    rm.run_am(job.app, "n1")
    rm = job.restart()
    rm.comes_back("n1")
    assert rm.register(job.app).containers_from_previous_attempts == ()
    rm.comes_back("n2")
    reply = rm.allocate(job.app)
    assert {container.id for container in reply.containers_from_previous_attempts} == {task.id for task in job.tasks}
    assert [token.node_id for token in reply.nm_tokens] == [rm.nodes["n2"].node_id]
    assert rm.allocate(job.app).containers_from_previous_attempts == ()
    assert used(rm) == (3072, 3072, 3072)


def test_kept_containers_reported_before_the_am_registers_are_in_its_reply() -> None:
    """The next allocate does not report them again; the AM itself is not among them."""
    job = Job(keep_containers_across_attempts=True, max_app_attempts=3)
    job.rm.beat("n1", ended=[done(job.am.id, 1)])
    job.rm.run_am(job.app, "n1")
    rm = job.restart()
    rm.comes_back("n1")
    rm.comes_back("n2")
    reported = rm.register(job.app).containers_from_previous_attempts
    assert {container.id for container in reported} == {task.id for task in job.tasks}
    assert rm.allocate(job.app).containers_from_previous_attempts == ()


def test_an_unmanaged_am_keeps_running() -> None:
    rm = StoredRM()
    rm.node("n1")
    app = rm.submit(unmanaged_am=True)
    rm.register(app)
    (task,) = rm.get(app, 1)
    again = rm.restart()
    again.comes_back()
    again.register(app)
    assert again.state(app) == "RUNNING"
    again.finish(app)
    assert again.state(app) == "FINISHED"
    assert again.beat().applications_to_clean_up == (app,)
    assert task.id.epoch == 0


def test_state_survives_a_second_kill_before_nodes_and_ams_return(job: Job) -> None:
    rm = job.restart().restart()
    rm.comes_back("n1")
    rm.comes_back("n2")
    rm.register(job.app)
    assert used(rm) == (3072, 3072, 3072)
    rm.kill(job.app)
    for host in ("n1", "n2"):
        rm.beat(host)
        rm.beat(host)
    assert rm.state(job.app) == "KILLED"
    assert used(rm) == (0, 0, 0)
    assert rm.restart().state(job.app) == "KILLED"


def test_an_application_that_waited_for_its_am_is_served_first_of_all_pending() -> None:
    """fifo-for-pending-apps: recovered applications come first."""
    conf = {"yarn.scheduler.capacity.maximum-am-resource-percent": "0.1"}
    rm = StoredRM(conf)
    rm.node("n1")
    first, second = rm.submit(), rm.submit()
    rm.run_am(first)
    assert rm.attempt_state(second) == "SCHEDULED"
    again = rm.restart()
    assert [again.attempt_state(app) for app in (first, second)] == ["LAUNCHED", "SCHEDULED"]
    again.comes_back()
    again.register(first)
    assert again.core.scheduler.applications[first].current_attempt.is_recovering  # type: ignore[union-attr]
    assert again.core.scheduler.queue("default").active_count == 1  # type: ignore[union-attr]


def test_a_container_is_recovered_with_its_size_and_queue_usage(job: Job) -> None:
    """Its size is the one that the NodeManager reports; nothing else stores it."""
    rm = job.restart()
    rm.comes_back("n2", size=Resource(2048, 2))
    sizes = [c.resource.memory_mb for c in rm.core.scheduler.containers_of(job.app).values()]
    assert sizes == [2048, 2048]
    assert used(rm) == (4096, 4096, 4096)


def test_a_container_that_has_ended_ends_again_if_a_new_node_registers_with_it(job: Job) -> None:
    """The RM cannot know better, and Hadoop recovers it too (AbstractYarnScheduler.recoverContainersOnNode)."""
    rm, (task, _) = job.rm, job.tasks
    rm.beat("n2", ended=[done(task.id)])
    assert [one.exit_status for one in rm.allocate(job.app).completed] == [0]
    other = NodeId("n3", 45454)
    report = NMContainerStatus(task.id, ContainerState.RUNNING, task.resource)
    request = RegisterNodeManagerRequest(other, 8042, Resource(8192, 8), "", (report,), (job.app,))
    rm.send(RegisterNode(rm.call(), request, "/default-rack"))
    ended = NodeHeartbeatRequest(other, 0, (done(task.id, 3),))
    rm.send(NodeHeartbeat(rm.call(), ended))
    assert [one.exit_status for one in rm.allocate(job.app).completed] == [3]


@pytest.mark.parametrize("state", [ContainerState.RUNNING, ContainerState.COMPLETE])
def test_a_node_cannot_report_a_container_that_runs_on_another(job: Job, state: ContainerState) -> None:
    """I-15: it keeps its node and size, and is counted once. Another node that reports it must kill it."""
    rm, container = job.rm, job.tasks[0]
    before = used(rm)
    stranger = NodeId("n3", 1)
    report = NMContainerStatus(container.id, state, Resource(3072, 1))
    request = RegisterNodeManagerRequest(stranger, 8042, Resource(8192, 8), "", (report,), (job.app,))
    rm.send(RegisterNode(rm.call(), request, "/default-rack"))
    assert used(rm) == before
    held = rm.core.scheduler.container(container.id)
    assert held is not None
    assert (held.node_id, held.resource) == (rm.nodes["n2"].node_id, container.resource)
    reply = rm.send(NodeHeartbeat(rm.call(), NodeHeartbeatRequest(stranger, 0)))
    assert isinstance(reply, NodeHeartbeatResponse)
    assert reply.containers_to_clean_up == ((container.id,) if state is ContainerState.RUNNING else ())
    assert rm.allocate(job.app).completed == ()
