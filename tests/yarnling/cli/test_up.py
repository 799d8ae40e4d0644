"""The output of `yarnling up` if the start fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from yarn.errors import YarnException
from yarn.faults import ConfigurationException
from yarnling.cli import up
from yarnling.cli.options.cluster import UpOptions
from yarnling.cli.supervisor import cluster_of
from yarnling.cli.up import run_detached, run_foreground


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


def test_the_notice_about_emulation_is_not_printed_if_the_table_is_invalid(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    options = UpOptions(name="mine", emulate="nope.yaml")
    with pytest.raises(ConfigurationException, match=r"nope\.yaml"):
        run_foreground(options)
    monkeypatch.setattr(up, "start_detached", lambda options: {"error": "cannot be read"})
    with pytest.raises(YarnException, match="cannot be read"):
        run_detached(options)
    assert "nope.yaml" not in capsys.readouterr().err


@pytest.mark.parametrize(("web", "enabled"), [(True, "true"), (False, "false")])
def test_the_web_services_are_on_unless_they_are_left_out(web: bool, enabled: str) -> None:
    cluster = cluster_of(UpOptions(name="mine", web=web))
    assert cluster.composed.conf.get("yarn.yarnling.web.enabled") == enabled


def test_a_users_own_setting_of_the_web_services_wins() -> None:
    own = ["yarn.yarnling.web.enabled=false"]
    assert cluster_of(UpOptions(name="mine", define=own)).composed.conf.get("yarn.yarnling.web.enabled") == "false"
