"""Recognises files that were saved as a ResourceManager's answer and are not, and mends numbers that are not JSON.

A standby ResourceManager answers with a line of text (RMWebAppFilter), a proxy with a page to log in. Jersey writes a
percentage that is not finite as a bare INF or NaN (YARN-7699), which no reader of JSON takes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from yarnling.workload.documents import refusal

HEAD_CHARACTERS = 64 * 1024
NOT_FINITE = frozenset({"INF", "-INF", "Infinity", "-Infinity", "NaN"})
ASK_FOR_JSON = "save the JSON of the answer, with Accept: application/json"
FS2CS = (
    "convert its files: yarn fs2cs --yarnsiteconfig yarn-site.xml --fsconfig fair-scheduler.xml --output-directory conf"
)

_SCHEDULER = re.compile(r'"schedulerInfo"\s*:\s*\{\s*"type"\s*:\s*"(fair|fifo)Scheduler"')
_STRING_OR_CONSTANT = re.compile(r'"(?:[^"\\]|\\.)*"|(-?(?:Infinity|INF|NaN))\b')
_LOGIN = re.compile(r"log-?in|sign-?in|password|\bsso\b|kerberos", re.IGNORECASE)


def refuse_other_answers(text: str, source: str) -> None:
    """Raise ConfigurationException, with a remedy, for a text that is clearly another answer than the expected one."""
    head = text[:HEAD_CHARACTERS].lstrip()
    if head.startswith("This is standby RM"):
        remedy = "ask the active one (yarn rmadmin -getAllServiceState names it), or follow the redirect: curl -L"
        raise refusal(source, "is the answer of a standby ResourceManager", remedy)
    if head.startswith(("Can not find any active RM", "There is no active RM")):
        raise refusal(source, "says that no ResourceManager was active", "ask again when one is")
    if re.match(r"<(!doctype html|html)", head, re.IGNORECASE):
        if _LOGIN.search(head):
            remedy = "log in first, for example with curl --negotiate -u : for Kerberos"
            raise refusal(source, "is a login page, not an answer of a ResourceManager", remedy)
        raise refusal(source, "is a web page, not an answer of a ResourceManager", ASK_FOR_JSON)
    if head.startswith("<"):
        raise refusal(source, "is XML", ASK_FOR_JSON)
    if found := _SCHEDULER.search(head):
        fifo = "it has one queue, default: simulate without --conf, or write a capacity-scheduler.xml"
        name, remedy = ("FairScheduler", FS2CS) if found[1] == "fair" else ("FifoScheduler", fifo)
        raise refusal(source, f"is of a ResourceManager that runs the {name}", remedy)
    if re.match(r'\{\s*"RemoteException"', head):
        found = re.search(r'"message"\s*:\s*"((?:[^"\\]|\\.){1,200})', head)
        said = f": {found[1]}" if found else ""
        raise refusal(source, f"is an error of the ResourceManager{said}", "correct the request, and save its answer")


def with_quoted_constants(text: str) -> str:
    """The JSON with INF and NaN as texts: a field that is read is then refused by name, others do not matter."""
    return _STRING_OR_CONSTANT.sub(lambda found: f'"{found[1]}"' if found[1] else found[0], text)


def not_finite_keys(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """The keys of an entry whose number is not finite."""
    return tuple(key for key, value in entry.items() if isinstance(value, str) and value in NOT_FINITE)
