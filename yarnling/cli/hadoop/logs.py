"""`yarnling logs -applicationId ...`: print container logs in the format of Hadoop's LogsCLI.

The files are read from the log directories of the NodeManagers, which keep them for the configured retention time. With
log aggregation the NodeManagers keep them until the application ends; then they are in the remote log directory.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TypeVar

from wire.files.hadoop_xml import load_configuration
from yarn.errors import ApplicationNotFoundException, InvalidArgumentException, InvalidIdException
from yarn.ids import ApplicationId, ContainerId
from yarnling.cli.hadoop import form
from yarnling.cli.hadoop.verb import REFUSED, Invocation, Option, Verb
from yarnling.cli.shared.output import print_json
from yarnling.cluster.containers import AggregatedContainerLog, ContainerLog, find_all_logs, read_log
from yarnling.cluster.state import ClusterState
from yarnling.report.escapes import in_line

T = TypeVar("T")

ALL = "ALL"
EVERY_FILE = frozenset({ALL, "*"})
LOCAL, AGGREGATED = "LOCAL", "AGGREGATED"
"""The names that Hadoop shows (ContainerLogAggregationType)."""
STARS = 50
"""The number of stars below a file, in addition to those below `End of LogType:` and the file's name."""

INFO_WIDTHS = (30, 30, 30, 30)
INFO_HEADER = ("LogFile", "LogLength", "LastModificationTime", "LogAggregationType")


async def _run(call: Invocation) -> int:
    given = call.given
    text = given.one("applicationId")
    try:
        app_id = ApplicationId.parse(text)
    except InvalidIdException:
        sys.stderr.write("Invalid ApplicationId specified\n")
        return REFUSED
    wanted = {ContainerId.parse(word) for word in given.words("containerId")}
    names, patterns = set(given.words("log_files")), given.words("log_files_pattern")
    matches = _matcher(names, patterns)
    all_logs = _ApplicationLogs(call.state, app_id)
    logs = [log for log in all_logs.find() if (not wanted or log.container_id in wanted) and matches(log.name)]
    if not logs:
        listed = ", ".join(sorted(names) or patterns) or ALL
        sys.stderr.write(f"Can not find any log file matching the pattern: [{listed}] ")
        sys.stderr.write(f"for the application: {app_id}\n")
        return REFUSED
    running = await _running(call, app_id)
    if call.as_json:
        print_json(list(all_logs.read(logs, lambda node, log: _entry(node, log, running))))
    elif "show_container_log_info" in given:
        _print_table(all_logs.read(logs, _row))
    else:
        for text in all_logs.read(logs, lambda node, log: _file(node, log, running)):
            sys.stdout.write(text)
    return 0


def _matcher(names: Collection[str], patterns: Sequence[str]) -> Callable[[str], bool]:
    """A function that is True for the names of requested files.

    A file is requested by its name, by a regular expression for the whole name, or by default. As in LogsCLI, patterns
    are ignored if names are given.
    """
    if names:
        return lambda name: name in names or not EVERY_FILE.isdisjoint(names)
    try:
        compiled = [re.compile(pattern) for pattern in patterns]
    except re.error as error:
        raise InvalidArgumentException(f"-log_files_pattern {error.pattern!r}: {error}") from None
    return lambda name: not compiled or any(pattern.fullmatch(name) for pattern in compiled)


class _ApplicationLogs:
    """The log files of an application on all nodes. They may be aggregated, which moves them, at any time."""

    def __init__(self, state: ClusterState, app_id: ApplicationId) -> None:
        self._app_id = app_id
        self._conf = load_configuration(Path(state.conf_dir))
        self._nodes = {Path(log_dir): node.node_id for node in state.nodes for log_dir in node.log_dirs}

    def find(self) -> list[ContainerLog]:
        """The files, ordered by container and name."""
        return find_all_logs(self._nodes, self._conf, self._app_id)

    def read(self, logs: Iterable[ContainerLog], read: Callable[[str, ContainerLog], T]) -> Iterator[T]:
        """The results of `read` for the node and the log; logs that are gone by now are left out.

        The node is host:port; for an aggregated file it is host_port, as Hadoop prints it.
        """
        for log in logs:
            result = read_log(log, self.find, lambda found: read(self._node_of(found), found))
            if result is not None:
                yield result

    def _node_of(self, log: ContainerLog) -> str:
        return log.node if isinstance(log, AggregatedContainerLog) else self._nodes[log.log_dir]


async def _running(call: Invocation, app_id: ApplicationId) -> frozenset[ContainerId]:
    """The ids of the containers that may still write to their logs."""
    try:
        report = await call.client.report(app_id)
        return frozenset(found.container_id for found in await call.client.containers(report.current_attempt_id))
    except ApplicationNotFoundException:
        return frozenset()


def _file(node: str, log: ContainerLog, running: frozenset[ContainerId]) -> str:
    name = in_line(log.name)
    head = f"Container: {log.container_id} on {node}"
    head = f"{head}\nLogAggregationType: {_kind(log)}\n{'=' * len(head)}\nLogType:{name}\n"
    head += f"LogLastModifiedTime:{form.moment(log.modified_ms)}\nLogLength:{log.size}\nLogContents:\n"
    text, end = log.text(), f"End of LogType:{name}"
    stars = "*" * (len(end) + STARS)
    if log.is_aggregated:
        return f"{head}{text}\n{end}\n{stars}\n\n"
    if text and not text.endswith("\n"):
        text += "\n"
    if log.container_id in running:
        end += f".This log file belongs to a running container ({log.container_id}) and so may not be complete."
    return f"{head}{text}{end}\n{stars}\n\n\n"


def _row(node: str, log: ContainerLog) -> tuple[str, str]:
    """The heading of the log's container, and its row in the table below it."""
    cells = (in_line(log.name), log.size, form.moment(log.modified_ms), _kind(log))
    return f"Container: {log.container_id} on {node}", form.row(INFO_WIDTHS, cells)


def _print_table(rows: Iterable[tuple[str, str]]) -> None:
    for head, group in groupby(rows, key=lambda row: row[0]):
        sys.stdout.write(f"{head}\n{'=' * len(head)}\n{form.row(INFO_WIDTHS, INFO_HEADER)}\n{'=' * 136}\n")
        for _, row in group:
            sys.stdout.write(row + "\n")


def _kind(log: ContainerLog) -> str:
    return AGGREGATED if log.is_aggregated else LOCAL


def _entry(node: str, log: ContainerLog, running: frozenset[ContainerId]) -> dict[str, object]:
    return {
        "node_id": node,
        "container_id": log.container_id,
        "file": log.name,
        "path": str(log.path),
        "complete": log.container_id not in running,
        "text": log.text(),
    }


LOGS = Verb(
    "logs",
    (
        Option("applicationId", "the application", "APPLICATION_ID"),
        Option("containerId", "only these containers, comma-separated", "CONTAINER_IDS"),
        Option("log_files", "only files with these names, comma-separated, or ALL", "NAMES", many=True),
        Option(
            "log_files_pattern", "only files whose names match one of these regular expressions", "PATTERNS", many=True
        ),
        Option("show_container_log_info", "list the files instead of printing them"),
    ),
    _run,
    commands=("applicationId",),
    without_options=REFUSED,
    errors_on_stderr=True,
)
