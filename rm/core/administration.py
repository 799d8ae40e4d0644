"""ResourceManagerAdministrationProtocol's calls about queues and priorities as the core sees them (AdminService)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from rm.core.placement_rules.mapping import MappingPlacement
from rm.core.queue_acls import QueueAcls
from rm.core.queue_lookup import ConfiguredQueues, SchedulerQueues
from rm.scheduler.config.configuration import CapacitySchedulerConfiguration
from yarn.configuration import Configuration
from yarn.settings import scheduler

if TYPE_CHECKING:
    from rm.core.context import RMContext


class AdminService:
    """Takes configurations: whole, or not at all."""

    def __init__(self, context: RMContext, configuration: Configuration) -> None:
        """Raises ConfigurationException for placement rules that cannot be."""
        self._context = context
        self._acls: QueueAcls | None = None
        self._apply(configuration)

    def refresh_queues(self, configuration: Configuration) -> None:
        """Queues, placement rules and access lists anew. Raises ConfigurationException, with nothing taken."""

        def check_rules(settings: CapacitySchedulerConfiguration) -> None:
            MappingPlacement(configuration, ConfiguredQueues(settings.queues))

        self._context.scheduler.reinitialize(configuration, self._context.now_ms, check_rules)
        self._apply(configuration)

    def refresh_cluster_max_priority(self, priority: int) -> None:
        """The highest priority that applications may have from now on; those that have a higher one keep it."""
        self._context.settings = replace(self._context.settings, application_priority_max=priority)

    def _apply(self, configuration: Configuration) -> None:
        context = self._context
        context.placement = MappingPlacement(configuration, SchedulerQueues(context.scheduler))
        queues = {path: queue.configuration for path, queue in context.scheduler.queues.items()}
        if scheduler.ACL_ENABLE.of(configuration):
            # As with the lists above: a queue created on demand has none until a refresh, one that is gone keeps its.
            context.priority_acls = {
                **context.priority_acls,
                **{path: queue.priority_acls for path, queue in queues.items() if queue.is_leaf},
            }
        context.queue_acls = self._acls = QueueAcls(configuration, queues, before=self._acls)
