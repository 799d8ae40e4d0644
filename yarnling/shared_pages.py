"""Memory that forked daemons go on sharing with the process they were forked from.

A page is shared until somebody writes to it, and CPython writes to what it only reads: to a reference count at every
call and look-up. What a daemon comes to write to is therefore best kept together, and apart from what it does not:

    move_together(names)     the code that daemons will execute, which lies among ten times as much that they will not
    forget_types()           so that what daemons look up does not push out what others looked up once
    make_immortal(codes)     so that nothing counts references to what daemons share (where Python knows such objects)
    empty_free_lists()       so that what a daemon makes is not where something was freed before,
    fill_holes()             but lies together

Where the allocators are others than CPython's and glibc's, moving and filling do little or nothing.
"""

from __future__ import annotations

import ctypes
import gc
import sys
import sysconfig
from collections.abc import Collection, Iterator
from itertools import chain
from types import CodeType, FunctionType

_POOL_BYTES = 16 * 1024
_POOL_HEADER_BYTES = 48
_SMALL_STEP, _SMALL_MAX = 16, 512
"""CPython's allocator: pools of blocks of one size, of which there is one for every 16 bytes up to 512."""
_FILL_BYTES_MAX = 256 * 1024
"""For one size of block. Holes of one size come to some 50 KB; without an end to them they are not found as thought."""
_HEAP_SIZES = (65536, 32768, 16384, 8192, 4096, 3072, 2048, 1536, 1024, 768, *range(640, 15, -16))
"""What holes of the C library's heap are filled with, largest first."""

HAS_IMMORTALS = (
    sys.implementation.name == "cpython"
    and (3, 12) <= sys.version_info < (3, 14)
    and sys.maxsize > 1 << 32
    and sys.byteorder == "little"
    and not sysconfig.get_config_var("Py_GIL_DISABLED")
)
"""That _IMMORTAL means to this interpreter what it should: before 3.12 it is a number like others, 3.14 is untried."""
_IMMORTAL = 0xFFFF_FFFF
"""Lower half of an object's reference count that is never changed (PEP 683)."""

_kept: list[object] = []
"""What was moved away from, and what fills holes: never freed, or there would be holes again."""


def forget_types() -> None:
    """Empty the cache of classes' attributes: each entry that a daemon replaces would be a name's reference count."""
    # 3.13 has another name for what it was meant for.
    clear = getattr(sys, "_clear_internal_caches", None) or getattr(sys, "_clear_type_cache", None)
    if clear is not None:
        clear()


def empty_free_lists() -> None:
    """Free for good what the interpreter keeps of freed tuples, lists, dicts and floats: they lie anywhere.

    A full collection does that. It takes no time where everything is frozen, and finds nothing else.
    """
    gc.collect()


def move_together(names: Collection[str]) -> list[CodeType]:
    """Give the functions with these full names copies of their code, made one after another: the copies.

    What the interpreter has learned of a code is not copied: let it be executed some times more.
    """
    copies: dict[int, CodeType] = {}
    for function in [found for found in gc.get_objects() if type(found) is FunctionType and full_name(found) in names]:
        function.__code__ = _copied(function.__code__, copies)
    return list(copies.values())


def full_name(function: FunctionType) -> str:
    """Of what a dataclass was given too: all those have codes of one name."""
    return f"{function.__module__}.{function.__qualname__}"


def _copied(code: CodeType, copies: dict[int, CodeType]) -> CodeType:
    """With what is within it: inner functions, comprehensions. Functions of one code go on having one."""
    copy = copies.get(id(code))
    if copy is None:
        _kept.append(code)
        parts = (_copied(part, copies) if type(part) is CodeType else part for part in code.co_consts)
        copy = copies[id(code)] = code.replace(co_consts=tuple(parts))
    return copy


def make_immortal(codes: Collection[CodeType]) -> None:
    """Have references to all that was made until now, and to these codes, counted no longer. They are never freed then.

    So say it when all was imported, and little is there that should go again. Python has no call for it before 3.15
    (PyUnstable_SetImmortal). The collector knows such objects. Extensions built for earlier versions count on:
    their references come and go in pairs, and a drift that would matter takes 2**31 of them.
    """
    if not HAS_IMMORTALS:
        return
    # The collector knows all that refers to others, but for code.
    parts = chain.from_iterable(map(with_parts, codes))
    for lower_half in map(ctypes.c_uint32.from_address, map(id, chain(gc.get_objects(), parts))):
        lower_half.value = _IMMORTAL


def with_parts(code: CodeType) -> Iterator[CodeType]:
    """It, and the codes within it: of inner functions and comprehensions."""
    yield code
    for constant in code.co_consts:
        if type(constant) is CodeType:
            yield from with_parts(constant)


def fill_holes() -> None:
    """Take all memory that was freed between what is in use."""
    _fill_pools()
    _fill_heap()


def _fill_pools() -> None:
    for size in range(_SMALL_STEP, _SMALL_MAX + 1, _SMALL_STEP):
        before = 0
        for piece, _ in zip(_pieces(size), range(_FILL_BYTES_MAX // size), strict=False):
            _kept.append(piece)
            # The first two blocks of a pool, in order: a new one, which is begun when no other has room.
            if before % _POOL_BYTES == _POOL_HEADER_BYTES and id(piece) == before + size:
                break
            before = id(piece)


def _pieces(size: int) -> Iterator[object]:
    """Objects that take blocks of `size` bytes."""
    overhead = sys.getsizeof(b"")
    while True:
        if size == _SMALL_STEP:
            yield object()
        elif size == 2 * _SMALL_STEP:
            yield float(len(_kept))
        else:
            yield bytes(size - overhead)


class _HeapInfo(ctypes.Structure):
    """struct mallinfo2"""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
        )
    )  # fmt: skip


def _fill_heap() -> None:
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "mallinfo2"):
        return
    libc.mallinfo2.restype = _HeapInfo
    malloc, sbrk = libc.malloc, libc.sbrk
    malloc.restype = sbrk.restype = ctypes.c_size_t
    # What lies above is not a hole but the heap's end.
    end = sbrk(0) - libc.mallinfo2().keepcost - max(_HEAP_SIZES)
    for size in _HEAP_SIZES:
        for _ in range(_FILL_BYTES_MAX // size):
            if malloc(size - 8) >= end:
                break
