"""Removes what differs between two runs from a text: times, ids, process ids, directories, Java's stack traces."""

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
