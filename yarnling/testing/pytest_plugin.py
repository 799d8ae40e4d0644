"""The pytest plugin: clusters for tests of software that runs on YARN. docs/testing.md shows how to use it.

    @pytest.mark.yarn_cluster(nodes=4, conf={"yarn.scheduler.minimum-allocation-mb": "128"})
    def test_of_mine(yarn_cluster): ...

pytest loads this in every run if yarnling is installed, so nothing else of yarnling is imported until a test uses it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from yarnling.cluster.blocking import AwaitedCluster, BlockingCluster
    from yarnling.testing.clusters import Clusters, Pool
    from yarnling.testing.spec import ClusterSpec

MARKER = "yarn_cluster"
MARKER_HELP = (
    f"{MARKER}(nodes, memory_mb, vcores, conf, settings, fast, racks, loopback, hadoop, scope): "
    "the cluster of the test; conf is a directory of Hadoop's files or {key: value}, "
    "scope function, class, module or session"
)
LOG_LINES = 200

_CLUSTERS = pytest.StashKey["Clusters"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("yarnling", "clusters of yarnling; markers override these")
    group.addoption("--yarnling-nodes", type=int, default=1, metavar="N", help="NodeManagers (default: 1)")
    group.addoption("--yarnling-memory", type=int, metavar="MB", help="memory of a node (default: 8192)")
    group.addoption("--yarnling-vcores", type=int, metavar="N", help="vcores of a node (default: 8)")
    group.addoption("--yarnling-racks", type=int, default=1, metavar="N", help="racks (default: 1)")
    group.addoption("--yarnling-conf", metavar="DIR", help="directory of Hadoop's *-site.xml files, or one of them")
    group.addoption(
        "--yarnling-define", action="append", default=[], metavar="KEY=VALUE", help="set a configuration key"
    )
    group.addoption(
        "--yarnling-real-time", action="store_true", help="do not divide every timer by 20, the default in tests"
    )
    group.addoption(
        "--yarnling-loopback",
        action="store_true",
        help="run daemons in pytest's process: quicker, but they cannot be killed",
    )
    group.addoption(
        "--yarnling-scope",
        choices=("function", "class", "module", "session"),
        default="function",
        help="which tests share a cluster (default: function, each test has its own)",
    )
    group.addoption("--yarnling-directory", metavar="DIR", help="keep the files of all clusters below this directory")
    group.addoption(
        "--yarnling-log-lines",
        type=int,
        default=LOG_LINES,
        metavar="N",
        help=f"lines of each log in the report of a failure (default: {LOG_LINES}; 0: all, -1: none)",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER_HELP)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Report all faults in markers before any test runs."""
    marked = [item for item in items if item.get_closest_marker(MARKER)]
    faults = [fault for item in marked for fault in _faults_of(item)]
    if faults:
        raise pytest.UsageError(*faults)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    clusters = item.config.stash.get(_CLUSTERS, None)
    if clusters is not None:
        clusters.note_beginning()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add to the report of a failure why applications wait or failed, and the logs of containers and of daemons.

    Frames of yarnling are left out, except those of its own faults, and with --full-trace.
    """
    clusters = item.config.stash.get(_CLUSTERS, None)
    error = call.excinfo
    if clusters is not None and error is not None and not _option(item.config, "fulltrace"):
        from yarnling.testing.tracebacks import without_own_frames

        call.excinfo = without_own_frames(error)
    report = yield
    # Debuggers get every frame.
    call.excinfo = error
    lines_max: int = _option(item.config, "--yarnling-log-lines")
    if report.failed and clusters is not None:
        logs = clusters.sections(lines_max) if lines_max >= 0 else []
        report.sections = [*clusters.causes(), *report.sections, *logs]
    return report


@pytest.fixture
def yarn_cluster(request: pytest.FixtureRequest) -> Iterator[BlockingCluster]:
    """The cluster that the test's marker and the options request, for use without asyncio."""
    spec = _spec_of(request.node)
    if spec.scope == "function":
        with _clusters_of(request.config).start(spec, request.node.nodeid) as cluster:
            yield cluster
    else:
        pool: Pool = request.getfixturevalue(f"_yarnling_{spec.scope}_pool")
        yield pool.get(spec, request.node.nodeid)


@pytest.fixture
def async_yarn_cluster(yarn_cluster: BlockingCluster) -> AwaitedCluster:
    """`yarn_cluster` for use with asyncio, in any event loop. Tests with different loops can share it."""
    return yarn_cluster.awaited()


@pytest.fixture(scope="session")
def yarn_cluster_factory(
    request: pytest.FixtureRequest,
) -> Callable[..., AbstractContextManager[BlockingCluster]]:
    """For fixtures of any scope: `with yarn_cluster_factory(nodes=2) as cluster`; arguments as for the marker."""
    _check_packages()
    from yarnling.testing.spec import ClusterRequest, spec_of

    def start(**arguments: object) -> AbstractContextManager[BlockingCluster]:
        spec = spec_of(_defaults(request.config), [ClusterRequest(named=arguments, base=request.config.rootpath)])
        return _clusters_of(request.config).start(spec, "factory")

    return start


def _pool(request: pytest.FixtureRequest) -> Iterator[Pool]:
    from yarnling.testing.clusters import Pool

    with contextlib.ExitStack() as stack:
        yield Pool(_clusters_of(request.config), stack)


_class_pool = pytest.fixture(scope="class", name="_yarnling_class_pool")(_pool)
_module_pool = pytest.fixture(scope="module", name="_yarnling_module_pool")(_pool)
_session_pool = pytest.fixture(scope="session", name="_yarnling_session_pool")(_pool)


def _clusters_of(config: pytest.Config) -> Clusters:
    """The clusters of this pytest process."""
    from yarnling.testing.clusters import Clusters

    if _CLUSTERS not in config.stash:
        keep_in = _option(config, "--yarnling-directory")
        workerinput: dict[str, Any] = getattr(config, "workerinput", {})
        worker = str(workerinput.get("workerid", "main"))
        config.stash[_CLUSTERS] = Clusters(None if keep_in is None else Path(keep_in).absolute(), worker)
    return config.stash[_CLUSTERS]


def _check_packages() -> None:
    """Raise UsageError if a package of the tested project has the name of one of ours."""
    from yarnling.cluster.own_packages import PackageShadowedError, check_packages

    try:
        check_packages()
    except PackageShadowedError as error:
        raise pytest.UsageError(str(error)) from error


def _spec_of(item: pytest.Item) -> ClusterSpec:
    _check_packages()
    from yarnling.testing.spec import ClusterRequest, spec_of

    markers = list(item.iter_markers(MARKER))
    requests = [ClusterRequest(marker.args, marker.kwargs, item.path.parent) for marker in reversed(markers)]
    return spec_of(_defaults(item.config), requests)


def _faults_of(item: pytest.Item) -> list[str]:
    _check_packages()
    from yarn.errors import YarnException

    try:
        _spec_of(item).cluster()
    except YarnException as error:
        return [f"{item.nodeid}: {line}" for line in error.message.splitlines()]
    return []


def _option(config: pytest.Config, name: str) -> Any:
    """The value of an option, of the type in `pytest_addoption`; pytest returns Any."""
    return config.getoption(name)


def _defaults(config: pytest.Config) -> ClusterSpec:
    """The spec that the command line's options request."""
    from yarnling.cluster.configuration import definitions
    from yarnling.testing.spec import ClusterSpec, with_settings

    conf = _option(config, "--yarnling-conf")
    spec = ClusterSpec(
        nodes=_option(config, "--yarnling-nodes"),
        memory_mb=_option(config, "--yarnling-memory"),
        vcores=_option(config, "--yarnling-vcores"),
        conf=None if conf is None else str(Path(conf).absolute()),
        fast=not _option(config, "--yarnling-real-time"),
        racks=_option(config, "--yarnling-racks"),
        loopback=_option(config, "--yarnling-loopback"),
        scope=_option(config, "--yarnling-scope"),
    )
    return with_settings(spec, definitions(_option(config, "--yarnling-define"), "--yarnling-define"))
