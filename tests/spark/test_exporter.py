"""An exporter for Prometheus that reads the ResourceManager's REST API, on a cluster."""

from __future__ import annotations

import getpass
import subprocess
from pathlib import Path

import pytest

from tests.spark.clients import home_of
from yarn.applications import ApplicationSubmissionContext
from yarn.settings.resourcemanager import WEBAPP_ADDRESS
from yarn.settings.yarnling import WEB_ENABLED
from yarnling.cluster.local_cluster import LocalCluster

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.timeout(300)]


def test_applications_are_exported(tmp_path: Path) -> None:
    exporter = home_of("yarn-apps-exporter-0.0.5") / "bin" / "yarn-apps-exporter"
    output = tmp_path / "apps.prom"
    with LocalCluster(nodes=1, settings={WEB_ENABLED.key: "true"}) as cluster:
        app = cluster.client.new_application().application_id
        cluster.client.submit(ApplicationSubmissionContext(app, name="exported", unmanaged_am=True))
        url = f"http://{cluster.addresses[WEBAPP_ADDRESS.key]}"
        with subprocess.Popen([str(exporter), "--output-file", str(output), url], stdin=subprocess.DEVNULL) as process:
            cluster.until(output.exists)
            process.terminate()
    who = f'name="exported", user="{getpass.getuser()}", queue="root.default"'
    lines = output.read_text().splitlines()
    assert f'yarn_apps_by_state{{{who}, state="ACCEPTED"}} 1' in lines
