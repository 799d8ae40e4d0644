"""An order to a cluster's supervisor: its progress on standard error, its end on standard output."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from rich.console import Console
from rich.text import Text

from yarn.errors import YarnException
from yarnling.cli import json_form
from yarnling.cli.terminal import in_line, notices, shown
from yarnling.cluster.control_socket import NoSupervisor, answers
from yarnling.cluster.state import control_path, find_cluster


def give(name: str, request: Mapping[str, object], *, as_json: bool) -> None:
    """Raises YarnException for what the supervisor refuses."""
    state = find_cluster(name)
    try:
        answer = _end_of(dict(request), name, notices())
    except NoSupervisor as error:
        raise YarnException(
            f"the supervisor of the cluster {name!r}, process {state.supervisor.pid}, does not answer: {error.message}"
        ) from None
    if "error" in answer:
        raise YarnException(str(answer["error"]))
    if as_json:
        sys.stdout.write(json_form.text(answer["facts"]) + "\n")
    else:
        sys.stdout.write(f"{shown(str(answer['text']))}\n")


def _end_of(request: dict[str, object], name: str, console: Console) -> dict[str, object]:
    """Progress is one line that changes on a terminal, and a line each elsewhere."""
    with console.status(str(request["command"])) as status:
        for answer in answers(control_path(name), request):
            if "progress" not in answer:
                return answer
            text = in_line(str(answer["progress"]))
            if console.is_terminal:
                status.update(Text(text))
            else:
                console.print(text)
    raise AssertionError("answers end with one that is no progress")
