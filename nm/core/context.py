"""State that the containers, applications and services of a node share (Hadoop's NMContext)."""

from __future__ import annotations

from msgspec import Struct

from nm.core.effects import DeleteApplicationLogs, Effect
from nm.core.emulation import ContainerFacts
from nm.core.recorder import NodeRecorder
from nm.core.resource_cache import ResourceCaches
from nm.core.settings import CoreSettings
from yarn.containers import ContainerLaunchContext, ContainerTokenIdentifier
from yarn.ids import ApplicationId
from yarn.machine import Dispatcher
from yarn.states import ContainerType


class EffectDue(Struct, frozen=True):
    """An effect that was scheduled with `emit_after` is due."""

    effect: Effect


class NodeContext:
    """The settings, the dispatcher, the recorder and the resource caches of one node."""

    def __init__(self, settings: CoreSettings) -> None:
        self.settings = settings
        self.dispatcher: Dispatcher[Effect] = Dispatcher()
        self.recorder = NodeRecorder(self.dispatcher, enabled=settings.recovery_enabled)
        self.resources = ResourceCaches(self.dispatcher, settings.cache_target_bytes, self.recorder)
        self.dispatcher.on(EffectDue, self._effect_due)

    def emulation_of(self, token: ContainerTokenIdentifier, launch: ContainerLaunchContext) -> str:
        """The name of the rule by which a container is emulated; empty if it runs as a process."""
        table = self.settings.emulation
        if table is None:
            return ""
        facts = ContainerFacts(
            token.container_type is ContainerType.APPLICATION_MASTER,
            token.user,
            " ".join(launch.commands),
            launch.environment,
            token.priority,
            token.resource,
            str(token.node_id),
        )
        rule = table.rule_for(facts)
        return "" if rule is None else rule.name

    def emit_after(self, delay_ms: int, effect: Effect) -> None:
        """Emit `effect` in the first step at least `delay_ms` after this one."""
        self.dispatcher.send_after(delay_ms, EffectDue(effect))

    def delete_logs_at(self, application_id: ApplicationId, due_ms: int) -> None:
        """Delete an application's logs in the first step at or after `due_ms`."""
        self.emit_after(max(0, due_ms - self.dispatcher.now_ms), DeleteApplicationLogs(application_id))

    def delete_later(self, deletion: Effect) -> None:
        """Emit a deletion after the configured debug delay; never emit it if the delay is negative
        (DeletionService).
        """
        delay_ms = self.settings.deletion_delay_ms
        if delay_ms == 0:
            self.dispatcher.emit(deletion)
        elif delay_ms > 0:
            self.emit_after(delay_ms, deletion)

    def _effect_due(self, due: EffectDue) -> None:
        self.dispatcher.emit(due.effect)
        if isinstance(due.effect, DeleteApplicationLogs):
            self.recorder.logs_deleted(due.effect.application_id)
