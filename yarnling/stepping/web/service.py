"""The answers for the page of stepping: the run at its position, and commands that move it.

GET  /state      the position, its step, the steps around it, the moments that are known and the cluster
POST /command    {"command": "next", "argument": ""}: carries it out, and answers as /state does
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from wire.web.application import JSON, JSON_UTF8, TextAnswer, WebRoute
from wire.web.pages import page_rows
from wire.web.request import WebRequest
from yarn.errors import InvalidArgumentException
from yarnling.stepping.controls import Controls
from yarnling.stepping.web.objects import moment_object, short_step_object, step_object

BEFORE, AFTER = 9, 5
"""The number of steps around that the current one are listed, as far as they are known."""
BODY_BYTES_MAX = 4096


class Command(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of a command."""

    command: str
    argument: str = ""


class StepService:
    """Serves one run and its forks. All pages that are open show the same."""

    def __init__(self, controls: Controls) -> None:
        self._controls = controls

    def rows(self) -> Iterator[WebRoute]:
        """The routes, with those of the page."""
        yield WebRoute("GET", "/state", self._state, (JSON,))
        yield WebRoute("POST", "/command", self._command, (JSON,))
        yield from page_rows("step.html", {}, ("/",))

    async def _state(self, request: WebRequest) -> TextAnswer:
        return self._answer("")

    async def _command(self, request: WebRequest) -> TextAnswer:
        """Raises InvalidArgumentException for a command that is not valid; then nothing has changed."""
        if len(request.data) > BODY_BYTES_MAX:
            raise InvalidArgumentException(f"a command of {len(request.data)} bytes is too long: {BODY_BYTES_MAX}")
        try:
            command = msgspec.json.decode(request.data, type=Command)
        except msgspec.MsgspecError as error:
            raise InvalidArgumentException(f"the body is not a command: {error}") from None
        return self._answer(self._controls.do(command.command, command.argument))

    def _answer(self, said: str) -> TextAnswer:
        return TextAnswer(json.dumps(self._as_object(said), separators=(",", ":")), JSON_UTF8)

    def _as_object(self, said: str) -> dict[str, Any]:
        controls, session = self._controls, self._controls.session
        position, steps = session.position, session.steps
        around = steps[max(0, position - 1 - BEFORE) : position + AFTER]
        return {
            "title": controls.source.title,
            "repeated": controls.repeated(),
            "position": position,
            "known": len(steps),
            "isComplete": session.is_complete,
            "atMs": session.at_ms,
            "moments": [moment_object(moment) for moment in session.moments],
            "branches": [branch.name for branch in controls.branches],
            "current": controls.current,
            "said": said,
            "step": None if session.step is None else step_object(session.step),
            "around": [short_step_object(step) for step in around],
            "view": msgspec.to_builtins(session.view()),
        }
