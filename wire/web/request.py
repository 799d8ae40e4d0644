"""Requests to the web services: path, query, body and caller, as their handlers see them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TypeAlias
from urllib.parse import parse_qsl
from xml.parsers import expat  # noqa: TID251  a DOCTYPE, and so any entity, is refused; SAX is slow to import

from msgspec import Struct

from wire.web.errors import bad_request, web_application_exception

DEPTH_MAX = 32
"""Nested objects of a body; a submission needs six."""
ELEMENTS_MAX = 20_000
"""Elements of an XML body, each of which takes about a microsecond and a half; a submission needs some 50."""
FIELDS_MAX = 100
"""Parameters of a query."""

Body: TypeAlias = "dict[str, Body] | list[Body] | str | int | float | bool | None"
"""JSON, or XML as the same values: an element is an object of its children, repeated ones are a list, text is a str."""


class WebRequest(Struct, frozen=True):
    """A request whose caller may make it. `user`: as named in the query, or the static user. `peer`: address and port.
    `is_cross_site`: a browser says that a page of another site makes it.

    `path` {name: text} are the variable parts of the path; `query` has the values of each parameter.
    """

    method: str
    url: str
    path: Mapping[str, str]
    query: Mapping[str, tuple[str, ...]]
    user: str
    peer: tuple[str, int]
    is_xml: bool = False
    is_cross_site: bool = False
    content_type: str = ""
    data: bytes = b""

    def first(self, name: str) -> str | None:
        """The parameter's first value; None if it is missing."""
        values = self.query.get(name)
        return values[0] if values else None

    def words(self, name: str) -> list[str]:
        """The comma-separated words of all values of the parameter."""
        return [word.strip() for value in self.query.get(name, ()) for word in value.split(",") if word.strip()]

    def body(self) -> dict[str, Body]:
        """The body as an object without its root's name. Raises WebException for one that cannot be read."""
        if self.content_type == "application/xml":
            return _read_xml(self.data)
        return _read_json(self.data)


def read_query(text: bytes) -> dict[str, tuple[str, ...]]:
    """The parameters of a query. Raises WebException if there are too many, or they cannot be read."""
    try:
        pairs = parse_qsl(
            text.decode("ascii"), keep_blank_values=True, max_num_fields=FIELDS_MAX, encoding="utf-8", errors="strict"
        )
    except ValueError as error:
        raise bad_request(f"cannot read the query: {error}") from None
    values: dict[str, tuple[str, ...]] = {}
    for name, value in pairs:
        values[name] = (*values.get(name, ()), value)
    return values


def member(body: Mapping[str, Body], name: str) -> dict[str, Body]:
    """A field that is an object; empty if it is missing or something else."""
    value = body.get(name)
    return value if isinstance(value, dict) else {}


def members(body: Mapping[str, Body], name: str) -> list[Body]:
    """A field that is a list; a single value counts as a list of one, as in JAXB."""
    value = body.get(name)
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def text_of(body: Mapping[str, Body], name: str) -> str | None:
    """A field as text; None if it is missing or not a plain value."""
    value = body.get(name)
    if value is None or isinstance(value, dict | list):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def entries_of(body: Mapping[str, Body]) -> dict[str, Body]:
    """{key: value} of a map as JAXB reads it: `{"entry": [{"key": .., "value": ..}]}`."""
    found: dict[str, Body] = {}
    for entry in members(body, "entry"):
        key = text_of(entry, "key") if isinstance(entry, dict) else None
        if isinstance(entry, dict) and key is not None:
            found[key] = entry.get("value")
    return found


def _read_json(data: bytes) -> dict[str, Body]:
    try:
        value = json.loads(data, parse_constant=_refuse_constant)
    except RecursionError:
        raise web_application_exception("the body is nested too deeply", 400) from None
    except ValueError as error:
        raise web_application_exception(f"javax.xml.bind.UnmarshalException: {error}", 400) from None
    if not isinstance(value, dict):
        raise web_application_exception("javax.xml.bind.UnmarshalException: the body is not an object", 400)
    return value


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number")


def _read_xml(data: bytes) -> dict[str, Body]:
    reader = _XmlReader()
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = _refuse_doctype
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    try:
        parser.Parse(data, True)
    except (expat.ExpatError, ValueError) as error:
        raise web_application_exception(f"javax.xml.bind.UnmarshalException: {error}", 400) from None
    return reader.root if isinstance(reader.root, dict) else {}


def _refuse_doctype(*_: object) -> None:
    raise ValueError("a DOCTYPE is not allowed")


class _XmlReader:
    """Collects elements; the root's own name does not count."""

    def __init__(self) -> None:
        self.root: Body = None
        self._open: list[tuple[dict[str, Body], list[str]]] = []
        self._count = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if len(self._open) >= DEPTH_MAX:
            raise ValueError(f"more than {DEPTH_MAX} nested elements")
        self._count += 1
        if self._count > ELEMENTS_MAX:
            raise ValueError(f"more than {ELEMENTS_MAX} elements")
        self._open.append(({}, []))

    def text(self, text: str) -> None:
        if self._open:
            self._open[-1][1].append(text)

    def end(self, name: str) -> None:
        children, texts = self._open.pop()
        value: Body = children or "".join(texts).strip()
        if not self._open:
            self.root = value
            return
        siblings = self._open[-1][0]
        before = siblings.get(name)
        if before is None:
            siblings[name] = value
        elif isinstance(before, list):
            before.append(value)
        else:
            siblings[name] = [before, value]
