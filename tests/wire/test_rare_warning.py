"""Warnings that are logged at most once a minute."""

from __future__ import annotations

import logging

import pytest

from wire import rare_warning
from wire.rare_warning import INTERVAL_S, RareWarning


def test_warnings_are_counted_until_the_next_may_be_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now_s = 1000.0
    monkeypatch.setattr(rare_warning.time, "monotonic", lambda: now_s)
    warning = RareWarning(logging.getLogger("x"), "closed peer=%s")
    for peer in "abc":
        warning.log(peer)
    now_s += INTERVAL_S
    warning.log("d")
    assert caplog.messages == ["closed peer=a", "closed peer=d (2 more since the last such line)"]
