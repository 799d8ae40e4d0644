"""Makes records of the lines that a daemon sends to a watcher (wire.watching)."""

from __future__ import annotations

from typing import Any, cast

from wire.files.json_records import from_json
from wire.files.plain_json import plain
from yarn.errors import InvalidArgumentException
from yarnling.run.records import Call, StateChange


def watched(line: dict[str, Any]) -> Call | StateChange:
    """The call or the state change of a line. A record in it that cannot be decoded is left unchanged."""
    if "target" in line:
        return StateChange(**{"host" if key == "of" else key: value for key, value in line.items()})
    over_ms, took_ms, error = line["at_ms"], line["ms"], line["error"]
    sent_ms = over_ms - round(took_ms)
    return Call(
        line["from"],
        line["to"],
        line["rpc"],
        sent_ms,
        _decoded(line["request"]),
        arrived_ms=sent_ms,  # the time on the network is not known
        replied_ms=over_ms,
        over_ms=over_ms,
        took_ms=took_ms,
        reply=_decoded(line["reply"]),
        error="" if error is None else f"{error['exception'].rpartition('.')[2]}: {error['message']}",
        is_refused=error is not None,
        arrivals=1,
        request_bytes=line.get("request_bytes"),
        reply_bytes=line.get("reply_bytes", 0),
    )


def _decoded(record: Any) -> object:
    try:
        return cast(object, plain(from_json(record)))
    except (InvalidArgumentException, TypeError):
        return cast(object, record)
