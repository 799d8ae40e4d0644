"""Removes what differs between two runs from a text: times, ids, process ids, directories, Java's stack traces.

[2026-11-21 00:54:50.945]                      [T]
container_1795222023200_0008_01_000002         <container>
pid 13120, line 2: 10638 Segmentation fault    pid <pid>, line 2: <pid> Segmentation fault
"2026-11-21T00:48:58.381+0000"                 "<time>" (not the time that a resource should have)
a line `\\tat ...` of a Java stack              nothing: there is no Java here, and the sentence before it stays
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}\]"), "[T]"),
    (re.compile(r"container_\d+_\d{4,}_\d{2,}_\d{6,}"), "<container>"),
    (re.compile(r"application_\d+_\d{4,}"), "<application>"),
    (re.compile(r"\n\tat [^\n]*"), ""),
    (re.compile(r"(was|current time): \"[^\"]*\""), r'\1: "<time>"'),
    (re.compile(r"line 2: +\d+ "), "line 2: <pid> "),
    (re.compile(r"to pid \d+"), "to pid <pid>"),
    (re.compile(r"(\.txt, )\d+(, FILE)"), r"\1<time>\2"),
    (re.compile(r",\d+,DOWNLOADING"), ",<number>,DOWNLOADING"),
)


def neutral(text: str, directories: Mapping[str, str] | None = None) -> str:
    """`text` without what differs between runs; `directories` {directory: the token that replaces it}."""
    for directory, token in (directories or {}).items():
        text = text.replace(directory, token)
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return text
