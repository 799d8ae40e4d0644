"""Scenarios as text: commands, a line of dashes, what they did.

    # case: A2
    # Any words about what is shown; lines with # are for the reader.

    conf root.queues=a root.a.capacity=100
    node n1 8192
    submit app1 alice a
    beat n1
    ----
    app1/1 on n1 1024 master

A block is its commands, `----` and the output up to an empty line. A command that is refused prints `error` and the
words of the refusal, and the script goes on. The commands are those of `Script._COMMANDS`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from rm.scheduler.invariants import violations
from rm.scheduler.leaf_queue import LeafQueue
from rm.scheduler.parent_queue import ParentQueue
from tests.rm.scheduler.cluster import Cluster, row
from yarn.asks import ANY, ResourceRequest
from yarn.errors import YarnException
from yarn.resource import Resource

SEPARATOR = "----"


class Script:
    """One scenario: runs its blocks in order on one cluster."""

    def __init__(self, text: str) -> None:
        self.cases = tuple(re.findall(r"^# case: (\w+)$", text, re.MULTILINE))
        self._exempt = tuple(re.findall(r"^# exempt: (I-\d+)", text, re.MULTILINE))
        self._text = text
        self._conf: dict[str, str] = {}
        self._started: Cluster | None = None
        self._apps: list[str] = []
        self._nodes: list[str] = []

    @staticmethod
    def read(path: Path) -> Script:
        return Script(path.read_text(encoding="utf-8"))

    def replay(self) -> str:
        """The text with the output that the commands have now. Raises AssertionError if an invariant breaks."""
        paragraphs = re.split(r"\n{2,}", self._text.strip("\n"))
        return "\n\n".join(self._replay_block(paragraph) for paragraph in paragraphs) + "\n"

    def _replay_block(self, paragraph: str) -> str:
        lines = paragraph.split("\n")
        if all(line.startswith("#") for line in lines):
            return paragraph
        commands = lines[: lines.index(SEPARATOR)] if SEPARATOR in lines else lines
        output = [line for command in commands for line in self._run(command)]
        return "\n".join([*commands, SEPARATOR, *output])

    def _run(self, line: str) -> list[str]:
        if line.startswith("#"):
            return []
        name, *words = line.split()
        try:
            output = self._COMMANDS[name](self, words)
        except YarnException as error:
            output = ["error " + text for text in error.message.split("\n")]
        if self._started is not None:
            broken = violations(self._started.scheduler, self._exempt)
            assert not broken, f"after {line!r}: {broken}"
        return output

    @property
    def _cluster(self) -> Cluster:
        """Started with the configuration by the first command that needs it."""
        if self._started is None:
            self._started = Cluster(self._conf)
        return self._started

    # Commands

    def _set(self, words: list[str]) -> list[str]:
        """conf KEY=VALUE...: before the start."""
        self._conf.update(_settings(words))
        return []

    def _refresh(self, words: list[str]) -> list[str]:
        """refresh KEY=VALUE...: these on top of the present configuration; KEY= takes a key away."""
        conf = self._conf | _settings(words)
        conf = {key: value for key, value in conf.items() if value}
        self._cluster.refresh(conf)
        self._conf = conf
        return []

    def _start(self, _: list[str]) -> list[str]:
        """start: read the configuration now."""
        return self._cluster.read_story()

    def _node(self, words: list[str]) -> list[str]:
        """node NAME MB [VCORES] [/RACK]"""
        rack = next((word for word in words if word.startswith("/")), "/r1")
        name, memory_mb, *vcores = [word for word in words if not word.startswith("/")]
        self._cluster.node(name, int(memory_mb), int(vcores[0]) if vcores else None, rack)
        self._nodes.append(name)
        return self._cluster.read_story()

    def _beat(self, words: list[str]) -> list[str]:
        """beat NODE [xN]: heartbeats of a node."""
        return self._cluster.beat(words[0], _times(words[1:]))

    def _rounds(self, words: list[str]) -> list[str]:
        """rounds N: each node in turn, N times."""
        return [line for _ in range(int(words[0])) for node in self._nodes for line in self._cluster.beat(node)]

    def _quietly(self, words: list[str]) -> list[str]:
        """quietly COMMAND...: without its story."""
        self._COMMANDS[words[0]](self, words[1:])
        return []

    def _lose(self, words: list[str]) -> list[str]:
        """lose NODE"""
        self._nodes.remove(words[0])
        return self._cluster.lose(words[0])

    def _resize(self, words: list[str]) -> list[str]:
        """resize NODE MB"""
        return self._cluster.resize(words[0], int(words[1]))

    def _submit(self, words: list[str]) -> list[str]:
        """submit APP USER QUEUE [MB-OF-MASTER]"""
        app, user, queue, *size = words
        story = self._cluster.submit(app, user, queue, *map(int, size))
        self._apps.append(app)
        return story

    def _ask(self, words: list[str]) -> list[str]:
        """ask APP NxMB[:VCORES] [at NAME] [priority P] [strict], rows separated by a comma; one call."""
        rows = [_row(part.split()) for part in " ".join(words[1:]).split(",")]
        return self._cluster.send(words[0], rows)

    def _poll(self, words: list[str]) -> list[str]:
        """poll APP...: fetches what was placed, tells what it hears."""
        output = []
        for app in words:
            allocation = self._cluster.poll(app)
            names = " ".join(self._cluster.name_of(container.id) for container in allocation.containers)
            output.append(f"{app}: headroom {_show(allocation.headroom)}, fetched {names or 'nothing'}")
        return output + self._cluster.read_story()

    def _finish(self, words: list[str]) -> list[str]:
        """finish APP NUMBER...: told at the next beat of the node."""
        self._cluster.finish(words[0], *map(int, words[1:]))
        return []

    def _release(self, words: list[str]) -> list[str]:
        """release APP NUMBER"""
        return self._cluster.release(words[0], int(words[1]))

    def _avoid(self, words: list[str]) -> list[str]:
        """avoid APP PLACE...: blacklist."""
        self._cluster.avoid(*words)
        return []

    def _end(self, words: list[str]) -> list[str]:
        """end APP"""
        return self._cluster.end(words[0])

    def _retry(self, words: list[str]) -> list[str]:
        """retry APP [keeping]: the attempt fails, the next one starts."""
        return self._cluster.retry(words[0], keep_containers="keeping" in words)

    # Looking

    def _queues(self, words: list[str]) -> list[str]:
        """queues [PATH...]"""
        return [self._queue(path) for path in words or self._cluster.scheduler.queues]

    def _queue(self, path: str) -> str:
        queue = self._cluster.scheduler.queues[path]
        usage = queue.usage.default
        text = (
            f"{path}: {queue.state.name} used {_mb(usage.used)} reserved {_mb(usage.reserved)} "
            f"pending {_mb(usage.pending)} guaranteed {_mb(queue.effective_minimum(''))} "
            f"maximum {_mb(queue.effective_maximum(''))}"
        )
        if isinstance(queue, LeafQueue):
            masters = f"masters {_mb(usage.am_used)} of {_mb(usage.am_limit)}"
            return f"{text} {masters} apps {queue.active_count}+{queue.pending_count}"
        assert isinstance(queue, ParentQueue)
        return text + f" apps {queue.application_count}"

    def _users(self, words: list[str]) -> list[str]:
        """users LEAF"""
        users = self._cluster.leaf(words[0]).users
        return [
            f"{name}: used {_mb(user.usage.default.used)} limit {_mb(user.limit)} "
            f"{'active' if users.is_active(name) else 'idle'} "
            f"apps {user.active_applications}+{user.pending_applications}"
            for name, user in users.users.items()
        ]

    def _nodes_shown(self, words: list[str]) -> list[str]:
        """nodes [NAME...]"""
        return [self._node_shown(name) for name in words or self._nodes]

    def _node_shown(self, name: str) -> str:
        node = self._cluster.node_of(name)
        reserved = node.reserved_container
        tail = (
            f" reserved {self._cluster.name_of(reserved.id)} {_mb(reserved.resource)}" if reserved is not None else ""
        )
        return f"{name}: used {_mb(node.allocated)} free {_mb(node.unallocated)} of {_mb(node.total)}{tail}"

    def _held(self, words: list[str]) -> list[str]:
        """held [APP...]: what applications hold, and how many containers."""
        apps = words or [app for app in self._apps if self._is_known(app)]
        return [
            f"{app}: {self._cluster.held(app)} in {len(self._cluster.attempt(app).live_containers)} containers"
            for app in apps
        ]

    def _is_known(self, app: str) -> bool:
        try:
            self._cluster.attempt(app)
        except KeyError:
            return False
        return True

    def _explain(self, words: list[str]) -> list[str]:
        """explain APP: why it has not what it wants."""
        attempt_id = self._cluster.attempt(words[0]).attempt_id
        obstacles = self._cluster.scheduler.explain(attempt_id.application_id)
        return [str(obstacle).replace(str(attempt_id), words[0]) for obstacle in obstacles]

    _COMMANDS: ClassVar[dict[str, Callable[[Script, list[str]], list[str]]]] = {
        "conf": _set,
        "start": _start,
        "refresh": _refresh,
        "node": _node,
        "beat": _beat,
        "rounds": _rounds,
        "quietly": _quietly,
        "lose": _lose,
        "resize": _resize,
        "submit": _submit,
        "ask": _ask,
        "poll": _poll,
        "finish": _finish,
        "release": _release,
        "avoid": _avoid,
        "end": _end,
        "retry": _retry,
        "queues": _queues,
        "users": _users,
        "nodes": _nodes_shown,
        "held": _held,
        "explain": _explain,
    }


def _settings(words: list[str]) -> dict[str, str]:
    return {key: value for key, _, value in (word.partition("=") for word in words)}


def _times(words: list[str]) -> int:
    return int(words[0].removeprefix("x")) if words else 1


def _row(words: list[str]) -> ResourceRequest:
    count, size = words[0].split("x")
    memory_mb, _, vcores = size.partition(":")
    options = dict(zip(words[1::2], words[2::2], strict=False))
    return row(
        int(count),
        int(memory_mb),
        int(vcores or 1),
        priority=int(options.get("priority", 1)),
        name=options.get("at", ANY),
        relax="strict" not in words,
    )


def _mb(resource: Resource) -> int:
    return resource.memory_mb


def _show(resource: Resource) -> str:
    return f"{resource.memory_mb}:{resource.vcores}"
