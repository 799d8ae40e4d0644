"""refreshQueues: another configuration is checked whole, against itself and what there is, and only then taken."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from rm.scheduler.config.configuration import CapacitySchedulerConfiguration
from rm.scheduler.context import SchedulerContext
from rm.scheduler.model.applications import Applications
from rm.scheduler.model.node import NodeTracker
from rm.scheduler.model.queue_tree import QueueTree
from yarn.configuration import Configuration
from yarn.faults import ConfigurationException, Severity, refuse_if_faulty
from yarn.settings import with_further


class QueueRefresh:
    """Remembers the configuration that was last taken."""

    __slots__ = ("_applications", "_configuration", "_context", "_tracker", "_tree")

    def __init__(
        self,
        configuration: Configuration,
        context: SchedulerContext,
        tracker: NodeTracker,
        tree: QueueTree,
        applications: Applications,
    ) -> None:
        self._configuration = configuration
        self._context = context
        self._tracker = tracker
        self._tree = tree
        self._applications = applications

    def apply(
        self, configuration: Configuration, check: Callable[[CapacitySchedulerConfiguration], None] | None
    ) -> None:
        """Take it whole, or raise ConfigurationException with every fault.

        After a refusal the old one is applied anew, as Hadoop does; only the order of queues may show it. What was
        taken before there were nodes may not be taken now, and then nothing happens at all. `check` may refuse too.
        """
        try:
            settings = self._checked(configuration)
            if check is not None:
                check(settings)
        except ConfigurationException:
            with suppress(ConfigurationException):
                self._checked(self._configuration)
                self._tree.refresh()
            raise
        self._configuration = configuration
        self._context.settings = settings
        self._tracker.configured_maximum = settings.maximum_allocation
        self._tree.refresh()
        self._applications.recheck_parallel()

    def _checked(self, configuration: Configuration) -> CapacitySchedulerConfiguration:
        comparator, dynamic = self._context.comparator(), self._tree.dynamic_queues()
        settings, faults = CapacitySchedulerConfiguration.read_with_faults(configuration, comparator, dynamic)
        is_sound = not any(fault.severity is Severity.ERROR for fault in faults)
        if settings.is_whole:
            changes = self._tree.faults_of_change(settings, configuration, with_capacities=is_sound)
            faults = with_further(faults, changes)
        refuse_if_faulty(faults)
        return settings
