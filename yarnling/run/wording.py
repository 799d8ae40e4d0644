"""Words for calls, state changes and decisions: labels of a few words, and the fields of a request or a reply.

Records are plain JSON of unknown origin, so a field that is not what it should be is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from yarnling.run.heartbeats import without_measurements
from yarnling.run.names import short
from yarnling.run.records import Call, Decision, Outcome, StateChange, What

LABEL_MAX = 90
DETAILS_MAX = 1200
"""The most characters of a label, and of the fields of a message."""
NAMED_MAX = 3
"""The number of ids that a label names; more are counted."""
_NOTHING: tuple[object, ...] = (None, "", [], {}, False, 0, 0.0)


def request_label(message: Call) -> str:
    """The call in a few words. The records of `message` are shortened."""
    said = _REQUESTS.get(message.rpc, _nothing)(message.request)
    if message.rpc == _START and isinstance(message.reply, dict):
        # The request names its containers only in tokens.
        said = _started(message.reply)
    return cut(f"{message.rpc}{': ' if said else ''}{said}", LABEL_MAX)


def reply_label(message: Call) -> str:
    """The reply in a few words; "" if it says nothing."""
    if message.outcome is Outcome.REFUSED:
        return cut(message.error, LABEL_MAX)
    if message.outcome is not Outcome.ANSWERED:
        return str(message.outcome.value)
    return cut(_REPLIES.get(message.rpc, _nothing)(message.reply), LABEL_MAX)


def state_label(change: StateChange) -> str:
    """The change in a few words."""
    return cut(f"{short(change.subject)} {change.source} \u2192 {change.target}", LABEL_MAX)


def decision_label(decision: Decision, node: str) -> str:
    """The decision in a few words. `node`: the title of the node's lifeline."""
    size = f" {decision.memory_mb} MB, {decision.vcores} vcores" if decision.memory_mb else ""
    what, container, queue = decision.what, short(decision.container), decision.queue
    match what:
        case What.REFUSED:
            where = f" on {node}" if node else ""
            return cut(f"{short(decision.application)} refused{where}: {decision.reason}", LABEL_MAX)
        case What.PREEMPTED:
            return cut(f"preempt {container} on {node}: {decision.reason}", LABEL_MAX)
        case What.RELEASED:
            return cut(f"released {container} on {node}", LABEL_MAX)
        case _:
            return cut(f"{what.value} {container} on {node}:{size} for {queue}", LABEL_MAX)


def details(record: Any) -> str:
    """The fields of a request or a reply, one on each line, without those that are empty or only measure."""
    if isinstance(record, dict):
        record = without_measurements(record)
    lines: list[str] = []
    _add_lines(record, "", lines)
    return cut("\n".join(lines), DETAILS_MAX)


def _add_lines(value: Any, indent: str, lines: list[str]) -> None:
    if isinstance(value, dict):
        for key, entry in value.items():
            if entry in _NOTHING:
                continue
            if isinstance(entry, dict | list):
                lines.append(f"{indent}{key}:")
                _add_lines(entry, f"{indent}  ", lines)
            else:
                lines.append(f"{indent}{key}: {entry}")
    elif isinstance(value, list):
        for entry in value:
            if isinstance(entry, dict):
                inner: list[str] = []
                _add_lines(entry, "", inner)
                lines.append(f"{indent}- {', '.join(line.strip() for line in inner)}")
            else:
                lines.append(f"{indent}- {entry}")
    elif value is not None:
        lines.append(f"{indent}{value}")


def cut(text: str, most: int) -> str:
    """Truncate a text to at most so many characters."""
    return text if len(text) <= most else f"{text[: most - 1]}\u2026"


def _list(record: Any, field: str) -> list[Any]:
    value = record.get(field) if isinstance(record, dict) else None
    return value if isinstance(value, list) else []


def _text(record: Any, field: str) -> str:
    value = record.get(field) if isinstance(record, dict) else None
    return str(value) if value not in _NOTHING else ""


def _amount(resource: Any) -> str:
    if not isinstance(resource, dict):
        return ""
    return f"{resource.get('memory-mb', 0)} MB, {resource.get('vcores', 0)} vcores"


def _named(ids: Iterable[object]) -> str:
    texts = [str(one) for one in ids]
    return ", ".join(texts) if len(texts) <= NAMED_MAX else f"{len(texts)} containers"


def _joined(*parts: str) -> str:
    return "; ".join(part for part in parts if part)


def _nothing(_: Any) -> str:
    return ""


def _registration(record: Any) -> str:
    count = len(_list(record, "containers"))
    return _joined(_amount(record.get("resource") if isinstance(record, dict) else None), _count(count, "container"))


def _count(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}" if count else ""


def _node_heartbeat(record: Any) -> str:
    states = Counter(_text(one, "state") for one in _list(record, "containers"))
    unhealthy = isinstance(record, dict) and isinstance(health := record.get("health"), dict) and not health["healthy"]
    return _joined(", ".join(f"{count} {state}" for state, count in states.items()), "unhealthy" if unhealthy else "")


def _asked(record: Any) -> str:
    wanted = [
        f"{one.get('count')} \u00d7 {_amount(one.get('capability'))}"
        + (f" on {one.get('resource_name')}" if one.get("resource_name") != "*" else "")
        for one in _list(record, "asks")
        if isinstance(one, dict)
    ]
    asks = f"request {', '.join(wanted[:NAMED_MAX])}" if wanted else ""
    more = f" and {len(wanted) - NAMED_MAX} more" if len(wanted) > NAMED_MAX else ""
    releases = _list(record, "releases")
    return _joined(asks + more, f"release {_named(releases)}" if releases else "")


def _submission(record: Any) -> str:
    queue = _text(record, "queue")
    return _joined(_text(record, "application_id"), f"queue {queue}" if queue else "")


def _starts(record: Any) -> str:
    contexts = (
        [one.get("launch_context") for one in record if isinstance(one, dict)] if isinstance(record, list) else []
    )
    commands = [" ".join(map(str, _list(context, "commands"))) for context in contexts]
    return ", ".join(commands) if len(commands) <= NAMED_MAX else _count(len(commands), "container")


def _ids(record: Any) -> str:
    return _named(record) if isinstance(record, list) else ""


def _allocation(record: Any) -> str:
    allocated = [f"{_text(one, 'id')} on {_text(one, 'node_id')}" for one in _list(record, "allocated")]
    ended = [(_text(one, "container_id"), _text(one, "exit_status") or "0") for one in _list(record, "completed")]
    completed = [f"{container} ({status})" for container, status in ended]
    preemption = "preemption" if isinstance(record, dict) and record.get("preemption") not in _NOTHING else ""
    return _joined(
        f"allocated {_named(allocated)}" if allocated else "",
        f"completed {_named(completed)}" if completed else "",
        f"nodes changed {len(_list(record, 'updated_nodes'))}" if _list(record, "updated_nodes") else "",
        preemption,
    )


def _orders(record: Any) -> str:
    action = _text(record, "action")
    stops, forgets = _list(record, "containers_to_clean_up"), _list(record, "containers_to_forget")
    applications = _list(record, "applications_to_clean_up")
    return _joined(
        action if action != "NORMAL" else "",
        f"clean up {_named(stops)}" if stops else "",
        f"clean up {_named(applications)}" if applications else "",
        f"forget {_named(forgets)}" if forgets else "",
    )


def _started(record: Any) -> str:
    failed = record.get("failed") if isinstance(record, dict) else None
    done = _list(record, "succeeded")
    return _joined(_named(done), f"failed {_named(failed)}" if isinstance(failed, dict) and failed else "")


_START = "startContainers"
_REQUESTS: dict[str, Callable[[Any], str]] = {
    "registerNodeManager": _registration,
    "nodeHeartbeat": _node_heartbeat,
    "allocate": _asked,
    "submitApplication": _submission,
    _START: _starts,
    "stopContainers": _ids,
    "getContainerStatuses": _ids,
    "finishApplicationMaster": lambda record: _text(record, "final_status"),
    "forceKillApplication": lambda record: _text(record, "application_id"),
}
_REPLIES: dict[str, Callable[[Any], str]] = {
    "registerNodeManager": _orders,
    "nodeHeartbeat": _orders,
    "allocate": _allocation,
    "getNewApplication": lambda record: _text(record, "application_id"),
    "registerApplicationMaster": lambda record: _text(record, "queue"),
}
