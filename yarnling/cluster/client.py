"""A YARN client: submits applications, waits for them, and queries the ResourceManager.

The rules are those of YarnClientImpl. submitApplication returns before the application is accepted. So the client
requests the application's report until the state is no longer SUBMITTED, and submits again if the ResourceManager does
not know the application.
"""

from __future__ import annotations

import asyncio
import getpass
import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from am.client.launching import default_staging_root
from am.client.submission import Submission
from wire.channel import Channels
from wire.cluster_secret import read_client_token
from wire.protocols.admin import ResourceManagerAdministrationProtocol
from wire.protocols.client import ApplicationClientProtocol
from wire.protocols.inspection import InspectionProtocol
from wire.retry import RetryPolicy
from yarn.applications import (
    ApplicationAttemptReport,
    ApplicationFilter,
    ApplicationReport,
    ApplicationSubmissionContext,
    ContainerReport,
)
from yarn.configuration import Configuration
from yarn.errors import ApplicationNotFoundException, InvalidArgumentException, YarnException
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, as_id
from yarn.nodes import ClusterMetrics, NodeGroup, NodeLabel, NodeReport
from yarn.protocols.admin import RefreshNodesRequest
from yarn.protocols.client import (
    GetNewApplicationResponse,
    KillApplicationRequest,
    MoveApplicationRequest,
    QueueInfoRequest,
    UpdatePriorityRequest,
    UpdateTimeoutsRequest,
)
from yarn.protocols.container_management import SignalContainerRequest
from yarn.protocols.inspection import (
    ContainerExplanation,
    ExplainContainerRequest,
    ExplainPastRequest,
    ExplainRequest,
    Explanation,
    PastExplanation,
    about_vcores,
)
from yarn.queues import QueueInfo
from yarn.resource import VCORES
from yarn.settings import resourcemanager
from yarn.states import (
    FINAL_APPLICATION_STATES,
    DecommissionType,
    NodeState,
    SignalContainerCommand,
    YarnApplicationState,
)
from yarn.times import UNLIMITED
from yarnling.cluster.containers import ContainerLog, find_all_logs
from yarnling.cluster.resource_managers import failover

NOT_YET_ACCEPTED = frozenset(
    {YarnApplicationState.NEW, YarnApplicationState.NEW_SAVING, YarnApplicationState.SUBMITTED}
)
LEAF_QUEUES_LISTED_MAX = 20
"""The number of leaf queues that the error of a refused submission lists."""
EXPLAIN_S = 5.0
"""The time, in seconds, the error of a timeout waits for the ResourceManager to explain it."""
_REFUSED = frozenset({YarnApplicationState.FAILED, YarnApplicationState.KILLED})


_logger = logging.getLogger(__name__)


class SubmissionFailed(YarnException):
    """The ResourceManager refused an application. The message contains its diagnostics."""


class WaitTimeout(YarnException):
    """A condition was not met in time.

    The message says what was seen last. If that concerns one application, the next lines say why the application waits.
    """


class Client:
    """A user's connection to the ResourceManager. Close it, or use it as a context manager.

    Methods take ids as records or as text ("application_1700000000000_0001"); malformed text raises InvalidIdException.

    `addresses` is {configuration key: host:port}, for example with yarn.resourcemanager.address
    (LocalCluster.addresses). `conf` is the cluster's configuration (LocalCluster.configuration, or its configuration
    directory loaded), which names the secret that authenticates the client. `user` is the user to act as; "" is the
    user who runs this process. `log_dirs` are the NodeManagers' log directories on this machine; the collection may
    grow. `staging_root` is the directory for the files of applications that `start` submits. Raises
    AccessControlException if the cluster belongs to another user.
    """

    def __init__(
        self,
        addresses: Mapping[str, str],
        *,
        user: str = "",
        conf: Configuration | None = None,
        log_dirs: Collection[Path] = (),
        staging_root: Path | None = None,
    ) -> None:
        configuration = conf or Configuration()
        self.user = user or getpass.getuser()
        self._address = failover(addresses, resourcemanager.ADDRESS.key)
        self._channels = Channels()
        retry, token = RetryPolicy.read(configuration), read_client_token(configuration)
        address = self._address
        admin = failover(addresses, resourcemanager.ADMIN_ADDRESS.key)
        self._rm = ApplicationClientProtocol(address, user=self.user, token=token, retry=retry, channels=self._channels)
        self._inspection = InspectionProtocol(
            address, user=self.user, token=token, retry=retry, channels=self._channels
        )
        self.admin = ResourceManagerAdministrationProtocol(
            admin, user=self.user, token=token, retry=retry, channels=self._channels
        )
        self._lower_case_tags = resourcemanager.FORCE_LOWER_CASE_TAGS.of(configuration)
        self._poll_s = resourcemanager.CLIENT_POLL_INTERVAL.of(configuration) / 1000
        self._log_dirs = log_dirs
        self._configuration = configuration
        self.staging_root = staging_root or default_staging_root()

    def __repr__(self) -> str:
        return f"<Client of {self.user} at {self._address}>"

    async def close(self) -> None:
        await self._channels.close()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def new_application(self) -> GetNewApplicationResponse:
        """Request a new application id. The response also contains the largest container that can be requested."""
        return await self._rm.get_new_application()

    async def submit(self, context: ApplicationSubmissionContext) -> ApplicationReport:
        """Submit an application and wait until it is accepted. Raises SubmissionFailed if it is refused.

        Its tags are put in lower case, as in filters, unless yarn.resourcemanager.application-tag-based-placement's
        force-lowercase is false (ApplicationSubmissionContextPBImpl.setApplicationTags).
        """
        context = replace(context, tags=self._sent(context.tags))
        await self._rm.submit_application(context)
        while True:
            try:
                report = await self.report(context.application_id)
            except ApplicationNotFoundException:
                # A restarted ResourceManager may have lost the application; submitting the same id again is allowed.
                await self._rm.submit_application(context)
                continue
            if report.state in _REFUSED:
                reason = f"{report.diagnostics}{await self._leaf_queues_beside(context.queue)}"
                raise SubmissionFailed(f"Failed to submit {context.application_id} to YARN : {reason}")
            if report.state not in NOT_YET_ACCEPTED:
                return report
            await asyncio.sleep(self._poll_s)

    async def start(self, submission: Submission, warn: Callable[[str], object] = _logger.warning) -> ApplicationReport:
        """Submit one of yarnling's applications (Job, am.programs) under a new id, and wait until it is accepted.

        `warn` is called with notices for the user. Raises InvalidResourceRequestException for a size that is too large.
        """
        new = await self.new_application()
        for notice in submission.check_sizes(new.maximum_capability):
            warn(notice)
        report = await self.submit(submission.build(new.application_id, self.staging_root))
        if submission.vcores > 1 and not await self._counts_vcores(new.application_id):
            warn(about_vcores(submission.vcores))
        return report

    async def _counts_vcores(self, app_id: ApplicationId) -> bool:
        """True if the scheduler counts vcores, or does not say."""
        with suppress(TimeoutError, YarnException):
            async with asyncio.timeout(EXPLAIN_S):
                counted = (await self.explain(app_id)).counted_types
            return not counted or VCORES in counted
        return True

    async def report(self, app_id: ApplicationId | str) -> ApplicationReport:
        return await self._rm.get_application_report(as_id(ApplicationId, app_id))

    async def applications(self, wanted: ApplicationFilter | None = None) -> tuple[ApplicationReport, ...]:
        """The reports of the applications that pass the filter `wanted`; of all applications if it is None."""
        wanted = wanted or ApplicationFilter()
        return await self._rm.get_applications(replace(wanted, tags=self._sent(wanted.tags)))

    def _sent(self, tags: frozenset[str]) -> frozenset[str]:
        return frozenset(tag.lower() for tag in tags) if self._lower_case_tags else tags

    async def wait(
        self,
        app_id: ApplicationId | str,
        *,
        states: frozenset[YarnApplicationState] = FINAL_APPLICATION_STATES,
        timeout_s: float | None = None,
    ) -> ApplicationReport:
        """Wait until the application is in one of `states`, and return its report.

        Raises WaitTimeout, or YarnException if the application ended in another state.
        """
        report: ApplicationReport | None = None
        try:
            async with asyncio.timeout(timeout_s):
                while True:
                    report = await self.report(app_id)
                    if report.state in states:
                        return report
                    if report.state in FINAL_APPLICATION_STATES:
                        wanted = " or ".join(sorted(state.name for state in states))
                        raise YarnException(
                            f"{app_id} ended in state {report.state.name}, waited for {wanted}: {report.diagnostics}"
                        )
                    await asyncio.sleep(self._poll_s)
        except TimeoutError:
            seen = "not known yet" if report is None else f"{report.state.name}, {report.progress:.0%} done"
            seen = f"{app_id} after {timeout_s:g} s: {seen} {_diagnosed(report)}".rstrip()
            raise WaitTimeout(seen + await why_waiting(self, app_id)) from None

    async def kill(self, app_id: ApplicationId | str, diagnostics: str = "") -> None:
        """Kill an application and wait until it has ended."""
        while True:
            request = KillApplicationRequest(as_id(ApplicationId, app_id), diagnostics)
            reply = await self._rm.force_kill_application(request)
            if reply.is_kill_completed:
                return
            await asyncio.sleep(self._poll_s)

    async def move(self, app_id: ApplicationId | str, queue: str) -> None:
        """Move an application with its containers to another leaf queue."""
        await self._rm.move_application_across_queues(MoveApplicationRequest(as_id(ApplicationId, app_id), queue))

    async def update_priority(self, app_id: ApplicationId | str, priority: int) -> int:
        """Set the priority of an application. Returns the priority that it now has.

        The ResourceManager limits the priority to the highest of the cluster. An application that has ended keeps its
        priority.
        """
        return await self._rm.update_application_priority(UpdatePriorityRequest(as_id(ApplicationId, app_id), priority))

    async def update_lifetime(self, app_id: ApplicationId | str, ends: str) -> str:
        """Have an application killed at the time `ends` (a text, see yarn.times).

        Returns the time that is now set: the queue's limit may make it earlier.
        """
        request = UpdateTimeoutsRequest(as_id(ApplicationId, app_id), ends)
        return await self._rm.update_application_timeouts(request) or UNLIMITED

    async def fail_attempt(self, attempt_id: ApplicationAttemptId | str) -> None:
        await self._rm.fail_application_attempt(as_id(ApplicationAttemptId, attempt_id))

    async def explain(self, app_id: ApplicationId | str, *, what_if: bool = False) -> Explanation:
        """Explain why the application's resource requests are not satisfied: a verdict for each, and the last refusal
        on each node, with numbers.

        `what_if`: also try, on a copy of the scheduler, which changes would get each request its next container. This
        takes the ResourceManager some time.
        """
        return await self._inspection.explain(ExplainRequest(as_id(ApplicationId, app_id), what_if))

    async def explain_past(self, app_id: ApplicationId | str) -> PastExplanation:
        """Explain why the application waited in the past: verdicts that the ResourceManager has sampled.

        Raises YarnException if it keeps no history, because it has no web services.
        """
        return await self._inspection.explain_past(ExplainPastRequest(as_id(ApplicationId, app_id)))

    async def explain_container(self, container_id: ContainerId | str) -> ContainerExplanation:
        """Explain why a container is on its node, what a reservation waits for, and why a container was preempted.

        Containers that have ended are explained as long as they are among the last of the ResourceManager.
        """
        return await self._inspection.explain_container(ExplainContainerRequest(as_id(ContainerId, container_id)))

    async def attempts(self, app_id: ApplicationId | str) -> tuple[ApplicationAttemptReport, ...]:
        return await self._rm.get_application_attempts(as_id(ApplicationId, app_id))

    async def attempt(self, attempt_id: ApplicationAttemptId | str) -> ApplicationAttemptReport:
        return await self._rm.get_application_attempt_report(as_id(ApplicationAttemptId, attempt_id))

    async def container(self, container_id: ContainerId | str) -> ContainerReport:
        """The report of a container that has not ended."""
        return await self._rm.get_container_report(as_id(ContainerId, container_id))

    async def signal_container(self, container_id: ContainerId | str, command: SignalContainerCommand) -> None:
        """Have the NodeManager send a signal to the container's processes.

        The NodeManager sends the signal after its next heartbeat.
        """
        await self._rm.signal_to_container(SignalContainerRequest(as_id(ContainerId, container_id), command))

    async def containers(self, attempt_id: ApplicationAttemptId | str) -> tuple[ContainerReport, ...]:
        """The reports of an attempt's containers that have not ended."""
        return await self._rm.get_containers(as_id(ApplicationAttemptId, attempt_id))

    async def metrics(self) -> ClusterMetrics:
        return await self._rm.get_cluster_metrics()

    async def nodes(self, states: frozenset[NodeState] = frozenset()) -> tuple[NodeReport, ...]:
        """The reports of the nodes in these states; of all nodes if no states are given."""
        return await self._rm.get_cluster_nodes(states)

    async def node_groups(self) -> tuple[NodeGroup, ...]:
        """The nodes summarised by state and health report: a short reply however many nodes there are."""
        return await self._inspection.get_node_groups()

    async def node_labels(self) -> tuple[NodeLabel, ...]:
        """The node labels of the cluster."""
        return await self._rm.get_cluster_node_labels()

    async def queue(self, name: str, *, applications: bool = False) -> QueueInfo:
        """A queue with all queues below it. Raises InvalidArgumentException if there is no such queue."""
        info = await self._rm.get_queue_info(QueueInfoRequest(name, applications, children=True, recursive=True))
        if info is None:
            raise InvalidArgumentException(f"queue {name}: there is no such queue")
        return info

    async def _leaf_queues_beside(self, wanted: str) -> str:
        """The names of the leaf queues, in parentheses; "" if `wanted` is one of them."""
        root = await self.queue("root")
        if any(wanted in (queue.name, queue.path) for queue in _queues(root) if not queue.children):
            return ""
        names = leaf_queue_names(root)
        more = ", ..." if len(names) > LEAF_QUEUES_LISTED_MAX else ""
        return f" (submit to a leaf queue: {', '.join(names[:LEAF_QUEUES_LISTED_MAX])}{more})"

    async def refresh_queues(self) -> None:
        """Have the RM read its queues again.

        If they have faults, nothing changes and ConfigurationException lists all faults.
        """
        await self.admin.refresh_queues()

    async def refresh_nodes(
        self, kind: DecommissionType = DecommissionType.NORMAL, timeout_s: int | None = None
    ) -> None:
        """Have the RM read its host lists again. GRACEFUL waits `timeout_s` for containers (None: as configured)."""
        await self.admin.refresh_nodes(RefreshNodesRequest(kind, timeout_s))

    def logs(self, app_id: ApplicationId | str) -> list[ContainerLog]:
        """The log files of the application's containers, sorted by container and name.

        Files of running containers may grow.
        """
        return find_all_logs(self._log_dirs, self._configuration, as_id(ApplicationId, app_id))


async def why_waiting(client: Client, app_id: ApplicationId | str) -> str:
    """The verdicts on the application's unsatisfied requests, each line after a newline.

    "" if there are none, or the ResourceManager does not explain it in time. So an error can always be reported.
    """
    try:
        async with asyncio.timeout(EXPLAIN_S):
            verdicts = (await client.explain(app_id)).verdicts
    except (TimeoutError, YarnException):
        return ""
    lines = [
        line
        for verdict in verdicts
        for line in (
            f"it {verdict.sentence}",
            *(f"{setting.key} = {setting.value}" for setting in verdict.settings),
            *verdict.notes,
        )
    ]
    return "".join(f"\n{line}" for line in dict.fromkeys(lines))


def leaf_queue_names(root: QueueInfo) -> list[str]:
    """The names under which the leaf queues accept submissions: the short name if it is unique, otherwise the path."""
    every = list(_queues(root))
    named = Counter(queue.name for queue in every)
    return [queue.name if named[queue.name] == 1 else queue.path for queue in every if not queue.children]


def _queues(queue: QueueInfo) -> Iterator[QueueInfo]:
    yield queue
    for child in queue.children:
        yield from _queues(child)


def _diagnosed(report: ApplicationReport | None) -> str:
    return f"({report.diagnostics.strip()})" if report is not None and report.diagnostics.strip() else ""
