"""Explains what happened to a container: why it is on its node, what a reservation waits for, why it was preempted.

Everything is said from the records that the scheduler made when it decided (rm.scheduler.model.origin). What was not
recorded is not guessed.
"""

from __future__ import annotations

from collections.abc import Iterator

from rm.core.context import RMContext
from rm.core.events import Asker
from rm.core.explain.obstacles import counted_types
from rm.core.explain.verdict_wording import unit
from rm.scheduler.model.ended_containers import ENDED_MAX
from rm.scheduler.model.origin import PlacementOrigin, PreemptionStep
from rm.scheduler.model.requests import NodeType
from rm.scheduler.model.rm_container import RMContainer, RMContainerState
from rm.scheduler.preemption.preemption_round import PreemptionReason
from yarn.errors import ContainerNotFoundException
from yarn.ids import ContainerId
from yarn.protocols.inspection import ContainerExplanation, NodePassed, PreemptionReport, QueueInRound
from yarn.resource import Resource
from yarn.times import duration

SELECTORS = {
    PreemptionReason.GUARANTEE: "FifoCandidatesSelector",
    PreemptionReason.BALANCE: "FifoCandidatesSelector (balancing)",
    PreemptionReason.RESERVATION: "ReservedContainerCandidatesSelector",
    PreemptionReason.QUEUE_PRIORITY: "QueuePriorityContainerCandidateSelector",
    PreemptionReason.INTRA_QUEUE: "IntraQueueCandidatesSelector",
}
"""Hadoop's class that chooses containers for each reason."""

_WITH_IDEAL = frozenset({PreemptionReason.GUARANTEE, PreemptionReason.BALANCE, PreemptionReason.RESERVATION})
"""Reasons whose selectors compute what each queue should have; the others look at other numbers."""

_STEPS = {
    "requested": "its AM was asked to release it",
    "killed": "it was killed",
    "killable": "it was marked to be killed as soon as its resources are needed",
}


def container_explanation(
    context: RMContext, container_id: ContainerId, now_ms: int, asker: Asker | None = None
) -> ContainerExplanation:
    """The explanation of a container that is live or reserved, or is among the last that ended.

    Raises ApplicationNotFoundException, ContainerNotFoundException, or YarnException for an asker who may not view the
    application.
    """
    app = context.find_app(container_id.application_id)
    if asker is not None:
        context.application_acls.check_view(asker, app, f"application {app.application_id}")
    container, ended_ms = _find(context, container_id)
    return _ContainerWords(context, container, now_ms, ended_ms).report()


def _find(context: RMContext, container_id: ContainerId) -> tuple[RMContainer, int | None]:
    """The container, and when it ended."""
    scheduler = context.scheduler
    live = scheduler.container(container_id)
    if live is not None:
        return live, None
    attempt = scheduler.attempt_of(container_id.application_id)
    for reserved in attempt.reserved_containers if attempt is not None else ():
        if reserved.id == container_id:
            return reserved, None
    ended = scheduler.context.ended.find(container_id)
    if ended is None:
        raise ContainerNotFoundException(
            f"Container with id '{container_id}' doesn't exist in RM: it is neither live nor reserved nor one of the "
            f"last {ENDED_MAX} containers that ended"
        )
    return ended


class _ContainerWords:
    """Words for one container."""

    def __init__(self, context: RMContext, container: RMContainer, now_ms: int, ended_ms: int | None) -> None:
        self._context = context
        self._container = container
        self._now_ms = now_ms
        self._ended_ms = ended_ms
        self._counted = counted_types(context.scheduler.context)

    def report(self) -> ContainerExplanation:
        container, origin = self._container, self._container.origin
        is_reserved = container.state in (RMContainerState.NEW, RMContainerState.RESERVED)
        reserved_ms = container.started_ms if is_reserved else origin.reserved_ms if origin is not None else None
        return ContainerExplanation(
            container.id,
            container.user,
            container.queue,
            container.node_id,
            container.resource,
            container.state.name,
            self._now_ms,
            origin.requested_ms if origin is not None else None,
            reserved_ms,
            None if is_reserved else container.started_ms,
            self._ended_ms,
            "" if origin is None else origin.kind.name,
            tuple(self._sentences(is_reserved=is_reserved)),
            _passed(origin),
            tuple(self._preemption(step) for step in container.preemption_steps),
        )

    def _sentences(self, *, is_reserved: bool) -> Iterator[str]:
        container, origin = self._container, self._container.origin
        if origin is None:
            yield (
                f"it is on {container.node_id.host}, and why is not known: it was running when the ResourceManager "
                "started again, or belongs to an update of another container"
            )
        elif is_reserved:
            yield from self._reserved(origin)
        else:
            yield from self._placed(origin)
        yield from self._end()

    def _placed(self, origin: PlacementOrigin) -> Iterator[str]:
        container = self._container
        waited = _elapsed(container.started_ms - origin.requested_ms)
        yield f"it was placed on {container.node_id.host}, {waited} after its request: {self._why_there(origin)}"
        if origin.killed:
            names = ", ".join(str(one) for one in origin.killed)
            yield f"to make way for it, containers that were marked for preemption were killed: {names}"

    def _why_there(self, origin: PlacementOrigin) -> str:
        host = self._container.node_id.host
        if origin.reserved_ms is not None:
            waited = _elapsed(self._container.started_ms - origin.reserved_ms)
            return f"{host} had been reserved for it for {waited}, until enough was free there"
        if origin.has_borrowed:
            return (
                f"{host} belongs to another label, which lends idle nodes to requests without a label (exclusive "
                "false), and had enough free capacity"
            )
        match origin.kind:
            case NodeType.NODE_LOCAL:
                return f"the request names {host}, which had enough free when it was offered (node-local)"
            case NodeType.RACK_LOCAL:
                return f"the request names the rack of {host}, {self._delay(origin)} (rack-local)"
            case NodeType.OFF_SWITCH if origin.places == 0:
                return f"the request names no place, and {host} had enough free when it was offered (off-switch)"
            case NodeType.OFF_SWITCH:
                places = f"{origin.places} place{'' if origin.places == 1 else 's'}"
                return f"the request names {places}, others than {host}, {self._delay(origin)} (off-switch)"

    def _delay(self, origin: PlacementOrigin) -> str:
        if origin.delay is None:
            return "and accepts it without a delay"
        return (
            f"and accepts it from scheduling opportunity {int(origin.delay) + 1} on, counted since its last local "
            f"placement; this was number {origin.opportunities}"
        )

    def _reserved(self, origin: PlacementOrigin) -> Iterator[str]:
        container, age = self._container, _elapsed(self._now_ms - self._container.started_ms)
        host = container.node_id.host
        if self._ended_ms is not None:
            lasted = _elapsed(self._ended_ms - container.started_ms)
            yield f"{host} was reserved for it for {lasted}; the reservation was given up before it was filled"
            return
        waited = _elapsed(container.started_ms - origin.requested_ms)
        yield (
            f"{host} is reserved for it for {age}, since {waited} after its request, because it had too little free "
            "for the request at that time"
        )
        node = self._context.scheduler.nodes.get(container.node_id)
        if node is not None:
            yield f"it waits for free capacity there: {self._lacking(container.resource, node.unallocated)}"

    def _lacking(self, needed: Resource, free: Resource) -> str:
        wanted, has = needed.amounts(), free.amounts()
        short = [name for name in self._counted if wanted.get(name, 0) > has.get(name, 0)]
        if not short:
            return "enough is free now, it is placed at the node's next heartbeat if the limits allow it"
        return "; ".join(f"{has.get(name, 0)} {unit(name, 0)} free, {wanted[name]} needed" for name in short)

    def _end(self) -> Iterator[str]:
        status = self._container.status
        if self._ended_ms is None or status is None:
            return
        text = " ".join(status.diagnostics.split())
        ran = _elapsed(self._ended_ms - self._container.started_ms)
        yield f"it ended {ran} after it was placed, with exit status {status.exit_status}{f': {text}' if text else ''}"

    def _preemption(self, step: PreemptionStep) -> PreemptionReport:
        reason = PreemptionReason[step.reason]
        serves = "" if step.served is None else f"; the resources are for {step.served.path}"
        after = _elapsed(step.at_ms - self._container.started_ms)
        return PreemptionReport(
            step.at_ms,
            step.step,
            step.reason,
            SELECTORS[reason],
            f"{_STEPS[step.step]} {after} after it was placed, chosen by {SELECTORS[reason]}: {reason.value}{serves}",
            step.victim,
            step.served,
            tuple(self._numbers(step, with_ideal=reason in _WITH_IDEAL)),
        )

    def _numbers(self, step: PreemptionStep, *, with_ideal: bool) -> Iterator[str]:
        lost, served = step.victim, step.served
        text = f"{self._of_queue(lost, with_ideal=with_ideal)}"
        if with_ideal:
            text += f"; {self._amount(lost.to_be_preempted)} above that, {self._amount(lost.to_obtain)} to be taken"
        yield text
        if served is not None:
            yield self._of_queue(served, with_ideal=with_ideal)

    def _of_queue(self, queue: QueueInRound, *, with_ideal: bool) -> str:
        where = f" on label {queue.partition}" if queue.partition else ""
        text = (
            f"{queue.path}{where}: {self._amount(queue.used)} used, {self._amount(queue.guaranteed)} guaranteed, "
            f"{self._amount(queue.pending)} pending"
        )
        return f"{text}, should have {self._amount(queue.ideal)}" if with_ideal else text

    def _amount(self, resource: Resource) -> str:
        held = resource.amounts()
        return " and ".join(f"{held.get(name, 0)} {unit(name, held.get(name, 0))}" for name in self._counted)


def _passed(origin: PlacementOrigin | None) -> tuple[NodePassed, ...]:
    refusals = () if origin is None else origin.passed
    return tuple(NodePassed(node_id, reason.name, reason.value, at_ms) for node_id, reason, at_ms in refusals)


def _elapsed(elapsed_ms: int) -> str:
    return duration(max(0, elapsed_ms))
