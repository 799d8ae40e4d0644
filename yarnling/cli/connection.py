"""The way from a command to a cluster that is up: its state file, and a client made after it."""

from __future__ import annotations

from pathlib import Path

from wire.hadoop_xml import load_configuration
from yarnling.client import Client
from yarnling.cluster_directory import ClusterDirectory
from yarnling.cluster_state import ClusterState, find_cluster


def connect(name: str, user: str = "") -> tuple[ClusterState, Client]:
    """The cluster called `name`, and a client of `user` ("" is who runs this). Raises NoCluster."""
    state = find_cluster(name)
    return state, client_for(state, user)


def client_for(state: ClusterState, user: str = "") -> Client:
    dirs = [Path(path) for node in state.nodes for path in node.log_dirs]
    return Client(
        state.addresses,
        user=user,
        conf=load_configuration(Path(state.conf_dir)),
        log_dirs=dirs,
        staging_root=ClusterDirectory(Path(state.directory), temporary=False).staging,
    )
