"""What NodeManagers execute: how it is found out, and that the lists which ship with them still say so."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.yarnling.apart import output
from yarnling.executed_lists import FUNCTIONS, NAMES, listed

REMEDY = "PYTHONPATH=. python -P -m yarnling.executed_code"


EXECUTED = """
import os, sys, threading
from yarnling.executed_code import executed

def called(): return inner()
def inner(): return [value for value in "ab"]
def in_thread(): pass
def after_fork(): pass
def not_reached(): pass

def work():
    called()
    thread = threading.Thread(target=in_thread)
    thread.start()
    thread.join()
    if sys.argv[1] == "fails":
        raise OSError("no room")
    if sys.argv[1] == "ends":
        os._exit(1)

os.register_at_fork(after_in_child=after_fork)
ids = executed(work)
functions = called, inner, in_thread, after_fork, not_reached
print([function.__name__ for function in functions if id(function.__code__) in ids], sys.getprofile())
try:
    os.waitpid(-1, 0)
except ChildProcessError:
    print("gone")
"""


@pytest.mark.parametrize("ending", ["returns", "fails", "ends"])
def test_codes_that_a_fork_executes_are_found_however_it_ends(ending: str) -> None:
    told = output(EXECUTED, ending).splitlines()
    assert told == ["['called', 'inner', 'in_thread', 'after_fork'] None", "gone"]


FOUND = """
from yarnling.executed_code import executed_by_node_manager
for found in executed_by_node_manager():
    print(*sorted(found))
"""


def test_the_lists_hold_nearly_all_that_a_node_manager_executes_from_its_fork_to_its_end() -> None:
    names, functions = (set(line.split()) for line in output(FOUND).splitlines())
    assert len(names - set(listed(NAMES))) < len(names) / 10, REMEDY
    assert len(functions - set(listed(FUNCTIONS))) < len(functions) / 10, REMEDY
    assert functions >= {
        "threading._after_fork",
        "yarnling.daemon_process.run_forked",
        "asyncio.unix_events._UnixSelectorEventLoop.add_signal_handler",
        "threading.Thread._bootstrap_inner",
        "grpc.aio._call.UnaryUnaryCall._invoke",
        "logging.StreamHandler.emit",
        "nm.core.NodeManagerCore._shut_down",
    }


def test_a_list_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert listed(str(tmp_path / "none")) == []


PAGES = """
import sys
if sys.argv[1] == "before":
    import yarnling.executed_lists
import nm.daemon
from yarnling.executed_lists import NAMES, listed
print(len({id(sys.intern(name)) >> 12 for name in listed(NAMES)}))
"""


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="of CPython's names")
def test_names_that_are_interned_before_all_imports_lie_on_fewer_pages() -> None:
    apart, together = (int(output(PAGES, when)) for when in ("never", "before"))
    assert together < apart / 2


def test_the_fork_server_makes_the_names_before_its_other_imports() -> None:
    modules = output("import sys, yarnling.fork_server; print(*sys.modules)").split()
    assert modules.index("yarnling.executed_lists") < min(map(modules.index, ("json", "selectors", "psutil")))
