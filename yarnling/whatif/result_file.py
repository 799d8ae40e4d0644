"""result.json: a whole result as a file, from which a report or a comparison can be made again.

Containers, of which there may be millions, are written and read some thousands at a time.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import asdict, replace

from yarn.errors import YarnException
from yarn.resource import Resource
from yarnling.whatif.containers import ContainerOutcome, ContainerOutcomes
from yarnling.whatif.result import WhatIfResult

RESULT_JSON = "result.json"
RESULT_BYTES_MAX = 1 << 31
"""The maximum size of a result that is read: some nine million containers."""
_ROWS = 4096
"""So many containers are encoded at a time."""
_PART_BYTES = 1 << 20
"""The containers in so many bytes are decoded at a time."""
_BETWEEN_ROWS = b'},{"application":'
"""Between two containers in a file as it is written here. No text of a container contains it: quotes are escaped."""


def write_result(result: WhatIfResult, path: Path) -> None:
    """Write the result as JSON; resources are objects {type: amount}."""
    with path.open("wb") as file:
        file.writelines(_encoded(result))


def encode_result(result: WhatIfResult) -> bytes:
    """The bytes that `write_result` writes."""
    return b"".join(_encoded(result))


def decode_result(data: bytes | mmap.mmap) -> WhatIfResult:
    """The result from its JSON. Raises msgspec.ValidationError or msgspec.DecodeError if it is not one."""
    fields = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    containers = ContainerOutcomes()
    for part in _parts(memoryview(fields["containers"])) if "containers" in fields else ():
        try:
            containers.extend(msgspec.json.decode(part, type=_Containers, dec_hook=_decode).containers)
        except OverflowError:
            raise msgspec.ValidationError("a number of a container has more than 64 bits") from None
    if "containers" in fields:
        fields["containers"] = msgspec.Raw(b"[]")
    rest = msgspec.json.decode(msgspec.json.encode(fields), type=WhatIfResult, dec_hook=_decode)
    result = replace(rest, containers=containers)
    _check_positions(result)
    return result


def read_result(path: Path) -> WhatIfResult:
    """Read a result. Raises YarnException if the file is not one."""
    try:
        size = path.stat().st_size
        if size > RESULT_BYTES_MAX:
            raise YarnException(f"{path}: has {size} bytes, at most {RESULT_BYTES_MAX} are read")
        with path.open("rb") as file:
            # An empty file cannot be mapped.
            return decode_result(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b"")
    except OSError as error:
        raise YarnException(f"{path}: cannot be read: {error.strerror}") from None
    except msgspec.MsgspecError as error:
        raise YarnException(f"{path}: is not the result of a simulation: {error} (write one with -o)") from None


class _Containers(msgspec.Struct):
    """Some of the containers of a result, under the name that they have there: errors contain it."""

    containers: list[ContainerOutcome]


def _encoded(result: WhatIfResult) -> Iterator[bytes]:
    before = b"{"
    for name, value in asdict(result).items():
        yield before + msgspec.json.encode(name) + b":"
        if isinstance(value, ContainerOutcomes):
            yield from _encoded_rows(value)
        else:
            yield msgspec.json.encode(value, enc_hook=_encode)
        before = b","
    yield b"}"


def _encoded_rows(containers: ContainerOutcomes) -> Iterator[bytes]:
    rows, before = iter(containers), b"["
    while some := list(islice(rows, _ROWS)):
        yield before + msgspec.json.encode(some, enc_hook=_encode)[1:-1]
        before = b","
    yield b"]" if len(containers) else b"[]"


def _encode(value: Any) -> Any:
    if isinstance(value, Resource):
        return value.amounts()
    raise NotImplementedError(f"{type(value).__name__} is not part of a result")


def _parts(array: memoryview) -> Iterator[bytes]:
    """The JSON array of containers as objects {"containers": [some of them]}.

    A file that another program has formatted is one part.
    """
    start, size = 0, _PART_BYTES
    before = b'{"containers":'
    while start < len(array):
        part = bytes(array[start : start + size])
        is_last = start + size >= len(array)
        end = -1 if is_last else part.rfind(_BETWEEN_ROWS)
        if is_last or end >= 0:
            yield before + part + b"}" if is_last else before + part[: end + 1] + b"]}"
            start, size = start + (len(part) if is_last else end + 2), _PART_BYTES
            before = b'{"containers":['
        else:
            size *= 2


def _decode(type_: type[Any], value: Any) -> Any:
    if type_ is Resource:
        return Resource.of(msgspec.convert(value, dict[str, int]))
    if type_ is ContainerOutcomes:
        return ContainerOutcomes.of(msgspec.convert(value, list[ContainerOutcome]))
    raise NotImplementedError(f"{type_.__name__} is not part of a result")


def _check_positions(result: WhatIfResult) -> None:
    """Refuse a file in which a container or a wait refers to something that is not in the file."""
    for container in result.containers:
        if not 0 <= container.application < len(result.applications):
            raise msgspec.ValidationError(f"there is no application {container.application}")
    for wait in result.longest_waits:
        if not 0 <= wait.container < len(result.containers):
            raise msgspec.ValidationError(f"there is no container {wait.container}")
