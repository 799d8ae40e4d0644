"""Puts verdicts into words: what a request waits for, the settings behind it, and what fails on which nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from rm.core.context import RMContext
from rm.core.explain.binding import Binding, bindings_of
from rm.core.explain.obstacles import Remedies, counted_types
from rm.core.explain.turn_wording import comes_first, meanwhile
from rm.core.explain.verdict import Cause, Finding, Verdict, verdict_without_nodes, verdicts_of
from rm.core.rm_node import RMNode
from rm.scheduler.model.application import FiCaSchedulerApp
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.queue import CSQueue
from rm.scheduler.model.refusals import Reason, Refusal
from yarn.containers import ANY
from yarn.ids import NodeId
from yarn.protocols.inspection import NodesAlike, SettingInForce, VerdictReport, about_vcores
from yarn.resource import MEMORY_MB, VCORES, Resource
from yarn.states import NodeState
from yarn.times import duration

NAMED_NODES_MAX = 5
"""The number of nodes that are named of those on which the same check fails."""

_REASONS = {
    Cause.PARALLEL_LIMIT: Reason.PARALLEL_LIMIT,
    Cause.AM_QUEUE_LIMIT: Reason.AM_QUEUE_LIMIT,
    Cause.AM_USER_LIMIT: Reason.AM_USER_LIMIT,
    Cause.LABEL_NOT_ACCESSIBLE: Reason.NO_ACCESS,
    Cause.TOO_LARGE: Reason.NODE_TOTAL_TOO_SMALL,
    Cause.QUEUE_MAXIMUM: Reason.COMMIT_QUEUE_MAXIMUM,
    Cause.LABEL_WITHOUT_CAPACITY: Reason.QUEUE_MAXIMUM,
    Cause.USER_LIMIT: Reason.USER_LIMIT,
    Cause.AM_ON_SHARED_LABEL: Reason.REQUEST_AM_ON_SHARED_LABEL,
    Cause.LOCALITY_DELAY: Reason.NODE_OFF_SWITCH_DELAY,
}
"""{cause: the scheduler's refusal with the same settings}."""

_UNSET = frozenset({Cause.NEXT_HEARTBEAT, Cause.OTHERS_FIRST})
"""Causes whose sentence does not name the settings."""
_ABOUT_NODES = frozenset(
    {
        Cause.NO_NODE,
        Cause.LABEL_WITHOUT_NODES,
        Cause.NODE_STATE,
        Cause.PLACE,
        Cause.TOO_LARGE,
        Cause.NODE_FULL,
        Cause.PARTITION_FULL,
        Cause.RESERVED_FOR_OTHERS,
    }
)
"""Causes that a node which is down could change."""


def worded(context: RMContext, attempt: FiCaSchedulerApp, now_ms: int) -> list[tuple[Verdict, VerdictReport]]:
    """The verdicts of an attempt's requests with their reports, without changes."""
    words = _VerdictWords(context, attempt, now_ms)
    return [(verdict, words.report(verdict)) for verdict in words.verdicts()]


def reason_of(
    context: RMContext, attempt: FiCaSchedulerApp, key: tuple[int, int] | None, now_ms: int
) -> tuple[str, str] | None:
    """The cause and the sentence of the report on one request of an attempt; None if it has no such request.

    `key`: the priority and the allocation request id; None for the attempt's first request. What else a report has, and
    the requests after this one, are not looked at.
    """
    words = _VerdictWords(context, attempt, now_ms)
    verdict = words.verdict_without_nodes(key)
    return None if verdict is None else (verdict.cause.name, words.sentence(verdict, words.settings(verdict)))


def nodes_down(context: RMContext) -> list[RMNode]:
    """The nodes that get no containers, in use or not.

    Some of them are RUNNING: the scheduler removes a node that becomes UNHEALTHY, and is not told to add it again if it
    is then decommissioned gracefully and recommissioned (RMNodeImpl.RecommissionNodeTransition).
    """
    known = [*context.nodes.values(), *context.inactive_nodes.values()]
    scheduled = context.scheduler.nodes
    return [node for node in known if node.state is not NodeState.RUNNING or node.node_id not in scheduled]


def _why_down(node: RMNode) -> str:
    if node.state is NodeState.UNHEALTHY:
        return f"{node.node_id.host} is UNHEALTHY: {node.health.report}"
    if node.state is NodeState.RUNNING:
        return (
            f"{node.node_id.host} is RUNNING, but was recommissioned while it was UNHEALTHY: the scheduler does not "
            "have it (restart its NodeManager)"
        )
    return f"{node.node_id.host} is {node.state.name}"


def unit(name: str, amount: int) -> str:
    """The unit of a resource type."""
    return {MEMORY_MB: "MB", VCORES: "vcore" if amount == 1 else "vcores"}.get(name, name)


def compared(needed: Resource, has: Resource, counted: Iterable[str]) -> str:
    """`8448 of 8192 MB`: only the types of which there is too little; all that count if there is enough of each."""
    pairs = [(name, needed.amounts().get(name, 0), has.amounts().get(name, 0)) for name in counted]
    lacking = [pair for pair in pairs if pair[1] > pair[2]] or pairs
    return ", ".join(f"{amount} of {bound} {unit(name, bound)}" for name, amount, bound in lacking)


class _VerdictWords:
    """Words for the verdicts of one attempt."""

    def __init__(self, context: RMContext, attempt: FiCaSchedulerApp, now_ms: int) -> None:
        self._context = context
        self._now_ms = now_ms
        self._attempt = attempt
        self._leaf = LeafQueue.of(attempt)
        self._down = nodes_down(context)
        self._counted = counted_types(context.scheduler.context)
        self._remedies = Remedies(attempt, context.scheduler.context)
        self._sentences: Mapping[Cause, Callable[[Verdict], str]] = {
            Cause.PARALLEL_LIMIT: self._parallel,
            Cause.AM_QUEUE_LIMIT: self._am_limit,
            Cause.AM_USER_LIMIT: self._am_limit,
            Cause.AFTER_RESTART: lambda _: "the ResourceManager has restarted and waits for nodes and AMs to report",
            Cause.NO_NODE: lambda _: "no node is running",
            Cause.LABEL_NOT_ACCESSIBLE: self._not_accessible,
            Cause.LABEL_WITHOUT_NODES: lambda verdict: f"{_partition(verdict)} has no running node",
            Cause.LABEL_WITHOUT_CAPACITY: self._without_capacity,
            Cause.RESERVATION: self._reservation,
            Cause.NODE_STATE: lambda _: "every node that it may use is out of service",
            Cause.PLACE: self._place,
            Cause.BLACKLIST: lambda _: "the application has blacklisted every node that it may use",
            Cause.TOO_LARGE: self._too_large,
            Cause.QUEUE_MAXIMUM: self._queue_maximum,
            Cause.USER_LIMIT: self._user_limit,
            Cause.PARTITION_FULL: self._partition_full,
            Cause.RESERVED_FOR_OTHERS: self._reserved_for_others,
            Cause.NODE_FULL: self._nodes_full,
            Cause.AM_ON_SHARED_LABEL: lambda _: "its AM may not run on idle nodes of another label",
            Cause.LOCALITY_DELAY: self._locality_delay,
            Cause.REFUSED: self._refused,
            Cause.OTHERS_FIRST: self._others_first,
            Cause.NEXT_HEARTBEAT: self._next_heartbeat,
        }

    def verdicts(self) -> Iterator[Verdict]:
        return verdicts_of(self._attempt, self._context.scheduler.context, self._unusable())

    def verdict_without_nodes(self, key: tuple[int, int] | None) -> Verdict | None:
        return verdict_without_nodes(self._attempt, self._context.scheduler.context, self._unusable(), key)

    def _unusable(self) -> dict[NodeId, str]:
        return {node.node_id: node.state.name for node in self._down}

    def report(self, verdict: Verdict) -> VerdictReport:
        settings = self.settings(verdict)
        return VerdictReport(
            verdict.key.priority,
            verdict.key.allocation_request_id,
            verdict.cause.name,
            self.sentence(verdict, settings),
            verdict.since_ms,
            settings,
            tuple(self._notes(verdict)),
            tuple(self._folded(verdict)),
        )

    def sentence(self, verdict: Verdict, settings: tuple[SettingInForce, ...]) -> str:
        """The sentence of the report, with the settings behind the verdict."""
        sentence = f"waits because {self._sentences[verdict.cause](verdict)}"
        if settings and verdict.cause not in _UNSET:
            sentence += f" ({self._short(verdict, settings)})"
        if verdict.overtaking is not None:
            sentence += f"; {meanwhile(verdict.overtaking)}"
        return sentence

    def settings(self, verdict: Verdict) -> tuple[SettingInForce, ...]:
        """The settings behind a verdict."""
        finding, reason = verdict.finding, _REASONS.get(verdict.cause)
        order = None if finding.ahead is None else finding.ahead.precedence
        if order is not None:
            return self._remedies.of_order(order, verdict.partition)
        if finding.refusal is not None:
            return self._remedies.of(finding.refusal, self._leaf, verdict.partition)
        if reason is None:
            return ()
        refusal = Refusal(reason, 0, verdict.key, finding.needed, finding.has)
        queue: CSQueue = self._context.scheduler.queue(finding.queue) or self._leaf
        return self._remedies.of(refusal, queue, verdict.partition)

    def _short(self, verdict: Verdict, settings: Iterable[SettingInForce]) -> str:
        """The settings without the prefix and the queue that the sentence names."""
        prefixes = [f"yarn.scheduler.capacity.{queue.path}." for queue in self._leaf.and_above()]
        parts: list[str] = []
        for setting in settings:
            key = setting.key
            for prefix in (*prefixes, "yarn.scheduler.capacity."):
                key = key.removeprefix(prefix)
            parts.append(f"{key} {setting.value}")
        if verdict.cause is Cause.USER_LIMIT:
            active = self._leaf.users.active_count
            parts.append(f"{active} active user{'' if active == 1 else 's'}")
        return ", ".join(parts)

    def _parallel(self, verdict: Verdict) -> str:
        for queue in self._leaf.and_above():
            if queue.runnable_total() >= queue.configuration.max_parallel_apps:
                return f"queue {queue.path} already runs {_applications(queue.runnable_total())}"
        return f"user {self._attempt.user} already runs as many applications as it may"

    def _am_limit(self, verdict: Verdict) -> str:
        is_user = verdict.cause is Cause.AM_USER_LIMIT
        whose = f"user {self._attempt.user} in queue {self._leaf.path}" if is_user else f"queue {self._leaf.path}"
        return f"{whose} is at its limit for AMs: they would use {self._compared(verdict.finding)}"

    def _not_accessible(self, verdict: Verdict) -> str:
        return f"queue {verdict.finding.queue} may not use {_partition(verdict)}"

    def _without_capacity(self, verdict: Verdict) -> str:
        return f"queue {verdict.finding.queue} has no capacity on {_partition(verdict)}"

    def _reservation(self, verdict: Verdict) -> str:
        finding = verdict.finding
        age = duration(max(0, self._now_ms - (finding.since_ms or 0)))
        return (
            f"its reservation on {_host(verdict.node_id)}, made {age} ago, waits for free capacity there: "
            f"{self._lacking(finding)}"
        )

    def _queue_maximum(self, verdict: Verdict) -> str:
        finding = verdict.finding
        return f"queue {finding.queue} is at its maximum: it would use {self._compared(finding)}"

    def _user_limit(self, verdict: Verdict) -> str:
        user, finding = self._attempt.user, verdict.finding
        return f"queue {finding.queue} is at its user limit: {user} holds {self._held(finding)}"

    def _place(self, verdict: Verdict) -> str:
        names = [
            row.terms.resource_name
            for key, row in self._attempt.requests.rows()
            if key == verdict.key and row.count > 0 and row.terms.resource_name != ANY
        ]
        return (
            f"it may run only on {', '.join(names[:NAMED_NODES_MAX]) or 'the places it names'}, and no such node runs"
        )

    def _too_large(self, verdict: Verdict) -> str:
        largest = self._lacking(verdict.finding, "in all")
        return f"no node that it may use is large enough: {_host(verdict.node_id)} has {largest}"

    def _nodes_full(self, verdict: Verdict) -> str:
        is_whole = all(finding.cause is Cause.NODE_FULL for finding in verdict.nodes.values())
        full = f"{_partition(verdict)} is full" if is_whole else "the nodes that it may use are full"
        return f"{full}: the most free is on {_host(verdict.node_id)}: {self._lacking(verdict.finding)}"

    def _partition_full(self, verdict: Verdict) -> str:
        return f"{_partition(verdict)} is full, reservations included: it would use {self._compared(verdict.finding)}"

    def _reserved_for_others(self, verdict: Verdict) -> str:
        finding = verdict.finding
        count = sum(found.cause is Cause.RESERVED_FOR_OTHERS for found in verdict.nodes.values())
        others = f"the nodes it may use ({count}) are" if count > 1 else f"{_host(verdict.node_id)} is"
        return f"{others} reserved for other applications, such as {finding.holder}"

    def _locality_delay(self, verdict: Verdict) -> str:
        finding = verdict.finding
        return (
            f"it prefers other nodes than {_host(verdict.node_id)} until it has missed {int(finding.delay)} "
            f"scheduling opportunities; it has missed {finding.opportunities}"
        )

    def _refused(self, verdict: Verdict) -> str:
        refusal = verdict.finding.refusal
        assert refusal is not None
        why = refusal.reason.value
        if refusal.reason is Reason.QUEUE_MAXIMUM and refusal.asked is not None and refusal.bound is not None:
            why += f" ({self._bound(refusal.asked, refusal.bound)} in use)"
        return f"{_host(verdict.node_id)} refused it at its last heartbeat: {why}"

    def _others_first(self, verdict: Verdict) -> str:
        finding = verdict.finding
        assert finding.ahead is not None
        order, app = finding.ahead.precedence, str(finding.ahead.application_id)
        whose = "its request" if order is None or order.first == app else f"the request of {app}"
        return f"{comes_first(finding.ahead)}, and what is left is kept for {whose}: {self._lacking(finding, 'left')}"

    def _next_heartbeat(self, verdict: Verdict) -> str:
        return f"containers are placed only at heartbeats of nodes; {_host(verdict.node_id)} has enough free capacity"

    def _folded(self, verdict: Verdict) -> list[NodesAlike]:
        """Group the nodes by the check that fails there, the largest group first."""
        groups: dict[str, list[NodeId]] = {}
        for node_id, finding in verdict.nodes.items():
            groups.setdefault(self._on_node(node_id, finding), []).append(node_id)
        alike = [
            NodesAlike(
                len(nodes), sentence, tuple(sorted(nodes, key=lambda node: node.reading_order)[:NAMED_NODES_MAX])
            )
            for sentence, nodes in groups.items()
        ]
        return sorted(alike, key=lambda group: -group.count)

    def _on_node(self, node_id: NodeId, finding: Finding) -> str:
        match finding.cause:
            case Cause.NODE_FULL:
                return self._lacking(finding)
            case Cause.TOO_LARGE:
                return self._lacking(finding, "in all")
            case Cause.RESERVED_FOR_OTHERS:
                return f"reserved for {finding.holder}"
            case Cause.QUEUE_MAXIMUM | Cause.PARTITION_FULL:
                return f"queue {finding.queue} would use {self._compared(finding)}"
            case Cause.USER_LIMIT:
                return f"user {self._attempt.user} holds {self._held(finding)}"
            case Cause.NODE_STATE:
                return next((node.state.name for node in self._down if node.node_id == node_id), "not running")
            case Cause.OTHERS_FIRST if finding.ahead is not None:
                return f"kept for {finding.ahead.application_id}: {self._lacking(finding, 'left')}"
            case Cause.REFUSED:
                return finding.refusal.reason.value if finding.refusal is not None else "refused"
            case _:
                return _ON_NODE.get(finding.cause, finding.cause.name)

    def _notes(self, verdict: Verdict) -> Iterable[str]:
        if self._counted == (MEMORY_MB,) and (requested := self._vcores_requested()) > 1:
            yield about_vcores(requested)
        if verdict.cause in _ABOUT_NODES:
            yield from map(_why_down, self._down[:NAMED_NODES_MAX])
            if len(self._down) > NAMED_NODES_MAX:
                yield f"{len(self._down) - NAMED_NODES_MAX} more nodes are out of service"

    def _vcores_requested(self) -> int:
        """The most vcores that were requested for a container of the application, as far as it is known."""
        attempt = self._attempt
        if not attempt.is_waiting_for_master:
            return attempt.vcores_cut
        submission = self._context.apps[attempt.attempt_id.application_id].submission
        sizes = [request.capability for request in submission.am_requests] or [submission.resource]
        return max(size.vcores for size in sizes)

    def _compared(self, finding: Finding) -> str:
        assert finding.needed is not None
        assert finding.has is not None
        return compared(finding.needed, finding.has, self._counted)

    def _held(self, finding: Finding) -> str:
        assert finding.needed is not None
        assert finding.has is not None
        return self._bound(finding.needed, finding.has)

    def _bound(self, used: Resource, limit: Resource) -> str:
        """`11 of 10 vcores`: the types that bind where the calculator has compared what is used with a limit."""
        bindings = bindings_of(self._context.scheduler.context, used, limit)
        return ", ".join(map(_binding, bindings)) or compared(used, limit, self._counted)

    def _lacking(self, finding: Finding, what: str = "free") -> str:
        """`512 MB free, 1024 needed`, for the types of which there is too little."""
        assert finding.needed is not None
        assert finding.has is not None
        needed, has = finding.needed.amounts(), finding.has.amounts()
        lacking = [name for name in self._counted if needed.get(name, 0) > has.get(name, 0)] or list(self._counted)
        return "; ".join(
            f"{has.get(name, 0)} {unit(name, has.get(name, 0))} {what}, {needed.get(name, 0)} needed"
            for name in lacking
        )


_ON_NODE = {
    Cause.PLACE: "not one of the places it names",
    Cause.BLACKLIST: "blacklisted by the application",
    Cause.AM_ON_SHARED_LABEL: "not for AMs of other labels",
    Cause.LOCALITY_DELAY: "enough free, but the request still prefers other nodes",
    Cause.NEXT_HEARTBEAT: "enough free at its next heartbeat",
}


def _binding(one: Binding) -> str:
    """`51200 of 50000 MB, as large a share of the cluster as 10 vcores`."""
    amounts = f"{one.amount} of {one.bound} {unit(one.type_name, one.bound)}"
    if not one.limit_type:
        return amounts
    return f"{amounts}, as large a share of the cluster as {one.limit_amount} {unit(one.limit_type, one.limit_amount)}"


def _applications(count: int) -> str:
    return f"{count} application{'' if count == 1 else 's'}"


def _host(node_id: NodeId | None) -> str:
    return "no node" if node_id is None else node_id.host


def _partition(verdict: Verdict) -> str:
    return f"label {verdict.partition}" if verdict.partition else "the cluster"
