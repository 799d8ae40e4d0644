"""The changes with which a run can be continued: what a user types, checked against the cluster, and carried out.

kill n2 | kill rm | kill ann | kill ann-c3       a NodeManager with its containers, the ResourceManager, an
                                                 application, a container's process
start n2 | start rm                              a NodeManager, or the ResourceManager, that is down
pause n2 | resume n2                             a process, or `rm`
remove n2                                        decommission a node
cut n2 | join n2                                 no message between the node's NodeManager and the ResourceManager
submit bob queue=b containers=4 memory=2048 vcores=1 seconds=30 user=bob
set root.a.capacity=30 root.b.capacity=70        read the queues again (refreshQueues)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial

from msgspec import Struct

from rm.core.events import KillApplication
from yarn.errors import InvalidArgumentException, YarnException
from yarn.ids import ContainerId
from yarn.resource import Resource
from yarnling.cluster.network import NetworkFault
from yarnling.lessons.scene.application import FOREVER, LENGTHS_S
from yarnling.simulation.process import run
from yarnling.stepping.run import SteppedRun, SteppedSubmission
from yarnling.stepping.steps import YOU

TEXT_MAX = 500
"""The characters of a change."""
CONTAINERS_MAX = 1000
MEMORY_MAX_MB = 1 << 20
VCORES_MAX = 1000
_FAULT = 1 << 30
"""The number of the network fault of `cut`: after all those of a plan."""
_NAME = re.compile(r"[A-Za-z][\w.-]{0,39}")
_KEY = re.compile(r"[\w.*-]{1,200}")
_PREFIX = "yarn.scheduler.capacity."
USAGE = "kill, start, pause, resume, remove, cut, join, submit or set"


class ClusterChange(Struct, frozen=True):
    """A change of the cluster that a user typed. `text`: what was typed, with one blank between two words."""

    text: str

    @staticmethod
    def parse(text: str) -> ClusterChange:
        """Raises InvalidArgumentException for text that cannot be a change of any cluster."""
        words = text.split()
        if len(text) > TEXT_MAX:
            raise InvalidArgumentException(f"a change of {len(text)} characters is too long: at most {TEXT_MAX}")
        if not words or words[0] not in _VERBS:
            raise InvalidArgumentException(f"{text[:60]!r} is not a change: begin with {USAGE}")
        return ClusterChange(" ".join(words))

    def apply(self, to: SteppedRun) -> None:
        """Carry it out now. Raises InvalidArgumentException if the cluster does not allow it; drop the run then."""
        verb, *words = self.text.split()
        to.note(self.text, YOU)
        _VERBS[verb](to, words)


def _one(words: list[str], verb: str, of: str) -> str:
    if len(words) != 1:
        raise InvalidArgumentException(f"{verb} takes one word: {of}")
    return words[0]


def _node(to: SteppedRun, name: str) -> int:
    """The number of a machine from its name, such as `n2`."""
    names = to.node_names
    if name not in names:
        raise InvalidArgumentException(f"there is no node {name[:60]}: choose one of {names[0]} to {names[-1]}")
    return names.index(name) + 1


def _check_rm(to: SteppedRun, *, is_up: bool) -> None:
    if to.cluster.rm.is_up != is_up:
        state = "down" if is_up else "running"
        raise InvalidArgumentException(f"the ResourceManager is {state}: {'start' if is_up else 'kill'} rm first")


def _check_rm_answers(to: SteppedRun) -> None:
    _check_rm(to, is_up=True)
    if to.cluster.rm.is_paused:
        raise InvalidArgumentException("the ResourceManager is paused: resume rm first")


def _up(to: SteppedRun, name: str) -> int:
    number = _node(to, name)
    if not to.cluster.machine(number).nm.is_up:
        raise InvalidArgumentException(f"the NodeManager of {name} is down: start {name} first")
    return number


def _kill(to: SteppedRun, words: list[str]) -> None:
    name = _one(words, "kill", "a node (n2), rm, an application or a container")
    if name == "rm":
        _check_rm(to, is_up=True)
        to.cluster.kill_rm()
    elif name in to.node_names or re.fullmatch(r"n\d+", name):
        to.cluster.machine(_up(to, name)).kill(containers=True)
    elif (container_id := _running_container(to, name)) is not None:
        for machine in to.cluster.machines:
            if container_id in machine.containers.running:
                machine.kill_container(container_id)
    else:
        _kill_application(to, name)


def _running_container(to: SteppedRun, name: str) -> ContainerId | None:
    running = [container_id for machine in to.cluster.machines for container_id in machine.containers.running]
    return next((container_id for container_id in running if to.names.container(container_id) == name), None)


def _kill_application(to: SteppedRun, name: str) -> None:
    found = [application_id for application_id, known in to.names.applications.items() if known == name]
    if not found:
        raise InvalidArgumentException(
            f"nothing is called {name}: name a node, rm, an application or a container that runs"
        )
    _check_rm_answers(to)
    app = to.cluster.rm.core.context.apps.get(found[0])
    if app is None:
        raise InvalidArgumentException(f"the ResourceManager does not know {name}: it may have ended before a restart")
    event = partial(KillApplication, application_id=found[0], diagnostics="Killed by you.", user=app.user)
    run(to.cluster.rm.ask(event), _ignore)


def _start(to: SteppedRun, words: list[str]) -> None:
    name = _one(words, "start", "a node (n2) or rm")
    if name == "rm":
        _check_rm(to, is_up=False)
        to.cluster.start_rm()
        return
    number = _node(to, name)
    if to.cluster.machine(number).nm.is_up:
        raise InvalidArgumentException(f"the NodeManager of {name} is running: kill {name} first")
    if number in to.cluster.leaving:
        to.cluster.leaving.discard(number)
        to.cluster.refresh_leaving(0)
    to.cluster.start_node(number)


def _pause(to: SteppedRun, words: list[str]) -> None:
    name = _one(words, "pause", "a node (n2) or rm")
    if name == "rm":
        _check_rm(to, is_up=True)
        to.cluster.pause_rm()
    else:
        to.cluster.machine(_up(to, name)).nm.pause()


def _resume(to: SteppedRun, words: list[str]) -> None:
    name = _one(words, "resume", "a node (n2) or rm")
    process = to.cluster.rm if name == "rm" else to.cluster.machine(_node(to, name)).nm
    if not process.is_paused:
        raise InvalidArgumentException(f"{name} is not paused: pause {name} first")
    if name == "rm":
        to.cluster.resume_rm()
    else:
        process.resume()


def _remove(to: SteppedRun, words: list[str]) -> None:
    number = _up(to, _one(words, "remove", "a node (n2)"))
    _check_rm_answers(to)
    to.cluster.machine(number).is_exit_expected = True
    to.cluster.leaving.add(number)
    to.cluster.refresh_leaving(0)


def _cut(to: SteppedRun, words: list[str]) -> None:
    number = _node(to, _one(words, "cut", "a node (n2)"))
    to.cluster.network.link(f"tracker-{number}").inject(_FAULT, NetworkFault(requests=True, replies=True))


def _join(to: SteppedRun, words: list[str]) -> None:
    number = _node(to, _one(words, "join", "a node (n2)"))
    to.cluster.network.link(f"tracker-{number}").remove(_FAULT)


def _submit(to: SteppedRun, words: list[str]) -> None:
    """Name, then options as KEY=VALUE."""
    if not words or not _NAME.fullmatch(words[0]):
        raise InvalidArgumentException(
            "submit takes a name (letters, digits and _ . -), then options: submit bob containers=4"
        )
    name, options = words[0], _options(words[1:], _SUBMIT_OPTIONS)
    _check_rm_answers(to)
    if name in to.names.applications.values():
        raise InvalidArgumentException(f"there is an application {name} already: choose another name")
    seconds = options.get("seconds", "30")
    lengths = (FOREVER, *map(str, LENGTHS_S))
    if seconds not in lengths:
        raise InvalidArgumentException(f"seconds={seconds}: choose one of {', '.join(lengths)}")
    size = Resource(_number(options, "memory", 1024, MEMORY_MAX_MB), _number(options, "vcores", 1, VCORES_MAX))
    to.submit(
        SteppedSubmission(
            name,
            options.get("user", name),
            options.get("queue", to.default_queue()),
            _number(options, "containers", 4, CONTAINERS_MAX),
            size,
            None if seconds == FOREVER else int(seconds),
        )
    )


_SUBMIT_OPTIONS = ("user", "queue", "containers", "memory", "vcores", "seconds")


def _set(to: SteppedRun, words: list[str]) -> None:
    """Queue settings as KEY=VALUE, with or without the prefix of the CapacityScheduler."""
    settings = _options(words, None)
    if not settings:
        raise InvalidArgumentException("set takes settings of queues: set root.a.capacity=30 root.b.capacity=70")
    for key in settings:
        if not _KEY.fullmatch(key) or (key.startswith("yarn.") and not key.startswith(_PREFIX)):
            raise InvalidArgumentException(f"{key[:60]!r} is not a setting of queues: they begin with {_PREFIX}")
    _check_rm_answers(to)
    changes = {key if key.startswith("yarn.") else f"{_PREFIX}{key}": value for key, value in settings.items()}
    refused: list[YarnException] = []

    def done(outcome: object) -> None:
        if isinstance(outcome, YarnException):
            refused.append(outcome)
        else:
            to.cluster.conf = conf

    conf = to.cluster.conf.overridden(changes, "set")
    to.cluster.rm.refresh_queues(conf, done)
    if refused:
        raise InvalidArgumentException(f"the ResourceManager refuses the settings: {refused[0].message}")


def _options(words: list[str], known: tuple[str, ...] | None) -> Mapping[str, str]:
    """{key: value} of words like key=value."""
    options: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not (key and equals and value):
            raise InvalidArgumentException(f"{word[:60]!r} is not KEY=VALUE")
        if known is not None and key not in known:
            raise InvalidArgumentException(f"there is no option {key[:60]!r}: choose from {', '.join(known)}")
        options[key] = value
    return options


def _number(options: Mapping[str, str], name: str, default: int, most: int) -> int:
    text = options.get(name, str(default))
    if not re.fullmatch(r"\d{1,9}", text) or not 1 <= int(text) <= most:
        raise InvalidArgumentException(f"{name}={text[:60]} is not a whole number from 1 to {most}")
    return int(text)


def _ignore(_: object) -> None:
    """Ignore the result of a call; the steps show its effects."""


_VERBS: Mapping[str, Callable[[SteppedRun, list[str]], None]] = {
    "kill": _kill,
    "start": _start,
    "pause": _pause,
    "resume": _resume,
    "remove": _remove,
    "cut": _cut,
    "join": _join,
    "submit": _submit,
    "set": _set,
}
