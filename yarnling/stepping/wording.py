"""Puts what was noted in one event of the engine into a step: a title, and a line for each thing that happened."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from rm.core.events import NodeHeartbeat
from rm.view import RefusalSnapshot
from wire.files.plain_json import plain
from yarn.errors import YarnException
from yarn.ids import ApplicationId, ContainerId, NodeId
from yarn.machine import InvariantsBroken, Refuse, Reply, StateChanged, Warn
from yarnling.run.names import RM, Names, am, nm, node, shortened
from yarnling.run.records import Decision, What
from yarnling.run.step_wording import Wording, effect_words, event_words, listed
from yarnling.run.wording import details
from yarnling.simulation.account import Told
from yarnling.stepping.cluster_view import ROOT
from yarnling.stepping.recorder import CoreStep, LostCall, Note, Noted
from yarnling.stepping.steps import LineKind, Step, StepLine

_ORDER = tuple(LineKind)
_UNTOLD = frozenset({What.RELEASED, What.UNRESERVED})
"""The decisions that an account does not tell."""


class StepWording:
    """Words for the steps of one run. `node_names`: in the order of the machines' numbers."""

    def __init__(self, names: Names, node_names: Sequence[str]) -> None:
        self._names = names
        self._node_names = node_names
        self._words = Wording(names)

    def step(self, number: int, at_ms: int, noted: Iterable[Noted]) -> Step:
        """The notes of one event, of which there are some: the first note gives the title."""
        first, *others = noted
        place, title = self._heading(first)
        lines = self._sorted_lines(first)
        for one in others:
            if isinstance(one, Note):
                lines.append(StepLine(LineKind.NOTE, self._names.within(one.text)))
            elif isinstance(one, CoreStep):
                lines.append(StepLine(LineKind.THEN, ": ".join(self._heading(one))))
            lines += self._sorted_lines(one)
        fields = self._fields(first.event) if isinstance(first, CoreStep) else ""
        beats = (_heartbeat_of(one.event) for one in (first, *others) if isinstance(one, CoreStep))
        return Step(number, at_ms, place, title, fields, tuple(lines), next(filter(None, beats), ""))

    def _heading(self, noted: Noted) -> tuple[str, str]:
        """(where it was, what it was)."""
        match noted:
            case Note(text, by):
                return by, self._names.within(text)
            case LostCall(source, _, rpc):
                return self.place(source), f"{rpc} gets no reply"
            case CoreStep(host):
                return self.place(host), self._title(noted)

    def _sorted_lines(self, noted: Noted) -> list[StepLine]:
        """Sort lines: decisions and changes first, messages that were sent last."""
        match noted:
            case Note():
                return []
            case LostCall(error=error):
                return [StepLine(LineKind.LOST, error.message)]
            case CoreStep():
                return sorted(self._lines(noted), key=lambda line: _ORDER.index(line.kind))

    def _title(self, step: CoreStep) -> str:
        for told in step.told:
            if told.rpc and not told.is_reply:
                said = f": {told.text}" if told.text else ""
                return f"{told.rpc} from {told.place} arrives{said}"
        return event_words(step.event, step.effects, self._names, self._words)

    def _fields(self, event: object) -> str:
        try:
            fields = shortened(plain(event), _NODE_NAMES)
        except TypeError:  # for instance a configuration
            return ""
        fields.pop("call", None)
        return details(fields)

    def place(self, host: str) -> str:
        """The name of a host, as it is shown: `RM`, `NM n1`, `AM ann`."""
        if host.startswith("nm-"):
            return nm(self._node_names[int(host.removeprefix("nm-")) - 1])
        if host.startswith("am "):
            container_id = ContainerId.parse(host.removeprefix("am "))
            return am(self._names.application(container_id.application_id))
        return RM if host == "rm" else host

    def _lines(self, step: CoreStep) -> Iterator[StepLine]:
        yield from (self._decision(decision) for decision in step.decisions if decision.what in _UNTOLD)
        yield from self._refusals(step.refusals)
        yield from self._told(step.told)
        told = Counter[StepLine]()
        for effect in step.effects:
            line = self._effect(effect, is_replied=any(one.is_reply for one in step.told))
            if line is not None:
                told[line] += 1
        for line, count in told.items():
            yield line if count == 1 else StepLine(line.kind, f"{line.text} ({count} times)")

    def _told(self, told: Iterable[Told]) -> Iterator[StepLine]:
        for one in told:
            if one.is_reply:
                yield StepLine(LineKind.REPLY, f"replies to {one.target}: {one.text}")
            elif one.is_decision:
                yield StepLine(LineKind.PREEMPTED if one.text.startswith("preemption") else LineKind.PLACED, one.text)

    def _effect(self, effect: object, *, is_replied: bool) -> StepLine | None:
        match effect:
            case StateChanged(kind, subject, event, source, target):
                return StepLine(
                    LineKind.STATE, f"{self._subject(kind, subject)}: {source} \u2192 {target} (on {event})"
                )
            case Reply() if is_replied:
                return None
            case Reply():
                return StepLine(LineKind.REPLY, "replies")
            case Refuse(_, error):
                return None if is_replied else StepLine(LineKind.REPLY, f"refuses: {error.message}")
            case Warn(text):
                return StepLine(LineKind.EFFECT, f"logs a warning: {text}")
            case InvariantsBroken(violations):
                return StepLine(LineKind.EFFECT, f"an invariant is broken: {'; '.join(violations)}")
            case _:
                words = effect_words(effect, self._names, self._words)
                return StepLine(LineKind.EFFECT, words) if words else None

    def _subject(self, kind: str, subject: str) -> str:
        try:
            if kind == "NMApplication":
                return f"application {self._names.application(ApplicationId.parse(subject))}"
            return self._names.subject(kind, subject)
        except YarnException:
            return f"{kind} {subject}"

    def _refusals(self, refusals: Iterable[RefusalSnapshot]) -> Iterator[StepLine]:
        """A line for each reason, with the applications that it concerns."""
        whom: dict[tuple[NodeId | None, str], list[str]] = {}
        for refused in refusals:
            by = f" (queue {refused.by})" if refused.by not in {"", ROOT} else ""
            concerned = whom.setdefault((refused.node_id, f"{refused.reason}{by}"), [])
            concerned.append(self._names.application(refused.application_id))
        for (node_id, reason), names in whom.items():
            where = "" if node_id is None else f" on {node(node_id)}"
            yield StepLine(LineKind.REFUSED, f"no container for {listed(names)}{where}: {reason}")

    def _decision(self, decision: Decision) -> StepLine:
        name = self._names.container(ContainerId.parse(decision.container))
        where = f" on {node(NodeId.parse(decision.node))}" if decision.node else ""
        if decision.what is What.RELEASED:
            return StepLine(LineKind.RELEASED, f"releases {name}{where}")
        return StepLine(LineKind.PLACED, f"gives up the reservation of {name}{where}")


class _NodeNames(Mapping[str, str]):
    """The names of the nodes in the fields of a message: `n1` for n00001:20000."""

    def __getitem__(self, key: str) -> str:
        return node(NodeId.parse(key))

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


_NODE_NAMES = _NodeNames()


def _heartbeat_of(event: object) -> str:
    return node(event.request.node_id) if isinstance(event, NodeHeartbeat) else ""
