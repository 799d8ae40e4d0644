"""Changes that would get a waiting request its next container: they are guessed from the verdict, and then tried.

Each change is tried alone on a copy of the scheduler (rm.core.explain.trial); only those that work are returned, the
smallest first: waiting, then the request itself, one setting, more memory on a node, the end of another application.
The number of trials is bounded by the size of the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import ceil

from msgspec import Struct

from rm.core.explain.binding import bindings_of
from rm.core.explain.obstacles import counted_types
from rm.core.explain.trial import PASSES, Trial, size_of
from rm.core.explain.verdict import Cause, Finding, Verdict
from rm.scheduler.capacity_scheduler import CapacityScheduler
from rm.scheduler.model.application import FiCaSchedulerApp
from rm.scheduler.model.leaf_queue import LeafQueue
from yarn.configuration import OVERRIDE, Entry
from yarn.errors import YarnException
from yarn.faults import ConfigurationException
from yarn.ids import NodeId
from yarn.nodes import NO_LABEL
from yarn.protocols.inspection import SettingInForce
from yarn.resource import MEMORY_MB, VCORES, Resource
from yarn.settings.scheduler import PREFIX

COPIED_OBJECTS_MAX = 10_000
"""The number of objects that the trials of one explanation may copy together: about a second."""
TRIALS_MAX = 40
"""The number of trials of one explanation, if the cluster is small."""
CHANGES_MAX = 5
"""The number of changes that are returned for one request."""
APPLICATIONS_MAX = 5
"""The number of applications whose end is tried, those that use least first."""

DELAYED_PASSES_MAX = 40
"""The number of heartbeats of each node after which a locality delay counts as not over."""

NO_ROOM = frozenset(
    {
        Cause.NODE_FULL,
        Cause.PARTITION_FULL,
        Cause.RESERVED_FOR_OTHERS,
        Cause.RESERVATION,
        Cause.OTHERS_FIRST,
    }
)
"""Causes for which free capacity on a node is all that is missing."""
_NO_NODE = frozenset({Cause.NO_NODE, Cause.LABEL_WITHOUT_NODES, Cause.TOO_LARGE})
WAIT = "wait"
"""The kind of change that is none: the request is served without any."""

_UNITS = {MEMORY_MB: "MB", VCORES: "vcores"}


class TriedChange(Struct, frozen=True):
    """A change in words ("with 2048 MB more on n7"), and the function that makes it on a copy.

    Of the changes of one `kind` only the first that works is returned.
    """

    kind: str
    text: str
    make: Callable[[Trial], None]


class DownNode(Struct, frozen=True):
    """A node that is not running, with the resources that it would add."""

    node_id: NodeId
    rack: str
    total: Resource


class Budget:
    """The number of more trials that an explanation may make."""

    __slots__ = ("left",)

    def __init__(self, scheduler: CapacityScheduler) -> None:
        self.left = min(TRIALS_MAX, COPIED_OBJECTS_MAX // max(1, size_of(scheduler)))

    def take(self) -> bool:
        """True if one more trial may be made. `left` is below 0 after a trial that was not allowed."""
        self.left -= 1
        return self.left >= 0


class Tried(Struct, frozen=True):
    """A change that works, and the node that then gives the container."""

    text: str
    node_id: NodeId


def changes_of(
    scheduler: CapacityScheduler,
    attempt: FiCaSchedulerApp,
    verdict: Verdict,
    settings: Sequence[SettingInForce],
    down: Mapping[NodeId, DownNode],
    budget: Budget,
) -> list[Tried]:
    """Changes each of which alone gets the request a container: at most CHANGES_MAX, at most one of a kind."""
    found: dict[str, Tried] = {}
    for change in _Candidates(scheduler, attempt, verdict, settings, down).all():
        if change.kind in found:
            continue
        if len(found) == CHANGES_MAX or not budget.take():
            break
        node_id = _tried(scheduler, attempt, verdict, change, down)
        if node_id is not None:
            found[change.kind] = Tried(change.text, node_id)
            if change.kind == WAIT:
                break
    return list(found.values())


def _tried(
    scheduler: CapacityScheduler,
    attempt: FiCaSchedulerApp,
    verdict: Verdict,
    change: TriedChange,
    down: Mapping[NodeId, DownNode],
) -> NodeId | None:
    """Try the change on a copy; returns the node that then gives the container, None if none does or it is refused."""
    trial = Trial(scheduler, down)
    try:
        change.make(trial)
    except (ConfigurationException, YarnException):
        return None
    passes = PASSES
    if verdict.cause is Cause.LOCALITY_DELAY:
        passes += min(DELAYED_PASSES_MAX, ceil(verdict.finding.delay / max(1, len(scheduler.nodes))))
    return trial.gets_container(attempt.attempt_id.application_id, verdict.key, passes)


class _Candidates:
    """The changes to try for one verdict, the smallest first."""

    __slots__ = ("_attempt", "_context", "_down", "_leaf", "_scheduler", "_settings", "_verdict")

    def __init__(
        self,
        scheduler: CapacityScheduler,
        attempt: FiCaSchedulerApp,
        verdict: Verdict,
        settings: Sequence[SettingInForce],
        down: Mapping[NodeId, DownNode],
    ) -> None:
        self._scheduler = scheduler
        self._context = scheduler.context
        self._attempt = attempt
        self._leaf = LeafQueue.of(attempt)
        self._verdict = verdict
        self._settings = settings
        self._down = down

    def all(self) -> Iterator[TriedChange]:
        yield TriedChange(WAIT, "at the next heartbeats, without any change", lambda _: None)
        yield from self._of_request()
        for setting in self._settings:
            yield from self._of_setting(setting)
        cause = self._verdict.cause
        if cause in NO_ROOM or cause is Cause.TOO_LARGE:
            yield from self._more_on_nodes()
        if cause in _NO_NODE:
            yield self._new_node()
        for node in list(self._down.values())[:2]:
            yield self._node_back(node)
        yield from self._ends()

    def _of_request(self) -> Iterator[TriedChange]:
        if self._verdict.cause is Cause.BLACKLIST:
            yield TriedChange("blacklist", "if its blacklist were empty", self._clear_blacklist)
        if self._verdict.cause is Cause.PLACE:
            yield TriedChange("locality", "if the request relaxed locality", self._relax)

    def _clear_blacklist(self, trial: Trial) -> None:
        attempt = trial.scheduler.attempt_of(self._attempt.attempt_id.application_id)
        assert attempt is not None
        attempt.update_blacklist((), tuple(attempt.blacklist | attempt.system_blacklist))
        trial.scheduler.context.note_change()

    def _relax(self, trial: Trial) -> None:
        attempt = trial.scheduler.attempt_of(self._attempt.attempt_id.application_id)
        of_key = attempt.requests.at(self._verdict.key) if attempt is not None else None
        assert of_key is not None
        for row in of_key.rows.values():
            row.terms = row.terms._replace(relax_locality=True)
        trial.scheduler.context.note_change()

    def _of_setting(self, setting: SettingInForce) -> Iterator[TriedChange]:
        """Try larger values of the setting: first what the amounts of the verdict suggest, then more."""
        if setting.key.startswith("yarn.nodemanager."):
            return
        name = setting.key.removeprefix(PREFIX)
        for value in self._values(setting):

            def make(trial: Trial, value: str = value) -> None:
                conf = trial.scheduler.context.settings.source.with_entries({setting.key: Entry(value, OVERRIDE)})
                trial.scheduler.reinitialize(conf, trial.now_ms)

            yield TriedChange(setting.key, f"with {name} {value}", make)

    def _values(self, setting: SettingInForce) -> list[str]:
        """Larger values to try, ascending, in the setting's own unit."""
        text = setting.value.removesuffix(" %")
        if not text.replace(".", "", 1).isdigit():
            return []
        now, name = float(text), setting.key.rpartition(".")[2]
        if name == "max-parallel-apps":
            return [str(int(now) + 1)]
        if name in ("maximum-capacity", "minimum-user-limit-percent"):
            return _rounded([self._scaled(now), 100.0], now, step=1, most=100)
        if name == "maximum-am-resource-percent":
            return _rounded([self._scaled(now), 1.0], now, step=0.01, most=1)
        if name == "user-limit-factor":
            return _rounded([self._scaled(now), now + 1, now * 2], now, step=0.1, most=1e6)
        return []

    def _scaled(self, now: float) -> float:
        """The value in proportion to the amount that the limit refused."""
        finding = self._verdict.finding
        if finding.needed is None or finding.has is None:
            return now
        if finding.cause is Cause.USER_LIMIT:
            bindings = bindings_of(self._context, finding.needed, finding.has)
            return now * max((one.amount / one.bound for one in bindings if one.bound > 0), default=1.0)
        needed, has = finding.needed.amounts(), finding.has.amounts()
        types = [name for name in counted_types(self._context) if has.get(name, 0) > 0]
        return now * max((needed.get(name, 0) / has[name] for name in types), default=1.0)

    def _more_on_nodes(self) -> Iterator[TriedChange]:
        """Try larger nodes: the two that lack least get the amount that is missing there."""
        lacking = [
            (missing, node_id)
            for node_id, finding in self._verdict.nodes.items()
            if (finding.cause in NO_ROOM or finding.cause is Cause.TOO_LARGE)
            and (missing := self._missing(node_id, finding))
        ]
        lacking.sort(key=lambda entry: tuple(entry[0].values()))
        for missing, node_id in lacking[:2]:
            node = self._context.nodes[node_id]
            larger = node.total + Resource.of(missing)
            larger = node.total.with_values(larger.amounts()[name] for name in node.total.amounts())
            amounts = ", ".join(f"{amount} {_UNITS.get(name, name)}" for name, amount in missing.items())

            def make(trial: Trial, node_id: NodeId = node_id, larger: Resource = larger) -> None:
                trial.scheduler.update_node_resource(node_id, larger, trial.now_ms)

            yield TriedChange("node", f"with {amounts} more on {node_id.host}", make)

    def _missing(self, node_id: NodeId, finding: Finding) -> dict[str, int]:
        """{type: the amount missing on the node} for the request, and for what another application has reserved
        or requests before it.
        """
        needed = self._verdict.requested.amounts()
        if finding.cause in (Cause.RESERVED_FOR_OTHERS, Cause.OTHERS_FIRST) and finding.needed is not None:
            reserved = finding.needed.amounts()
            needed = {name: amount + reserved.get(name, 0) for name, amount in needed.items()}
        free = self._context.nodes[node_id].unallocated.amounts()
        types = counted_types(self._context)
        return {name: needed.get(name, 0) - free[name] for name in types if needed.get(name, 0) > free[name]}

    def _new_node(self) -> TriedChange:
        """Try another node of the request's size, with its label."""
        size, partition = self._verdict.requested, self._verdict.partition
        label = f" with label {partition}" if partition else ""

        def make(trial: Trial) -> None:
            node_id = NodeId("another-node", 1)
            trial.scheduler.add_node(node_id, "/default-rack", size, trial.now_ms)
            if partition != NO_LABEL:
                trial.scheduler.replace_node_labels({node_id: (partition,)}, trial.now_ms)

        amounts = ", ".join(f"{size.amounts()[name]} {_UNITS.get(name, name)}" for name in counted_types(self._context))
        return TriedChange("new node", f"with another node{label} of {amounts}", make)

    def _node_back(self, node: DownNode) -> TriedChange:
        def make(trial: Trial) -> None:
            if node.node_id in trial.scheduler.nodes:
                trial.scheduler.update_node_resource(node.node_id, node.total, trial.now_ms)
            else:
                trial.scheduler.add_node(node.node_id, node.rack, node.total, trial.now_ms)
            trial.wake(node.node_id)

        return TriedChange("node back", f"if {node.node_id.host} were in service again", make)

    def _ends(self) -> Iterator[TriedChange]:
        """Try to end another application, the one that uses least first."""
        others = [
            other
            for application in self._scheduler.applications.values()
            if (other := application.current_attempt) is not None
            and other is not self._attempt
            and not other.is_stopped
            and self._is_in_the_way(other)
        ]
        others.sort(key=lambda other: (other.usage.used(self._verdict.partition).memory_mb, other.attempt_id))
        for other in others[:APPLICATIONS_MAX]:
            application_id = other.attempt_id.application_id

            def make(trial: Trial, other: FiCaSchedulerApp = other) -> None:
                trial.scheduler.remove_attempt(
                    other.attempt_id, keep_containers=False, final_state_name="FINISHED", now_ms=trial.now_ms
                )
                trial.scheduler.remove_application(other.attempt_id.application_id, "FINISHED")

            yield TriedChange("end", f"if {application_id} ended", make)

    def _is_in_the_way(self, other: FiCaSchedulerApp) -> bool:
        """True if the other application counts towards the limit, or uses nodes that the request could use."""
        verdict, cause = self._verdict, self._verdict.cause
        if cause in (Cause.USER_LIMIT, Cause.AM_USER_LIMIT):
            return other.leaf is self._leaf and other.user == self._attempt.user
        if cause in (Cause.AM_QUEUE_LIMIT, Cause.REFUSED):
            return other.leaf is self._leaf
        if cause is Cause.PARALLEL_LIMIT:
            return True
        if cause is Cause.QUEUE_MAXIMUM:
            return any(queue.path == verdict.finding.queue for queue in other.leaf.and_above())
        return cause in NO_ROOM and any(
            container.node_id in verdict.nodes
            for container in (*other.live_containers.values(), *other.reserved_containers)
        )


def _rounded(values: Sequence[float], now: float, *, step: float, most: float) -> list[str]:
    """The values rounded up to steps, above the present one, ascending, each once."""
    steps = sorted({ceil(round(value / step, 6)) for value in values})
    kept = [number for number in steps if number * step > now + step / 1000 and number * step <= most + step / 1000]
    return [f"{round(number * step, 6):g}" for number in kept]
