"""Escapes control characters (escape sequences, changes of the writing direction) in texts of other users."""

from __future__ import annotations

import re

# C0 except newline and tab, DEL, C1; Unicode line separators and direction marks; surrogates, which cannot be encoded.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def shown(text: str) -> str:
    """Escape the control characters in `text`, for example as `\\x1b`; newlines and tabs stay."""
    return _CONTROL.sub(_escaped, text)


def in_line(text: str) -> str:
    """Escape the control characters in `text`, also newlines and tabs, so that it fits on one line."""
    return shown(text).replace("\n", "\\x0a").replace("\t", "\\x09")


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
