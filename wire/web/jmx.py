"""/jmx as Hadoop's JMXJsonServlet writes it: beans of metrics, chosen by a pattern of their names.

/jmx                                                     all beans
/jmx?qry=Hadoop:service=ResourceManager,name=*           those that match
/jmx?get=Hadoop:service=ResourceManager,name=X::Attr     one attribute
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from fnmatch import translate
from re import Pattern
from typing import TypeAlias

from msgspec import Struct

from wire.web.application import TextAnswer
from wire.web.document import JavaDouble
from wire.web.pacing import collected, in_slices
from wire.web.request import WebRequest
from yarn.java.binary32 import double_text, f32, shortest

CONTENT_TYPE = "application/json; charset=utf8"
PATTERN_LENGTH_MAX = 500
Attribute: TypeAlias = "str | int | float | JavaDouble | Mapping[str, int] | None"


class Bean(Struct, frozen=True):
    """An object of metrics. `name`: `domain:key=value,...`; `type`: the name of its class. `tag.*` are attributes."""

    name: str
    type: str
    attributes: Mapping[str, Attribute]


async def jmx_answer(request: WebRequest, beans: Callable[[], Iterable[Bean]]) -> TextAnswer:
    """The answer to a request for /jmx."""
    wanted, attribute = request.first("qry") or "*:*", None
    if (get := request.first("get")) is not None:
        wanted, _, attribute = get.rpartition("::")
    try:
        matches = _matcher(wanted)
    except ValueError:
        return TextAnswer(_error("no such pattern"), CONTENT_TYPE, 400)
    found = [bean for bean in await in_slices(collected(beans())) if matches(bean.name)]
    return TextAnswer(beans_text(found, attribute), CONTENT_TYPE)


def beans_text(beans: Iterable[Bean], attribute: str | None = None) -> str:
    """The beans, indented as Hadoop does; only one attribute of each if one is named."""
    texts = [_bean_text(bean, attribute) for bean in beans]
    inner = ", ".join(texts)
    return f'{{\n  "beans" : [ {inner} ]\n}}' if texts else '{\n  "beans" : [ ]\n}'


def _bean_text(bean: Bean, attribute: str | None) -> str:
    lines = [f'"name" : {json.dumps(bean.name)}', f'"modelerType" : {json.dumps(bean.type)}']
    lines += [
        f"{json.dumps(name)} : {_value(value)}" for name, value in bean.attributes.items() if attribute in (None, name)
    ]
    return "{\n    " + ",\n    ".join(lines) + "\n  }"


def _value(value: Attribute) -> str:
    if isinstance(value, JavaDouble):
        return double_text(value.number)
    if isinstance(value, float):
        return shortest(f32(value))
    if isinstance(value, Mapping):
        return "{\n      " + ",\n      ".join(f'"{name}" : {number}' for name, number in value.items()) + "\n    }"
    return json.dumps(value, ensure_ascii=False)


def _matcher(pattern: str) -> Callable[[str], bool]:
    """True if a name matches the pattern (ObjectName). Raises ValueError for a text that is not one."""
    domain, colon, keys = pattern.partition(":")
    if not colon or not keys or len(pattern) > PATTERN_LENGTH_MAX:
        raise ValueError(pattern)
    parts = keys.split(",")
    is_open = "*" in parts
    wanted = [_key_pattern(part) for part in parts if part != "*"]
    of_domain = _glob(domain)

    def matches(name: str) -> bool:
        own_domain, _, own_keys = name.partition(":")
        own = {key: value for key, _, value in (part.partition("=") for part in own_keys.split(","))}
        if of_domain.match(own_domain) is None or (not is_open and len(own) != len(wanted)):
            return False
        return all(key in own and value.match(own[key]) is not None for key, value in wanted)

    return matches


def _key_pattern(part: str) -> tuple[str, Pattern[str]]:
    key, equals, value = part.partition("=")
    if not equals:
        raise ValueError(part)
    return key, _glob(value)


def _glob(text: str) -> Pattern[str]:
    """`*` and `?`; brackets have no meaning in an ObjectName."""
    return re.compile(translate(text.replace("[", "[[]")))


def _error(text: str) -> str:
    return json.dumps({"result": "ERROR", "message": text})
