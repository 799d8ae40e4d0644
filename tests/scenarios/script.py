"""Scenarios as text: commands, a line of dashes, and the output of the commands.

    # case: A2
    # hadoop: LeafQueue.assignContainers
    # Comments for the reader. `hadoop:` names the method that has this rule, or
    # the Hadoop test from which the numbers are.

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
from itertools import pairwise
from pathlib import Path
from typing import ClassVar

from tests.rm.scheduler.cluster import GB, START_MS, Cluster, row
from tests.scenarios.views import Views
from yarn.containers import ANY, ResourceRequest
from yarn.errors import YarnException
from yarn.nodes import NodeLabel

SEPARATOR = "----"


class Script:
    """A scenario: runs its blocks in order on one cluster."""

    def __init__(self, text: str) -> None:
        self.cases = tuple(re.findall(r"^# case: (\w+)$", text, re.MULTILINE))
        self.hadoop = tuple(re.findall(r"^# hadoop: (\w+\.\w+)$", text, re.MULTILINE))
        self._exempt = tuple(re.findall(r"^# exempt: (I-\d+(?: \(\w+\))?)$", text, re.MULTILINE))
        self._text = text
        self._conf: dict[str, str] = {}
        self._started: Cluster | None = None
        self._apps: list[str] = []
        self._nodes: list[str] = []
        self._vcores = False

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
            broken = self._started.violations(self._exempt)
            assert not broken, f"after {line!r}: {broken}"
        return output

    @property
    def _cluster(self) -> Cluster:
        """Started with the configuration by the first command that needs it."""
        if self._started is None:
            self._started = Cluster(self._conf)
        return self._started

    @property
    def _views(self) -> Views:
        return Views(self._cluster, vcores=self._vcores)

    # Commands

    def _set(self, words: list[str]) -> list[str]:
        """conf KEY=VALUE...: before the start."""
        self._conf.update(_settings(words))
        return []

    def _refresh(self, words: list[str]) -> list[str]:
        """refresh KEY=VALUE...: changes the present configuration; KEY= removes a key."""
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

    def _labels(self, words: list[str]) -> list[str]:
        """labels NAME...: exclusive ones, but for NAME=shared."""
        named = [word.partition("=") for word in words]
        self._cluster.scheduler.labels.add(NodeLabel(name, kind != "shared") for name, _, kind in named)
        return []

    def _label(self, words: list[str]) -> list[str]:
        """label NODE [NAME]: sets its label, or removes it without a name; an unregistered node by its host."""
        self._cluster.label(words[0], *words[1:])
        return self._cluster.read_story()

    def _beat(self, words: list[str]) -> list[str]:
        """beat NODE [xN]: heartbeats of a node."""
        return self._cluster.heartbeat(words[0], _times(words[1:]))

    def _rounds(self, words: list[str]) -> list[str]:
        """rounds N: each node in turn, N times."""
        return [line for _ in range(int(words[0])) for node in self._nodes for line in self._cluster.heartbeat(node)]

    def _quietly(self, words: list[str]) -> list[str]:
        """quietly COMMAND...: without its output."""
        self._COMMANDS[words[0]](self, words[1:])
        return []

    def _clock(self, words: list[str]) -> list[str]:
        """clock MS: the time since the ResourceManager's start, a day by default."""
        self._cluster.now_ms = START_MS + int(words[0])
        return []

    def _lose(self, words: list[str]) -> list[str]:
        """lose NODE"""
        self._nodes.remove(words[0])
        return self._cluster.lose(words[0])

    def _resize(self, words: list[str]) -> list[str]:
        """resize NODE MB [VCORES]"""
        return self._cluster.resize(words[0], *map(int, words[1:]))

    def _submit(self, words: list[str]) -> list[str]:
        """submit APP USER QUEUE [MB-OF-AM] [priority P] [unmanaged] [label L] [master-label L]

        An unmanaged application needs no AM container and is ready at once, as in Hadoop's own tests of single queues.
        """
        app, user, queue, *rest = words
        size = int(rest.pop(0)) if rest and rest[0].isdigit() else GB
        options = dict(pairwise(rest))
        story = self._cluster.submit(
            app,
            user,
            queue,
            size,
            priority=int(options.get("priority", 0)),
            unmanaged="unmanaged" in rest,
            label=options.get("label"),
            am_label=options.get("master-label", options.get("label")),
        )
        self._apps.append(app)
        return story

    def _move(self, words: list[str]) -> list[str]:
        """move APP QUEUE"""
        self._cluster.move(*words)
        return self._cluster.read_story()

    def _prioritize(self, words: list[str]) -> list[str]:
        """prioritize APP PRIORITY"""
        self._cluster.prioritize(words[0], int(words[1]))
        return self._cluster.read_story()

    def _ask(self, words: list[str]) -> list[str]:
        """ask APP NxMB[:VCORES] [at NAME] [priority P] [id N] [label L] [strict], rows with commas; one call."""
        rows = [_row(part.split()) for part in " ".join(words[1:]).split(",")]
        return self._cluster.send(words[0], rows)

    def _poll(self, words: list[str]) -> list[str]:
        """poll APP...: an empty allocate call; prints what it returns."""
        return [line for app in words for line in self._views.poll(app)] + self._cluster.read_story()

    def _preempt(self, words: list[str]) -> list[str]:
        """preempt [MS]: advances the clock (by 3000) and runs a round of preemption."""
        return self._cluster.preempt(*map(int, words))

    def _finish(self, words: list[str]) -> list[str]:
        """finish APP [ATTEMPT.]NUMBER...: reported with the next heartbeat of the node."""
        for word in words[1:]:
            attempt, _, number = word.rpartition(".")
            self._cluster.finish(words[0], int(number), attempt=int(attempt) if attempt else None)
        return []

    def _release(self, words: list[str]) -> list[str]:
        """release APP NUMBER"""
        return self._cluster.release(words[0], int(words[1]))

    def _grow(self, words: list[str]) -> list[str]:
        """grow APP NUMBER MB: another size for a container, larger or smaller."""
        self._cluster.resize_container(words[0], int(words[1]), int(words[2]))
        return self._cluster.read_story()

    def _expire(self, words: list[str]) -> list[str]:
        """expire APP NUMBER: its AM fetched the container and never started it."""
        return self._cluster.expire(words[0], int(words[1]))

    def _avoid(self, words: list[str]) -> list[str]:
        """avoid APP PLACE...: blacklist."""
        self._cluster.blacklist(*words)
        return []

    def _readmit(self, words: list[str]) -> list[str]:
        """readmit APP PLACE...: off the blacklist."""
        self._cluster.remove_from_blacklist(*words)
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
        return [self._views.queue(path) for path in words or self._cluster.scheduler.queues]

    def _partition(self, words: list[str]) -> list[str]:
        """partition NAME [PATH...]: what queues have of a label's nodes"""
        name, *paths = words
        return [self._views.partition(path, name) for path in paths or self._cluster.scheduler.queues]

    def _shares(self, words: list[str]) -> list[str]:
        """shares [PATH...]: capacities, configured and used"""
        return [self._views.shares(path) for path in words or self._cluster.scheduler.queues]

    def _limits(self, words: list[str]) -> list[str]:
        """limits LEAF...: its limits of applications and AM resources"""
        return [self._views.limits(path) for path in words]

    def _users(self, words: list[str]) -> list[str]:
        """users LEAF"""
        return list(self._views.users(words[0]))

    def _nodes_shown(self, words: list[str]) -> list[str]:
        """nodes [NAME...]"""
        return [self._views.node(name) for name in words or self._nodes]

    def _held(self, words: list[str]) -> list[str]:
        """held [APP...]: the resources and containers of applications."""
        return [self._views.held(app) for app in words or [app for app in self._apps if self._is_known(app)]]

    def _is_known(self, app: str) -> bool:
        try:
            self._cluster.attempt(app)
        except KeyError:
            return False
        return True

    def _asked(self, words: list[str]) -> list[str]:
        """asked APP...: pending requests, and missed scheduling opportunities."""
        return [line for app in words for line in self._views.asked(app)]

    def _explain(self, words: list[str]) -> list[str]:
        """explain APP: why its requests are pending."""
        return list(self._views.obstacles(words[0]))

    def _show(self, words: list[str]) -> list[str]:
        """show vcores: amounts as memory:vcores from here on."""
        self._vcores = words == ["vcores"]
        return []

    _COMMANDS: ClassVar[dict[str, Callable[[Script, list[str]], list[str]]]] = {
        "conf": _set,
        "start": _start,
        "refresh": _refresh,
        "node": _node,
        "labels": _labels,
        "label": _label,
        "beat": _beat,
        "rounds": _rounds,
        "quietly": _quietly,
        "clock": _clock,
        "lose": _lose,
        "resize": _resize,
        "move": _move,
        "prioritize": _prioritize,
        "grow": _grow,
        "expire": _expire,
        "submit": _submit,
        "ask": _ask,
        "poll": _poll,
        "preempt": _preempt,
        "finish": _finish,
        "release": _release,
        "avoid": _avoid,
        "readmit": _readmit,
        "end": _end,
        "retry": _retry,
        "queues": _queues,
        "partition": _partition,
        "shares": _shares,
        "limits": _limits,
        "users": _users,
        "nodes": _nodes_shown,
        "held": _held,
        "asked": _asked,
        "explain": _explain,
        "show": _show,
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
        request_id=int(options.get("id", -1)),
        relax="strict" not in words,
        label=options.get("label"),
    )
