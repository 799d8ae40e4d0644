"""Lines of recorded runs."""

from __future__ import annotations

from typing import Any

from wire.event_log import FORMAT

HEADER = {"run": FORMAT, "title": "synthetic"}
APP = "application_1700000000000_0001"
QUIET_REQUEST = {"node_id": "n1:1", "response_id": 1, "containers": []}
QUIET_REPLY = {"response_id": 2, "action": "NORMAL", "containers_to_clean_up": []}


def steps(number: int, *happened: tuple[str, int], rpc: str = "nodeHeartbeat", **fields: Any) -> list[dict[str, Any]]:
    """The line of one call of nm-1 to the ResourceManager; `happened`: (what, when) after it was called at 0."""
    times, request = dict(happened), fields.pop("request", QUIET_REQUEST)
    call = {"source": "nm-1", "target": "rm", "rpc": rpc, "sent_ms": happened[0][1] - 1 if happened else 0}
    call |= {"request": request, "number": number, "is_sent": "sent" in times, "arrivals": int("arrived" in times)}
    call |= {f"{what}_ms": times[what] for what in ("arrived", "replied", "over") if what in times}
    return [{"call": call | (fields or {"reply": QUIET_REPLY}) if "over" in times else call}]


def answered(number: int, at_ms: int, **fields: Any) -> list[dict[str, Any]]:
    times = (("sent", at_ms), ("arrived", at_ms + 1), ("replied", at_ms + 1), ("over", at_ms + 2))
    return steps(number, *times, **fields)


LOST = {"error": "SocketTimeoutException: no reply in time"}
