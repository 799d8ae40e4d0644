"""Reads the trace of a simulation (yarnling.simulation.trace_file)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from yarn.errors import InvalidArgumentException
from yarnling.timeline.assembly import Assembly, Call
from yarnling.timeline.faults import RM_LIFELINE, node_lifeline
from yarnling.timeline.model import Decision, Fault, HeadroomUse, QueueUse, Role, Timeline

FORMAT = 1
_TO_NODE = "node-"
_STATE_CHANGED = "yarn.machine.dispatcher.StateChanged"
_NODE_REGISTRATION = "registerNodeManager"


def read_trace(lines: Iterable[Any]) -> Timeline:
    """The run whose trace has these lines, the first included. Raises InvalidArgumentException for other lines."""
    reader: _TraceReader | None = None
    for number, line in enumerate(lines, 1):
        try:
            if reader is None:
                reader = _TraceReader(line)
            else:
                reader.take(line)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidArgumentException(f"line {number} is not a line of a trace: {error}") from None
    if reader is None:
        raise InvalidArgumentException("an empty file is not a trace")
    return reader.assembly.timeline()


class _TraceReader:
    def __init__(self, first: Any) -> None:
        if first["trace"] != FORMAT:
            raise ValueError(f"format {first['trace']}, not {FORMAT}")
        self.assembly = Assembly(str(first["title"]))
        self.assembly.lifeline(RM_LIFELINE, Role.RM)
        self._calls: dict[int, Call] = {}

    def take(self, line: Any) -> None:
        assembly = self.assembly
        if isinstance(line, list):
            self._step(*line)
        elif "call" in line:
            self._call(line)
        elif "decision" in line:
            assembly.decisions.append(msgspec.convert(line["decision"], Decision))
        elif "use" in line:
            assembly.use.append(msgspec.convert(line["use"], QueueUse))
        elif "headroom" in line:
            assembly.headrooms.append(msgspec.convert(line["headroom"], HeadroomUse))
        elif "fault" in line:
            assembly.faults.append(msgspec.convert(line["fault"], Fault))
        else:
            assembly.ended_ms = int(line["ended"])

    def _step(self, at_ms: int, host: str, _: Any, effects: list[Any]) -> None:
        for effect in effects:
            if effect["$"] == _STATE_CHANGED:
                self.assembly.change(at_ms, self._lifeline(host), effect)

    def _call(self, line: dict[str, Any]) -> None:
        number, at_ms = int(line["call"]), int(line["ms"])
        if line["is"] == "called":
            source, link, request = self._lifeline(line["from"]), str(line["link"]), line["request"]
            target = node_lifeline(int(link.removeprefix(_TO_NODE))) if link.startswith(_TO_NODE) else RM_LIFELINE
            call = Call(source, self._lifeline(target), str(line["rpc"]), at_ms, request)
            call.request_bytes = int(line["bytes"]) if "bytes" in line else None
            self._calls[number] = self.assembly.call(call)
            if call.rpc == _NODE_REGISTRATION:
                self.assembly.nodes[str(request["node_id"])] = source
            return
        call = self._calls[number]
        match line["is"]:
            case "sent":
                call.is_sent = True
                call.target = self._lifeline(line["to"])
            case "arrived":
                call.arrivals += 1
                call.arrived_ms = at_ms if call.arrived_ms is None else call.arrived_ms
            case "replied":
                call.replied_ms = at_ms
            case "over":
                self._over(call, at_ms, line)
            case other:
                raise ValueError(f"{other!r} does not happen to a call")

    def _over(self, call: Call, at_ms: int, line: dict[str, Any]) -> None:
        call.over_ms = at_ms
        if "error" in line:
            error = line["error"]
            kind = str(error["exception"]).rpartition(".")[2]
            call.error = f"{kind}: {error['message']}"
            call.is_unreachable = not call.is_sent
            call.is_refused = not line.get("lost")
        else:
            call.reply, call.reply_bytes = line["reply"], int(line.get("bytes", 0))
        del self._calls[int(line["call"])]

    def _lifeline(self, name: str) -> str:
        if name.startswith("nm-"):
            return self.assembly.lifeline(name, Role.NM)
        if name.startswith("am "):
            return self.assembly.lifeline(name.removeprefix("am "), Role.AM)
        return self.assembly.lifeline(name, Role.RM if name == RM_LIFELINE else Role.CLIENT)
