"""`yarnling logs`: print the output of an application's containers."""

from __future__ import annotations

import sys
from pathlib import Path

from wire.files.hadoop_xml import load_configuration
from yarn.errors import YarnException
from yarn.ids import ApplicationId, ContainerId
from yarnling.cli.options.cluster import LogsOptions
from yarnling.cli.shared.arguments import reading_arguments
from yarnling.cli.shared.output import notices, print_json
from yarnling.cluster.containers import ContainerLog, find_all_logs, read_log
from yarnling.cluster.state import find_cluster
from yarnling.report.escapes import in_line


def show(options: LogsOptions) -> None:
    """Print the log files of an application, each after a line that names it."""
    with reading_arguments():
        app_id = ApplicationId.parse(options.application)
        wanted = None if options.container is None else ContainerId.parse(options.container)
    state = find_cluster(options.name)
    dirs = [Path(path) for node in state.nodes for path in node.log_dirs]
    conf = load_configuration(Path(state.conf_dir))

    def find() -> list[ContainerLog]:
        return [log for log in find_all_logs(dirs, conf, app_id) if wanted in (None, log.container_id)]

    found = find()
    if options.file:
        logs = [log for log in found if log.name in options.file]
    else:
        logs = found if options.every else [log for log in found if read_log(log, find, lambda each: each.is_output)]
    if not logs:
        raise YarnException(_none_found(options, app_id, state.directory, found))
    if options.as_json:
        print_json([_entry(log, read_log(log, find, ContainerLog.text) or "") for log in logs])
        return
    for log in logs:
        sys.stdout.write(f"==> {log.container_id} {in_line(log.name)} <==\n")
        text = read_log(log, find, ContainerLog.text) or ""
        sys.stdout.write(text if not text or text.endswith("\n") else text + "\n")
    if len(logs) < len(found) and not options.file:
        left_out = ", ".join(sorted({in_line(log.name) for log in found} - {log.name for log in logs}))
        notices().print(f"Not shown: {left_out} (show all with --all, one with --file)")


def _none_found(options: LogsOptions, app_id: ApplicationId, directory: str, found: list[ContainerLog]) -> str:
    whose = options.container or app_id
    if found:
        names = ", ".join(sorted({in_line(log.name) for log in found}))
        return f"{whose}: no log file {', '.join(options.file) or 'with output'} (found: {names})"
    return f"{whose}: no logs in {directory} (NodeManagers delete logs after their retention time)"


def _entry(log: ContainerLog, text: str) -> dict[str, object]:
    return {"container_id": log.container_id, "file": log.name, "path": str(log.path), "text": text}
