"""The paths of the REST API, and what requests name in them."""

from __future__ import annotations

import re

from rm.core.events import Asker
from rm.shell.groups import groups_of
from wire.web.errors import illegal_argument
from wire.web.request import WebRequest
from yarn.errors import InvalidIdException
from yarn.ids import NodeId

BASE = "/ws/v1/cluster"
APP = f"{BASE}/apps/{{appid}}"
ATTEMPT = f"{APP}/appattempts/{{appattemptid}}"
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@$-]{0,127}")


def node_or_host(text: str) -> NodeId:
    """A node, or with port 0 all nodes of a host (ConverterUtils.toNodeIdWithDefaultPort). Raises WebException."""
    try:
        return NodeId.parse(text if ":" in text else f"{text}:0")
    except InvalidIdException:
        raise illegal_argument(f"Invalid NodeId [{text}]. Expected host:port") from None


def asker_of(request: WebRequest) -> Asker:
    """The user of a request; a name that is not valid has no groups."""
    return request.user, groups_of(request.user) if _USER.fullmatch(request.user) else ()
