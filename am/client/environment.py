"""The environment of an AM process, which its NM sets: its container, its token, and the cluster's configuration.

CONTAINER_ID                    the AM's container; the id contains that of the attempt
HADOOP_TOKEN_FILE_LOCATION      the file with the attempt's AMRM token
HADOOP_CONF_DIR                 the cluster's configuration (yarn-site.xml: the scheduler's address)
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from wire.failover import Failover
from wire.files.credentials import Credentials
from wire.files.hadoop_xml import load_configuration
from yarn.configuration import Configuration
from yarn.containers import AMRM_KIND, Token
from yarn.errors import YarnException
from yarn.ids import ApplicationAttemptId, ContainerId
from yarn.settings.high_availability import targets
from yarn.settings.resourcemanager import SCHEDULER_ADDRESS
from yarn.settings.yarnling import CHECK_INVARIANTS


class AMEnvironment(Struct, frozen=True):
    """The environment of one attempt's AM. `host` is the host of its NM."""

    container_id: ContainerId
    host: str
    user: str
    configuration: Configuration
    amrm_token: Token

    @property
    def attempt_id(self) -> ApplicationAttemptId:
        return self.container_id.attempt_id

    @property
    def scheduler_target(self) -> Failover:
        """The addresses at which the active RM may serve AMs."""
        return Failover(targets(self.configuration, SCHEDULER_ADDRESS))

    @property
    def check_invariants(self) -> bool:
        """True if the AM must check am.core.invariants after each step, as the cluster's daemons do."""
        return CHECK_INVARIANTS.of(self.configuration)

    @staticmethod
    def read(environ: Mapping[str, str] | None = None) -> AMEnvironment:
        """Read the environment of this process, or `environ`. Raises YarnException if it is not that of an AM."""
        variables = os.environ if environ is None else environ
        container_id = ContainerId.parse(_variable(variables, "CONTAINER_ID"))
        token_file = Path(_variable(variables, "HADOOP_TOKEN_FILE_LOCATION"))
        conf_dir = Path(_variable(variables, "HADOOP_CONF_DIR"))
        return AMEnvironment(
            container_id=container_id,
            host=variables.get("NM_HOST", ""),
            user=variables.get("USER", ""),
            configuration=load_configuration(conf_dir, environ=variables),
            amrm_token=_amrm_token(token_file),
        )


def _variable(variables: Mapping[str, str], name: str) -> str:
    value = variables.get(name)
    if not value:
        raise YarnException(
            f"{name} is not set: an ApplicationMaster is started by a NodeManager, which sets it (submit the "
            f"application instead of starting its ApplicationMaster yourself)"
        )
    return value


def _amrm_token(path: Path) -> Token:
    try:
        token = Credentials.from_bytes(path.read_bytes()).token_of_kind(AMRM_KIND)
    except OSError as error:
        raise YarnException(f"HADOOP_TOKEN_FILE_LOCATION = {path}: {error.strerror}") from None
    if token is None:
        raise YarnException(
            f"HADOOP_TOKEN_FILE_LOCATION = {path}: no token of kind {AMRM_KIND}; only an ApplicationMaster gets one"
        )
    return token
