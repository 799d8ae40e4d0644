"""Settings of all tests: how long a property may look for a counter-example and where from, and what is drawn.

By default the examples are the same in every run, so that a change is not blamed for what chance found. To look for
what is not known yet:  scripts/test --hypothesis-profile=explore  (a failure prints how to repeat it).

A test that asks for `seed` draws from it what it does and when: which node it kills, for one. So too it is the same in
every run, until there are more runs or another seed:  scripts/test tests/cluster/test_demo_survives.py --runs 20
(a failure names its seed, and --seed replays it).

Coverage is measured without the tests marked `unmeasured`: they repeat with much work what other tests cover, and
would take three times as long (pytest-cov's own mark, `no_cover`, has no effect under pytest-xdist).

Files with long tests come first, so that none of them begins last and leaves the other processes of scripts/test idle.
Those that start processes take turns with those that do not: several at once start more processes than cores can run.

In CI (the variable CI is set) a test on processes that fails is run a second time, because the machine is shared and a
moment without CPU can fail a cluster. Both tries are shown, and at the end `reruns:` counts and names the tests that
needed two. They are faults to mend all the same.

A test marked `soak` or `spark` runs only if -m names it:  scripts/test -m soak

YARNLING_TEST_COUNTS=FILE has two lines written into FILE: how many tests with Java ran and were skipped, and reruns.
"""

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("steady", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("explore", deadline=None, max_examples=2000, print_blob=True)
settings.load_profile("steady")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell has what it runs in the background (`&`) ignore Ctrl-C, and so would all that the tests start.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("seeds", "what tests draw")
    group.addoption("--seed", type=int, default=1, metavar="N", help="the first seed (default: 1)")
    group.addoption("--runs", type=int, default=1, metavar="N", help="so many seeds, one after another (default: 1)")


ONLY_IF_NAMED = ("soak", "spark")
WHOLE_CLUSTERS = Path(__file__).parent / "yarnling"
PROCESSES = ("cluster", "hadoop", "browser")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("hadoop") is not None:
            item.user_properties.append(("java", True))
        if os.environ.get("CI") and any(map(item.get_closest_marker, PROCESSES)):
            item.add_marker(pytest.mark.flaky(reruns=1))
    left_out = [marker for marker in ONLY_IF_NAMED if marker not in config.option.markexpr]
    deselected = [item for item in items if any(item.get_closest_marker(marker) for marker in left_out)]
    if deselected:
        config.hook.pytest_deselected(items=deselected)
        items[:] = [item for item in items if item not in deselected]
    items.sort(key=_turns(items).__getitem__)


def _turns(items: Sequence[pytest.Item]) -> dict[pytest.Item, float]:
    """A number for each test, by which tests are sorted: the same for all tests of a file."""
    slow = {item.path: None for item in items if item.get_closest_marker("slow") or WHOLE_CLUSTERS in item.path.parents}
    processes = {item.path: None for item in items if any(map(item.get_closest_marker, PROCESSES))}
    computing = [path for path in slow if path not in processes]
    turns = {path: number / len(group) for group in (processes, computing) for number, path in enumerate(group)}
    return {item: turns.get(item.path, 1.0) for item in items}


@pytest.fixture(autouse=True)
def _logs_are_on() -> None:
    """Whatever an earlier test in this process has left, caplog gets what this one logs."""
    logging.disable(logging.NOTSET)
    logging.getLogger().disabled = False


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Run a test marked `unmeasured`, and its fixtures, without the functions by which coverage measures.

    The mark `no_cover` of pytest-cov stops the measuring that began last, after which the one that began before it
    continues; in a process of pytest-xdist there are two.
    """
    if item.get_closest_marker("unmeasured") is None:
        return (yield)
    here, in_threads = sys.gettrace(), threading.gettrace()
    sys.settrace(None)
    threading.settrace(None)
    try:
        return (yield)
    finally:
        sys.settrace(here)
        threading.settrace(in_threads)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        first = metafunc.config.getoption("seed")
        seeds = range(first, first + metafunc.config.getoption("runs"))
        metafunc.parametrize("seed", seeds, ids=[f"seed={seed}" for seed in seeds])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the tests that were run twice and, for .ci/run, how many were skipped without Java."""
    stats = terminalreporter.stats
    reruns = _reruns_line(stats.get("rerun", ()))
    if os.environ.get("CI"):
        terminalreporter.write_line(reruns)
    file = os.environ.get("YARNLING_TEST_COUNTS")
    if file is not None:
        passed, failed, skipped = (
            sum(map(_is_java_test, stats.get(outcome, ()))) for outcome in ("passed", "failed", "skipped")
        )
        Path(file).write_text(f"tests with Java: {passed + failed} ran, {skipped} were skipped\n{reruns}\n")


def _reruns_line(reports: Sequence[pytest.TestReport]) -> str:
    names = ", ".join(sorted(report.nodeid for report in reports))
    return f"reruns: {len(reports)} ({names})" if reports else "reruns: 0"


def _is_java_test(report: object) -> bool:
    return isinstance(report, pytest.TestReport) and ("java", True) in report.user_properties
