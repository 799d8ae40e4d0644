"""Handles refreshQueues: checks a new configuration by itself and against the present queues, then applies it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from rm.scheduler.capacity.parallel_applications import ParallelApplications
from rm.scheduler.config.configuration import CapacitySchedulerConfiguration
from rm.scheduler.model.application import ApplicationTable
from rm.scheduler.model.context import SchedulerContext
from rm.scheduler.model.node import NodeTracker
from rm.scheduler.queues.queue_tree import QueueTree
from yarn.configuration import Configuration
from yarn.faults import ConfigurationException, Severity, refuse_if_faulty
from yarn.settings import with_further


class QueueRefresh:
    """Applies new configurations and keeps the one last applied."""

    __slots__ = ("_applications", "_configuration", "_context", "_parallel", "_tracker", "_tree")

    def __init__(
        self,
        configuration: Configuration,
        context: SchedulerContext,
        tracker: NodeTracker,
        tree: QueueTree,
        applications: ApplicationTable,
        parallel: ParallelApplications,
    ) -> None:
        self._configuration = configuration
        self._context = context
        self._tracker = tracker
        self._tree = tree
        self._applications = applications
        self._parallel = parallel

    def apply(
        self, configuration: Configuration, check: Callable[[CapacitySchedulerConfiguration], None] | None
    ) -> None:
        """Apply the configuration, or raise ConfigurationException with every fault. `check` may refuse it too.

        After a refusal the previous configuration is applied again, as in Hadoop, which may change only the order of
        queues. Nothing is applied if the previous one is no longer valid, because there were no nodes at that time.
        """
        try:
            settings = self.check(configuration, check)
        except ConfigurationException:
            with suppress(ConfigurationException):
                self._checked(self._configuration)
                self._tree.refresh(self._applications)
            raise
        self._configuration = configuration
        self._context.settings = settings
        self._tracker.configured_maximum = settings.maximum_allocation
        self._tree.refresh(self._applications)
        self._parallel.recheck(self._tree.root)

    def check(
        self, configuration: Configuration, check: Callable[[CapacitySchedulerConfiguration], None] | None
    ) -> CapacitySchedulerConfiguration:
        """The settings, checked by themselves and against the present queues. Raises ConfigurationException."""
        settings = self._checked(configuration)
        if check is not None:
            check(settings)
        return settings

    def _checked(self, configuration: Configuration) -> CapacitySchedulerConfiguration:
        comparator, dynamic = self._context.comparator(), self._tree.dynamic_queues()
        settings, faults = CapacitySchedulerConfiguration.read_with_faults(configuration, comparator, dynamic)
        is_sound = not any(fault.severity is Severity.ERROR for fault in faults)
        if settings.is_whole:
            changes = self._tree.faults_of_change(settings, configuration, with_capacities=is_sound)
            faults = with_further(faults, changes)
        refuse_if_faulty(faults)
        return settings
