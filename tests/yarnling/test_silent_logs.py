"""Simulations run without log lines; what was disabled before stays so."""

from __future__ import annotations

import logging
from contextlib import suppress

import pytest

from yarnling.cluster.silent_logs import without_logs


def test_nothing_is_logged_meanwhile(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("rm.test")
    with suppress(ValueError), without_logs():
        logger.critical("within")
        raise ValueError("an error")
    logger.critical("afterwards")
    assert caplog.messages == ["afterwards"]


def test_the_level_that_was_disabled_before_stays_disabled() -> None:
    before = logging.root.manager.disable
    logging.disable(logging.INFO)
    try:
        with without_logs():
            assert logging.root.manager.disable == logging.CRITICAL
        assert logging.root.manager.disable == logging.INFO
    finally:
        logging.disable(before)


def test_blocks_that_overlap_restore_the_level() -> None:
    """As in a worker of a sweep, which runs simulations in several threads."""
    before = logging.root.manager.disable
    first, second = without_logs(), without_logs()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert logging.root.manager.disable == logging.CRITICAL
    second.__exit__(None, None, None)
    assert logging.root.manager.disable == before
