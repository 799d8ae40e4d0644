"""The order of version strings (VersionUtil, ComparableVersion), and the version of Hadoop that yarnling follows.

A version is a sequence of numbers and words. Numbers are compared by value, so 3.10 comes after 3.9, and a missing one
counts as 0. A word that Maven knows has its place before or after the release (3.4.1-SNAPSHOT < 3.4.1 < 3.4.1-sp);
any other word comes after the release. A number after a hyphen is a build of what comes before it: 3.4.1 < 3.4.1-2 <
3.4.1.2.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final, NamedTuple

HADOOP_VERSION: Final = "3.4.1"
"""The release of Hadoop whose behaviour this is. Daemons send it to one another, and clients choose what they send by
it."""
VERSION_CHARS_SHOWN: Final = 100
"""The part of a peer's version that is kept and shown: a peer may send any text, and real versions are shorter."""

_TOKEN = re.compile(r"[0-9]+|[^0-9.-]+|[.-]")
_WORDS = ("alpha", "beta", "milestone", "rc", "snapshot", "", "sp")
_SYNONYMS = {"ga": "", "final": "", "cr": "rc"}
_BEFORE_A_NUMBER = {"a": "alpha", "b": "beta", "m": "milestone"}
_WORD, _BUILD, _NUMBER = range(3)


class _Item(NamedTuple):
    """A part of a version; a smaller tuple comes first.

    A number is its digits without leading zeros, and how many there are: no text is too long for that. `_BUILD` opens
    the list of what follows a hyphen, which is the last item of the list around it, so all lists fit into one sequence.
    """

    kind: int
    digits: int = 0
    text: str = ""


_NOTHING = _Item(_NUMBER)
_OPEN_BUILD = _Item(_BUILD)


def compare_versions(left: str, right: str) -> int:
    """Negative if `left` comes before `right`, positive if after it, 0 if they are equal, as 3.4 and 3.4.0 are.

    Every text is a version.
    """
    first, second = _items(left), _items(right)
    for one, other in zip(first, second, strict=False):
        if one != other:
            return 1 if one > other else -1
    shared = min(len(first), len(second))
    return _against_nothing(first[shared:]) - _against_nothing(second[shared:])


def _items(version: str) -> list[_Item]:
    items: list[_Item] = []
    is_empty = True
    after_number = False
    for token, following in pairwise([*_TOKEN.findall(version.lower()), ""]):
        if token not in (".", "-"):
            items.append(_item(token, following))
            is_empty, after_number = False, _is_number(token)
            continue
        if is_empty:
            items.append(_NOTHING)
        is_empty = True
        if token == "-" and after_number:
            _drop_trailing_nothing(items)
            if _is_number(following):
                items.append(_OPEN_BUILD)
    while _drop_trailing_nothing(items) and items[-1] is _OPEN_BUILD:
        items.pop()
    return items


def _is_number(token: str) -> bool:
    return "0" <= token[:1] <= "9"


def _item(token: str, following: str) -> _Item:
    if _is_number(token):
        digits = token.lstrip("0")
        return _Item(_NUMBER, len(digits), digits)
    word = _BEFORE_A_NUMBER.get(token, token) if _is_number(following) else token
    word = _SYNONYMS.get(word, word)
    return _Item(_WORD, text=str(_WORDS.index(word)) if word in _WORDS else f"{len(_WORDS)}-{word}")


_RELEASE = _item("final", "")


def _drop_trailing_nothing(items: list[_Item]) -> bool:
    """Drop zeros and words for the release from the end of the last list. Returns False if no items are left."""
    while items and items[-1] in (_NOTHING, _RELEASE):
        items.pop()
    return bool(items)


def _against_nothing(rest: list[_Item]) -> int:
    """Compare the items by which one version is longer with a version that ends there.

    The list of a build counts by its first item.
    """
    in_build = False
    for item in rest:
        if item is _OPEN_BUILD:
            in_build = True
        elif item.kind == _WORD and item != _RELEASE:
            return 1 if item > _RELEASE else -1
        elif item.digits:
            return 1
        elif in_build:
            return 0
    return 0
