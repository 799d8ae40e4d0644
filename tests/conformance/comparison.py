"""Steps the core through a recording and reports where it first differs from Hadoop."""

from __future__ import annotations

import traceback
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from tests.conformance.cluster import RecordedCluster, Unsupported
from tests.conformance.recording import Json, Recording, View, read
from tests.conformance.view import look
from yarn.faults import ConfigurationException

HADOOPS_OWN_FAILURE = "NullPointerException"
"""Errors with which Hadoop left a step half applied: what follows cannot be compared."""

_MISSING = "(absent)"

_FIRST_WORDS = ("reply", "container", "reserved", "app", "node", "queue", "user")
"""Which of several differences of one step is the most informative."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference. `step`: the number of the step, 0 for the start; `key`: a key of the reply or of the view."""

    step: int
    action: Json
    key: str
    hadoop: object
    ours: object


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result for one recording: the differences of the first step that has any, the most informative first."""

    name: str
    steps: int
    differences: tuple[Difference, ...] = ()
    trace: str = ""

    @property
    def same(self) -> bool:
        return not self.differences

    def as_json(self) -> dict[str, Any]:
        first = to_builtins(self.differences[0]) if self.differences else None
        return {"recording": self.name, "same": self.same, "steps": self.steps, "difference": first}


def compare_file(path: Path, release: str | None = None) -> Outcome:
    """Compare one recording. A file that is not a recording, or an error in our code, counts as a difference.

    `release`: follow the rules of this release of Hadoop, not those of the one that made the recording.
    """
    try:
        recording = read(path)
    except (OSError, ValueError) as error:
        return Outcome(path.name, 0, (Difference(0, {}, "recording", "(readable)", f"{path}: {error}"),))
    return compare(recording if release is None else replace(recording, release=release))


def compare(recording: Recording) -> Outcome:
    """Compare until the first step that differs."""
    steps = len(recording.steps)
    try:
        cluster = RecordedCluster(recording.followed)
    except ConfigurationException as error:
        if recording.error is not None:
            return Outcome(recording.name, steps)
        return _outcome(recording, [Difference(0, {}, "start", "started", f"refused: {error}")])
    except Exception as error:
        return _crashed(recording, 0, {}, error)
    if recording.error is not None:
        return _outcome(recording, [Difference(0, {}, "start", f"refused: {recording.error}", "started")])
    return _compare_steps(recording, cluster)


def _compare_steps(recording: Recording, cluster: RecordedCluster) -> Outcome:
    expected: View = dict(recording.first_view)
    differences = _compare_views(0, {}, expected, look(cluster))
    for number, step in enumerate(recording.steps, start=1):
        if differences:
            break
        if stumbles(step.reply):
            break
        for key, value in step.delta.items():
            if value is None:
                expected.pop(key, None)
            else:
                expected[key] = value
        try:
            reply = cluster.step(step.action)
            view = look(cluster)
        except Unsupported as error:
            differences = [Difference(number, step.action, "reply", step.reply, str(error))]
            break
        except Exception as error:
            return _crashed(recording, number, step.action, error)
        differences = _compare_replies(number, step.action, step.reply, reply)
        differences += _compare_views(number, step.action, expected, view)
    if not differences and recording.restless is not None:
        return _come_to_rest(recording, cluster, recording.restless)
    return _outcome(recording, differences)


def _come_to_rest(recording: Recording, cluster: RecordedCluster, action: Json) -> Outcome:
    """Hadoop does not come to rest after this step. Ours only has to return; the caller limits the time."""
    try:
        cluster.step(action)
        look(cluster)
    except Exception as error:
        return _crashed(recording, len(recording.steps) + 1, action, error)
    return _outcome(recording, [])


def stumbles(reply: Json) -> bool:
    """True if the comparison ends at Hadoop's reply to this step."""
    return bool(reply.get("error", {}).get("class") == HADOOPS_OWN_FAILURE)


def _compare_replies(number: int, action: Json, hadoop: Json, ours: Json) -> list[Difference]:
    """Compare key by key; of an error only the class, since messages may contain times and addresses."""
    hadoop, ours = _without_message(hadoop), _without_message(ours)
    if hadoop == ours:
        return []
    keys = dict.fromkeys((*hadoop, *ours))
    return [
        Difference(number, action, f"reply/{key}", hadoop.get(key, _MISSING), ours.get(key, _MISSING))
        for key in keys
        if hadoop.get(key, _MISSING) != ours.get(key, _MISSING)
    ]


def _without_message(reply: Json) -> Json:
    return {**reply, "error": reply["error"]["class"]} if "error" in reply else reply


def _compare_views(number: int, action: Json, hadoop: View, ours: View) -> list[Difference]:
    if hadoop == ours:
        return []
    return [
        Difference(number, action, key, hadoop.get(key, _MISSING), ours.get(key, _MISSING))
        for key in sorted(hadoop.keys() | ours.keys())
        if hadoop.get(key, _MISSING) != ours.get(key, _MISSING)
    ]


def _crashed(recording: Recording, number: int, action: Json, error: Exception) -> Outcome:
    difference = Difference(number, action, "reply", "(no crash)", f"{type(error).__name__}: {error}")
    return Outcome(recording.name, len(recording.steps), (difference,), "".join(traceback.format_exception(error)))


def _outcome(recording: Recording, differences: list[Difference]) -> Outcome:
    def rank(difference: Difference) -> tuple[int, str]:
        word = difference.key.partition("/")[0]
        return (_FIRST_WORDS.index(word) if word in _FIRST_WORDS else -1, difference.key)

    return Outcome(recording.name, len(recording.steps), tuple(sorted(differences, key=rank)))
