"""result.json: a whole result as a file, from which a report or a comparison can be made again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from yarn.errors import YarnException
from yarn.resource import Resource
from yarnling.whatif.result import WhatIfResult

RESULT_JSON = "result.json"
RESULT_BYTES_MAX = 1 << 30
"""The maximum size of a result that is read: some four million containers."""


def encode_result(result: WhatIfResult) -> bytes:
    """The result as JSON; resources are objects {type: amount}."""
    return msgspec.json.encode(result, enc_hook=_encode)


def decode_result(data: bytes) -> WhatIfResult:
    """The result from its JSON. Raises msgspec.ValidationError or msgspec.DecodeError if it is not one."""
    result = msgspec.json.decode(data, type=WhatIfResult, dec_hook=_decode)
    _check_positions(result)
    return result


def read_result(path: Path) -> WhatIfResult:
    """Read a result. Raises YarnException if the file is not one."""
    try:
        size = path.stat().st_size
        if size > RESULT_BYTES_MAX:
            raise YarnException(f"{path}: has {size} bytes, at most {RESULT_BYTES_MAX} are read")
        return decode_result(path.read_bytes())
    except OSError as error:
        raise YarnException(f"{path}: cannot be read: {error.strerror}") from None
    except msgspec.MsgspecError as error:
        raise YarnException(f"{path}: is not the result of a simulation: {error} (write one with -o)") from None


def _encode(value: Any) -> Any:
    if isinstance(value, Resource):
        return value.amounts()
    raise NotImplementedError(f"{type(value).__name__} is not part of a result")


def _decode(type_: type[Any], value: Any) -> Any:
    if type_ is not Resource:
        raise NotImplementedError(f"{type_.__name__} is not part of a result")
    return Resource.of(msgspec.convert(value, dict[str, int]))


def _check_positions(result: WhatIfResult) -> None:
    """Refuse a file in which a container or a wait refers to something that is not in the file."""
    for container in result.containers:
        if not 0 <= container.application < len(result.applications):
            raise msgspec.ValidationError(f"there is no application {container.application}")
    for wait in result.longest_waits:
        if not 0 <= wait.container < len(result.containers):
            raise msgspec.ValidationError(f"there is no container {wait.container}")
