"""Answers of Hadoop's web services, described once and written as JSON or XML.

Hadoop's answers are objects that JAXB writes. Most come out as "natural" JSON: numbers are numbers, lists are lists,
and the root's name wraps the rest. Some lack that setting and come out "mapped": no root name, every number and
boolean a string, a list of one element as that element. XML is the same for all. So a document is a tree of named
values, and its style says how JSON is written.

Floats are Java's: a Python float is a 32-bit one here, a JavaDouble a 64-bit one.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto
from json.encoder import encode_basestring
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
    """The ways in which a document is written as JSON."""

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


# The parts of JSON are appended to one list, because nested generators take three times as long.


def json_text(document: Document) -> str:
    """The document as JSON."""
    out: list[str] = []
    if document.style is Style.MAPPED:
        _mapped_object(document.content, out)
    else:
        _natural_element(document.content, out)
    body = "".join(out)
    return f'{{"{document.root}":{body}}}' if document.style is Style.NATURAL else body


def natural_text(element: Element) -> str:
    """An element as natural JSON, for a list that is written in parts."""
    out: list[str] = []
    _natural_element(element, out)
    return "".join(out)


def _natural_element(element: Element, out: list[str]) -> None:
    comma = ""
    out.append("{")
    if element.type:
        out.append(f'"type":{encode_basestring(element.type)}')
        comma = ","
    for name, value in element.fields.items():
        if not _is_written(value):
            continue
        out.append(f'{comma}"{name}":')
        comma = ","
        _natural(value, out)
    out.append("}")


def _natural(value: Value, out: list[str]) -> None:
    if isinstance(value, str):
        out.append(encode_basestring(value))
    elif isinstance(value, Element):
        _natural_element(value, out)
    elif isinstance(value, Many):
        out.append("[")
        for number, item in enumerate(value.values):
            if number:
                out.append(",")
            _natural(item, out)
        out.append("]")
    elif isinstance(value, Entries):
        out.append("{" + ",".join(f'"entry":{_entry(*entry)}' for entry in value.entries) + "}")
    else:
        out.append(_plain(value))


def _mapped_object(element: Element, out: list[str]) -> None:
    comma = ""
    out.append("{")
    for name, value in element.fields.items():
        if not _is_written(value):
            continue
        out.append(f'{comma}"{name}":')
        comma = ","
        _mapped(value, out)
    out.append("}")


def _mapped(value: Value, out: list[str]) -> None:
    if isinstance(value, str):
        out.append(encode_basestring(value))
    elif isinstance(value, Element):
        if any(_is_written(field) for field in value.fields.values()):
            _mapped_object(value, out)
        else:
            out.append("null")
    elif isinstance(value, Many):
        _mapped_list(value, out)
    elif isinstance(value, Entries):
        listed = [_entry(*entry) for entry in value.entries]
        out.append(f'{{"entry":{listed[0] if len(listed) == 1 else "[" + ",".join(listed) + "]"}}}')
    else:
        out.append(encode_basestring(_plain(value)))


def _mapped_list(value: Many, out: list[str]) -> None:
    is_list = len(value.values) != 1
    out.append("[" if is_list else "")
    for number, item in enumerate(value.values):
        if number:
            out.append(",")
        _mapped(item, out)
    out.append("]" if is_list else "")


def _entry(key: str, text: str) -> str:
    return f'{{"key":{encode_basestring(key)},"value":{encode_basestring(text)}}}'


def _is_written(value: Value) -> bool:
    return value is not None and not (isinstance(value, Many) and not value.values)


def _plain(value: int | float | JavaDouble | None) -> str:
    """A number, boolean or null as Java prints it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, JavaDouble):
        return double_text(value.number)
    return shortest(f32(value)) if isinstance(value, float) else str(value)


def xml_text(document: Document) -> str:
    """The document as XML, with its declaration."""
    out = [XML_DECLARATION]
    _xml(document.root, document.content, out, declared=False)
    return "".join(out)


def xml_element(name: str, element: Element) -> str:
    """An element as XML, for a list that is written in parts."""
    out: list[str] = []
    _xml(name, element, out, declared=False)
    return "".join(out)


def _xml(name: str, value: Value, out: list[str], *, declared: bool) -> None:
    """Write an element as XML. `declared`: an element above has declared the namespace of type names."""
    if value is None:
        return
    if isinstance(value, Element):
        _xml_object(name, value, out, declared=declared)
    elif isinstance(value, Many):
        for item in value.values:
            _xml(name, item, out, declared=declared)
    elif isinstance(value, Entries):
        entries = (
            f"<entry><key>{escaped(key)}</key><value>{escaped(text)}</value></entry>" for key, text in value.entries
        )
        content = "".join(entries)
        out.append(f"<{name}>{content}</{name}>" if content else f"<{name}/>")
    else:
        text = escaped(value) if isinstance(value, str) else _plain(value)
        out.append(f"<{name}>{text}</{name}>")


def _xml_object(name: str, element: Element, out: list[str], *, declared: bool) -> None:
    opening = name
    if element.type:
        opening += f'{"" if declared else _XSI} xsi:type="{element.type}"'
        declared = True
    if not any(_is_written(value) for value in element.fields.values()):
        out.append(f"<{opening}/>")
        return
    out.append(f"<{opening}>")
    for field, value in element.fields.items():
        _xml(field, value, out, declared=declared)
    out.append(f"</{name}>")


def escaped(text: str) -> str:
    """The text with what XML would read as markup replaced."""
    return text.translate(_ESCAPES)
