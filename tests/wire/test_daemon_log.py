"""A daemon's log lines."""

from __future__ import annotations

import asyncio
import errno
import io
import logging
import sys
import weakref

import pytest

from wire.daemon_process import LOG_FORMAT, MESSAGE_LENGTH_MAX, _LineFormatter, _LineHandler


def test_lines_are_those_of_the_standard_formatter() -> None:
    ours, standard = _LineFormatter(LOG_FORMAT), logging.Formatter(LOG_FORMAT)
    for created in (1_700_000_000.0, 1_700_000_000.0625, 1_700_000_000.9375, 1_700_000_001.5, 1_699_999_999.25):
        record = logging.LogRecord("nm.shell.effects", logging.INFO, "", 0, "%s=%s", ("a", 1), None)
        record.created, record.msecs = created, created % 1 * 1000
        assert ours.format(record) == standard.format(record)


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        ("a\nb", "a\\nb"),
        ("\x1b[2Ja\x00\r", "\\x1b[2Ja\\x00\\r"),
        ("\u2028 \ud800", "\\u2028 \\ud800"),
        ("é𝄞", "é𝄞"),
        ("a" * MESSAGE_LENGTH_MAX, "a" * MESSAGE_LENGTH_MAX),
        ("a" * 70_000, "a" * MESSAGE_LENGTH_MAX + "... (70000 characters)"),
    ],
)
def test_a_message_is_one_line_that_is_not_too_long(sent: str, shown: str) -> None:
    """A name that a caller sends cannot begin a line of the log, move the cursor of a reader or fill the disk."""
    record = logging.LogRecord("nm.shell.effects", logging.INFO, "", 0, "%s", (sent,), None)
    line = _LineFormatter("%(levelname)s %(message)s").format(record)
    assert line == f"INFO {shown}"


def test_a_trace_keeps_its_lines() -> None:
    try:
        raise ValueError("a\nb")
    except ValueError:
        record = logging.LogRecord("nm.shell.effects", logging.ERROR, "", 0, "failed", None, sys.exc_info())
    lines = _LineFormatter("%(message)s").format(record).splitlines()
    assert lines[0] == "failed"
    assert lines[-2:] == ["ValueError: a", "b"]


def _logger_to(stream: io.StringIO) -> tuple[logging.Logger, _LineHandler]:
    handler = _LineHandler(stream)
    handler.setFormatter(_LineFormatter("%(message)s"))
    logger = logging.Logger("test")
    logger.addHandler(handler)
    return logger, handler


class CountedWrites(io.StringIO):
    """A stream that counts the calls of `write`."""

    writes = 0

    def write(self, text: str, /) -> int:
        self.writes += 1
        return super().write(text)


async def test_lines_of_one_turn_of_the_loop_are_written_together() -> None:
    stream = CountedWrites()
    logger, _ = _logger_to(stream)
    logger.info("a")
    logger.info("b")
    assert stream.getvalue() == ""
    await asyncio.sleep(0)
    assert (stream.getvalue(), stream.writes) == ("a\nb\n", 1)


async def test_a_warning_is_written_at_once_after_the_lines_before_it() -> None:
    stream = CountedWrites()
    logger, _ = _logger_to(stream)
    logger.info("a")
    logger.warning("b")
    assert stream.getvalue() == "a\nb\n"
    await asyncio.sleep(0)
    assert stream.writes == 1


def test_without_a_loop_a_line_is_written_at_once() -> None:
    stream = CountedWrites()
    _logger_to(stream)[0].info("a")
    assert stream.getvalue() == "a\n"


async def test_what_was_not_written_yet_is_written_when_the_process_ends() -> None:
    """`logging.shutdown` flushes all handlers; a forked daemon calls it, others have it called."""
    stream = CountedWrites()
    logger, handler = _logger_to(stream)
    logger.info("a")
    logging.shutdown([weakref.ref(handler)])
    assert stream.getvalue() == "a\n"


class FullDisk(io.StringIO):
    """Refuses writes while it is full."""

    is_full = True

    def write(self, text: str, /) -> int:
        if self.is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(text)


async def test_a_full_disk_loses_lines_and_disturbs_nothing_else() -> None:
    stream, problems = FullDisk(), list[object]()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: problems.append(context))
    log, _ = _logger_to(stream)
    log.warning("lost at once")
    log.info("lost at the end of the turn")
    await asyncio.sleep(0)
    stream.is_full = False
    log.warning("kept")
    assert (stream.getvalue(), problems) == ("kept\n", [])


def test_a_line_that_cannot_be_formatted_does_not_stop_its_caller(capsys: pytest.CaptureFixture[str]) -> None:
    stream = io.StringIO()
    log, _ = _logger_to(stream)
    log.info("%d nodes", "no")
    log.info("kept")
    assert stream.getvalue() == "kept\n"
    assert "%d nodes" in capsys.readouterr().err
