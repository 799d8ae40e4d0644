"""The environment of an AM, and the errors if something is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from am.client.environment import AMEnvironment
from tests.am.builders import ATTEMPT, container_id
from wire.files.credentials import Credentials
from wire.files.hadoop_xml import to_xml
from yarn.configuration import Configuration
from yarn.containers import AMRM_KIND, Token
from yarn.errors import YarnException
from yarn.settings.yarnling import CHECK_INVARIANTS

TOKEN = Token(b"identifier", b"password", AMRM_KIND, "")


@pytest.fixture
def variables(tmp_path: Path) -> dict[str, str]:
    site = to_xml({"yarn.resourcemanager.scheduler.address": "127.0.0.1:8030", "yarn.yarnling.time-factor": "0.5"})
    (tmp_path / "yarn-site.xml").write_text(site)
    tokens = tmp_path / "container_tokens"
    tokens.write_bytes(Credentials({"": TOKEN}).to_bytes())
    return {
        "CONTAINER_ID": "container_1700000000000_0001_01_000001",
        "HADOOP_TOKEN_FILE_LOCATION": str(tokens),
        "HADOOP_CONF_DIR": str(tmp_path),
        "NM_HOST": "127.0.0.2",
        "USER": "alice",
    }


def test_the_environment_that_a_node_manager_sets(variables: dict[str, str]) -> None:
    environment = AMEnvironment.read(variables)
    assert environment.attempt_id == ATTEMPT
    assert str(environment.scheduler_target) == "127.0.0.1:8030"
    assert environment.amrm_token == TOKEN
    assert (environment.host, environment.user) == ("127.0.0.2", "alice")


@pytest.mark.parametrize("name", ["CONTAINER_ID", "HADOOP_TOKEN_FILE_LOCATION", "HADOOP_CONF_DIR"])
def test_a_missing_variable_is_reported(variables: dict[str, str], name: str) -> None:
    del variables[name]
    with pytest.raises(YarnException, match=f"{name} is not set"):
        AMEnvironment.read(variables)


def test_a_token_file_without_an_amrm_token_is_refused(variables: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "container_tokens").write_bytes(Credentials().to_bytes())
    with pytest.raises(YarnException, match="only an ApplicationMaster gets one"):
        AMEnvironment.read(variables)
    (tmp_path / "container_tokens").unlink()
    with pytest.raises(YarnException, match="No such file"):
        AMEnvironment.read(variables)


def test_invariants_are_checked_if_the_cluster_says_so() -> None:
    token = Token(b"i", b"p", "AMRM", "")
    for value in (True, False):
        conf = Configuration.of({CHECK_INVARIANTS.key: str(value).lower()})
        assert AMEnvironment(container_id(1), "host", "alice", conf, token).check_invariants is value
