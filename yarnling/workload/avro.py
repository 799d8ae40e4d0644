"""Decodes records of Avro's binary encoding, as Hadoop writes them into history files: without blocks and codecs.

    for record in avro_records(json.loads(schema), data): ...

The input is not trusted: a record that is cut off, as in a file whose writer was killed, ends the records; anything
else that cannot be right raises ValueError.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

ITEMS_MAX = 1_000_000
"""The most items of one array or map. Items of no bytes would be endless otherwise."""
LONG_BITS = 64
NAMED = ("record", "enum", "fixed")


def avro_records(schema: Any, data: bytes) -> Iterator[Any]:
    """The records of a schema, as it is in JSON; values of a union without the name of their type."""
    decoder = _Decoder(schema, data)
    while decoder.has_more():
        try:
            yield decoder.value(schema)
        except EOFError:
            return
        except (RecursionError, KeyError, IndexError, TypeError, UnicodeDecodeError, struct.error) as error:
            raise ValueError(f"{type(error).__name__} at byte {decoder.at}") from None


class _Decoder:
    """`at`: the position in the data. `_names` {name of a type, with and without its namespace: its schema}"""

    def __init__(self, schema: Any, data: bytes) -> None:
        self.at = 0
        self._data = data
        self._names: dict[str, Any] = {}
        self._find_names(schema)

    def has_more(self) -> bool:
        return self.at < len(self._data)

    def value(self, schema: Any) -> Any:
        """The next value. Raises EOFError where the data ends before it."""
        if isinstance(schema, list):
            return self.value(schema[self._index()])
        kind = _kind(schema)
        match kind:
            case "null":
                return None
            case "boolean":
                return self._bytes(1) != b"\x00"
            case "int" | "long":
                return self._long()
            case "float" | "double":
                code = "<f" if kind == "float" else "<d"
                return struct.unpack(code, self._bytes(struct.calcsize(code)))[0]
            case "string":
                return self._bytes(self._index()).decode()
            case "bytes":
                return self._bytes(self._index()).hex()
            case "record":
                return {field["name"]: self.value(field["type"]) for field in schema["fields"]}
            case "enum":
                return schema["symbols"][self._index()]
            case "array":
                return [self.value(schema["items"]) for _ in self._items()]
            case "map":
                return {self.value("string"): self.value(schema["values"]) for _ in self._items()}
            case "fixed":
                return self._bytes(schema["size"]).hex()
            case str():
                return self.value(self._names[kind])
            case _:
                return self.value(kind)

    def _items(self) -> Iterator[None]:
        """Once for each item of an array or map, which come in blocks; a negative count precedes its size in bytes."""
        items = 0
        while count := self._long():
            if count < 0:
                self._long()
            items += abs(count)
            if items > ITEMS_MAX:
                raise KeyError
            yield from (None for _ in range(abs(count)))

    def _long(self) -> int:
        """A whole number, least significant 7 bits first, in zigzag: 0, -1, 1, -2 are 0, 1, 2, 3."""
        number = 0
        for shift in range(0, LONG_BITS, 7):
            (byte,) = self._bytes(1)
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (number >> 1) ^ -(number & 1)
        raise KeyError

    def _index(self) -> int:
        number = self._long()
        if number < 0:
            raise KeyError
        return number

    def _bytes(self, count: int) -> bytes:
        found = self._data[self.at : self.at + count]
        if len(found) < count:
            raise EOFError
        self.at += count
        return found

    def _find_names(self, schema: Any, namespace: str = "") -> None:
        """Note the named types in a schema, which other parts of it refer to."""
        if isinstance(schema, list):
            for each in schema:
                self._find_names(each, namespace)
        elif isinstance(schema, dict):
            namespace = str(schema.get("namespace", namespace))
            if schema.get("type") in NAMED:
                name = str(schema.get("name"))
                self._names |= {name: schema, f"{namespace}.{name}": schema}
            for key in ("type", "fields", "items", "values"):
                self._find_names(schema.get(key), namespace)


def _kind(schema: Any) -> Any:
    """The name of a type, or what stands for it in the schema of an annotated type."""
    return schema if isinstance(schema, str) else schema["type"]
