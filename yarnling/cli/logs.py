"""`yarnling logs`."""

from __future__ import annotations

import sys
from pathlib import Path

from yarn.errors import YarnException
from yarn.ids import ApplicationId, ContainerId
from yarnling.cli import json_form
from yarnling.cli.terminal import in_line
from yarnling.cluster_state import find_cluster
from yarnling.container_logs import ContainerLog, find_logs


def show(name: str, application: str, container: str | None, files: list[str], *, as_json: bool) -> None:
    """Print the log files of an application, each under a line that names it."""
    app_id = ApplicationId.parse(application)
    wanted = None if container is None else ContainerId.parse(container)
    state = find_cluster(name)
    dirs = [Path(path) for node in state.nodes for path in node.log_dirs]
    logs = [
        log
        for log in find_logs(dirs, app_id)
        if wanted in (None, log.container_id) and (not files or log.name in files)
    ]
    if not logs:
        raise YarnException(
            f"{container or app_id}: no logs in {state.directory} (logs go with their NodeManager's retention)"
        )
    if as_json:
        sys.stdout.write(json_form.text([_entry(log) for log in logs]) + "\n")
        return
    for log in logs:
        sys.stdout.write(f"==> {log.container_id} {in_line(log.name)} <==\n")
        text = log.text()
        sys.stdout.write(text if not text or text.endswith("\n") else text + "\n")


def _entry(log: ContainerLog) -> dict[str, object]:
    return {"container_id": log.container_id, "file": log.name, "path": str(log.path), "text": log.text()}
