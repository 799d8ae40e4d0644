"""Reads the request of a reduce, and checks it in Hadoop's order (ShuffleChannelHandler.channelRead0). No I/O.

refused = Refusal(400, "Required param job, map and reduce")
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import parse_qs

from msgspec import Struct

from wire.files.shuffle import VERSION_HEADERS
from yarn.java.values import parse_int

TARGET_CHARS_MAX = 4096
"""Length of a request's path and query (Netty's limit for the first line): a reduce asks for 20 maps at most."""
_PARAMETERS_MAX = 500
"""Parameters of a query; Hadoop knows four."""
_ATTEMPT = re.compile(r"attempt_[0-9]{1,19}_[0-9]{1,10}(_[mr])?(_[0-9]{1,10}){2,6}", re.ASCII)
"""MapReduce's names have a letter and two numbers after the job's id, those of Tez up to six numbers."""


class ShuffleRefusal(Exception):
    """A request is refused with an HTTP status and a text."""

    def __init__(self, status: int, text: str = "", headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status, text)
        self.status = status
        self.text = text
        self.headers = dict(headers or {})


class MapOutputRequest(Struct, frozen=True):
    """A request for the partition `reduce` of the output of map attempts."""

    job: str
    reduce: int
    maps: tuple[str, ...]
    keep_alive: bool


def read_request(method: str, target: str, headers: Mapping[str, str]) -> MapOutputRequest:
    """Read a request; `headers` {name in lower case: value}. Raises ShuffleRefusal.

    Hadoop uses the names of attempts as parts of paths, and answers 500 if there is no such file. Here only the name
    of an attempt of MapReduce or Tez is accepted.
    """
    if method != "GET":
        raise ShuffleRefusal(405)
    if len(target) > TARGET_CHARS_MAX:
        raise ShuffleRefusal(400)
    if any(headers.get(name) != value for name, value in VERSION_HEADERS.items()):
        raise ShuffleRefusal(400, "Incompatible shuffle request version")
    query = _query(target)
    jobs, reduces = query.get("job"), query.get("reduce")
    maps = [name for text in query.get("map", ()) for name in text.split(",")]
    if not maps or reduces is None or jobs is None:
        raise ShuffleRefusal(400, "Required param job, map and reduce")
    if len(reduces) != 1 or len(jobs) != 1:
        raise ShuffleRefusal(400, "Too many job/reduce parameters")
    try:
        reduce = parse_int(reduces[0])
    except ValueError:
        raise ShuffleRefusal(400, "Bad reduce parameter") from None
    if not all(_ATTEMPT.fullmatch(name) for name in maps):
        raise ShuffleRefusal(400, "Bad map parameter")
    keep_alive = [text.lower() for text in query.get("keepAlive", ())] == ["true"]
    return MapOutputRequest(jobs[0], reduce, tuple(maps), keep_alive)


def _query(target: str) -> Mapping[str, list[str]]:
    try:
        return parse_qs(target.partition("?")[2], keep_blank_values=True, max_num_fields=_PARAMETERS_MAX)
    except ValueError:
        raise ShuffleRefusal(400) from None
