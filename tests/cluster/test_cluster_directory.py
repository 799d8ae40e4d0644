"""`up --directory`: a directory in use is left alone, and a cluster that was killed is resumed in its directory."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.conftest import DEFINITIONS, Yarnling, eventually

pytestmark = pytest.mark.cluster


def up(yarnling: Yarnling, name: str, directory: Path, *options: str) -> dict[str, Any]:
    ran = yarnling("up", "--fast", "--detach", "--json", "--name", name, "--directory", str(directory), *options)
    assert ran.returncode == 0, ran.stderr
    state: dict[str, Any] = json.loads(ran.stdout)
    return state


def applications(yarnling: Yarnling, name: str) -> dict[str, str]:
    """{application id: state}."""
    status = json.loads(yarnling("status", "--json", "--name", name).stdout)
    return {app["application_id"]: app["state"] for app in status["applications"]}


def submitted(yarnling: Yarnling, name: str) -> str:
    """A running application that runs for long."""
    shell = ("distributed-shell", "-shell_command", "sleep 600")
    ran = yarnling("submit", "--no-wait", "--json", "--name", name, *shell)
    assert ran.returncode == 0, ran.stderr
    app = str(json.loads(ran.stdout)["application_id"])
    eventually(lambda: applications(yarnling, name)[app] == "RUNNING", 60.0)
    return app


@pytest.fixture
def directory(yarnling: Yarnling, tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "cluster"
    yarnling("down", "--all")


def test_a_second_up_is_refused_and_the_first_cluster_goes_on(yarnling: Yarnling, directory: Path) -> None:
    first = up(yarnling, "da", directory, "--recovery", *DEFINITIONS)
    app = submitted(yarnling, "da")
    files = [directory / name for name in ("cluster-secret", "conf/yarn-site.xml", "conf/excluded-hosts")]
    before = [file.read_bytes() for file in files]
    second = yarnling("up", "--recovery", "--detach", "--fast", "--name", "db", "--directory", str(directory))
    assert second.returncode == 1
    assert f"in use by the cluster 'da', process {first['supervisor']['pid']} " in second.stderr
    assert [file.read_bytes() for file in files] == before
    assert yarnling("kill-rm", "--name", "da").returncode == 0
    assert "it has resumed 1 application" in yarnling("restart-rm", "--name", "da").stdout
    assert app in applications(yarnling, "da")


def test_a_cluster_that_was_killed_is_resumed(yarnling: Yarnling, directory: Path) -> None:
    """Under another name too; cleaning up after the one that was killed does not touch it then."""
    first = up(yarnling, "da", directory, "--recovery", *DEFINITIONS)
    app = submitted(yarnling, "da")
    os.kill(first["supervisor"]["pid"], signal.SIGKILL)
    up(yarnling, "db", directory, "--recovery", *DEFINITIONS)
    assert app in applications(yarnling, "db")
    assert yarnling("down", "--name", "da").returncode == 0
    # Its ApplicationMaster has ended with the first cluster: the next attempt runs once that one is known to be over.
    eventually(lambda: applications(yarnling, "db")[app] == "RUNNING", 60.0)
    assert yarnling("down", "--name", "db").returncode == 0
    refused = yarnling("up", "--detach", "--fast", "--name", "db", "--directory", str(directory))
    assert "has the applications of an earlier cluster (resume them with --recovery" in refused.stderr
    up(yarnling, "db", directory, "--recovery", "--discard-state", *DEFINITIONS)
    assert applications(yarnling, "db") == {}
