"""The ResourceManager of a recording: the core, its clock and its store, through restarts."""

from __future__ import annotations

from rm.core.events import Event, StateLoaded
from rm.core.resource_manager import ResourceManagerCore
from rm.scheduler.placement.walk import Draw, first_of
from tests.conformance.store import StoreAtOnce
from tests.rm.stored import Disk
from yarn.configuration import Configuration
from yarn.errors import YarnException
from yarn.faults import ConfigurationException
from yarn.machine import InvariantsBroken, Refuse, Reply
from yarn.settings.resourcemanager import RECOVERY_ENABLED
from yarn.settings.yarnling import CHECK_INVARIANTS

ADMINISTRATOR = "administrator"
"""The user who makes the changes of a recording: the one that the ResourceManager runs as."""

EPOCH_MS = 1_700_000_000_000
"""The start time of the recordings' first ResourceManager."""

SETTLED_MS = EPOCH_MS + 86_400_000
"""The time of the first step, after the waits at a ResourceManager's start."""

_NO_ROUNDS_OF_ITS_OWN = {"yarn.resourcemanager.monitor.capacity.preemption.monitoring_interval": str(10**13)}
"""Preemption rounds are steps of their own."""

_LABELS_ARE_ON = {"yarn.node-labels.enabled": "true"}
"""The label manager of Hadoop's test jars (NullRMNodeLabelsManager) enables labels whatever the scenario configures."""

_STORED_LATER = "I-48"
"""The invariant that what must be stored first comes in a later step. Here records are stored at once."""

_AUDITED = {CHECK_INVARIANTS.key: "true"}

_SCHEDULER_KEYS = "yarn.scheduler.capacity."


class Refused(Exception):
    """The core refused a call; the message is the core's."""

    def __init__(self, error: YarnException) -> None:
        super().__init__(error.message)
        self.error = error


class RecordedRM:
    """A core that is driven by events, one step at a time. `configuration`: what it started with or took up since.

    The number of the step serves as its time, so that times that Hadoop records in milliseconds differ.
    """

    def __init__(self, configuration: dict[str, str], *, draw: Draw = first_of) -> None:
        """Raises ConfigurationException if the core refuses the configuration."""
        self._draw = draw
        self.now_ms = SETTLED_MS
        self.configuration = {**configuration, **_LABELS_ARE_ON, **_NO_ROUNDS_OF_ITS_OWN, **_AUDITED}
        self._disk = Disk()
        self._restarts = 0
        self.core = self._started(self.configuration)

    def call(self, event: Event) -> object:
        """Send an RPC's event and return the value of its reply. Raises Refused."""
        answers = [effect for effect in self.send(event) if isinstance(effect, Reply | Refuse)]
        assert len(answers) == 1, f"{len(answers)} answers to {event}"
        answer = answers[0]
        if isinstance(answer, Refuse):
            raise Refused(answer.error)
        return answer.value

    def send(self, event: Event) -> list[object]:
        """Deliver an event; returns its effects."""
        effects: list[object] = list(self.core.handle(event, self.now_ms))
        broken = [effect for effect in effects if isinstance(effect, InvariantsBroken)]
        found = [text for effect in broken for text in effect.violations if not text.startswith(_STORED_LATER)]
        assert not found, found
        return effects

    def changed(self, properties: dict[str, str]) -> dict[str, str]:
        """The configuration with all keys of the scheduler replaced."""
        kept = {key: value for key, value in self.configuration.items() if not key.startswith(_SCHEDULER_KEYS)}
        return {**kept, **properties}

    def restart(self, configuration: dict[str, str]) -> None:
        """Kill the core and start another one on its store. Raises Refused if it refuses the configuration."""
        self._restarts += 1
        try:
            self.core = self._started(configuration)
        except ConfigurationException as error:
            raise Refused(error) from error
        self.configuration = configuration
        if self._recovers:
            self.send(StateLoaded(self._disk.load()))
            self._disk.epoch += 1

    def end_wait(self) -> None:
        """Advance the clock to where a restarted core places containers."""
        placing_from_ms = self.core.scheduler.context.placing_from_ms
        if placing_from_ms is not None:
            self.now_ms = max(self.now_ms, placing_from_ms + 1)

    def _started(self, configuration: dict[str, str]) -> ResourceManagerCore:
        conf = Configuration.of(configuration)
        self._recovers = RECOVERY_ENABLED.of(conf)
        # Application ids have the time of the start: those of a restarted one are new.
        started_ms = EPOCH_MS + self._restarts
        core = ResourceManagerCore(conf, cluster_timestamp=started_ms, user=ADMINISTRATOR, strict=True, draw=self._draw)
        if self._recovers:
            core.context.store = StoreAtOnce(core.context.dispatcher, self._disk)
        return core


def error_class(error: YarnException) -> str:
    """The class as recorded: IOException for a refused configuration, for a bare YarnException what it wraps."""
    if isinstance(error, ConfigurationException):
        return "IOException"
    if type(error) is YarnException:
        first, colon, _ = error.message.partition(": ")
        if colon and first.startswith(("java.", "org.apache.")):
            return first.rpartition(".")[2]
    return type(error).java_class.rpartition(".")[2]
