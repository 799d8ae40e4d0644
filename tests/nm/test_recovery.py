"""A core that is given the stored state of an earlier one: which containers run on, which have ended."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from nm.core.effects import (
    DeleteApplicationLogs,
    Effect,
    EndNode,
    EraseStoredState,
    FetchResource,
    InitAuxiliaryService,
    LaunchContainer,
    LeaveContainers,
    ReacquireContainer,
    SendRegistration,
    SendUnregistration,
    Signal,
    SignalProcess,
)
from nm.core.events import (
    ContainerExited,
    ContainerLaunched,
    Event,
    NodeHeartbeatAnswered,
    NodeRegistered,
    Recover,
    ResourceFetched,
    ShutDown,
    Start,
)
from nm.core.settings import CoreSettings
from nm.core.stored_state import NodeRecords, RecoveredContainerStatus, RecoveredNode, StoreEffect
from tests.nm.nodes import APP, NOW_MS, RM, Node, container_id, container_token, exited, launched, stop
from yarn.containers import (
    ContainerLaunchContext,
    ContainerRetryContext,
    LocalResource,
    NMContainerStatus,
    ServiceData,
)
from yarn.errors import NMNotYetReadyException
from yarn.machine import Tick
from yarn.protocols.tracker import NodeHeartbeatResponse, RegisterNodeManagerResponse
from yarn.states import ContainerExitStatus, ContainerRetryPolicy, ContainerState, NodeAction

RECOVERS = CoreSettings(recovery_enabled=True, deletion_delay_ms=0)
SUPERVISED = replace(RECOVERS, is_supervised=True)
FILE = LocalResource("file:/data/words.txt", 5, 1)
WITH_FILE = ContainerLaunchContext(("wc words",), local_resources={"words": FILE})
FAILURE = 7


class RecoveringNode(Node):
    """A core whose store effects are kept; `killed` is the next one after kill -9, before it registers."""

    def __init__(self, settings: CoreSettings = RECOVERS, records: NodeRecords | None = None) -> None:
        super().__init__(settings)
        self.settings = settings
        self.records = records or NodeRecords()

    def step(self, event: Event) -> list[Effect]:
        effects = super().step(event)
        for effect in effects:
            if isinstance(effect, StoreEffect):
                self.records.apply(effect)
        return effects

    @property
    def stored(self) -> RecoveredNode:
        return self.records.state()

    def killed(self, after_ms: int = 5000) -> RecoveringNode:
        node = RecoveringNode(self.settings, self.records)
        node.now_ms = self.now_ms + after_ms
        node.step(Recover(self.stored))
        node.recovery = node.effects
        return node

    recovery: list[Effect]

    def reacquired(self) -> list[ReacquireContainer]:
        return [effect for effect in self.recovery if isinstance(effect, ReacquireContainer)]

    def beats(self, **orders: object) -> None:
        """Send a heartbeat, and have it answered with these orders."""
        self.after(1000, Tick())
        self.answer(**orders)

    def registers(self) -> tuple[NMContainerStatus, ...]:
        """Register; returns the containers that the RM hears of."""
        self.step(Start())
        request = self.one(SendRegistration).request
        self.step(NodeRegistered(RegisterNodeManagerResponse(NodeAction.NORMAL, RM)))
        self.answer()
        return request.containers


@pytest.fixture
def node() -> RecoveringNode:
    node = RecoveringNode()
    node.register()
    return node


def test_nothing_is_stored_without_recovery() -> None:
    node = RecoveringNode(CoreSettings())
    node.register()
    launched(node, 1)
    stop(node, 1)
    node.step(exited(1, 143))
    assert node.stored == RecoveredNode()


def test_a_running_container_is_watched_again(node: RecoveringNode) -> None:
    launched(node, 1)
    again = node.killed(after_ms=5000)
    (effect,) = again.reacquired()
    assert (effect.effect.container_id, effect.effect.launch, effect.elapsed_ms) == (container_id(1), 1, 5000)
    again.step(ContainerLaunched(container_id(1), 1))
    assert again.state(1) == "RUNNING"
    (report,) = again.registers()
    assert (report.container_id, report.state) == (container_id(1), ContainerState.RUNNING)
    again.step(exited(1, 0))
    assert again.core.containers[container_id(1)].exit_status == 0


def test_the_registration_reports_the_applications(node: RecoveringNode) -> None:
    launched(node, 1)
    again = node.killed()
    again.step(Start())
    assert again.one(SendRegistration).request.running_applications == (APP,)


def test_a_container_that_was_not_launched_starts_from_the_beginning(node: RecoveringNode) -> None:
    node.start(1, launch=WITH_FILE)
    assert node.of(FetchResource)
    again = node.killed()
    assert [type(effect) for effect in again.recovery if isinstance(effect, FetchResource | LaunchContainer)] == [
        FetchResource
    ]
    assert again.state(1) == "LOCALIZING"


def test_a_copy_that_was_fetched_is_used_again(node: RecoveringNode) -> None:
    node.start(1, launch=WITH_FILE)
    node.step(ResourceFetched(node.one(FetchResource).fetch_id, "/local/filecache/10/words.txt", 5))
    node.step(ContainerLaunched(container_id(1), 1))
    again = node.killed()
    assert len(again.reacquired()) == 1
    assert again.registers()
    again.start(2, launch=WITH_FILE)
    assert not again.of(FetchResource)
    assert again.one(LaunchContainer).links == {"words": "/local/filecache/10/words.txt"}


def test_the_next_copy_has_a_directory_of_its_own(node: RecoveringNode) -> None:
    node.start(1, launch=WITH_FILE)
    first = node.one(FetchResource)
    node.step(ResourceFetched(first.fetch_id, "/local/filecache/10/words.txt", 5))
    again = node.killed()
    again.registers()
    other = replace(FILE, url="file:/data/other.txt")
    again.start(2, launch=ContainerLaunchContext(("wc",), local_resources={"other": other}))
    assert again.one(FetchResource).number == first.number + 1


def test_an_end_that_the_rm_has_not_acknowledged_is_reported_again(node: RecoveringNode) -> None:
    launched(node, 1)
    node.step(exited(1, FAILURE))
    diagnostics = node.core.containers[container_id(1)].status().diagnostics
    again = node.killed()
    assert again.reacquired() == []
    assert again.state(1) == "DONE"
    (report,) = again.registers()
    assert (report.state, report.exit_status, report.diagnostics) == (ContainerState.COMPLETE, FAILURE, diagnostics)


def test_an_end_that_the_rm_has_acknowledged_is_forgotten(node: RecoveringNode) -> None:
    launched(node, 1)
    node.step(exited(1, 0))
    node.beats(containers_to_forget=(container_id(1),))
    assert node.stored.containers == ()
    assert node.killed().registers() == ()


def test_a_stopped_container_is_ended_by_the_next_node_manager(node: RecoveringNode) -> None:
    """The request was acknowledged, so it survives. The exit status is that of the process, as in Hadoop."""
    launched(node, 1)
    stop(node, 1)
    again = node.killed()
    assert len(again.reacquired()) == 1
    again.step(ContainerLaunched(container_id(1), 1))
    assert again.one(SignalProcess) == SignalProcess(container_id(1), 1, Signal.TERM)
    again.step(exited(1, 143))
    status = again.core.containers[container_id(1)].status()
    assert status.exit_status == 143
    assert "Container recovered as killed.\n" in status.diagnostics
    assert status.diagnostics.count("Container exited with a non-zero exit code 143") == 2


def test_a_container_that_was_stopped_before_its_launch_has_ended(node: RecoveringNode) -> None:
    node.start(1, launch=WITH_FILE)
    stored = node.stored
    node.calls += 1
    stop(node, 1)
    assert node.stored != stored
    again = node.killed()
    assert again.state(1) == "DONE"
    assert not [effect for effect in again.recovery if isinstance(effect, FetchResource | LaunchContainer)]


def test_a_lost_exit_code_is_reported_as_lost(node: RecoveringNode) -> None:
    launched(node, 1)
    again = node.killed()
    again.step(ContainerLaunched(container_id(1), 1))
    again.step(exited(1, ContainerExitStatus.LOST))
    status = again.core.containers[container_id(1)].status()
    assert (status.state, status.exit_status) == (ContainerState.COMPLETE, ContainerExitStatus.LOST)


def test_retries_are_counted_over_the_restart(node: RecoveringNode) -> None:
    retry = ContainerRetryContext(ContainerRetryPolicy.RETRY_ON_ALL_ERRORS, max_retries=2)
    launched(node, 1, ContainerLaunchContext(("false",), retry=retry))
    node.step(exited(1, FAILURE))
    node.now_ms += 2000
    again = node.killed()
    assert again.stored.containers[0].progress.remaining_retries == 1
    again.step(ContainerLaunched(container_id(1), 1))
    again.step(exited(1, FAILURE))
    assert again.state(1) == "RELAUNCHING"
    again.after(2000, ContainerExited(container_id(9), 1, 0))
    assert again.one(LaunchContainer).launch == 2
    again.step(ContainerLaunched(container_id(1), 2))
    again.step(exited(1, FAILURE, launch=2))
    assert again.state(1) == "DONE"


def test_a_token_starts_its_container_only_once_over_the_restart(node: RecoveringNode) -> None:
    launched(node, 1)
    node.step(exited(1, 0))
    node.beats(containers_to_forget=(container_id(1),))
    again = node.killed()
    again.registers()
    error = again.start(1).failed[container_id(1)]
    assert "Attempt to relaunch the same container" in error.message


def test_expired_tokens_are_not_kept(node: RecoveringNode) -> None:
    token = container_token(1, expiry_ms=NOW_MS + 1000)
    node.start(tokens=(token,))
    assert [one for one, _ in node.stored.used_tokens] == [container_id(1)]
    node.now_ms += 2000
    node.start(2)
    assert [one for one, _ in node.stored.used_tokens] == [container_id(2)]


def test_a_start_before_the_registration_is_to_be_tried_again(node: RecoveringNode) -> None:
    again = node.killed()
    assert isinstance(again.start(2).failed[container_id(2)], NMNotYetReadyException)
    again.registers()
    assert again.start(2).succeeded == (container_id(2),)


def test_the_service_data_of_an_application_outlives_its_containers() -> None:
    settings = replace(RECOVERS, auxiliary_services=(("mapreduce_shuffle", b"port"),))
    node = RecoveringNode(settings)
    node.register()
    launched(node, 1, ContainerLaunchContext(("map",), service_data={"mapreduce_shuffle": ServiceData(b"secret")}))
    node.step(exited(1, 0))
    node.beats(containers_to_forget=(container_id(1),))
    again = node.killed()
    (effect,) = (effect for effect in again.recovery if isinstance(effect, InitAuxiliaryService))
    assert (effect.application_id, effect.user, effect.data) == (APP, "alice", b"secret")


def test_the_deletion_of_logs_is_carried_out_by_the_next_node_manager() -> None:
    node = RecoveringNode(replace(RECOVERS, log_retain_ms=60_000))
    node.register()
    launched(node, 1)
    node.beats(applications_to_clean_up=(APP,))
    node.step(exited(1, 143))
    assert node.stored.applications == ()
    assert node.stored.log_deletions == ((APP, node.now_ms + 60_000),)
    again = node.killed(after_ms=20_000)
    again.registers()
    again.after(39_000, exited(9, 0))
    assert again.of(DeleteApplicationLogs) == []
    again.after(1000, exited(9, 0))
    assert again.one(DeleteApplicationLogs) == DeleteApplicationLogs(APP)
    assert again.stored.log_deletions == ()


def test_the_state_of_an_application_is_removed_when_it_ends(node: RecoveringNode) -> None:
    launched(node, 1)
    node.beats(applications_to_clean_up=(APP,))
    node.step(exited(1, 143))
    assert node.stored.applications == ()
    node.beats()
    node.beats()
    assert node.stored.containers == ()


def test_a_container_without_its_application_is_dropped(node: RecoveringNode) -> None:
    launched(node, 1)
    again = RecoveringNode()
    again.step(Recover(replace(node.stored, applications=())))
    assert again.core.containers == {}


@pytest.mark.parametrize("settings", [SUPERVISED, RECOVERS], ids=["supervised", "not supervised"])
def test_only_a_supervised_node_leaves_its_containers_when_it_is_stopped(settings: CoreSettings) -> None:
    node = RecoveringNode(settings)
    node.register()
    launched(node, 1)
    node.step(ShutDown())
    if settings.is_supervised:
        assert node.of(SendUnregistration) == []
        assert [type(effect) for effect in node.effects if isinstance(effect, LeaveContainers | EndNode)] == [
            LeaveContainers,
            EndNode,
        ]
        assert len(node.killed().reacquired()) == 1
    else:
        assert node.of(SendUnregistration)
        assert node.of(LeaveContainers) == []


def test_a_decommissioned_node_keeps_nothing() -> None:
    node = RecoveringNode(SUPERVISED)
    node.register()
    launched(node, 1)
    node.after(1000, Tick())
    node.step(NodeHeartbeatAnswered(NodeHeartbeatResponse(9, NodeAction.SHUTDOWN)))
    assert node.of(LeaveContainers) == []
    node.step(exited(1, 143))
    assert [type(one) for one in node.effects if isinstance(one, EraseStoredState | EndNode)] == [
        EraseStoredState,
        EndNode,
    ]


def test_progress_is_stored_once_a_step(node: RecoveringNode) -> None:
    launched(node, 1)
    node.step(exited(1, FAILURE))
    stored = [effect for effect in node.effects if isinstance(effect, StoreEffect)]
    assert len(stored) == 1
    assert node.stored.containers[0].progress.status is RecoveredContainerStatus.COMPLETED


def test_a_launch_is_stored_with_the_order_to_start_it(node: RecoveringNode) -> None:
    """So a NodeManager that dies right after it never starts the process twice: without a pid file it is LOST."""
    node.start(1)
    assert node.of(LaunchContainer)
    assert node.stored.containers[0].progress.status is RecoveredContainerStatus.LAUNCHED
