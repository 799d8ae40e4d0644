"""Waiting for an application: its output is printed before the summary."""

from __future__ import annotations

import io
import sys
from typing import cast

import pytest

from yarn.applications import ApplicationReport
from yarn.ids import ApplicationAttemptId, ApplicationId
from yarn.states import FinalApplicationStatus, YarnApplicationState
from yarnling.cli.submit import follow
from yarnling.cluster.client import Client

APP = ApplicationId(1, 1)


class EndedClient:
    """Reports an application that has ended."""

    async def report(self, app_id: ApplicationId) -> ApplicationReport:
        state, status = YarnApplicationState.FINISHED, FinalApplicationStatus.SUCCEEDED
        return ApplicationReport(app_id, "ann", "q", "n", state, ApplicationAttemptId(app_id, 1), final_status=status)


async def test_the_last_output_is_printed_before_the_summary(monkeypatch: pytest.MonkeyPatch) -> None:
    """A last line without a newline is printed once the application has ended, but before the summary."""
    both = io.StringIO()
    monkeypatch.setattr(sys, "stderr", both)
    polls = []

    async def print_new() -> None:
        polls.append("poll")

    async def print_rest() -> None:
        both.write("container | unterminated\n")

    await follow(cast(Client, EndedClient()), APP, None, web="", print_new=print_new, print_rest=print_rest)
    lines = both.getvalue().splitlines()
    assert polls
    assert lines[-2:] == ["container | unterminated", f"{APP} SUCCEEDED after 0 s"]
