"""Lines that the daemons' logs must not contain after a fuzz run, and their maximum size."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

BAD = re.compile(
    r"Traceback|an event failed|call failed|invariant broken|^\S+ \S+ (ERROR|CRITICAL) |never (retrieved|awaited)"
)
KNOWN = (
    # A user's entry in a queue goes with its last application, before its containers are over (UsersManager.removeUser)
    "invariant broken, as Hadoop breaks it",
)
"""Lines that are allowed although `BAD` matches them, each with its reason."""
LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} (DEBUG|INFO|WARNING|ERROR|CRITICAL) [\w.]+ ")
"""The start of each line of a daemon's log: text from a message must not start a line of its own."""
LINE_BYTES_MAX = 8 * 1024
BYTES_A_MESSAGE_MAX = 2 * 1024
"""The average over a run: an application logs about 3 KiB, and most messages are refused without a log line."""
SHOWN_MAX = 20
"""The number of faults of one log that are reported."""


def check_log(log: Path, messages: int) -> list[str]:
    """The faults of one log after this many messages, as lines."""
    faults = list(_bad_lines(log))
    size = log.stat().st_size
    if size > BYTES_A_MESSAGE_MAX * max(messages, 1):
        faults.append(f"{log.name}: {size} bytes for {messages} messages (at most {BYTES_A_MESSAGE_MAX} for each)")
    if len(faults) > SHOWN_MAX:
        faults[SHOWN_MAX:] = [f"{log.name}: {len(faults) - SHOWN_MAX} more"]
    return faults


def _bad_lines(log: Path) -> Iterator[str]:
    within = False
    with log.open(errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            begins = LINE.match(line) is not None
            where = f"{log.name}:{number}"
            if BAD.search(line) and not any(known in line for known in KNOWN):
                within = True
                yield f"{where}: {line.rstrip()[:500]}"
            elif begins:
                within = False
            elif within:
                # The rest of a traceback; the last line has the exception.
                if not line.startswith((" ", "\t")):
                    yield f"{where}: {line.rstrip()[:500]}"
            elif line.strip():
                yield f"{where}: a line without a time: {line.rstrip()[:200]!r}"
            if len(line) > LINE_BYTES_MAX:
                yield f"{where}: a line of {len(line)} characters: {line[:200]}..."
