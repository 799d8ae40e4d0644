"""Reads what `yarnling watch --json` printed: a line for each call when it is answered, and for each state change."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from wire.caller import RM_CALLER
from yarn.errors import InvalidArgumentException
from yarnling.timeline.assembly import Assembly, Call
from yarnling.timeline.model import Role, Timeline


def read_calls(lines: Iterable[Any], title: str) -> Timeline:
    """The run. The time on the network is not in a recording: a call arrives when it is sent."""
    assembly = Assembly(title)
    assembly.lifeline(RM_CALLER, Role.RM)
    dropped = 0
    for number, line in enumerate(lines, 1):
        try:
            if "dropped" in line:
                dropped += int(line["dropped"])
            elif "target" in line:
                assembly.change(int(line["at_ms"]), _lifeline(assembly, str(line["of"])), line)
            else:
                _call(assembly, line)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidArgumentException(f"line {number} is not a line of yarnling watch --json: {error}") from None
    if dropped:
        assembly.notes.append(f"{dropped} calls were dropped while it was recorded.")
    return assembly.timeline()


def _call(assembly: Assembly, line: dict[str, Any]) -> None:
    source, target, rpc = str(line["from"]), str(line["to"]), str(line["rpc"])
    over_ms = int(line["at_ms"])
    sent_ms = over_ms - round(float(line["ms"]))
    call = Call(_lifeline(assembly, source), _lifeline(assembly, target), rpc, sent_ms, line["request"], is_sent=True)
    call.arrived_ms, call.replied_ms, call.over_ms, call.arrivals = sent_ms, over_ms, over_ms, 1
    call.reply = line["reply"]
    if "request_bytes" in line:
        call.request_bytes, call.reply_bytes = int(line["request_bytes"]), int(line["reply_bytes"])
    if line["error"] is not None:
        call.is_refused = True
        call.error = f"{str(line['error']['exception']).rpartition('.')[2]}: {line['error']['message']}"
    assembly.call(call)


def _lifeline(assembly: Assembly, name: str) -> str:
    """The lifeline of a daemon or a caller, as a recording names it."""
    if name.startswith(RM_CALLER):
        return assembly.lifeline(RM_CALLER, Role.RM)
    if name.startswith(("appattempt_", "container_")):
        return assembly.lifeline(name, Role.AM)
    if name.startswith(("user ", "unknown ")) or ":" not in name:
        return assembly.lifeline(name, Role.CLIENT)
    assembly.nodes[name] = name
    return assembly.lifeline(name, Role.NM)
