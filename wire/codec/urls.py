"""Addresses of local resources: `file:/data/words.txt` as text, taken apart on the wire.

The path is carried as it is: it is no percent-encoded URL but what Hadoop's Path prints, so blanks, `%` and `#` are
letters like others. `file:///x` and `file:/x` are one address; the second is how it is printed.
"""

from __future__ import annotations

import re

from protos import yarn_protos_pb2 as pb
from wire.codec.fields import name_of, text
from yarn.errors import InvalidArgumentException

_URL = re.compile(
    r"(?:(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):)?"
    r"(?://(?:(?P<user>[^/@]*)@)?(?P<host>\[[^\]/]*\]|[^/:]*)(?::(?P<port>\d{1,5}))?)?"
    r"(?P<file>.*)",
    re.DOTALL,
)


def write_url(url: str, out: pb.URLProto) -> None:
    match = _URL.fullmatch(url)
    assert match is not None, "the pattern's last part takes anything"
    if match["scheme"]:
        out.scheme = match["scheme"]
    if match["user"]:
        out.userInfo = match["user"]
    if match["host"]:
        out.host = match["host"]
    out.port = int(match["port"]) if match["port"] else -1
    out.file = match["file"]


def read_url(proto: pb.URLProto) -> str:
    file = text(proto, "file")
    if not file:
        raise InvalidArgumentException(f"{name_of(proto, 'file')} is missing (the path of a local resource)")
    scheme, host, user = text(proto, "scheme"), text(proto, "host"), text(proto, "userInfo")
    if "/" in host or "/" in user:
        raise InvalidArgumentException(f"{name_of(proto, 'host')} {host!r} is no host")
    if not host:
        return f"{scheme}:{file}" if scheme else file
    place = (f"{user}@" if user else "") + host + (f":{proto.port}" if proto.port > 0 else "")
    return f"{scheme}://{place}{file}"
