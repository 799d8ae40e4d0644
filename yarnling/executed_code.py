"""Finds out what a NodeManager executes from its fork to its end, and writes the lists of yarnling.executed_lists.

PYTHONPATH=. python -P -m yarnling.executed_code
"""

from __future__ import annotations

import gc
import importlib
import mmap
import os
import signal
import struct
import sys
import tempfile
import threading
from collections.abc import Callable, Collection, Iterator
from functools import partial
from pathlib import Path
from types import CodeType, FrameType, FunctionType

from wire.daemon_process import start_logging
from yarn.settings import nodemanager
from yarnling import daemon_process
from yarnling.executed_lists import FUNCTIONS, NAMES
from yarnling.shared_pages import full_name, with_parts
from yarnling.start_request import NM, StartRequest
from yarnling.starters import unheard, warm_up

_ID = struct.Struct("=Q")
_CODES_MAX = 8192
"""A NodeManager executes some 1,000."""
_WORK_S_MAX = 60


def main() -> None:
    names, functions = executed_by_node_manager()
    for path, lines in ((NAMES, names), (FUNCTIONS, functions)):
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in sorted(lines))


def executed_by_node_manager() -> tuple[set[str], set[str]]:
    """The names by which its code looks up anything or calls it, and its functions by their full names."""
    start_logging(daemon_process.LOG_LEVEL)
    rehearse = importlib.import_module("nm.rehearsal").rehearse
    with tempfile.TemporaryDirectory(prefix="yarnling-") as directory:
        # The names also of what only the first one executes: late imports, patterns that are compiled.
        cold = executed(partial(_be_forked, Path(directory) / "cold", os.getpid()))
        warm_up()
        with unheard():
            rehearse(Path(directory) / "first")
        warm = executed(partial(_be_forked, Path(directory) / "warm", os.getpid()))
    functions = [found for found in gc.get_objects() if type(found) is FunctionType]
    names = _names_in(functions, cold | warm)
    return names, {full_name(found) for found in functions if _has_part(found.__code__, warm)}


def executed(work: Callable[[], object]) -> set[int]:
    """The ids of the codes that a fork of this process executes: after it was forked, and in `work`, all threads of it.

    `work` may do what this process itself must not. The fork ends with it, or after a minute.
    """
    ids = mmap.mmap(-1, _ID.size * _CODES_MAX)
    _note_codes(ids)
    try:
        pid = os.fork()
        if pid == 0:
            try:
                signal.alarm(_WORK_S_MAX)
                work()
            finally:
                os._exit(0)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    os.waitpid(pid, 0)
    return {found for (found,) in _ID.iter_unpack(ids) if found}


def _note_codes(ids: mmap.mmap) -> None:
    """Each once: what ends a process may leave no time to tell them at last."""
    seen: set[int] = set()
    places = iter(range(0, len(ids), _ID.size))

    def note(frame: FrameType, event: str, argument: object) -> None:
        code = id(frame.f_code)
        if code not in seen and (place := next(places, None)) is not None:
            seen.add(code)
            _ID.pack_into(ids, place, code)

    threading.setprofile(note)
    sys.setprofile(note)


def _be_forked(directory: Path, parent: int) -> None:
    """Be a NodeManager as the fork server starts them, until a signal ends it, but for gRPC. It never returns."""
    thread = threading.Thread(target=bool, daemon=True)
    thread.start()
    thread.join()
    staged = importlib.import_module("nm.rehearsal").staged
    with staged(directory, partial(signal.raise_signal, signal.SIGTERM)) as conf:
        request = StartRequest(
            "rehearsal", NM, str(directory), os.devnull, environment={"HADOOP_CONF_DIR": str(directory)}
        )
        # The first look at the machine is within its life then.
        conf = conf.overridden({nodemanager.CONTAINER_MONITOR_INTERVAL.key: "1"})
        daemon_process.run_forked(request, conf, os.dup(os.open(os.devnull, os.O_WRONLY)), parent)


def _names_in(functions: Collection[FunctionType], codes: Collection[int]) -> set[str]:
    """The names in the codes with these ids, and texts in them that are written like one."""
    found = {id(part): part for function in functions for part in with_parts(function.__code__)}
    named = [(*code.co_names, *_texts(code.co_consts)) for number, code in found.items() if number in codes]
    return {name for names in named for name in names if name.isidentifier()}


def _has_part(code: CodeType, codes: Collection[int]) -> bool:
    return any(id(part) in codes for part in with_parts(code))


def _texts(constants: tuple[object, ...]) -> Iterator[str]:
    for constant in constants:
        if type(constant) is str:
            yield constant
        elif type(constant) is tuple:
            yield from _texts(constant)


if __name__ == "__main__":
    main()
