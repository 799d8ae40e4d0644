"""Answers of Hadoop's web services, described once and written as JSON or XML.

Hadoop's answers are objects that JAXB writes. Most come out as "natural" JSON: numbers are numbers, lists are lists,
and the root's name wraps the rest. Some lack that setting and come out "mapped": no root name, every number and
boolean a string, a list of one element as that element. XML is the same for all. So a document is a tree of named
values, and its style says how JSON is written.

Floats are Java's: a Python float is a 32-bit one here, a JavaDouble a 64-bit one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from enum import Enum, auto
from typing import TypeAlias

from msgspec import Struct

from yarn.java.binary32 import double_text, f32, shortest

XML_DECLARATION = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
_XSI = ' xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
_ESCAPES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"}
    | {chr(code): "\ufffd" for code in (*range(9), 11, 12, *range(14, 32))}
)
"""Control characters cannot be written in XML."""


class JavaDouble(Struct, frozen=True):
    """A number that Hadoop keeps in 64 bits."""

    number: float


class Element(Struct, frozen=True):
    """An object. A field that is None is not written. `type`: the name of its class, where Hadoop writes it."""

    fields: dict[str, Value]
    type: str = ""


class Many(Struct, frozen=True):
    """A field's repeated values. Nothing is written for no values."""

    values: tuple[str | Element, ...]


class Entries(Struct, frozen=True):
    """A map as JAXB writes it: natural JSON repeats the name `entry`, so parsers see the last entry only."""

    entries: tuple[tuple[str, str], ...]


Value: TypeAlias = "str | int | float | JavaDouble | Element | Many | Entries | None"


class Style(Enum):
    """How a document is written as JSON."""

    NATURAL = auto()
    UNWRAPPED = auto()
    """Natural without the root's name."""
    MAPPED = auto()


class Document(Struct, frozen=True):
    """An answer: the root element and its name."""

    root: str
    content: Element
    style: Style = Style.NATURAL


def many(values: Iterable[str | Element]) -> Many:
    """The repeated values of a field."""
    return Many(tuple(values))


# JSON


def json_text(document: Document) -> str:
    """The document as JSON."""
    if document.style is Style.MAPPED:
        return "".join(_mapped_object(document.content))
    body = "".join(_natural_element(document.content))
    return f'{{"{document.root}":{body}}}' if document.style is Style.NATURAL else body


def natural_text(element: Element) -> str:
    """One element as natural JSON, for a list that is written in parts."""
    return "".join(_natural_element(element))


def _natural_element(element: Element) -> Iterator[str]:
    comma = ""
    yield "{"
    if element.type:
        yield f'"type":{_quoted(element.type)}'
        comma = ","
    for name, value in element.fields.items():
        if value is None or (isinstance(value, Many) and not value.values):
            continue
        yield f'{comma}"{name}":'
        comma = ","
        yield from _natural(value)
    yield "}"


def _natural(value: Value) -> Iterator[str]:
    if isinstance(value, Element):
        yield from _natural_element(value)
    elif isinstance(value, Many):
        yield "["
        for number, item in enumerate(value.values):
            if number:
                yield ","
            yield from _natural(item)
        yield "]"
    elif isinstance(value, Entries):
        pairs = (f'"entry":{{"key":{_quoted(key)},"value":{_quoted(text)}}}' for key, text in value.entries)
        yield "{" + ",".join(pairs) + "}"
    elif isinstance(value, str):
        yield _quoted(value)
    else:
        yield _plain(value)


def _mapped_object(element: Element) -> Iterator[str]:
    comma = ""
    yield "{"
    for name, value in element.fields.items():
        if value is None or (isinstance(value, Many) and not value.values):
            continue
        yield f'{comma}"{name}":'
        comma = ","
        yield from _mapped(value)
    yield "}"


def _mapped(value: Value) -> Iterator[str]:
    if isinstance(value, Element):
        if any(_is_written(field) for field in value.fields.values()):
            yield from _mapped_object(value)
        else:
            yield "null"
    elif isinstance(value, Many):
        yield from _mapped_list([list(_mapped(item)) for item in value.values])
    elif isinstance(value, Entries):
        items = [[f'{{"key":{_quoted(key)},"value":{_quoted(text)}}}'] for key, text in value.entries]
        yield '{"entry":'
        yield from _mapped_list(items)
        yield "}"
    elif isinstance(value, str):
        yield _quoted(value)
    else:
        yield _quoted(_plain(value))


def _mapped_list(items: list[list[str]]) -> Iterator[str]:
    if len(items) == 1:
        yield from items[0]
        return
    yield "["
    for number, item in enumerate(items):
        if number:
            yield ","
        yield from item
    yield "]"


def _is_written(value: Value) -> bool:
    return value is not None and not (isinstance(value, Many) and not value.values)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _plain(value: int | float | JavaDouble | None) -> str:
    """A number, boolean or null as Java prints it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, JavaDouble):
        return double_text(value.number)
    return shortest(f32(value)) if isinstance(value, float) else str(value)


# XML


def xml_text(document: Document) -> str:
    """The document as XML, with its declaration."""
    return XML_DECLARATION + "".join(_xml(document.root, document.content, declared=False))


def xml_element(name: str, element: Element) -> str:
    """One element as XML, for a list that is written in parts."""
    return "".join(_xml(name, element, declared=False))


def _xml(name: str, value: Value, *, declared: bool) -> Iterator[str]:
    """`declared`: an element above has declared the namespace of type names."""
    if value is None:
        return
    if isinstance(value, Element):
        yield from _xml_object(name, value, declared=declared)
    elif isinstance(value, Many):
        for item in value.values:
            yield from _xml(name, item, declared=declared)
    elif isinstance(value, Entries):
        entries = (
            f"<entry><key>{_escaped(key)}</key><value>{_escaped(text)}</value></entry>" for key, text in value.entries
        )
        content = "".join(entries)
        yield f"<{name}>{content}</{name}>" if content else f"<{name}/>"
    else:
        text = _escaped(value) if isinstance(value, str) else _plain(value)
        yield f"<{name}>{text}</{name}>"


def _xml_object(name: str, element: Element, *, declared: bool) -> Iterator[str]:
    opening = name
    if element.type:
        opening += f'{"" if declared else _XSI} xsi:type="{element.type}"'
        declared = True
    if not any(_is_written(value) for value in element.fields.values()):
        yield f"<{opening}/>"
        return
    yield f"<{opening}>"
    for field, value in element.fields.items():
        yield from _xml(field, value, declared=declared)
    yield f"</{name}>"


def _escaped(text: str) -> str:
    return text.translate(_ESCAPES)
