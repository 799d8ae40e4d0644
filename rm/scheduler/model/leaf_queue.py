"""A queue of applications, as data (LeafQueue).

Two limits are stored and can differ. `current_limit` was set by the last visit of a node (or update of the cluster);
`copied_limit` is its copy from the last time that an application was considered. Headroom and the AM limit are computed
from the copy.
"""

from __future__ import annotations

from rm.scheduler.config.queue_configuration import QueueConfiguration
from rm.scheduler.model.application import FiCaSchedulerApp, SchedulerApplication
from rm.scheduler.model.application_order import ordering_policy
from rm.scheduler.model.context import SchedulerContext
from rm.scheduler.model.pending_applications import PendingApplications
from rm.scheduler.model.queue import CSQueue, ParentQueue
from rm.scheduler.model.refusals import Reason, Refusal
from rm.scheduler.model.rm_container import RMContainer
from rm.scheduler.model.users import QueueShape, UserLimitCache, UsersManager
from yarn.containers import ANY
from yarn.ids import ApplicationAttemptId, ContainerId, NodeId
from yarn.nodes import NO_LABEL
from yarn.resource import Resource


class LeafQueue(CSQueue):
    """A leaf queue.

    The scheduler offers nodes to its `active` applications. Its `pending` ones wait for activation (AM limit).

    `runnable`: active and pending ones. `held_back`: applications that wait because of max-parallel-apps until another
    one ends. `borrowed` {partition: {id: container whose request had no label}}: these may be preempted for requests of
    that partition; a new label of the node does not change that. `maximum_applications`,
    `maximum_applications_per_user` and `last_cluster_resource` are as of the last update of the cluster.
    """

    __slots__ = (
        "active",
        "attempts",
        "borrowed",
        "copied_limit",
        "current_limit",
        "held_back",
        "last_cluster_resource",
        "maximum_applications",
        "maximum_applications_per_user",
        "minimum_allocation_factor",
        "pending",
        "runnable",
        "shape",
        "user_limits",
        "users",
    )

    def __init__(self, configuration: QueueConfiguration, parent: ParentQueue, context: SchedulerContext) -> None:
        super().__init__(configuration, parent, context)
        self.shape = QueueShape(self.capacities)
        self.users = UsersManager(context, self.shape)
        self.user_limits = UserLimitCache()
        self.attempts: dict[ApplicationAttemptId, FiCaSchedulerApp] = {}
        self.runnable: dict[ApplicationAttemptId, FiCaSchedulerApp] = {}
        self.held_back: dict[ApplicationAttemptId, FiCaSchedulerApp] = {}
        self.pending = PendingApplications(context.calculator)
        self.active = ordering_policy(configuration)
        self.borrowed: dict[str, dict[ContainerId, RMContainer]] = {}
        self.maximum_applications = 0
        self.maximum_applications_per_user = 0
        self.minimum_allocation_factor = 0.0
        self.last_cluster_resource = context.cluster_resource
        self.current_limit = self.copied_limit = context.cluster_resource

    @staticmethod
    def of(application: FiCaSchedulerApp | SchedulerApplication) -> LeafQueue:
        """The leaf of the application, with its own type.

        Applications refer to it as a CSQueue because LeafQueue imports them.
        """
        leaf = application.leaf
        assert isinstance(leaf, LeafQueue)
        return leaf

    @property
    def active_count(self) -> int:
        """The number of active applications: those to which the scheduler offers nodes."""
        return len(self.active)

    @property
    def pending_count(self) -> int:
        """The number of applications that wait for activation."""
        return len(self.pending)

    def application_total(self) -> int:
        """The number of attempts that are active, waiting for activation, or held back."""
        return len(self.active) + len(self.pending) + len(self.held_back)

    def runnable_total(self) -> int:
        return len(self.runnable)

    def am_limit(self, partition: str) -> Resource:
        """The most that all AMs together may use, as last computed."""
        return self.usage.am_limit(partition)

    def count_application(self) -> None:
        """Count an application in all queues above."""
        for queue in self.parents():
            queue.application_count += 1

    def uncount_application(self) -> None:
        """Subtract an application from all queues above; a draining one may stop."""
        for queue in self.parents():
            queue.application_count -= 1
            queue.application_finished()

    def label_partitions(self) -> list[str]:
        """The partitions with an AM limit: NO_LABEL and those of the accessible labels.

        For a queue that may use all labels, these are the partitions on which it has capacity or usage
        (getNodeLabelsForQueue).
        """
        if ANY in self.configuration.accessible_labels:
            return self.known_partitions()
        return list(dict.fromkeys((*self.configuration.accessible_labels, NO_LABEL)))

    def store_current_limit(self, limit: Resource) -> None:
        """Set the limit for the current visit of a node."""
        self.current_limit = limit
        self.note_change()
        self.context.stored_limit_count += 1

    def store_copied_limit(self) -> None:
        """Set `copied_limit` to `current_limit`."""
        self.copied_limit = self.current_limit
        self.note_change()
        self.context.stored_limit_count += 1

    def am_refusal(self, application: FiCaSchedulerApp) -> Refusal | None:
        """Why the application has not been activated; None if it does not wait for activation."""
        return self.pending.refusal_of(application)

    def last_refusals(self, application: FiCaSchedulerApp) -> dict[NodeId, Refusal]:
        """{node: why the application was last refused there}, oldest first.

        While the application has pending requests, refusals because of its user count, too.
        """
        own = application.refusals.by_node()
        user = self.users.users.get(application.user)
        if user is not None and application.usage.is_pending():
            for node_id, refusal in user.refusals.by_node().items():
                last = own.get(node_id)
                if last is None or last.reason is Reason.APPLICATION_SATISFIED or last.at_ms < refusal.at_ms:
                    own[node_id] = refusal
        return dict(sorted(own.items(), key=lambda entry: entry[1].at_ms))
