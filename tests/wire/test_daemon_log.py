"""A daemon's log lines."""

from __future__ import annotations

import logging

from wire.daemon_process import LOG_FORMAT, _LineFormatter


def test_lines_are_those_of_the_standard_formatter() -> None:
    ours, standard = _LineFormatter(LOG_FORMAT), logging.Formatter(LOG_FORMAT)
    for created in (1_700_000_000.0, 1_700_000_000.0625, 1_700_000_000.9375, 1_700_000_001.5, 1_699_999_999.25):
        record = logging.LogRecord("nm.shell", logging.INFO, "", 0, "%s=%s", ("a", 1), None)
        record.created, record.msecs = created, created % 1 * 1000
        assert ours.format(record) == standard.format(record)
