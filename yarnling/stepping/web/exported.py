"""The page of stepping in one file: a run, its cluster after each step, and a few forks of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from msgspec import Struct, to_builtins

from wire.web.single_file import page_in_a_file
from yarn.errors import YarnException
from yarnling.run.moments import MomentKind
from yarnling.stepping.changes import ClusterChange
from yarnling.stepping.cluster_view import ClusterView, NodeView
from yarnling.stepping.controls import MAIN, command_line
from yarnling.stepping.player import Made
from yarnling.stepping.session import Session
from yarnling.stepping.sources import Source
from yarnling.stepping.web.objects import moment_object, step_object

STEPS_MAX = 5000
"""The number of steps of the run in a page."""
FORK_STEPS_MAX = 400
"""The number of steps of a fork after its change."""
QUIET_STEPS = 20
"""The number of steps after the last change: what would follow are heartbeats without news."""
FORKS_MAX = 6
PAGE_BYTES_MAX = 5_000_000
"""A larger page is refused."""
_FORKED = (MomentKind.PLACED, MomentKind.REFUSED, MomentKind.RESERVED, MomentKind.PREEMPTED)
"""The kinds of moments at whose first one the run is forked."""


class _Objects:
    """Numbers JSON objects, so that each is in the page once."""

    def __init__(self) -> None:
        self.all: list[Any] = []
        self._numbers: dict[str, int] = {}

    def number(self, value: object) -> int:
        key = json.dumps(value)
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self.all)
            self.all.append(value)
        return found

    def view(self, view: ClusterView) -> int:
        """The number of a view, whose parts are shared with other views."""
        lists = (view.queues, view.nodes, view.applications)
        return self.number([view.rm, *(self.number([self.number(to_builtins(one)) for one in each]) for each in lists)])


class PlannedFork(Struct, frozen=True):
    """A change to make after a step."""

    step: int
    change: str


def exported_page(
    source: Source, changes: tuple[Made, ...], at: Callable[[Session], None], progress: Callable[[float], None]
) -> str:
    """The page of a run with these changes, as HTML.

    `at`: goes to the position at which the page opens, in a session of the run; `progress` gets the share that is done.
    Raises YarnException if the page would be too large, or a change is not allowed.
    """
    objects, session = _Objects(), Session(source, changes)
    try:
        main = _branch(objects, session, MAIN, 0, STEPS_MAX)
        session.go_to(0)
        main["views"].insert(0, objects.view(session.view()))
        progress(0.4)
        at(session)
        end = len(main["steps"])
        opening = min(session.position, end)
        branches, forks = [main], []
        planned = _planned(session, opening, end)
        for number, fork in enumerate(planned, 1):
            session.go_to(fork.step)
            branches.append(_fork(objects, session, fork.change))
            known = {"step": fork.step, "atMs": session.at_ms, "text": fork.change, "words": _words(fork.change)}
            forks.append({**known, "branch": number})
            progress(0.4 + 0.6 * number / len(planned))
    finally:
        session.close()
    data = {"title": source.title, "opening": opening, "objects": objects.all, "branches": branches, "forks": forks}
    page = page_in_a_file("step.html", source.title, data, {"/static/step/source.js": "/static/step/recorded.js"})
    if len(page) > PAGE_BYTES_MAX:
        raise YarnException(
            f"the page would have {len(page) / 1e6:.1f} MB, at most {PAGE_BYTES_MAX / 1e6:.0f} are written: "
            "step through a smaller run, or use --web"
        )
    return page


def _fork(objects: _Objects, session: Session, change: str) -> dict[str, Any]:
    """A fork at the position of the session."""
    start = session.position
    forked = session.fork(ClusterChange.parse(change))
    try:
        return _branch(objects, forked, f"{change} (after step {start})", start, FORK_STEPS_MAX)
    finally:
        forked.close()


def _branch(objects: _Objects, session: Session, name: str, start: int, most: int) -> dict[str, Any]:
    """A run from the step after `start` on, with the cluster after each of at most `most` steps."""
    session.go_to(start + most)
    last = max((step.number for step in session.steps[start:] if step.is_change), default=start)
    end = min(len(session.steps), start + most, last + QUIET_STEPS)
    is_complete = session.is_complete and end == len(session.steps)
    views = []
    for position in range(start + 1, end + 1):
        session.go_to(position)
        views.append(objects.view(session.view()))
    return {
        "name": name,
        "from": start,
        "command": command_line(session),
        "isComplete": is_complete,
        "steps": [objects.number(step_object(step)) for step in session.steps[start:end]],
        "views": views,
        "moments": [moment_object(one) for one in session.moments if one.step <= end],
    }


def _words(change: str) -> str:
    name = change.removeprefix("kill ")
    return "the ResourceManager dies" if name == "rm" else f"{name} dies, with all its containers"


def _planned(session: Session, opening: int, end: int) -> list[PlannedFork]:
    """The forks of a run of `end` steps, at most FORKS_MAX.

    Where it opens the first two nodes die, or the ResourceManager; at the first moment of each kind the node with the
    most containers.
    """
    session.go_to(opening)
    victims = [node.name for node in _running(session)][:2]
    victims += ["rm"] if session.view().rm == "running" else []
    found = [PlannedFork(opening, f"kill {name}") for name in victims]
    firsts = {moment.kind: moment for moment in reversed(session.moments) if moment.step <= end}
    for kind in _FORKED:
        if kind in firsts:
            session.go_to(firsts[kind].step)
            busiest = sorted(_running(session), key=lambda node: -len(node.containers))[:1]
            found += [PlannedFork(session.position, f"kill {node.name}") for node in busiest]
    return list(dict.fromkeys(found))[:FORKS_MAX]


def _running(session: Session) -> list[NodeView]:
    return [node for node in session.view().nodes if node.process == "running"]
