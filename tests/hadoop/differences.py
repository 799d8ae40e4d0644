"""Where yarnling shows a client of Hadoop's something else than Hadoop does, scene by scene, and why.

docs/fidelity.md has the same for readers. A scene fails if it has a difference that is not listed, or a listed
one is gone; RACES may come or not.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

Listed = dict[tuple[str, str], str]
"""{(step, path inside its value; "" or "a." with all that is below): reason}."""

_FORGED = "a token that is refused is InvalidToken, whatever is wrong with it; Hadoop sends what SASL threw"
_UNREADABLE = "Hadoop closes the connection without an answer; yarnling says what it cannot read"
_READABLE = "yarnling says which field is missing or what it cannot read"
_HEADROOM = "the pending containers of all applications would have to be counted in each call; no client reads them"
_ARCHIVE = "Hadoop loses the error of unpacking, and then misses the directory; yarnling says what is wrong"

DIFFERENCES: dict[str, Listed] = {
    "ApplicationScenes.timeouts": {
        (
            "lifetime until tomorrow",
            "",
        ): "Hadoop throws what Java's parser threw; yarnling names the format",
    },
    "MasterScenes.finishOfAManagedOne": {("allocate", "EnhancedHeadroom"): _HEADROOM},
    "MasterScenes.registered": {("first allocate", "EnhancedHeadroom"): _HEADROOM},
    "MasterScenes.tokens": {
        ("wrong password", "exception"): _FORGED,
        ("unreadable identifier", ""): _UNREADABLE,
    },
    "ContainerScenes.badResources": {
        ("an archive that is none at the node", "0.Diagnostics"): _ARCHIVE,
        ("an archive that is none at the RM", "Diagnostics"): _ARCHIVE,
    },
    "ContainerScenes.environment": {
        ("environment", ""): "NodeManagers of yarnling have HADOOP_CONF_DIR, as those of an installed Hadoop do",
    },
    "ContainerScenes.nodeTokens": {
        ("forged", "exception"): _FORGED,
        ("unreadable", ""): _UNREADABLE,
    },
    "ContainerScenes.refusedStarts": {
        ("no container token", ""): _READABLE,
        ("unreadable container token", ""): _READABLE,
    },
}

_ENDS_AT_ONCE = "the end of an AM that ends at once may reach the ResourceManager before the answer to its start"
RACES: dict[str, Listed] = {
    "ApplicationScenes.amsThatEndUnregistered": {
        (name, "LaunchTime"): _ENDS_AT_ONCE for name in ("exits3", "exits0", "saysSomething", "killed")
    },
}
"""Differences by the order in which two messages arrive, in Hadoop as well: a run may show either.

An AM whose end comes first was never launched (RMAppAttemptImpl: CONTAINER_FINISHED in ALLOCATED).
"""


@dataclass(frozen=True)
class Difference:
    """A place in a step's value."""

    step: str
    path: str
    hadoop: object
    yarnling: object

    def __str__(self) -> str:
        where = f"{self.step}, {self.path or 'value'}"
        return f"{where}:\n  Hadoop   {_short(self.hadoop)}\n  yarnling {_short(self.yarnling)}"

    def is_in(self, listed: Listed) -> bool:
        return any(
            self.step == step and (self.path == path or self.path.startswith(f"{path}.") or not path)
            for step, path in listed
        )


ABSENT = "(absent)"


def differences(recorded: list[tuple[str, Any]], played: list[tuple[str, Any]]) -> list[Difference]:
    """The differences between two runs of a scene; a step that only one of them has is one."""
    found: list[Difference] = []
    for index in range(max(len(recorded), len(played))):
        step, expected = recorded[index] if index < len(recorded) else (played[index][0], ABSENT)
        other, actual = played[index] if index < len(played) else (step, ABSENT)
        if step != other:
            return [*found, Difference(step, "", expected, f"the step {other}: {actual}")]
        found += _between(step, "", expected, actual)
    return found


def _between(step: str, path: str, expected: Any, actual: Any) -> list[Difference]:
    if isinstance(expected, dict) and isinstance(actual, dict):
        return [
            each
            for key in sorted({*expected, *actual})
            for each in _between(step, _below(path, key), expected.get(key, ABSENT), actual.get(key, ABSENT))
        ]
    if isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        pairs = enumerate(zip(expected, actual, strict=True))
        return [each for index, (one, other) in pairs for each in _between(step, _below(path, str(index)), one, other)]
    return [] if expected == actual else [Difference(step, path, expected, actual)]


def _below(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 1500 else f"{text[:1500]}..."
